"""Small worlds in which the paper's theorems can be tried on every table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from sabun.outliers import local_candidates, local_sensitivity, smooth_bound
from sabun.outliers.paper import theorem_one_sigma, theorem_two

__all__ = ["Heaps", "TheoremFour", "heaps", "theorem_four_on_lines", "theorem_one_delta", "theorem_two_delta", "widest_changes"]

_K = 3
_PLACES = tuple(place / 2 for place in range(9))


def widest_changes() -> dict[int, int]:
    """The global sensitivity on a line for N = 3, 4, 5 with k = 3, by trying every table on a grid."""
    return {n: _widest(n) for n in (_K, _K + 1, _K + 2)}


def _widest(n: int) -> int:
    others = np.array(list(combinations_with_replacement(_PLACES, n - 1)))
    counts = []
    for place in (*_PLACES, 99.0):
        tables = np.hstack([others, np.full((len(others), 1), place)])
        near = np.abs(tables[:, :, None] - tables[:, None, :]) <= 1.0
        counts.append((near.sum(axis=2) - 1 < _K).sum(axis=1))
    return int((np.max(counts, axis=0) - np.min(counts, axis=0)).max())


@dataclass(frozen=True, kw_only=True)
class TheoremFour:
    """How (15) and (16) did on every table of a small line."""

    tables: int
    above_fifteen: int
    above_sixteen: int


def theorem_four_on_lines(records: int = 4, length: int = 4) -> TheoremFour:
    """Tries (15), and the equality (16) of its proof, on every table of so many records at whole places, k = 1, 2, 3."""
    seen = fifteen = sixteen = 0
    for table in combinations_with_replacement(range(length), records):
        points = np.array(table, dtype=np.float64).reshape(-1, 1)
        for k in (1, 2, 3):
            found, exact = local_candidates(points, k=k, radius=1.0), local_sensitivity(points, k=k, radius=1.0)
            seen += 1
            fifteen += exact > found.bound
            sixteen += exact > abs(found.outliers - found.inliers) + 1
    return TheoremFour(tables=seen, above_fifteen=fifteen, above_sixteen=sixteen)


@dataclass(frozen=True, kw_only=True)
class Heaps:
    """A table of the paper's own size where one record turns many: its change beside (24) and our bound."""

    records: int
    columns: int
    change: int
    printed: float
    ours: float


def heaps(epsilon: float, delta: float) -> Heaps:
    """235 records in 34 columns: five at 39 ends of the axes, the others far apart; one of those comes to the origin."""
    d, k, ends = 34, 5, 39
    axes = np.vstack([np.eye(d), -np.eye(d)])[:ends]
    far = 10.0 * (1 + np.arange(40))[:, None] * np.ones((1, d))
    table = np.vstack([np.repeat(axes, k, axis=0), far])
    moved = table.copy()
    moved[-1] = 0.0
    _, beta = theorem_two(epsilon=epsilon, delta=delta)
    counts = [_count(points, k) for points in (table, moved)]
    bounds = [smooth_bound(table, k=k, radius=1.0, beta=beta, cover=cover) for cover in ("paper", "degeneracy")]
    return Heaps(records=len(table), columns=d, change=abs(counts[0] - counts[1]), printed=bounds[0], ours=bounds[1])


def _count(points: NDArray[np.float64], k: int) -> int:
    squared = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    return int(((squared <= 1.0).sum(axis=1) - 1 < k).sum())


def theorem_one_delta(epsilon: float, delta: float) -> float:
    """The delta that the noise of Theorem 1 really needs at that epsilon."""
    return _hockey_stick(epsilon, theorem_one_sigma(sensitivity=1.0, epsilon=epsilon, delta=delta), 1.0)


def theorem_two_delta(epsilon: float, delta: float) -> float:
    """The delta that the noise of Theorem 2 really needs, at the worst shift and stretch that a smooth bound allows."""
    inverse, beta = theorem_two(epsilon=epsilon, delta=delta)
    return max(_hockey_stick(epsilon, inverse, math.exp(stretch)) for stretch in (-beta, 0.0, beta))


def _hockey_stick(epsilon: float, sigma: float, stretch: float) -> float:
    """The integral of max(0, p - exp(epsilon) q): p normal around 1 with deviation sigma, q around 0 with sigma * stretch."""
    x = np.linspace(-40.0 * sigma, 40.0 * sigma, 400_001)
    p = np.exp(-(((x - 1.0) / sigma) ** 2) / 2) / sigma
    q = np.exp(-((x / (sigma * stretch)) ** 2) / 2) / (sigma * stretch)
    gap = np.maximum(0.0, p - math.exp(epsilon) * q)
    return float(gap.sum() * (x[1] - x[0]) / math.sqrt(2 * math.pi))
