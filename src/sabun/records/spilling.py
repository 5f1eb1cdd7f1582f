"""Rows that wait on disk until their persons are put together: temporary files without a name, which the owner alone can read.

An id is not written: its keyed digest stands for it, under a key that is forgotten with the files. The cells are private data.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Hashable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import IO, NamedTuple, NoReturn, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.cells import Floats

__all__ = ["Spilled", "Waiting"]

_FILES = 16
_DIGEST = 16
"""Bytes of a digest: that two ids share one is as likely as guessing a key of 128 bits."""

_PIECE = 65_536
"""Rows read back at a time."""


class Waiting(NamedTuple):
    """Some rows that were read back, in the order they were written: whose they are, their cells, when they were. PRIVATE."""

    keys: list[bytes]
    cells: Floats
    when: Floats


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
        self._key = os.urandom(32)
        self._open = ExitStack()
        self._files: list[IO[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # what a full disk could not take is not wanted any more
            self._open.close()

    def add(self, ids: Sequence[Hashable], which: NDArray[np.int64], cells: Floats, when: Floats) -> None:
        """Writes rows down.

        Args:
            ids: Different ids, as text or bytes.
            which: The place in `ids` of each row's.
            cells: One line for each row.
            when: One number for each row.

        Raises:
            DataError: The disk is full, or there is none to write to.
        """
        digests = np.frombuffer(b"".join(map(self._digest, ids)), dtype="<u8").reshape(-1, 2)
        numbers = np.column_stack([cells, when]).astype("<f8")
        rows = np.column_stack([digests[which], numbers.view("<u8")])  # bits are moved, never computed with
        homes = rows[:, 0] % _FILES
        try:
            if not self._files:
                self._files = [self._open.enter_context(tempfile.TemporaryFile()) for _ in range(_FILES)]  # noqa: SIM115
            for home in range(_FILES):
                self._files[home].write(rows[homes == home].tobytes())
        except OSError:
            _refuse()

    def parts(self) -> Iterator[Iterator[Waiting]]:
        """The files one after the other, each in pieces; a file is closed when the next one is asked for."""
        for file in self._files:
            with file:
                yield self._read(file)

    def _read(self, file: IO[bytes]) -> Iterator[Waiting]:
        try:
            file.seek(0)
            size = 8 * (self._width + 3)
            while content := file.read(size * _PIECE):
                rows = np.frombuffer(content, dtype="<u8").reshape(-1, self._width + 3)
                raw, cells = rows[:, :2].tobytes(), np.ascontiguousarray(rows[:, 2:]).view("<f8")
                keys = [raw[start : start + _DIGEST] for start in range(0, len(raw), _DIGEST)]
                yield Waiting(keys, cells[:, :-1], cells[:, -1])
        except OSError:
            _refuse()

    def _digest(self, key: Hashable) -> bytes:
        content = key if isinstance(key, bytes) else str(key).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=_DIGEST, key=self._key).digest()


def _refuse() -> NoReturn:
    raise DataError(
        f"temporary files must fit into {tempfile.gettempdir()!r}: rows of persons that do not fit into memory wait in them. "
        "Make room there, name another folder (TMPDIR), or allow more memory (persons(memory=...))."
    ) from None
