"""Slabs with a rim: what the ladder needs of a table, slab by slab.

Notation: a slab owns the points with low <= x < high in one coordinate; around it lies a rim two radii wide. The neighbours of
an owned point lie within one radius, their neighbours within two: so a slab knows the exact degree of every point within one
radius, hence how many members of each band its own points have near them. Rim points are counted by their own slabs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.engine import Elsewhere
from sabun.engine.arrays import packed, unpacked
from sabun.engine.statistic import Met, state_of
from sabun.errors import DataError
from sabun.outliers.sensitivity import Near
from sabun.outliers.spread_points import BINS, Coordinates, made_up, nearest

__all__ = ["SlabBands", "Slabs", "near_by_slabs"]

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]

_LEAST = 16
"""Slabs at least; more where the table has many pieces. From public numbers: how many there are may be seen by others."""

_SLACK = 1.0 + 1e-9
"""Neighbours by the canonical rule are at most this times the radius apart in a coordinate, whatever the rounding."""


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Slabs:
    """Where a table is cut. PRIVATE, for it was chosen by the data.

    Args:
        coordinates: How rows become points; public.
        axis: The coordinate that is cut.
        borders: Where, growing; two slabs share each. A slab may own nothing.
        radius: The public radius.
    """

    coordinates: Coordinates
    axis: int = field(repr=False)
    borders: tuple[float, ...] = field(repr=False)
    radius: float

    @property
    def count(self) -> int:
        """How many slabs there are."""
        return len(self.borders) + 1

    def dealt(self, points: _Floats) -> Iterator[bytes]:
        """For each slab, the points in it and in its rim."""
        points = points[np.argsort(points[:, self.axis], kind="stable")]
        for slab in range(self.count):
            start, end = np.searchsorted(points[:, self.axis], self.limits(slab, radii=2), side="left")
            yield points[start:end].tobytes()

    def limits(self, slab: int, *, radii: int) -> tuple[float, float]:
        """From where up to but not including where a slab reaches with a rim of so many radii."""
        edges, reach = (-np.inf, *self.borders, np.inf), self.radius * _SLACK
        low, high = edges[slab], edges[slab + 1]
        for _ in range(radii):
            # Rounding keeps order: what lies within a radius of a point inside is never cut off, radius by radius; one step up,
            # for `high` itself is not reached.
            low, high = low - reach, float(np.nextafter(high + reach, np.inf))  # proof: rounded-rim
        return low, high


class Slab(NamedTuple):
    """Points of a slab with its rim: which it owns, which have all neighbours here."""

    points: _Floats
    owned: NDArray[np.bool_]
    whole: NDArray[np.bool_]


class Found(NamedTuple):
    """What some slabs know; PRIVATE.

    Attributes:
        rows: How many points they own.
        outliers: How many of those are outliers.
        most: For each rung the most members of its band near one point.
        ranks: |degree - (k - 1)| of owned points, where it is below the number of rungs.
        points: Those points.
    """

    rows: int
    outliers: int
    most: _Integers
    ranks: _Integers
    points: _Floats

    def __repr__(self) -> str:
        return "<Found>"  # what it holds is private


@final
@dataclass(frozen=True, kw_only=True)
class SlabBands:
    """Degrees near k in slabs: how points meet (a `Grouped`), and the `Statistic` of those that did.

    Args:
        slabs: Where the table is cut; PRIVATE.
        k: Neighbours an inlier needs.
        rungs: How many rungs the ladder has.
    """

    slabs: Slabs = field(repr=False)
    k: int
    rungs: int

    everyone = False
    in_order = False

    @property
    def statistic(self) -> Self:
        """This."""
        return self

    @property
    def buckets(self) -> int:
        """One for each slab."""
        return self.slabs.count

    def parted(self, number: int, source: object, buckets: int) -> Iterator[list[bytes]]:
        """Each point to its slab and to all slabs whose rim it lies in."""
        del number, buckets
        for points in self.slabs.coordinates.points(source):
            yield list(self.slabs.dealt(points))

    def state(self, met: Met) -> Found:
        """What one slab knows."""
        return state_of(self, met)

    @property
    def name(self) -> str:
        """What is counted."""
        return "outliers by slabs"

    def blocks(self, source: Met) -> Iterator[Slab]:
        """All points of a slab and its rim."""
        points = self.slabs.coordinates.met(source)
        column, limits = points[:, self.slabs.axis], (self.slabs.limits(source.bucket, radii=radii) for radii in (0, 1))
        yield Slab(points, *((low <= column) & (column < high) for low, high in limits))

    def zero(self) -> Found:
        """No slab."""
        none = np.zeros(0, dtype=np.int64)
        return Found(0, 0, np.zeros(self.rungs, dtype=np.int64), none, np.empty((0, self.slabs.coordinates.width)))

    @np.errstate(all="ignore")
    def add(self, state: Found, block: Slab) -> Found:
        """With one more slab."""
        from sabun.outliers.ladder import Bands

        if not block.owned.any():
            return state
        bands = Bands(block.points, k=self.k, radius=self.slabs.radius, rungs=self.rungs, whole=block.whole)
        degrees = bands.degrees.astype(np.int64)
        ranks = np.abs(degrees - (self.k - 1))
        near = block.owned & (ranks < self.rungs)
        count = int((degrees[block.owned] < self.k).sum())
        return self.merge(state, Found(int(block.owned.sum()), count, bands.most, ranks[near], block.points[near]))

    def merge(self, left: Found, right: Found) -> Found:
        """Both together: a point of the rim has some of its neighbours here, never more, so the most is the most."""
        return Found(
            left.rows + right.rows,
            left.outliers + right.outliers,
            np.maximum(left.most, right.most),  # proof: most-of-slabs
            np.concatenate([left.ranks, right.ranks]),
            np.concatenate([left.points, right.points]),
        )

    def pack(self, state: Found) -> bytes:
        """As bytes."""
        order = np.lexsort((*state.points.T, state.ranks))
        return packed(np.array([state.rows, state.outliers]), state.most, state.ranks[order], state.points[order])

    def unpack(self, content: bytes) -> Found:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        try:
            (rows, count), most, ranks, points = unpacked(content)
        except ValueError:
            raise DataError("sums must be bytes that the same statistic packed; they are not.") from None
        return Found(int(rows), int(count), most, ranks, points)

    def sample(self) -> Slab:
        """Made-up points in the unit cube, by the question's own radius."""
        points = made_up(self.slabs.coordinates.width)
        everybody = np.ones(len(points), dtype=np.bool_)
        return Slab(points, everybody, everybody)


def near_by_slabs(
    source: Elsewhere, coordinates: Coordinates, extent: _Integers, *, k: int, radius: float, rungs: int
) -> tuple[int, Near]:
    """How many points there are, with what the ladder needs of them.

    Args:
        source: The table.
        coordinates: How rows become points.
        extent: How many points lie in each bin of each coordinate.
        k: Neighbours an inlier needs.
        radius: The public radius.
        rungs: How many rungs the ladder has.

    Raises:
        DataError: As `sabun.engine.engines.gathered`.
    """
    slabs = cut_slabs(coordinates, extent, radius=radius, count=max(_LEAST, 2 * source.parts))
    found: Found = source.grouped(SlabBands(slabs=slabs, k=k, rungs=rungs))
    ends, points = nearest(found.ranks, found.points, rungs)
    return found.rows, Near(outliers=found.outliers, most=found.most, ends=ends, first=lambda size: points[:size])


def cut_slabs(coordinates: Coordinates, extent: _Integers, *, radius: float, count: int) -> Slabs:
    """Slabs of about equal content along the coordinate where rims hold least."""
    choices = [
        Slabs(coordinates=coordinates, axis=axis, borders=_borders(bins, count), radius=radius)
        for axis, bins in enumerate(extent)
    ]
    return min(choices, key=lambda slabs: _dealt(extent[slabs.axis], slabs))


def _borders(bins: _Integers, count: int) -> tuple[float, ...]:
    """Ends of bins behind which the shares of 1 .. count - 1 out of count lie."""
    below = np.cumsum(bins)
    shares = [int(below[-1]) * place // count for place in range(1, count)]
    return tuple(float(place + 1) / BINS for place in np.searchsorted(below, shares, side="left"))


def _dealt(bins: _Integers, slabs: Slabs) -> int:
    """About how many points all slabs get with their rims."""
    below = np.append(0, np.cumsum(bins))
    limits = np.array([slabs.limits(slab, radii=2) for slab in range(slabs.count)])
    places = np.clip(np.floor(limits * BINS), 0, BINS).astype(np.int64)
    return int((below[places[:, 1]] - below[places[:, 0]]).sum())
