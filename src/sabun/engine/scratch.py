"""The folder for rows that must meet on this machine: only its owner can read it, and it is removed afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from sabun.errors import DataError

__all__ = ["FULL", "GONE", "scratch"]

FULL = (
    "the folder for temporary files must have room for the rows; it has none, or cannot be written to. Nothing was charged. "
    "Name another one: TMPDIR=FOLDER."
)
GONE = (
    "rows in the folder for temporary files must stay there until they are counted; some are gone. Nothing was charged. "
    "Name a folder that nobody clears: TMPDIR=FOLDER."
)


@contextmanager
def scratch(prefix: str) -> Iterator[str]:
    """A new folder; it is removed whatever happens but a kill of this very process.

    Raises:
        DataError: There can be none.
    """
    with ExitStack() as stack:
        folder = ""
        with suppress(OSError):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        if not folder:
            raise DataError(FULL)
        yield folder
