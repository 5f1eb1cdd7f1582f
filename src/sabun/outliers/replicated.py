"""The whole table with every worker, a share of the records with each: neighbours in more dimensions than slabs can cut.

Every worker puts the points into the same order, so that a record has one number everywhere; it answers for its share. Lists of
neighbours are sent only for records whose degree is near k, which is all that the ladder looks at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.engine import Elsewhere
from sabun.engine.arrays import packed, unpacked
from sabun.engine.statistic import Met, state_of
from sabun.errors import DataError
from sabun.outliers.sensitivity import Near
from sabun.outliers.spread_points import Coordinates, made_up, nearest

__all__ = ["ShareBands", "near_by_shares"]

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]

_SHARES = 8
"""Into how many shares the records are cut; a matter of speed that cannot change any result."""


class Share(NamedTuple):
    """All points in the common order, with the first of a share and the one after its last."""

    points: _Floats
    start: int
    end: int


class Answered(NamedTuple):
    """What one share knows; PRIVATE.

    Attributes:
        table: A digest of all points in the common order.
        start: The number of its first record.
        degrees: Of its records, counted up to k + rungs.
        listed: Which of its records have a list: those whose degree is within the rungs of k.
        lists: Their neighbours' numbers, one list after the other.
        points: Its points whose degree is within the rungs of k - 1.
    """

    table: bytes
    start: int
    degrees: NDArray[np.int32]
    listed: NDArray[np.bool_]
    lists: NDArray[np.int32]
    points: _Floats

    def __repr__(self) -> str:
        return "<Answered>"  # what it holds is private


@final
@dataclass(frozen=True, kw_only=True)
class ShareBands:
    """Degrees near k by shares: how points meet (a `Grouped`), and the `Statistic` of those that did.

    Args:
        coordinates: How rows become points.
        shares: How many shares there are.
        k: Neighbours an inlier needs.
        radius: The public radius.
        rungs: How many rungs the ladder has.
    """

    coordinates: Coordinates
    shares: int
    k: int
    radius: float
    rungs: int

    everyone = True
    in_order = False

    @property
    def statistic(self) -> Self:
        """This."""
        return self

    @property
    def buckets(self) -> int:
        """One for each share."""
        return self.shares

    def parted(self, number: int, source: object, buckets: int) -> Iterator[list[bytes]]:
        """Each point once: everyone gets it."""
        del number, buckets
        for points in self.coordinates.points(source):
            yield [points.tobytes()]

    def state(self, met: Met) -> tuple[Answered, ...]:
        """What one share knows."""
        return state_of(self, met)

    @property
    def name(self) -> str:
        """What is counted."""
        return "outliers by shares"

    def blocks(self, source: Met) -> Iterator[Share]:
        """All points in an order that depends on nothing but the points."""
        points = self.coordinates.met(source)
        points = np.ascontiguousarray(points[np.lexsort(points.T)])
        start, end = (len(points) * place // self.shares for place in (source.bucket, source.bucket + 1))
        yield Share(points, start, end)

    def zero(self) -> tuple[Answered, ...]:
        """No share."""
        return ()

    @np.errstate(all="ignore")
    def add(self, state: tuple[Answered, ...], block: Share) -> tuple[Answered, ...]:
        """With one more share."""
        from sabun.outliers import tree

        asking = np.zeros(len(block.points), dtype=np.bool_)
        asking[block.start : block.end] = True
        limit, own = self.k + self.rungs, slice(block.start, block.end)
        graph = tree.neighbours_within(block.points, self.radius * self.radius, limit, listed=limit, asking=asking)
        degrees, starts = graph.counts[own], graph.starts[own]
        listed = np.abs(degrees.astype(np.int64) - self.k) < self.rungs
        near = np.abs(degrees.astype(np.int64) - (self.k - 1)) < self.rungs
        lists = _picked(graph.lists, starts[listed], degrees[listed].astype(np.int64))
        digest = hashlib.sha256(block.points.tobytes()).digest()
        return self.merge(state, (Answered(digest, block.start, degrees, listed, lists, block.points[own][near]),))

    def merge(self, left: tuple[Answered, ...], right: tuple[Answered, ...]) -> tuple[Answered, ...]:
        """Both together, in the order of the records."""
        return tuple(sorted((*left, *right), key=lambda share: (share.start, len(share.degrees))))

    def pack(self, state: tuple[Answered, ...]) -> bytes:
        """As bytes."""
        arrays: list[NDArray[np.generic]] = []
        for share in state:
            arrays += [np.frombuffer(share.table, dtype=np.uint8), np.array([share.start])]
            arrays += [share.degrees, share.listed, share.lists, share.points]
        return packed(*arrays)

    def unpack(self, content: bytes) -> tuple[Answered, ...]:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        arrays, width = unpacked(content), len(Answered._fields)
        if len(arrays) % width:
            raise DataError("sums must be bytes that the same statistic packed; they are not.")
        parts = [arrays[place : place + width] for place in range(0, len(arrays), width)]
        return tuple(Answered(table.tobytes(), int(start[0]), *rest) for table, start, *rest in parts)

    def sample(self) -> Share:
        """Made-up points in the unit cube, by the question's own radius."""
        points = made_up(self.coordinates.width)
        return Share(points, 0, len(points))


def near_by_shares(
    source: Elsewhere, coordinates: Coordinates, extent: _Integers, *, k: int, radius: float, rungs: int
) -> tuple[int, Near]:
    """How many points there are, with what the ladder needs of them; arguments as in `slabs.near_by_slabs`.

    Raises:
        DataError: As `sabun.engine.engines.gathered`; or workers saw different tables.
    """
    del extent
    statistic = ShareBands(coordinates=coordinates, shares=_SHARES, k=k, radius=radius, rungs=rungs)
    found: tuple[Answered, ...] = source.grouped(statistic)
    if len({share.table for share in found}) > 1:
        raise DataError("every worker must see the same table; they do not. Nothing was charged. Ask again, from files.")
    degrees = np.concatenate([share.degrees for share in found])
    ranks = np.abs(degrees.astype(np.int64) - (k - 1))
    ends, points = nearest(ranks[ranks < rungs], np.concatenate([share.points for share in found]), rungs)
    count = int((degrees < k).sum())
    return len(degrees), Near(outliers=count, most=_most(found, degrees, k, rungs), ends=ends, first=lambda size: points[:size])


def _most(found: tuple[Answered, ...], degrees: NDArray[np.int32], k: int, rungs: int) -> _Integers:
    """For each rung the most members of its band near one record, from the lists that came."""
    from sabun.outliers import peeling, tree

    listed = np.concatenate([share.listed for share in found])
    lengths = np.where(listed, degrees, 0).astype(np.int64)
    starts = np.where(listed, np.cumsum(lengths) - lengths, -1)
    lists = np.concatenate([share.lists for share in found])
    nobody = tree.Tree(
        np.empty((0, 1)),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=np.int64),
        np.empty((0, 1)),
        np.empty((0, 1)),
        np.empty((0, 1, tree.BLOCK)),
    )
    ranks = np.where(listed, np.abs(degrees.astype(np.int64) - k), rungs)
    band = np.argsort(ranks, kind="stable")
    ends = np.searchsorted(ranks[band], np.arange(rungs), side="right").astype(np.int64)
    # Everybody in the band has a list, so nobody is searched for in the empty tree.
    return peeling.running_most(tree.Graph(nobody, 0.0, degrees, starts, lists), band, ends)


def _picked(lists: NDArray[np.int32], starts: _Integers, lengths: _Integers) -> NDArray[np.int32]:
    """The stretches that start there and are so long, one after the other."""
    places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    found: NDArray[np.int32] = lists[places]
    return found
