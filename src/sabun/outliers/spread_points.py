"""A table in pieces as points: who lies where, then what the ladder needs, without the whole table in one place.

Up to `MOST_SLABS` dimensions rows are dealt into slabs with a rim (`slabs`); above, a slab's rim would be most of the table, so
every worker gets all rows and answers for a share (`replicated`). Either way the answer is that of one machine to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.engine import Elsewhere
from sabun.engine.arrays import packed, unpacked
from sabun.engine.statistic import Met
from sabun.errors import DataError
from sabun.outliers.kissing import global_bound
from sabun.outliers.points import places_of
from sabun.outliers.sensitivity import Measured, Near, discounts_for, smooth_of
from sabun.records import CHUNK_ROWS, Schema, has_names, open_source

__all__ = ["MOST_SLABS", "Coordinates", "Extent", "SpreadPoints"]

MOST_SLABS = 4
"""Dimensions up to which slabs are cut."""

BINS = 1 << 12
"""Places along each side of the unit cube at which a slab may end; public."""

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True)
class Coordinates:
    """How rows become points of the unit cube; public.

    Args:
        schema: What is declared about the table.
        chosen: The columns that are coordinates, declared again by themselves.
    """

    schema: Schema
    chosen: Schema

    @classmethod
    def of(cls, schema: Schema, columns: tuple[int | str, ...] | None) -> Self:
        """From a choice of columns."""
        places = places_of(columns, schema.names, declared=True)
        return cls(schema=schema, chosen=schema.select([schema.names[place] for place in places]))

    @property
    def width(self) -> int:
        """How many coordinates there are."""
        return self.chosen.width

    def points(self, source: object) -> Iterator[_Floats]:
        """The points of a piece, some at a time; no cell can raise."""
        schema = self.chosen if has_names(source) else self.schema
        places = [schema.names.index(name) for name in self.chosen.names]
        for rows in open_source(source, schema=schema).partitions(rows=CHUNK_ROWS):
            yield np.ascontiguousarray(self.chosen.design(rows[:, places], to=(0.0, 1.0)))

    def met(self, met: Met) -> _Floats:
        """The points that met, from their bytes."""
        return np.frombuffer(b"".join(met.rows)).reshape(-1, self.width)


@final
@dataclass(frozen=True, kw_only=True)
class Extent:
    """How many points lie in each bin of each coordinate; a `Statistic`, whose state is private."""

    coordinates: Coordinates

    @property
    def name(self) -> str:
        """What is counted."""
        return "places of points"

    def blocks(self, source: object) -> Iterator[_Floats]:
        """Points, some at a time."""
        return self.coordinates.points(source)

    def zero(self) -> _Integers:
        """No points."""
        return np.zeros((self.coordinates.width, BINS), dtype=np.int64)

    def add(self, state: _Integers, block: _Floats) -> _Integers:
        """With one more block."""
        for axis, column in enumerate(block.T):
            state[axis] += np.bincount(np.minimum((column * BINS).astype(np.int64), BINS - 1), minlength=BINS)
        return state

    def merge(self, left: _Integers, right: _Integers) -> _Integers:
        """Both together."""
        return left + right

    def pack(self, state: _Integers) -> bytes:
        """As bytes."""
        return packed(state)

    def unpack(self, content: bytes) -> _Integers:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        found = unpacked(content)
        if len(found) != 1 or found[0].shape != self.zero().shape:
            raise DataError("sums must be bytes that the same statistic packed; they are not.")
        return found[0]

    def sample(self) -> _Floats:
        """Made-up points."""
        return made_up(self.coordinates.width)


@final
@dataclass(frozen=True, kw_only=True)
class SpreadPoints:
    """A table in pieces whose size is known.

    Args:
        source: The table.
        coordinates: How its rows become points.
        extent: Where its points lie; PRIVATE.
    """

    source: Elsewhere
    coordinates: Coordinates
    extent: _Integers = field(repr=False)

    @classmethod
    def of(cls, source: Elsewhere, *, schema: Schema | None, columns: tuple[int | str, ...] | None) -> Self:
        """Looks once at all pieces.

        Raises:
            DataError: There is no schema, or the table does not fit it.
        """
        if schema is None:
            raise DataError("a table in pieces must have a schema, so that every cell has a place; got none. Declare bounds.")
        coordinates = Coordinates.of(schema, columns)
        return cls(source=source, coordinates=coordinates, extent=source.counted(Extent(coordinates=coordinates)))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of records, of coordinates."""
        return int(self.extent[0].sum()), self.coordinates.width

    def measured(self, *, k: int, radius: float, beta: Fraction | None, cover: str, relation: str) -> Measured:
        """As `sensitivity.measure`, to the bit; without a beta the exact count and no bound. PRIVATE.

        Raises:
            DataError: A piece could not be read, or the table changed since its size was found.
        """
        n, d = self.shape
        public = n if relation == "replace-one" else None
        cap = global_bound(n=public, d=d, k=k, relation=relation)
        if cap == 0:
            return n, Fraction(0)
        if beta is None:
            return self._near(k=k, radius=radius, rungs=0).outliers, Fraction(0)
        discounts = discounts_for(n=public, d=d, k=k, beta=beta, relation=relation)
        near = self._near(k=k, radius=radius, rungs=discounts.rungs)
        return near.outliers, smooth_of(near, discounts, radius=radius, cover=cover, cap=cap, relation=relation)

    def _near(self, *, k: int, radius: float, rungs: int) -> Near:
        from sabun.outliers.replicated import near_by_shares
        from sabun.outliers.slabs import near_by_slabs

        found = near_by_slabs if self.coordinates.width <= MOST_SLABS else near_by_shares
        rows, near = found(self.source, self.coordinates, self.extent, k=k, radius=radius, rungs=rungs)
        if rows != self.shape[0]:
            raise DataError("a table must stay as it is while it is read; this one gave other rows the second time.")
        return near


def made_up(width: int) -> _Floats:
    """Public points that exercise the arithmetic: a rotation of the unit interval in each coordinate."""
    steps = np.arange(1, 257, dtype=np.float64)[:, None] * np.sqrt(np.arange(2, 2 + width, dtype=np.float64))
    return np.ascontiguousarray(steps - np.floor(steps))


def nearest(ranks: _Integers, points: _Floats, rungs: int) -> tuple[_Integers, _Floats]:
    """How many points have joined on each rung, with the points in the order in which they join."""
    order = np.argsort(ranks, kind="stable")
    ends = np.searchsorted(ranks[order], np.arange(rungs), side="right").astype(np.int64)
    return ends, points[order]
