"""Noise-aware pooling: noisy sums of many organisations, one home organisation's exact sums, one posterior.

Notation: given A, the pooled c is normal with mean A beta and variance s2 A + v I, where v holds the noise of c and what
the noise of A
does to A beta. In the eigenbasis of the pooled noisy A (negative eigenvalues set to 0) this gives a Gaussian posterior for
beta.
All of it is post-processing of released numbers, except for the home organisation's own sums.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.regression.design import UNIT, Floats
from sabun.regression.moments import Moments
from sabun.regression.study import Study
from sabun.regression.sufficient import NoiseLevel, noise_level, weights_of

__all__ = ["Home", "Posterior", "Sums", "home_sums", "pooled", "sums_of"]

_PASSES = 3
_VARIANCE_LIMITS = (1e-3, 1.0)


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


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """Coefficients in row units, their covariance, the residual variance."""

    beta: Floats
    covariance: Floats
    variance: float


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


def home_sums(study: Study, moments: Moments) -> Home:
    """A home organisation's sums, for its own use."""
    gram, moment, square = moments.scaled(study.design)
    return Home(gram=gram, moment=moment, square=square, rows=moments.rows)


def pooled(study: Study, releases: Sequence[Sums], home: Home | None = None) -> Posterior:
    """The posterior from releases, or from releases with the home organisation's data.

    Args:
        study: For the prior: coefficients of length about `coef_bound`, an intercept anywhere in the target's range.
        releases: Noisy sums; may be empty if there is home data.
        home: Exact sums; the result is then not private for the home organisation.
    """
    width = study.width
    prior = np.full(width, width / float(study.coef_bound) ** 2)
    if study.fit_intercept:
        prior[-1] = min(prior[-1], study.design.scale**-2)
    total = sum(releases[1:], releases[0]) if releases else None
    variance = _home_variance(home, prior) if home is not None else None
    posterior = _posterior(total, home, prior, variance or 0.25, float(study.coef_bound) ** 2 / 4)
    for _ in range(_PASSES):
        settled = variance or _released_variance(total, posterior.beta)
        posterior = _posterior(total, home, prior, settled, float(posterior.beta @ posterior.beta))
    return posterior


def _posterior(total: Sums | None, home: Home | None, prior: Floats, variance: float, norm_squared: float) -> Posterior:
    precision, right = np.diag(prior), np.zeros(len(prior))
    if home is not None:
        precision = precision + home.gram / variance
        right = right + home.moment / variance
    if total is not None:
        values, vectors = np.linalg.eigh(_calmed(total))
        values = np.maximum(values, 0.0)
        spread = total.noise.moment + total.noise.gram * (1 + 1 / len(prior)) * norm_squared / 2
        weights = values / (variance * values + spread)
        precision = precision + (vectors * (values * weights)) @ vectors.T
        right = right + vectors @ (weights * (vectors.T @ total.moment))
    covariance = np.linalg.inv(precision)
    return Posterior(beta=covariance @ right, covariance=(covariance + covariance.T) / 2, variance=variance)


def _calmed(total: Sums) -> Floats:
    """The noisy A with its trace and its rest drawn towards 0 as far as their noise asks for (James-Stein, positive part).

    In the coordinates of svec the noise is isotropic. The trace is one number with little noise, the rest are many.
    """
    width, noise = len(total.moment), total.noise.gram
    level = max(float(np.trace(total.gram)) / width, 0.0)
    rest = total.gram - np.trace(total.gram) / width * np.eye(width)
    free = (width - 1) * (width + 2) / 2
    if free <= 2:
        return total.gram
    keep = max(0.0, 1 - (free - 2) * noise / max(float(np.sum(rest**2)), 1e-300))
    sure = max(0.0, 1 - noise / width / max(level**2, 1e-300))
    return np.asarray(level * sure * np.eye(width) + keep * rest)


def _released_variance(total: Sums | None, beta: Floats) -> float:
    """Residual variance from released sums, within public limits."""
    if total is None:
        return 0.25
    found = (total.square - 2 * beta @ total.moment + beta @ total.gram @ beta) / total.rows
    return float(np.clip(found, *_VARIANCE_LIMITS)) if math.isfinite(found) else _VARIANCE_LIMITS[1]


def _home_variance(home: Home, prior: Floats) -> float | None:
    """Residual variance of the home organisation's own fit; None if it has too few rows for one."""
    free = home.rows - len(prior)
    if free < 3:
        return None
    beta = np.linalg.solve(home.gram + np.diag(prior) * 0.01, home.moment)
    found = (home.square - 2 * beta @ home.moment + beta @ home.gram @ beta) / free
    return float(np.clip(found, 1e-6, _VARIANCE_LIMITS[1]))
