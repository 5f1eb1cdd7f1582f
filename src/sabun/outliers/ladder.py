"""The sound ladder of bounds, with its discounted maximum; proved in ladder.proof.md.

Notation: deg is the number of other records within the radius, V[a, b] the records with a <= deg <= b, M(V) the most of them
that one ball of the radius holds, R a cover: R(V) >= M(V), growing with V, by at most one for each record. U_t bounds how
far one neighbour step can move the answer t steps away from the table; S = max_t g_t U_t with public discounts g_t.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sabun.outliers import memory
from sabun.privacy.certified import exp_up

if TYPE_CHECKING:
    from sabun.outliers.tree import Graph

__all__ = ["COVERS", "Bands", "Cover", "Discounts", "Known", "largest_product"]

COVERS = ("degeneracy", "link-core", "exact")

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_TOUCH = (1.0 + 1e-9) ** 2
_FINE = 192
_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class Discounts:
    """Public weights g_0 > g_1 > … of the rungs, as whole numbers over 2**shift.

    They fall by at most the factor exp(-beta) from rung to rung, exactly, and end where no table can gain from a further rung.
    """

    numerators: tuple[int, ...]
    shift: int

    @classmethod
    @lru_cache(maxsize=8)  # asked for before the charge, used after it
    def of(cls, *, beta: Fraction, cap: int, slope: int, base: int) -> Discounts:
        """The weights for a bound between min(cap, max(1, slope t + base)) on rung t and the cap."""
        shift = _FINE + cap.bit_length()
        decay = exp_up(-beta)
        assert isinstance(decay, Fraction)
        up = -(-decay.numerator * (1 << _FINE) // decay.denominator)
        numerators, sure = [1 << shift], 0
        for rung in itertools.count():
            sure = max(sure, numerators[rung] * min(cap, max(1, slope * rung + base)))
            if cap * numerators[rung] <= sure:  # proof: last-rung
                return cls(numerators=tuple(numerators), shift=shift)
            numerators.append(-(-numerators[rung] * up >> _FINE))  # proof: smooth-weights
        raise AssertionError

    @property
    def rungs(self) -> int:
        """How many rungs there are."""
        return len(self.numerators)

    def value(self, product: int) -> Fraction:
        """A product of a weight with a bound as the number it stands for."""
        return Fraction(product, 1 << self.shift)


class Bands:
    """The degrees near k of a private table, with what the ladder needs to know about them.

    Args:
        points: Finite float64 matrix.
        k: Neighbours an inlier needs.
        radius: The public radius.
        rungs: How many rungs will be asked for; degrees are counted up to k + rungs only.
        whole: Which records have all their neighbours among the points; None where all have. The others, the rim of a part
            of a table, are neighbours only: no band has them, and their degrees are not told.
    """

    def __init__(self, points: _Floats, *, k: int, radius: float, rungs: int, whole: NDArray[np.bool_] | None = None) -> None:
        from sabun.outliers import peeling, tree

        self.points, self.k, self.radius, self._whole = points, k, radius, whole
        graph = tree.neighbours_within(points, radius * radius, k + rungs, asking=whole)  # proof: capped-degrees
        self.degrees = counts = graph.counts
        band, ends = self._band(np.abs(counts.astype(np.int64) - k), rungs)
        self.most = peeling.running_most(graph, band, ends)  # proof: out-branch
        # 2 |deg - (k - 1)| for the records a new one may turn, 2 |deg - (k - 1/2)| for those a moved one may turn.
        self.gained, self.gained_ends = self._band(np.abs(counts.astype(np.int64) - (k - 1)), rungs)  # proof: in-branch
        twice = np.abs(2 * counts.astype(np.int64) - (2 * k - 1))
        self.moved, self.moved_ends = self._band((twice + 1) // 2, rungs)  # proof: moved-branch

    def _band(self, rank: _Integers, rungs: int) -> tuple[_Integers, _Integers]:
        """Records in the order in which they join, with how many have joined on each rung."""
        if self._whole is not None:
            rank = np.where(self._whole, rank, rungs)  # proof: rim
        order = np.argsort(rank, kind="stable")
        return order, np.searchsorted(rank[order], np.arange(rungs), side="right").astype(np.int64)

    @property
    def count(self) -> int:
        """The number of outliers."""
        return int((self.degrees < self.k).sum())


class Cover:
    """R on the nested bands of one order; every answer is a pure function of the points in the band.

    Args:
        kind: One of `COVERS`.
        points: The band's points in the order in which they join.
        radius: The public radius.
    """

    def __init__(self, kind: str, points: _Floats, radius: float) -> None:
        self._kind, self._points, self._radius = kind, points, radius
        self._known: dict[int, int] = {}

    @property
    def _reach(self) -> float:
        return 4.0 * (self._radius * self._radius) * _TOUCH  # proof: touch

    @cached_property
    def _crowded(self) -> bool:
        """Whether bits need less room than lists: judged by a few members, which changes nothing but time and memory."""
        n = len(self._points)
        if n > memory.MOST_BITS:
            return False
        few = range(0, n, max(1, n // 64))
        return sum(int((self._squared(row, row + 1, n) <= self._reach).sum()) for row in few) * 32 > n * len(few)

    @cached_property
    def _graph(self) -> Graph:
        from sabun.outliers import tree

        n = len(self._points)
        return tree.neighbours_within(self._points, self._reach, max(1, n), listed=memory.listed_in_graph(n))

    @cached_property
    def _bits(self) -> NDArray[np.uint64]:
        from sabun.outliers import products

        return products.bit_graph(self._points, self._reach)

    def _degeneracy(self, size: int) -> int:
        from sabun.outliers import peeling

        if self._crowded:
            return int(peeling.dense_degeneracy_plus_one(self._bits, size))
        return int(peeling.degeneracy_plus_one(self._graph, size))

    def on(self, size: int) -> int:
        """R of the first `size` points."""
        if size not in self._known:
            self._known[size] = self._answer(size)
        return self._known[size]

    def _answer(self, size: int) -> int:
        from sabun.outliers import peeling
        from sabun.outliers.enclosing import densest_ball

        if size <= 1:
            return size
        if self._kind == "exact":
            return densest_ball(self._points[:size], self._radius)  # proof: exact
        rough = self._degeneracy(size)  # proof: degeneracy
        if self._kind == "degeneracy":
            return rough
        return min(rough, int(peeling.link_core(self._distances(size))))  # proof: link-core

    def _distances(self, size: int) -> _Floats:
        """Canonical squared distances in units of the squared radius."""
        distances = np.empty((size, size))
        for first in range(0, size, _ROWS):
            distances[first : first + _ROWS] = self._squared(first, min(first + _ROWS, size), size)
        distances /= self._radius * self._radius
        return distances

    def _squared(self, first: int, last: int, size: int) -> _Floats:
        """Canonical squared distances from the points `first` up to `last` to the first `size` ones."""
        squared = np.zeros((last - first, size))
        for column in self._points.T:
            gap = column[first:last, None] - column[None, :size]
            squared += gap * gap
        return squared


class Known:
    """What is known of a cover on the bands of each rung, from the rungs that were asked for.

    Args:
        cover: The cover.
        sizes: How many records the band of each rung has, growing.
    """

    def __init__(self, cover: Cover, sizes: Sequence[int]) -> None:
        self._cover, self._sizes = cover, list(sizes)
        self.low = [min(1, size) for size in sizes]
        self.high = list(sizes)

    def learn(self, rung: int) -> None:
        """Asks the cover, then narrows every other rung: a cover grows, by at most one for each record."""
        value, size = self._cover.on(self._sizes[rung]), self._sizes[rung]
        for t, other in enumerate(self._sizes):
            more, fewer = max(0, other - size), max(0, size - other)
            self.low[t] = max(self.low[t], value - fewer)  # proof: narrow
            self.high[t] = min(self.high[t], value + more)


def largest_product(
    weights: Sequence[int], lower: Callable[[int], int], upper: Callable[[int], int], learn: Callable[[int], None]
) -> int:
    """max_t weights[t] U_t, asking for as few rungs as possible.

    Which rungs are asked for changes the time, never the result.

    Args:
        weights: The discounts.
        lower: A bound of U_t from below, by what is known.
        upper: A bound of U_t from above; equals `lower` once the rung is learned.
        learn: Learns a rung.
    """
    rungs = range(len(weights))
    while True:
        best = max(weights[t] * lower(t) for t in rungs)
        rung = max(rungs, key=lambda t: weights[t] * upper(t))
        if weights[rung] * upper(rung) <= best:  # proof: nothing-left
            return best
        learn(rung)
