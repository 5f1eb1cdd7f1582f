"""The folder for rows that must meet on this machine: only its owner can read it, and it is removed afterwards.

A process that is killed outright cannot remove its own. Each folder is therefore held by a lock, which goes with the process:
whoever makes the next one removes those of the same user that nobody holds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

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

_LOCK = ".held"


@contextmanager
def scratch(prefix: str) -> Iterator[str]:
    """A new folder; it is removed whatever happens, and by the next one where this very process is killed.

    Raises:
        DataError: There can be none.
    """
    with ExitStack() as stack:
        folder = ""
        with suppress(OSError):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix))
        if not folder:
            raise DataError(FULL)
        with suppress(OSError, ImportError):  # where there are no locks, nothing is swept
            _sweep(Path(folder).parent)
            stack.callback(os.close, _held(Path(folder)))
        yield folder


def _held(folder: Path) -> int:
    """Locks a folder for as long as this process lives, or until what this returns is closed."""
    import fcntl

    held = os.open(folder / ".taking", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    (folder / ".taking").rename(folder / _LOCK)  # nobody finds it before it is locked
    return held


def _sweep(where: Path) -> None:
    """Removes what killed processes of this user left behind."""
    import fcntl

    for folder in where.glob("sabun-*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails while its process lives
                shutil.rmtree(folder, ignore_errors=True)
