"""Rows that wait on disk until their persons are put together: temporary files without a name, which the owner alone can read.

They hold private data: ids and cells, as numbers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import IO, NamedTuple, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.cells import Floats
from sabun.records.ids import Keys

__all__ = ["Rows", "Spilled"]

_FILES = 16
_PIECE = 1 << 16
"""Rows read back at a time."""


class Rows(NamedTuple):
    """Some rows in the order of the table: whose they are, their cells, when they were (None where nobody asks). PRIVATE."""

    keys: Keys
    cells: Floats
    when: Floats | None

    def where(self, chosen: NDArray[np.bool_]) -> Rows:
        """Only the chosen ones."""
        return Rows(self.keys[chosen], self.cells[chosen], None if self.when is None else self.when[chosen])

    def __repr__(self) -> str:
        return "<Rows>"  # whose they are, and what they hold, is private


@final
class Spilled:
    """Rows of persons, parted by person: all rows of one lie in one file. To be used in a `with` statement.

    The files have no name (where the system allows it, and are removed when closed elsewhere), so that nothing is left of them
    when the process fails or is killed.

    Args:
        width: How many cells a row has.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._factors = np.frombuffer(os.urandom(16), dtype=np.uint64) | np.uint64(1)
        self._timed = False
        self._open = ExitStack()
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what a full disk could not take is not wanted any more
            self._open.close()

    def add(self, rows: Rows, chosen: NDArray[np.int64]) -> None:
        """Writes some of the rows down, in their order.

        Raises:
            DataError: The disk is full, or there is none to write to.
        """
        self._timed = rows.when is not None
        keys = rows.keys[chosen]
        homes = (keys[:, 0] * self._factors[0] + keys[:, 1] * self._factors[1] >> np.uint64(60)).astype(np.uint8)
        order = np.argsort(homes, kind="stable")  # proof: one-file
        parts = [rows.keys, rows.cells.view(np.uint64), *([] if rows.when is None else [rows.when.view(np.uint64)[:, None]])]
        lines = np.hstack(parts)[chosen[order]]  # bits are moved, never computed with
        ends = np.searchsorted(homes[order], np.arange(_FILES + 1))
        try:
            if not self._files:
                self._files = [self._open.enter_context(tempfile.TemporaryFile()) for _ in range(_FILES)]  # noqa: SIM115
            for home, file in enumerate(self._files):
                file.write(lines[ends[home] : ends[home + 1]].data)
        except OSError:
            _refuse()

    def parts(self) -> Iterator[Iterator[Rows]]:
        """The files one after the other, each in pieces; a file is closed when the next one is asked for."""
        for file in self._files:
            with file:
                yield self._read(file)

    def _read(self, file: IO[bytes]) -> Iterator[Rows]:
        words = self._width + 2 + self._timed
        try:
            file.seek(0)
            while content := file.read(8 * words * _PIECE):
                lines = np.frombuffer(content, dtype=np.uint64).reshape(-1, words)
                cells = np.ascontiguousarray(lines[:, 2:]).view(np.float64)
                yield Rows(lines[:, :2], cells[:, : self._width], cells[:, -1] if self._timed else None)
        except OSError:
            _refuse()


def _refuse() -> NoReturn:
    raise DataError(
        f"temporary files must fit into {tempfile.gettempdir()!r}: rows of persons that do not fit into memory wait in them. "
        "Make room there, name another folder (TMPDIR), or allow more memory (persons(memory=...), --memory)."
    ) from None
