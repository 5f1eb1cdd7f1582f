"""The paper's two data sets: all inliers with ten outliers drawn at random, and the radius of best accuracy. Public data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sabun.datasets import load_ionosphere, load_wdbc
from sabun.privacy.noise import seeded_coin, uniform_below

__all__ = ["INJECTED", "NAMES", "PAPER_RADIUS", "Best", "K", "Sample", "accuracy", "best_radius", "sample_of"]

K = 5
INJECTED = 10
PAPER_RADIUS = {"ionosphere": 0.3, "wdbc": 1.3}
NAMES = tuple(PAPER_RADIUS)

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """All inliers with ten outliers drawn at random, scaled as the paper does."""

    points: _Floats
    injected: NDArray[np.bool_]

    @cached_property
    def reach(self) -> _Floats:
        """Each record's distance to its k-th neighbour: it is an outlier exactly when the radius is smaller."""
        squared = np.zeros((len(self.points), len(self.points)))
        for column in self.points.T:
            squared += (column[:, None] - column[None, :]) ** 2
        result: _Floats = np.sqrt(np.sort(squared, axis=1)[:, K])
        return result

    @cached_property
    def best(self) -> Best:
        """The first interval of radii with the best accuracy."""
        order = np.argsort(self.reach, kind="stable")
        edges, bad = self.reach[order], self.injected[order]
        # With the radius at edges[i], records 0 .. i are inliers.
        right = np.cumsum(~bad) + (bad.sum() - np.cumsum(bad))
        place = int(np.argmax(right))
        high = float(edges[place + 1]) if place + 1 < len(edges) else float(edges[place])
        return Best(low=float(edges[place]), high=high, accuracy=float(right[place] / len(edges)))

    def cells(self, radius: float) -> tuple[int, int, int, int]:
        """TP, FP, FN, TN at a radius: table 1."""
        said = self.reach > radius
        pairs = ((said, self.injected), (said, ~self.injected), (~said, self.injected), (~said, ~self.injected))
        true_positive, false_positive, false_negative, true_negative = (int((one & other).sum()) for one, other in pairs)
        return true_positive, false_positive, false_negative, true_negative


@dataclass(frozen=True, kw_only=True)
class Best:
    """The radii of best accuracy: an interval, as accuracy is a step function."""

    low: float
    high: float
    accuracy: float

    @property
    def middle(self) -> float:
        """One radius of the interval."""
        return (self.low + self.high) / 2


def sample_of(name: str, *, seed: int, scaling: str = "z-score") -> Sample:
    """One draw of the paper's data: z-scored, or mapped onto [0, 1], by its own statistics (sound for public data alone)."""
    dataset = load_ionosphere() if name == "ionosphere" else load_wdbc()
    rare = "b" if name == "ionosphere" else "malignant"
    values, bad = dataset.data.to_numpy(dtype=np.float64), (dataset.target == rare).to_numpy()
    pool, coin, chosen = np.flatnonzero(bad).tolist(), seeded_coin(seed), []
    for _ in range(INJECTED):
        chosen.append(pool.pop(uniform_below(len(pool), coin=coin)))
    points = np.vstack([values[~bad], values[chosen]])
    spread = points.std(axis=0) if scaling == "z-score" else np.ptp(points, axis=0)
    centre = points.mean(axis=0) if scaling == "z-score" else points.min(axis=0)
    scaled = (points - centre) / np.where(spread > 0, spread, 1.0)
    return Sample(points=scaled, injected=np.arange(len(points)) >= len(points) - INJECTED)


def accuracy(sample: Sample, radius: float) -> float:
    """Eq. 26: the share of records whose label is found."""
    right, _, _, also_right = sample.cells(radius)
    return (right + also_right) / len(sample.points)


def best_radius(sample: Sample) -> Best:
    """The first interval of radii with the best accuracy."""
    return sample.best
