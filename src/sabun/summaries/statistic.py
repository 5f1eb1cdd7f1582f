"""The exact sums behind every plain answer: whole numbers that add up in any order, in any pieces."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun.asking import Statistic
from sabun.errors import DataError
from sabun.records import Schema
from sabun.summaries.people import Block, People
from sabun.summaries.ruler import Ruler

__all__ = ["CellCounts", "Cells", "Moments", "PowerSums", "Sums", "Tally"]

_AT_ONCE = 1 << 16
"""Rows added in 64-bit numbers before they go into numbers of any size: 2**16 squares of 2**21 stay below 2**63."""


class Cells(Protocol):
    """Public places for the cells of a column: a ruler's marks, or bins."""

    @property
    def count(self) -> int:
        """How many places there are."""
        ...

    def index(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The place of each cell, -1 for none."""
        ...


class Sums(Statistic[Any], Protocol):
    """A `Statistic` that knows how many rows it has seen."""

    def rows(self, state: Any) -> int:
        """How many rows a state has seen, in whatever group; public only where the size of the table is."""
        ...


Moments: TypeAlias = tuple[int, int, int]
"""Of one group: how many rows, the sum of their marks, the sum of the squares of their marks."""


@final
@dataclass(frozen=True, repr=False)
class Tally:
    """Sums so far; PRIVATE.

    Args:
        rows: How many rows were seen, in whatever group.
        groups: Moments of each group.
    """

    rows: int
    groups: tuple[Moments, ...]


@final
@dataclass(frozen=True, kw_only=True)
class PowerSums:
    """Sizes, sums and sums of squares by group; a `Statistic`.

    Args:
        people: Groups and condition.
        ruler: Marks of the column; None counts rows only.
    """

    people: People
    ruler: Ruler | None

    @property
    def name(self) -> str:
        """What is summed."""
        return "power sums"

    @property
    def schema(self) -> Schema:
        """What is declared about the columns that are looked at; others need not travel."""
        return self.people.schema.select(self.people.names)

    def blocks(self, source: object) -> Iterable[Block]:
        """Encoded rows, some at a time."""
        return self.people.blocks(source)

    def zero(self) -> Tally:
        """No rows."""
        return Tally(0, ((0, 0, 0),) * len(self.people.groups))

    def add(self, state: Tally, block: Block) -> Tally:
        """With one more block."""
        for start in range(0, len(block.groups), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            state = self.merge(state, self._tally(block.groups[part], block.cells[part]))
        return state

    def _tally(self, groups: NDArray[np.int64], cells: NDArray[np.float64]) -> Tally:
        marks = np.zeros(len(cells), dtype=np.int64) if self.ruler is None else self.ruler.index(cells)
        inside = groups >= 0
        sums = np.zeros((len(self.people.groups), 3), dtype=np.int64)
        for power, terms in enumerate((np.ones_like(marks), marks, marks * marks)):
            np.add.at(sums[:, power], groups[inside], terms[inside])
        return Tally(len(groups), tuple((size, total, squares) for size, total, squares in sums.tolist()))

    def rows(self, state: Tally) -> int:
        """How many rows were seen."""
        return state.rows

    def merge(self, left: Tally, right: Tally) -> Tally:
        """Both together."""
        pairs = zip(left.groups, right.groups, strict=True)
        both = tuple((a[0] + b[0], a[1] + b[1], a[2] + b[2]) for a, b in pairs)
        return Tally(left.rows + right.rows, both)

    def pack(self, state: Tally) -> bytes:
        """As bytes."""
        return json.dumps([state.rows, *state.groups], separators=(",", ":")).encode()

    def unpack(self, content: bytes) -> Tally:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        try:
            rows, *groups = json.loads(content)
            found = Tally(int(rows), tuple((int(a), int(b), int(c)) for a, b, c in groups))
        except (ValueError, TypeError):
            raise DataError("sums must be bytes that the same statistic packed; they are not.") from None
        if len(found.groups) != len(self.people.groups):
            raise DataError("sums must have as many groups as the statistic; they do not.")
        return found

    def sample(self) -> Block:
        """Made-up rows."""
        return self.people.sample()


@final
@dataclass(frozen=True, kw_only=True)
class CellCounts:
    """How many rows of each group have their cell in each place; a `Statistic`.

    Its state is an array (groups, places + 1) of whole numbers; the last column counts the rows of nobody asked about in its
    first line, so that all of it adds up to the rows seen.

    Args:
        people: Groups and condition.
        cells: The places.
    """

    people: People
    cells: Cells

    @property
    def name(self) -> str:
        """What is counted."""
        return "cell counts"

    @property
    def schema(self) -> Schema:
        """What is declared about the columns that are looked at; others need not travel."""
        return self.people.schema.select(self.people.names)

    def blocks(self, source: object) -> Iterable[Block]:
        """Encoded rows, some at a time."""
        return self.people.blocks(source)

    def zero(self) -> NDArray[np.int64]:
        """No rows."""
        return np.zeros((len(self.people.groups), self.cells.count + 1), dtype=np.int64)

    def add(self, state: NDArray[np.int64], block: Block) -> NDArray[np.int64]:
        """With one more block."""
        places = np.where(block.groups >= 0, self.cells.index(block.cells), -1)
        lines = np.where(places >= 0, block.groups, 0)
        flat = lines * state.shape[1] + np.where(places >= 0, places, self.cells.count)
        return state + np.bincount(flat, minlength=state.size).reshape(state.shape)

    def rows(self, state: NDArray[np.int64]) -> int:
        """How many rows were seen."""
        return int(state.sum())

    def merge(self, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
        """Both together."""
        return left + right

    def pack(self, state: NDArray[np.int64]) -> bytes:
        """As bytes."""
        return state.astype("<i8").tobytes()

    def unpack(self, content: bytes) -> NDArray[np.int64]:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        empty = self.zero()
        if len(content) != 8 * empty.size:
            raise DataError("counts must be bytes that the same statistic packed; they are not.")
        return np.frombuffer(content, dtype="<i8").astype(np.int64).reshape(empty.shape)

    def sample(self) -> Block:
        """Made-up rows."""
        return self.people.sample()
