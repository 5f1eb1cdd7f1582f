"""The counters behind a tally: how often each symbol was reported about each key; a `Statistic`.

State: 24 bytes per key (+, -, nothing) for sampled protocols, 16 bytes per key (+, -) for padded ones, plus the number of
reports; where no values are asked, + is yes and there is never a -. The recipe knows nothing of who reported; which report
counts is the collector's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sabun.errors import DataError
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.client.probabilities import JOINT, PER_KEY, SAMPLED, VALUELESS
from sabun.keyvalue.client.terms import Terms
from sabun.keyvalue.kernels import count_kernel

__all__ = ["Answer", "Answers", "Counters", "SymbolCounts"]

_MOST = 2**53
"""Sums and shares of larger counts would be rounded."""
_MANY = 50_000
"""From this many reports on, compiling the loop pays."""
_AT_ONCE = 1 << 20
"""Symbols in one block."""
_COLUMN = np.array([2, 0, 1])
"""Where a symbol (nothing, plus, minus) is counted."""


class Answer(NamedTuple):
    """What one report says.

    Attributes:
        part: Whose counters it goes to: PrivKVM's rounds have counters each, other protocols have one part.
        place: Where the key it is about stands in the list; None where it is about all keys.
        symbol: A whole number, or one of 0, 1, 2 per key.
    """

    part: int
    place: int | None
    symbol: int | tuple[int, ...]


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What many reports say, as arrays: the block of `SymbolCounts`.

    Args:
        symbols: Sampled protocols: 0, 1, 2 per report. Joint ones: 0 .. 2d per report. Unary encoding and sets: a table of 0,
            1, 2 with one row per report.
        indices: The key of each report, for sampled protocols only.
        part: Whose counters they go to.
    """

    symbols: ArrayLike
    indices: ArrayLike | None = None
    part: int = 0


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Counters:
    """How often each symbol came about each key.

    Args:
        cells: Whole numbers by part, key and symbol (plus, minus, and nothing where each report is about one key).
        n: Reports, of all parts together.
    """

    cells: NDArray[np.int64]
    n: int


@final
@dataclass(frozen=True, kw_only=True)
class SymbolCounts:
    """Symbols by key; a `Statistic`.

    Args:
        protocol: The study's protocol.
        keys: How many keys it has.
        parts: How many rounds have counters of their own.
        width: Of how many keys a report may speak, where each speaks of several; None for all of them.

    Example:
        >>> recipe = SymbolCounts(protocol="kv3", keys=2)
        >>> state = recipe.add(recipe.zero(), Answers(symbols=[1, 0, 2], indices=[0, 0, 1]))
        >>> state.cells.tolist(), state.n
        ([[[1, 0, 1], [0, 1, 0]]], 3)
    """

    protocol: str
    keys: int
    parts: int = 1
    width: int | None = None

    @classmethod
    def of(cls, terms: Terms) -> Self:
        """The counters of a study."""
        parts = terms.rounds if terms.protocol == "privkvm" else 1
        width = terms.subset.width if terms.subsets else None
        return cls(protocol=terms.protocol, keys=len(terms.keys), parts=parts, width=width)

    @property
    def name(self) -> str:
        """What is counted."""
        return "symbols by key"

    @property
    def sampled(self) -> bool:
        """Whether each report is about one key."""
        return self.protocol in SAMPLED

    @property
    def known(self) -> int:
        """How many symbols there are about one key: nothing and plus, and minus where values are asked."""
        return 2 if self.protocol in VALUELESS else 3

    def blocks(self, source: Iterable[Answer]) -> Iterator[Answers]:
        """Answers that a collector let pass, some at a time."""
        wide = self.keys if self.protocol in PER_KEY else 1
        answers = iter(source)
        while some := list(islice(answers, max(1, _AT_ONCE // wide))):
            for part in sorted({answer.part for answer in some}):
                chosen = [answer for answer in some if answer.part == part]
                places: Any = [answer.place for answer in chosen] if self.sampled else None
                yield Answers(symbols=[answer.symbol for answer in chosen], indices=places, part=part)

    def zero(self) -> Counters:
        """No reports."""
        return Counters(cells=np.zeros((self.parts, self.keys, 3 if self.sampled else 2), dtype=np.int64), n=0)

    def add(self, state: Counters, block: Answers) -> Counters:
        """With one more block; the old counters go on in the new ones.

        Raises:
            DataError: A symbol or an index is none of this study's; nothing was counted.
        """
        cells = state.cells[block.part]
        if (block.indices is not None) != self.sampled:
            raise DataError(f"indices must be {'given' if self.sampled else 'left out'} for protocol {self.protocol!r}.")
        if self.protocol in PER_KEY:
            size = self._add_unary(cells, block.symbols)
        elif self.protocol in JOINT:
            row = _checked("symbols", block.symbols, 2 * self.keys + 1)
            some = row[row > 0].astype(np.int64) - 1  # 1 + 2k is a plus about key k, 2 + 2k a minus
            np.add.at(cells, (some // 2, some % 2), 1)
            size = len(row)
        else:
            size = self._add_sampled(cells, np.asarray(block.symbols), np.asarray(block.indices))
        return Counters(cells=state.cells, n=state.n + size)

    def _add_unary(self, cells: NDArray[np.int64], symbols: ArrayLike) -> int:
        table = _checked("symbols", symbols, self.known, ndim=2)
        if len(table) and table.shape[1] != self.keys:
            raise DataError(f"symbols must have one column per key ({self.keys}); got {table.shape[1]}.")
        if self.width is not None and len(table) and int((table > 0).sum(axis=1).max()) > self.width:
            raise DataError(f"each row of symbols must speak of at most {self.width} keys; one speaks of more.")
        for column, symbol in enumerate((1, 2)):
            cells[:, column] += (table == symbol).sum(axis=0) if len(table) else 0
        return len(table)

    def _add_sampled(self, cells: NDArray[np.int64], row: NDArray[Any], places: NDArray[Any]) -> int:
        many = _counted_fast(row, places, self.keys)
        if many is not None and (self.known == 3 or not many[:, 1].any()):
            cells += many
            return len(row)
        row, places = _checked("symbols", row, self.known), _checked("indices", places, self.keys)
        if row.shape != places.shape:
            raise DataError("symbols and indices must have one length; they do not.")
        np.add.at(cells, (places, _COLUMN[row]), 1)
        return len(row)

    def merge(self, left: Counters, right: Counters) -> Counters:
        """Both together; the left counters go on in the new ones.

        Raises:
            DataError: They count more reports than any collection has; nothing was added.
        """
        if left.n + right.n > _MOST:
            raise DataError("merged tallies must count at most 2**53 reports; these count more.")
        cells = left.cells
        cells += right.cells
        return Counters(cells=cells, n=left.n + right.n)

    def pack(self, state: Counters) -> bytes:
        """The number of reports, then the cells; little-endian."""
        return state.n.to_bytes(8, "little") + state.cells.astype("<i8").tobytes()

    def unpack(self, content: bytes) -> Counters:
        """From bytes, which may come from anywhere.

        Raises:
            DataError: They have another size, or count what no reports can.
        """
        empty = self.zero().cells
        if len(content) != 8 + empty.nbytes:
            raise DataError("a tally must have the shape of its study; it has another.")
        cells = np.frombuffer(content[8:], dtype="<i8").astype(np.int64).reshape(empty.shape)
        found = Counters(cells=cells, n=int.from_bytes(content[:8], "little"))
        if not self.possible(found):
            raise DataError("a tally must count what its number of reports can say; it does not.")
        return found

    def sample(self) -> Answers:
        """Made-up symbols, each of them somewhere."""
        if self.protocol in PER_KEY:
            if self.width is not None:  # of one key each, for a row must not speak of many
                return Answers(symbols=np.vstack([symbol * np.eye(self.keys, dtype=np.int64) for symbol in range(self.known)]))
            return Answers(symbols=np.add.outer(np.arange(self.known), np.arange(self.keys)) % self.known)
        if self.protocol in JOINT:
            return Answers(symbols=np.arange(2 * self.keys + 1))
        turns = np.arange(self.known * self.keys)
        return Answers(symbols=turns % self.known, indices=turns // self.known)

    def possible(self, state: Counters) -> bool:
        """Whether counters can be those of their number of reports (of all rounds together, for PrivKVM)."""
        cells, n = state.cells, state.n
        if not 0 <= n <= _MOST or (cells.size and (cells.min() < 0 or cells.max() > n)):
            return False
        if self.known == 2 and cells[..., 1].any():
            return False
        # In floats first: counters of a crafted file could wrap around when they are added.
        total = float(cells.sum(dtype=np.float64))
        if self.sampled:
            return total <= 2.0 * _MOST and int(cells.sum()) == n
        if self.protocol in JOINT:
            return total <= 2.0 * _MOST and int(cells.sum()) <= n
        return bool((cells.sum(axis=-1) <= n).all())

    def counts(self, state: Counters, part: int = 0) -> Counts:
        """What the estimators read: plus, minus and the number of reports about each key."""
        cells = state.cells[part]
        total = cells.sum(axis=1) if self.sampled else np.full(self.keys, state.n, dtype=np.int64)
        return Counts(plus=cells[:, 0], minus=cells[:, 1], total=total)

    def reports(self, state: Counters) -> NDArray[np.int64]:
        """Reports of each part: a person is one of them at most once."""
        return state.cells.sum(axis=(1, 2)) if self.sampled else np.array([state.n], dtype=np.int64)


def _counted_fast(row: NDArray[Any], places: NDArray[Any], keys: int) -> NDArray[np.int64] | None:
    """Cells in one compiled pass; None where the arrays are few or not what they should be, for numpy to say why."""
    # Bytes in the order of the wire are for numpy: compiled code reads the machine's own order only.
    whole = all(array.dtype.kind in "iu" and array.dtype.isnative for array in (row, places))
    if not whole or row.ndim != 1 or row.shape != places.shape or len(row) < _MANY:
        return None
    cells = np.zeros((keys, 3), dtype=np.int64)
    return cells[:, (1, 2, 0)] if count_kernel()(row, places, keys, cells) else None


def _checked(name: str, values: Any, limit: int, ndim: int = 1) -> NDArray[Any]:
    """Whole numbers in 0 .. limit - 1, or an error; never moved into range."""
    array = np.asarray(values)
    good = array.ndim == ndim and array.dtype.kind in "iu"
    if array.size == 0:
        return array.astype(np.int64).reshape(array.shape if array.ndim == ndim else (0,) * ndim)
    if not good or array.min() < 0 or array.max() >= limit:
        raise DataError(f"{name} must be whole numbers from 0 to {limit - 1}; they are not.")
    return array
