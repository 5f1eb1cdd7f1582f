"""The paper's own formulas, for reproduction: its bound (24), its Theorem 2, its lower bound (11).

None of them is used by a private default. (24) is not an upper bound and not smooth: its candidates are maximised over the
records only, where the proof needs every place of the domain; see the tests for counterexamples.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sabun.outliers.ladder import Cover

__all__ = ["printed_bound", "printed_global_bound", "theorem_one_sigma", "theorem_two"]

_Floats = NDArray[np.float64]


def printed_bound(points: _Floats, *, k: int, radius: float, beta: float) -> float:
    """max_t (max(OC_t, IC_t) + t + 1) exp(-beta t) for 0 <= t <= N: eqs. 17-24 as printed.

    Notation: out, in: eqs. 17, 18; OC, IC: eqs. 20, 22. The maximum over the domain in (20) and (22), which the paper
    enumerates in exponential time, is taken as degeneracy + 1 of the graph of doubled radius.
    """
    near = _near(points, radius)
    degrees = near.sum(axis=1) - 1
    sides = [(_Out(near, degrees - level), _In(points, radius, level - degrees)) for level in (k, k - 1)]
    n, best = len(points), 0.0
    for t in range(n + 1):
        if (2 * n + t + 1) * math.exp(-beta * t) <= best and t * beta >= 1:
            break
        candidates = max(out.most(t) + inside.held(t) for out, inside in sides)  # eqs. 20, 22
        best = max(best, (candidates + t + 1) * math.exp(-beta * t))  # eq. 24
    return best


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

    def __init__(self, points: _Floats, radius: float, below: NDArray[np.int64]) -> None:
        members = np.flatnonzero(below >= 1)
        members = members[np.argsort(below[members], kind="stable")]
        self._rank = below[members]
        self._cover = Cover("degeneracy", points[members], radius)

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
