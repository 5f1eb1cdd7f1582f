"""Sums of products in row units: noisy ones of a release, exact ones of the home organisation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.regression.design import UNIT, Floats
from sabun.regression.statistic import Totals
from sabun.regression.study import Study
from sabun.regression.sufficient import NoiseLevel, noise_level, weights_of

__all__ = ["Home", "Sums", "home_sums", "sums_of"]


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Noisy sums in row units; public. Sums of several organisations add up."""

    gram: Floats
    moment: Floats
    square: float
    rows: float
    noise: NoiseLevel

    def __add__(self, other: Sums) -> Sums:
        return self._plus(other, 1)

    def __sub__(self, other: Sums) -> Sums:
        """What is left when one organisation is taken out again."""
        return self._plus(other, -1)

    def _plus(self, other: Sums, sign: int) -> Sums:
        noise = {
            name: getattr(self.noise, name) + sign * getattr(other.noise, name) for name in NoiseLevel.__dataclass_fields__
        }
        return Sums(
            gram=self.gram + sign * other.gram,
            moment=self.moment + sign * other.moment,
            square=self.square + sign * other.square,
            rows=self.rows + sign * other.rows,
            noise=NoiseLevel(**noise),
        )


@dataclass(frozen=True, kw_only=True)
class Home:
    """The home organisation's exact sums in row units. PRIVATE: whatever is computed from them stays at home."""

    gram: Floats
    moment: Floats
    square: float
    rows: int


def sums_of(study: Study, value: Mapping[str, Any]) -> Sums:
    """Reads the whole numbers of a release back into row units."""
    width, weights, shrink = study.width, weights_of(study), study.design.shrink
    gram = np.zeros((width, width))
    upper = np.triu_indices(width)
    gram[upper] = np.array(value["gram"], dtype=np.float64) / np.where(upper[0] == upper[1], weights.diagonal, weights.above)
    gram = (gram + np.triu(gram, 1).T) / (UNIT**2 * shrink**2)
    rows = value["rows"] if value["count"] is None else max(value["count"] / weights.count, 1.0)
    return Sums(
        gram=gram,
        moment=np.array(value["moment"], dtype=np.float64) / (weights.moment * UNIT**2 * shrink),
        square=value["square"] / (weights.square * UNIT**2),
        rows=float(rows),
        noise=noise_level(study),
    )


def home_sums(study: Study, totals: Totals) -> Home:
    """A home organisation's sums, for its own use."""
    table, shrink = totals.products / float(UNIT**2), study.design.shrink
    square = float(table[-1, -1])
    return Home(gram=table[:-1, :-1] / shrink**2, moment=table[:-1, -1] / shrink, square=square, rows=totals.rows)
