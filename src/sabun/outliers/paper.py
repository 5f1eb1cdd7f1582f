"""The paper's own formulas: its candidates and Theorem 4, its bound (24) with Algorithm 2, its Theorem 2, its lower bound (11).

None of them is used by a private default. Theorem 4 holds. (24) is not an upper bound and not smooth: its candidates are
maximised over the records only, where the proof needs every place of the domain; see the tests for counterexamples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sabun.outliers.enclosing import Ball, densest_ball, enumerate_balls
from sabun.outliers.ladder import Cover
from sabun.outliers.points import as_points, check_k, check_radius

__all__ = [
    "Candidates",
    "PrintedRungs",
    "algorithm_two",
    "local_candidates",
    "local_sensitivity",
    "printed_bound",
    "printed_global_bound",
    "theorem_one_sigma",
    "theorem_two",
]

_Floats = NDArray[np.float64]
_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Definition 8: how many records one moved record may turn. NOT PRIVATE: for the owner of the table only.

    Attributes:
        outliers: OC (eq. 12): most records of degree k within the radius of one record, itself among them.
        inliers: IC (eq. 14): most records of degree k - 1 that one ball of the radius holds.
    """

    outliers: int
    inliers: int

    @property
    def bound(self) -> int:
        """Theorem 4 (eq. 15): no replacement of one record moves the number of outliers by more."""
        return max(self.outliers, self.inliers) + 1


@np.errstate(all="ignore")
def local_candidates(X: object, *, k: int, radius: float) -> Candidates:
    """Definition 8, with Theorem 4 as its `bound`. NOT PRIVATE: it shows the table it is asked about.

    IC is found by branch and bound, in a time that grows exponentially with the number of records of degree k - 1.

    Args:
        X: A table of finite numbers.
        k: Neighbours an inlier needs.
        radius: The radius.

    Raises:
        DataError: X is no such table.
        ParameterError: A parameter breaks its rule.

    Example:
        >>> found = local_candidates([[0.0], [0.0], [1.0], [2.0]], k=2, radius=1)
        >>> found.outliers, found.inliers, found.bound
        (2, 1, 3)
    """
    neighbours, distance, points = check_k(k), check_radius(radius), as_points(X)
    degrees = _degrees(points, distance)
    turned = _most_within(points, np.flatnonzero(degrees == neighbours), distance)
    return Candidates(outliers=turned, inliers=densest_ball(points[degrees == neighbours - 1], distance))


@np.errstate(all="ignore")
def local_sensitivity(X: object, *, k: int, radius: float) -> int:
    """Definition 5: how far replacing one record can move the number of outliers, exactly. NOT PRIVATE.

    The more neighbours a moved record finds, the fewer outliers there are. So it is enough to look far away, where it finds
    none, and at the largest balls that Algorithm 1 lists.

    Args:
        X: A table of finite numbers with at most 20 records that differ; the time doubles with each.
        k: Neighbours an inlier needs.
        radius: The radius.

    Raises:
        DataError: X is no such table.
        ParameterError: A parameter breaks its rule.

    Example:
        >>> local_sensitivity([[0.0], [0.0], [1.0], [2.0]], k=2, radius=1)
        3
    """
    neighbours, distance, points = check_k(k), check_radius(radius), as_points(X)
    near = _near(points, distance) & ~np.eye(len(points), dtype=np.bool_)
    degrees = near.sum(axis=1)
    count, moved = int((degrees < neighbours).sum()), 0
    places, place_of = np.unique(points, axis=0, return_inverse=True)  # equal records are in the same balls
    for members in [frozenset[int](), *_largest(enumerate_balls(places, distance))]:
        held = np.isin(place_of.ravel(), list(members))
        after = degrees[None, :] - near + held[None, :]  # row i: record i has moved there
        np.fill_diagonal(after, held.sum() - held)
        moved = max(moved, int(np.abs((after < neighbours).sum(axis=1) - count).max()))
    return moved


def _largest(balls: list[Ball]) -> list[frozenset[int]]:
    """The sets that no other one holds."""
    kept: list[frozenset[int]] = []
    for ball in sorted(balls, key=lambda ball: -len(ball.members)):
        if not any(other.issuperset(ball.members) for other in kept):
            kept.append(frozenset(ball.members))
    return kept


def _degrees(points: _Floats, radius: float) -> NDArray[np.int64]:
    from sabun.outliers import tree

    return tree.neighbours_within(points, radius * radius, len(points), listed=0).counts.astype(np.int64)


def _most_within(points: _Floats, members: NDArray[np.int64], radius: float) -> int:
    """The most members within the radius of one record."""
    held = np.zeros(len(points), dtype=np.int64)
    for first in range(0, len(members), _BLOCK):
        block = points[members[first : first + _BLOCK]]
        squared = np.zeros((len(points), len(block)))
        for column, others in zip(points.T, block.T, strict=True):
            squared += (column[:, None] - others[None, :]) ** 2
        held += (squared <= radius * radius).sum(axis=1)
    return int(held.max(initial=0))


class PrintedRungs:
    """Eqs. 17-23 as printed. NOT PRIVATE.

    Notation: out, in: eqs. 17, 18; OC, IC: eqs. 20, 22. The maximum over the domain in (20) and (22), which the paper
    enumerates in exponential time, is taken as degeneracy + 1 of the graph of doubled radius unless `cover` says "exact".
    """

    def __init__(self, points: _Floats, *, k: int, radius: float, cover: str = "degeneracy") -> None:
        near = _near(points, radius)
        degrees = near.sum(axis=1) - 1
        self._sides = [(_Out(near, degrees - level), _In(points, radius, level - degrees, cover)) for level in (k, k - 1)]
        self._away = np.abs(degrees - (k - 1))

    def at(self, t: int) -> int:
        """max(OC_t, IC_t) + t + 1: eq. 23."""
        return max(out.most(t) + inside.held(t) for out, inside in self._sides) + t + 1

    def members(self, t: int) -> int:
        """How many records Algorithm 1 is given at step t, with degrees from k - 1 - t to k - 1 + t."""
        return int((self._away <= t).sum())


def printed_bound(points: _Floats, *, k: int, radius: float, beta: float) -> float:
    """max_t (max(OC_t, IC_t) + t + 1) exp(-beta t) for 0 <= t <= N: eq. 24 as printed."""
    rungs, n, best = PrintedRungs(points, k=k, radius=radius), len(points), 0.0
    for t in range(n + 1):
        if (2 * n + t + 1) * math.exp(-beta * t) <= best and t * beta >= 1:
            break
        best = max(best, rungs.at(t) * math.exp(-beta * t))
    return best


def algorithm_two(points: _Floats, *, k: int, radius: float, beta: float) -> tuple[float, int]:
    """What Algorithm 2 returns, with the step t at which it stops; its N exp(-beta t) is no upper bound of (25), only of LS."""
    rungs, n, best = PrintedRungs(points, k=k, radius=radius), len(points), 0.0
    for t in range(n + 1):
        if best > n * math.exp(-beta * t):
            return best, t
        best = max(best, rungs.at(t) * math.exp(-beta * t))  # eq. 25
    return best, n


def _near(points: _Floats, radius: float) -> NDArray[np.bool_]:
    """Who is within the radius of whom, everybody of themselves."""
    squared = np.zeros((len(points), len(points)))
    for column in points.T:
        gap = column[:, None] - column[None, :]
        squared += gap * gap
    return squared <= radius * radius


class _Out:
    """eq. 17: the most members of V(level) .. V(level + t) within the radius of a record."""

    def __init__(self, near: NDArray[np.bool_], above: NDArray[np.int64]) -> None:
        members = np.flatnonzero(above >= 0)
        members = members[np.argsort(above[members], kind="stable")]
        self._rank = above[members]
        held = np.cumsum(near[:, members], axis=1).max(axis=0, initial=0) if members.size else np.zeros(0, dtype=np.int64)
        self._held = [0, *held.tolist()]

    def most(self, t: int) -> int:
        return int(self._held[int(np.searchsorted(self._rank, t, side="right"))])


class _In:
    """eq. 18: the most members of V(level - t) .. V(level - 1) that a ball anywhere holds."""

    def __init__(self, points: _Floats, radius: float, below: NDArray[np.int64], cover: str) -> None:
        members = np.flatnonzero(below >= 1)
        members = members[np.argsort(below[members], kind="stable")]
        self._rank = below[members]
        self._cover = Cover(cover, points[members], radius)

    def held(self, t: int) -> int:
        return self._cover.on(int(np.searchsorted(self._rank, t, side="right")))


def printed_global_bound(*, n: int, d: int, k: int) -> int:
    """The paper's lower bound on the global sensitivity: eq. 11."""
    return min(n, 2 * d * (k - 1) + 1)


def theorem_one_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Standard deviation of the Gaussian noise of Theorem 1."""
    return sensitivity * math.sqrt(2 * math.log(2 / delta)) / epsilon


def theorem_two(*, epsilon: float, delta: float) -> tuple[float, float]:
    """(1 / alpha, beta) of Theorem 2 for one output: noise S / alpha, discount beta."""
    log = math.log(2 / delta)
    return 5 * math.sqrt(2 * log) / epsilon, epsilon / (4 * (1 + log))
