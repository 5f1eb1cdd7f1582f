"""Noise-aware pooling: noisy sums of many organisations, one home organisation's exact sums, one posterior.

Notation: given A, the pooled c is normal with mean A beta and variance s2 A + v I, where v holds the noise of c and what
the noise of A does to A beta. In the eigenbasis of the pooled noisy A (negative eigenvalues set to 0) this gives a Gaussian
posterior for beta. All of it is post-processing of released numbers, except for the home organisation's own sums.

One s2 is enough for the weights, not for the error: where organisations differ, the sampling variance of c is the sum of their
own s2 A, which is another matrix if they see other corners (`uneven` holds the difference).

A home residual variance on f degrees of freedom, s2 (1 + z) with E z = 0 and E z**2 = 2 / f, also sets the weight P = G / s2 of
the home data (Meier 1953). The weight needs 1 / s2, whose unbiased estimate is (f - 2) / f over that of s2: without the factor,
3 degrees of freedom that make s2 far too small now and then outweigh releases that know much more, and 95 % intervals held 92 %
there. Since dC/dz = C P C, the estimate moves by z C P (estimate - home's own), whose covariance is
(2 / f) C (P - P C P) C if the weights are right, and the second derivative of C makes the stated C too small on average by as
much again. Errors hold both: without them 95 % intervals held 92 % where home data with 3 degrees of freedom knows as much as
the releases.

The prior pulls the estimate towards 0 where noise hides a direction. An interval that is to hold the truth, for any
coefficients no longer than `coef_bound`, therefore has two parts: the error of the estimate around what it is pulled to, and
the longest pull.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from sabun.regression.design import Floats
from sabun.regression.intervals import Doubt
from sabun.regression.mixing import Axes, Mixed, Together, even, tails_shown
from sabun.regression.study import Study
from sabun.regression.sums import Home, Sums, uncut
from sabun.regression.variances import (
    LARGEST,
    Variance,
    drawn_together,
    effective_rows,
    home_variance,
    mixed,
    released_variance,
)

__all__ = ["Before", "Posterior", "estimated", "pooled", "pooled_from", "prior_of", "pull_of"]

Before: TypeAlias = tuple[Floats, Floats]
"""Precision of each coefficient before anything was released; how large it can be."""

_PASSES = 3
_UNKNOWN = Variance(found=0.25, deviation=1e-9)
"""Where there are no releases, for the weights alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Coefficients in row units, their covariance, what their errors are made of.

    Args:
        beta: The estimate, covariance @ right.
        covariance: Its posterior covariance.
        variance: Of the residuals: at home where there is home data, else of the releases.
        weighed: The variance that home rows were weighed by.
        known: Covariance of right, without what the noise of A does to it.
        shaken: What that adds, for coefficients of length 1 in the worst direction.
        prior: The precision of each coefficient before anything was released.
        radius: How large each can be.
        paid: tr(A C), the coefficients that the releases have paid for.
        doubt: What is not known about the error.
        length: How long the coefficients are that the noise of A meets, as estimated.
        farthest: How long they can be at most.
        seen: A without its negative directions, as the noise lets it be seen.
        moved: By how much the estimate was moved towards a constant; None where it was not.
    """

    beta: Floats
    covariance: Floats
    variance: float
    weighed: float
    known: Floats
    shaken: Floats
    prior: Floats
    radius: Floats
    paid: float
    doubt: Doubt
    length: float
    farthest: float
    seen: Floats
    moved: Floats | None = None

    @cached_property
    def error(self) -> Floats:
        """Covariance of the estimate around its expectation, for the longest coefficients that the releases allow."""
        known, shaken = (self.covariance @ part @ self.covariance for part in (self.known, self.shaken))
        length = self.length
        # The noise of A meets the true coefficients, which may be longer than the estimated ones by their pull and their error.
        unseen = _stretch(self.covariance * (self.prior * self.radius))
        unseen += 2 * math.sqrt(_stretch(known + length**2 * shaken))
        return even(known + min(length + unseen, self.farthest) ** 2 * shaken)


def pooled(study: Study, releases: Sequence[Sums], home: Home | None = None) -> Posterior:
    """The posterior from releases, or from releases with the home organisation's data.

    Args:
        study: For the prior: coefficients of length about `coef_bound`, an intercept anywhere in the target's range.
        releases: Noisy sums; may be empty if there is home data.
        home: Exact sums; the result is then not private for the home organisation.
    """
    return pooled_from(prior_of(study), float(study.coef_bound), releases, home)


def pooled_from(before: Before, bound: float, releases: Sequence[Sums], home: Home | None = None) -> Posterior:
    """The posterior for a prior; `bound` is about as long as the coefficients can be."""
    own = _HomeVariance.of(home, before[0])
    if not releases:
        return _posterior(None, None, home, before, _Residual(own=own, released=_UNKNOWN))
    axes = Axes.of(releases)
    if home is not None and tails_shown(releases):
        # Few rows show no tails: home residuals are then taken to vary no less than the others' do, tails and all.
        whole = [uncut(one) for one in releases]
        own = own.at_least(_agreed(before, bound, whole, axes, None, own)[1].mean)
    total, spread, paid, beta = _agreed(before, bound, releases, axes, home, own)
    residual = _Residual(own=own, released=spread)
    if len(releases) > 1:
        each = drawn_together([released_variance([one], beta, paid) for one in releases], spread)
        uneven = sum((one.mean - spread.mean) * sums.gram for one, sums in zip(each, releases, strict=True))
        residual = replace(residual, uneven=uneven, records=mixed(each, [one.rows for one in releases]))
    return _posterior(total, axes, home, before, residual)


def estimated(study: Study, sums: Sums, axes: Axes) -> tuple[Floats, float, float]:
    """What `pooled` says of one release, without the errors: coefficients, residual variance, coefficients paid for."""
    before, own = prior_of(study), _HomeVariance.of(None, np.empty(0))
    total, spread, _, _ = _agreed(before, float(study.coef_bound), [sums], axes, None, own)
    estimate = _Estimate.of(total, axes, None, before[0], None, spread.mean)
    return estimate.beta, spread.mean, estimate.paid


def _agreed(
    before: Before, bound: float, releases: Sequence[Sums], axes: Axes, home: Home | None, own: _HomeVariance
) -> tuple[Mixed, Variance, float, Floats]:
    """The mix, the residual variance, what a row has paid for and the coefficients.

    The weights need the variance and the coefficients, which the weighted estimate gives: a few rounds agree.
    """
    together, rows, spread = Together.of(releases, axes), sum(effective_rows(one) for one in releases), _UNKNOWN
    total = together.mixed(np.zeros(len(before[0])), spread.mean, bound**2 / 4)
    for _ in range(_PASSES):
        estimate = _Estimate.of(total, axes, home, before[0], own.weighed, spread.mean)
        total, paid = together.mixed(estimate.beta, spread.mean), estimate.paid / rows
        spread = released_variance(releases, estimate.beta, paid)
    return total, spread, paid, estimate.beta


def pull_of(study: Study, covariance: Floats, rows: Floats) -> Floats:
    """How far the prior can have pulled `rows @ beta`, for coefficients no longer than `coef_bound`.

    The estimate's expectation is beta - covariance @ diag(prior) @ beta, as far as A is known.
    """
    prior, radius = prior_of(study)
    parts = (rows @ covariance) * (prior * radius)
    split = len(prior) - study.fit_intercept
    return np.asarray(np.linalg.norm(parts[:, :split], axis=1) + np.abs(parts[:, split:]).sum(axis=1))


def prior_of(study: Study) -> Before:
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
        variance, freedom = found
        return cls(stated=variance, weighed=variance * freedom / (freedom - 2), freedom=float(freedom))

    def at_least(self, variance: float) -> _HomeVariance:
        """The same, or a larger variance that is known from elsewhere."""
        if self.weighed is None or self.weighed >= variance:
            return self
        return _HomeVariance(stated=max(self.stated, variance), weighed=variance, freedom=math.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Residual:
    """Residual variances: at home, of the releases together, and how those differ.

    Args:
        own: At home.
        released: Of the releases together.
        uneven: Sum over organisations of (their variance - the common one) times their A; 0 where it is not known.
        records: Equally likely variances of a new record; those of `released` where it is not known.
    """

    own: _HomeVariance
    released: Variance
    uneven: Floats | float = 0.0
    records: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class _Estimate:
    """Coefficients for one guess of the variances: their covariance, what was paid for, the weight along each direction."""

    beta: Floats
    covariance: Floats
    paid: float
    weights: Floats

    @classmethod
    def of(
        cls, total: Mixed | None, axes: Axes | None, home: Home | None, prior: Floats, weighed: float | None, released: float
    ) -> _Estimate:
        precision, right, paid, weights = np.diag(prior), 0.0 * prior, 0.0, 0.0 * prior
        if home is not None:
            precision = precision + home.gram / (weighed or released)
            right = right + home.moment / (weighed or released)
        if total is not None and axes is not None:
            noise = total.noise_moment + total.noise_gram * (1 + 1 / len(prior)) / 2 * total.meets
            # The variance of c, s2 A + v I, has the eigenvectors of A: along each of them the best weight is a number of its
            # own, which goes to 0 where A drowns in the noise.
            weights = axes.values / (released * axes.values + noise)
            precision = precision + axes.turned(axes.values * weights)
            right = right + axes.vectors @ (weights * (total.moment @ axes.vectors))
        # A prior can be too weak to be seen beside the sums (coef_bound = 1e9): then there would be no inverse.
        precision.flat[:: len(prior) + 1] += 1e-13 * precision.trace()
        covariance = even(np.asarray(np.linalg.inv(precision), dtype=np.float64))
        if axes is not None:
            paid = float((axes.seen * covariance).sum())
        return cls(beta=covariance @ right, covariance=covariance, paid=paid, weights=weights)


def _posterior(total: Mixed | None, axes: Axes | None, home: Home | None, before: Before, residual: _Residual) -> Posterior:
    (prior, radius), own, spread = before, residual.own, residual.released
    released = spread.mean
    weighed = own.weighed or released
    estimate = _Estimate.of(total, axes, home, prior, own.weighed, released)
    covariance, weights = estimate.covariance, estimate.weights
    at_home = known = shaken = slope = seen = np.zeros_like(covariance)
    if home is not None:
        at_home = home.gram * own.stated / weighed**2
    if total is not None and axes is not None:
        own_weights, sampled = axes.turned(weights), axes.turned(released * axes.values)  # has no negative directions by itself
        sampled = sampled if residual.records is None else _positive(sampled + residual.uneven)
        known = own_weights @ (sampled + axes.turned(total.noise_moment)) @ own_weights
        # For coefficients of length 1 where they are met at their longest.
        shaken = axes.turned(weights**2 * total.noise_gram * (total.meets + 1e-300) / (total.meets.max() + 1e-300))
        slope = axes.turned(weights**2 * axes.values)
        seen = axes.seen
    if home is not None:
        # 2 / f for the estimate that moves with the home variance, as much again for the C that is stated too small.
        weight = home.gram / weighed
        known = known + 4 / own.freedom * (weight - weight @ covariance @ weight)
    slope, at_home_error = (even(covariance @ part @ covariance) for part in (slope, at_home))
    doubt = Doubt(
        slope=slope,
        spread=spread.spread,
        variances=spread.points if residual.records is None else residual.records,
        home=at_home_error,
        home_variance=None if home is None else own.stated,
        freedom=own.freedom,
    )
    return Posterior(
        beta=estimate.beta,
        covariance=covariance,
        variance=released if home is None or own.weighed is None else own.stated,
        weighed=weighed,
        known=known + at_home,
        shaken=shaken,
        prior=prior,
        radius=radius,
        paid=estimate.paid,
        doubt=doubt,
        length=0.0 if total is None else math.sqrt(float(total.meets.max())),
        farthest=float(radius.max()) + (0.0 if total is None else total.shift),
        seen=seen,
    )


def _stretch(matrix: Floats) -> float:
    """How much longer a matrix makes a vector at most."""
    return float(np.linalg.svd(matrix, compute_uv=False)[0])


def _positive(matrix: Floats) -> Floats:
    """Without its negative directions."""
    values, vectors = np.linalg.eigh(even(matrix))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
