"""Noise-aware pooling: noisy sums of many organisations, one home organisation's exact sums, one posterior.

Notation: given A, the pooled c is normal with mean A beta and variance s2 A + v I, where v holds the noise of c and what
the noise of A
does to A beta. In the eigenbasis of the pooled noisy A (negative eigenvalues set to 0) this gives a Gaussian posterior for
beta.
All of it is post-processing of released numbers, except for the home organisation's own sums.

The prior pulls the estimate towards 0 where noise hides a direction. An interval that is to hold the truth, for any
coefficients no longer than `coef_bound`, therefore has two parts: the error of the estimate around what it is pulled to, and
the longest pull.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sabun.regression.design import UNIT, Floats
from sabun.regression.intervals import Doubt
from sabun.regression.moments import Moments
from sabun.regression.study import Study
from sabun.regression.sufficient import NoiseLevel, noise_level, weights_of
from sabun.regression.variances import LARGEST, Variance, home_variance, mixed, released_variance

__all__ = ["Home", "Posterior", "Sums", "home_sums", "pooled", "pull_of", "sums_of"]

_PASSES = 3
_UNKNOWN = Variance(found=0.25, deviation=1e-9)
"""Where there are no releases, for the weights alone."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Coefficients in row units, their covariance, what their errors are made of.

    Args:
        beta: The estimate, covariance @ right.
        covariance: Its posterior covariance.
        variance: Of the residuals: at home where there is home data, else of the releases.
        known: Covariance of right, without what the noise of A does to it.
        shaken: What that adds, for coefficients of length 1 in the worst direction.
        prior: The precision of each coefficient before anything was released.
        radius: How large each can be.
        paid: tr(A C), the coefficients that the releases have paid for.
        doubt: What is not known about the error.
    """

    beta: Floats
    covariance: Floats
    variance: float
    known: Floats
    shaken: Floats
    prior: Floats
    radius: Floats
    paid: float
    doubt: Doubt

    @cached_property
    def error(self) -> Floats:
        """Covariance of the estimate around its expectation, for the longest coefficients that the releases allow."""
        known, shaken = (self.covariance @ part @ self.covariance for part in (self.known, self.shaken))
        length = float(np.linalg.norm(self.beta))
        # The noise of A meets the true coefficients, which may be longer than the estimated ones by their pull and their error.
        unseen = np.linalg.norm(self.covariance * (self.prior * self.radius), 2)
        unseen += 2 * math.sqrt(np.linalg.norm(known + length**2 * shaken, 2))
        return _even(known + min(length + float(unseen), float(self.radius.max())) ** 2 * shaken)


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
    before = _prior(study)
    total = sum(releases[1:], releases[0]) if releases else None
    own = _HomeVariance.of(home, before[0])
    spread, length = _UNKNOWN, float(study.coef_bound) ** 2 / 4
    for _ in range(_PASSES + 1):
        posterior = _posterior(total, home, before, (own, spread), length)
        length = float(posterior.beta @ posterior.beta)
        spread = _UNKNOWN if total is None else released_variance(total, posterior.beta, posterior.paid / total.rows)
    if total is None or home is not None:
        return posterior
    paid = posterior.paid / total.rows
    each = [released_variance(one, posterior.beta, paid) for one in releases]
    variances = mixed(each, [one.rows for one in releases], spread)
    return dataclasses.replace(posterior, doubt=dataclasses.replace(posterior.doubt, variances=variances))


def pull_of(study: Study, covariance: Floats, rows: Floats) -> Floats:
    """How far the prior can have pulled `rows @ beta`, for coefficients no longer than `coef_bound`.

    The estimate's expectation is beta - covariance @ diag(prior) @ beta, as far as A is known.
    """
    prior, radius = _prior(study)
    parts = (rows @ covariance) * (prior * radius)
    split = len(prior) - study.fit_intercept
    return np.asarray(np.linalg.norm(parts[:, :split], axis=1) + np.abs(parts[:, split:]).sum(axis=1))


def _prior(study: Study) -> tuple[Floats, Floats]:
    """Precision of each coefficient before anything was released; how large it can be."""
    width, bound = study.width, float(study.coef_bound)
    prior, radius = np.full(width, width / bound**2), np.full(width, bound)
    if study.fit_intercept:
        prior[-1], radius[-1] = min(prior[-1], study.design.scale**-2), max(bound, study.design.scale)
    return prior, radius


@dataclass(frozen=True, kw_only=True)
class _HomeVariance:
    """The home residual variance: for an error, for a weight (None: that of the releases), its degrees of freedom.

    With fewer than 3 degrees of freedom it is not estimated. Errors then reckon with the largest that a target can have, and
    the rows are weighed as those of the others are.
    """

    stated: float
    weighed: float | None
    freedom: float

    @classmethod
    def of(cls, home: Home | None, prior: Floats) -> _HomeVariance:
        found = None if home is None else home_variance(home, prior)
        if found is None:
            return cls(stated=LARGEST, weighed=None, freedom=math.inf)
        return cls(stated=found[0], weighed=found[0], freedom=float(found[1]))


def _posterior(
    total: Sums | None,
    home: Home | None,
    before: tuple[Floats, Floats],
    residual: tuple[_HomeVariance, Variance],
    norm_squared: float,
) -> Posterior:
    (prior, radius), (own, spread) = before, residual
    released = spread.mean
    weighed = own.weighed or released
    precision, right = np.diag(prior), np.zeros(len(prior))
    at_home, known, shaken, slope = (np.zeros_like(precision) for _ in range(4))
    clipped = np.zeros_like(precision)
    if home is not None:
        precision = precision + home.gram / weighed
        right = right + home.moment / weighed
        at_home = home.gram * own.stated / weighed**2
    if total is not None:
        values, vectors = np.linalg.eigh(_calmed(total))
        values = np.maximum(values, 0.0)
        noise = total.noise.moment + total.noise.gram * (1 + 1 / len(prior)) * norm_squared / 2
        weights = values / (released * values + noise)

        def turned(along: Floats) -> Floats:
            return np.asarray((vectors * along) @ vectors.T)

        precision = precision + turned(values * weights)
        right = right + turned(weights) @ total.moment
        known = turned(weights**2 * (released * values + total.noise.moment))
        shaken, slope, clipped = turned(weights**2 * total.noise.gram), turned(weights**2 * values), turned(values)
    # A prior can be too weak to be seen beside the sums (coef_bound = 1e9): then there would be no inverse.
    inverse = np.linalg.inv(precision + 1e-13 * np.trace(precision) * np.eye(len(prior)))
    covariance = _even(inverse)
    slope, at_home_error = (_even(covariance @ part @ covariance) for part in (slope, at_home))
    doubt = Doubt(
        slope=slope,
        spread=spread.spread,
        variances=spread.points,
        home=at_home_error,
        home_variance=None if home is None else own.stated,
        freedom=own.freedom,
    )
    return Posterior(
        beta=covariance @ right,
        covariance=covariance,
        variance=released if home is None else weighed,
        known=known + at_home,
        shaken=shaken,
        prior=prior,
        radius=radius,
        paid=float(np.sum(clipped * covariance)),
        doubt=doubt,
    )


def _even(matrix: Floats) -> Floats:
    """A symmetric matrix to the last digit."""
    return np.asarray((matrix + matrix.T) / 2)


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
