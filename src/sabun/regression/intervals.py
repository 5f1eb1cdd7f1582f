"""How far an estimate of the pool may lie from the truth, when the error itself is estimated.

Notation: an estimate of u'beta is off by (pull) + sqrt(E) T. E = u' error u is the variance of its random part; the pull of
the prior is known up to its largest size. E is estimated too: its home part H scales with the home residual variance, which
has `freedom` degrees of freedom, and it moves by dE/ds2 for each unit of the releases' residual variance, which is known up to
a standard deviation d.

Degrees of freedom (Welch 1947, Satterthwaite 1946): an estimate Q of a variance E whose own variance is 2 E**2 / f is taken
for E chi2(f) / f. The two parts of Q are independent, the home one has the variance 2 H**2 / freedom, the other (d dE/ds2)**2,
so f = 2 E**2 / (2 H**2 / freedom + (d dE/ds2)**2), and the random part over sqrt(Q) is taken for Student's t with f degrees.
A home variance that came out too small would also make f too large: with f from the estimates, 95 % intervals of 3 degrees of
freedom hold 93.6 % where H is four fifths of E. For f alone H is therefore taken as large as if the estimate were the lower
quartile of its law: they then hold 95.0 to 95.8 % for any share of H (by integration, see `test_intervals.py`).

Length: P(|b + T| <= h) falls in |b|, so the half-length h that holds the level for the largest pull, b = pull / sqrt(E), holds
it for every smaller one (Armstrong and Kolesar 2018). It is shorter than quantile + pull, which holds more than the level.

A new record adds its own residual. At home its variance is the home one, so it joins H. Elsewhere nobody knows which
organisation it comes from, nor that one's variance exactly: the level is held on average over the points of `variances`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, ndtr, ndtri, stdtr, stdtrit

from sabun import checks
from sabun.regression.design import Floats

__all__ = ["Doubt", "half_lengths", "record_half_lengths"]

_HALVINGS = 40
_LOW = 0.25
_BLOCK = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Doubt:
    """What is not known about the error of an estimate, in row units.

    Args:
        slope: How the error grows with the residual variance of the releases.
        spread: Standard deviation of that variance.
        variances: Equally likely values of the residual variance of a new record of the releasing organisations.
        home: The part of the error that scales with the home residual variance.
        home_variance: That variance; None without home data.
        freedom: Its degrees of freedom; infinite where it is an upper limit.
    """

    slope: Floats
    spread: float
    variances: Floats
    home: Floats
    home_variance: float | None = None
    freedom: float = np.inf

    @classmethod
    def none(cls, width: int, variance: float) -> Doubt:
        """Of an error that is taken for known."""
        nothing = np.zeros((width, width))
        return cls(slope=nothing, spread=0.0, variances=np.array([variance]), home=nothing)


def half_lengths(rows: Floats, error: Floats, doubt: Doubt, pull: Floats, confidence: float, *, record: float = 0.0) -> Floats:
    """Half the length of the interval of `rows @ beta`, one for each row.

    Args:
        rows: What is asked, in row units.
        error: Covariance of the random part of the estimate.
        doubt: What is not known about it.
        pull: The largest pull for each row.
        confidence: How likely the interval holds the truth.
        record: Variance of a home record's own residual, which joins the home part.
    """
    checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
    whole, home = _forms(rows, error) + record, _forms(rows, doubt.home) + record
    likely = 1.0 if np.isinf(doubt.freedom) else doubt.freedom / float(chdtri(doubt.freedom, 1 - _LOW))
    unsure = 2 * (likely * home) ** 2 / doubt.freedom + (doubt.spread * _forms(rows, doubt.slope)) ** 2
    # At least 1: no variance is so unsure, but an error of nearly 0 in floating point could seem to be.
    freedom = np.where(
        unsure > 0, np.maximum(2 * (whole + (likely - 1) * home) ** 2 / np.where(unsure > 0, unsure, 1.0), 1.0), np.inf
    )
    root = np.sqrt(np.maximum(whole, 1e-300))
    shift = pull / root
    one, two = stdtrit(freedom, confidence), stdtrit(freedom, (1 + confidence) / 2)
    # Between the quantiles of a pull that is certain to point one way and of one that is absent, the latter moved by it.
    found = _solved(
        lambda half: stdtr(freedom, half - shift) - stdtr(freedom, -half - shift),
        np.maximum(shift + one, two),
        shift + two,
        confidence,
    )
    return np.asarray(found * root)


def record_half_lengths(rows: Floats, error: Floats, doubt: Doubt, pull: Floats, confidence: float) -> Floats:
    """The same for the target of a new record with these features: at home, or of the releasing organisations."""
    if doubt.home_variance is not None:
        return half_lengths(rows, error, doubt, pull, confidence, record=doubt.home_variance)
    checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
    quantile = ndtri((1 + confidence) / 2)
    parts = []
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        roots, shift = np.sqrt(np.maximum(_forms(rows[block], error), 0.0)[:, None] + doubt.variances), pull[block]

        def held(half: Floats, roots: Floats = roots, shift: Floats = shift) -> Floats:
            above, below = (half - shift)[:, None] / roots, (-half - shift)[:, None] / roots
            return np.asarray((ndtr(above) - ndtr(below)).mean(axis=1))

        parts.append(_solved(held, np.zeros(len(shift)), shift + quantile * roots.max(axis=1), confidence))
    return np.concatenate(parts) if parts else np.zeros(0)


def _forms(rows: Floats, matrix: Floats) -> Floats:
    return np.asarray(np.maximum(((rows @ matrix) * rows).sum(axis=1), 0.0))


def _solved(held: Callable[[Floats], Floats], low: Floats, high: Floats, confidence: float) -> Floats:
    """Where a growing function reaches the confidence, by halving; the upper end, so never too short."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = held(middle) >= confidence
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return high
