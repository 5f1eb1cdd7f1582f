"""Residual variances with what is not known about them: at home, in the releases together, in each of them.

Notation: n s2 = q - 2 b'c + b'A b + tr(A C) for the estimate b with posterior covariance C: the sum of squares around the
truth, on average over the posterior (tr(A C) is the number of coefficients that the sums have paid for). At the truth the noise
moves q - 2 b'c + b'A b by N_q - 2 b'N_c + b'N_A b. The noise of A has variance v on the diagonal and v / 2 above it, so
Var(b'N_A b) = v sum b_i**4 + (v / 2) sum_(i<j) 4 b_i**2 b_j**2 = v |b|**4, and together v_q + 4 |b|**2 v_c + |b|**4 v_A.
Sampling moves n s2 by s2 sqrt(2 n) where residuals are normal. The two standard deviations are added, which is the cautious
side. What is known of s2 is then a normal law cut to [0, 1]: a target of [-1, 1] has no larger variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

from sabun.regression.design import Floats
from sabun.regression.sums import Home, Sums

__all__ = ["LARGEST", "Variance", "drawn_together", "home_variance", "mixed", "released_variance"]

LARGEST = 1.0
"""Of a target within its bounds, in squared half ranges."""

_LEAST = 1e-6
_POINTS = 40
_SHARES = 1 - (np.arange(_POINTS) + 0.5) / _POINTS
_FEWEST_FREE = 3
_FAR = 30.0


@dataclass(frozen=True, kw_only=True)
class Variance:
    """A residual variance before it is cut to what it can be: its estimate, the standard deviation of that."""

    found: float
    deviation: float

    @cached_property
    def points(self) -> Floats:
        """Equally likely values of it."""
        if self.found > LARGEST / 2:  # the same seen from the other end, where the numbers keep their digits
            turned = Variance(found=LARGEST - self.found, deviation=self.deviation)
            return np.asarray((LARGEST - turned.points)[::-1])
        d = max(self.deviation, 1e-12)
        m = max(self.found, -_FAR * d)
        above, beyond = ndtr(m / d), ndtr((m - LARGEST) / d)
        found = m - d * ndtri(beyond + (above - beyond) * _SHARES)
        return np.asarray(np.minimum(np.maximum(found, _LEAST), LARGEST))

    @cached_property
    def mean(self) -> float:
        """The value to reckon with."""
        return float(self.points.sum()) / _POINTS

    @property
    def spread(self) -> float:
        """Its standard deviation."""
        return float(self.points.std())


def effective_rows(sums: Sums) -> float:
    """How many whole rows the sums are worth: rows that are weighted count less."""
    if sums.refined is not None:
        return sums.refined.weight
    return sums.rows if sums.weight is None else sums.weight


def released_variance(releases: Sequence[Sums], beta: Floats, paid: float) -> Variance:
    """The residual variance behind noisy sums, those of the residuals where there are some.

    Args:
        releases: Of one organisation or of several.
        beta: The estimate.
        paid: tr(A C) for one row of these sums.
    """
    rows = sum(effective_rows(one) for one in releases)
    found = sum(_squares_around(one, beta) for one in releases) / rows + paid
    if not math.isfinite(found):
        return Variance(found=LARGEST / 2, deviation=LARGEST)
    level = min(max(float(found), 0.0), LARGEST)
    moved = sum(_shaken(one, beta, level) for one in releases)
    return Variance(found=float(found), deviation=math.sqrt(moved) / rows + level * math.sqrt(2 / max(rows, 2.0)))


def _squares_around(sums: Sums, beta: Floats) -> float:
    again = sums.refined
    moment, square = (sums.moment, sums.square) if again is None else (again.moment, again.square)
    return float(square - 2 * beta @ moment + beta @ sums.gram @ beta)


def _shaken(sums: Sums, beta: Floats, level: float) -> float:
    """Variance of the noise in the sum of squares around the estimate, and of the rows it is divided by."""
    again, noise = sums.refined, sums.noise
    if again is None:
        length, on_moment, on_square, on_rows = float(beta @ beta), noise.moment, noise.square, noise.count
    else:
        length, (on_moment, on_square, on_rows) = float(((beta - again.start) ** 2).sum()), again.noise
    return on_square + 4 * length * on_moment + length**2 * noise.gram + level**2 * on_rows


def drawn_together(each: Sequence[Variance], common: Variance) -> list[Variance]:
    """Each organisation's variance, drawn towards the common one as far as they agree within their noise.

    James-Stein, positive part; if variances are normal around the common one, that of an organisation given its estimate is
    normal around the drawn one. With up to 3 organisations nothing is drawn.
    """
    if len(each) == 1:
        return [common]
    off = [(one.found - common.found) / one.deviation for one in each]
    keep = max(0.0, 1 - max(len(each) - 3, 0) / max(sum(z * z for z in off), 1e-300))
    return [
        Variance(
            found=common.found + keep * (one.found - common.found),
            deviation=math.sqrt(keep * one.deviation**2 + (1 - keep) * common.deviation**2),
        )
        for one in each
    ]


def mixed(each: Sequence[Variance], rows: Sequence[float]) -> Floats:
    """Equally likely values of the residual variance of a record drawn from all organisations' rows."""
    values = np.concatenate([one.points for one in each])
    weights = np.repeat(np.array(rows) / sum(rows) / _POINTS, _POINTS)
    order = np.argsort(values)
    place = np.searchsorted(np.cumsum(weights[order]), (np.arange(_POINTS) + 0.5) / _POINTS)
    return np.asarray(values[order][np.minimum(place, len(values) - 1)])


def home_variance(home: Home, prior: Floats) -> tuple[float, int] | None:
    """Residual variance of the home organisation's own fit with its degrees of freedom; None with fewer than 3 of them."""
    free = home.rows - len(prior)
    if free < _FEWEST_FREE:
        return None
    beta = np.linalg.solve(home.gram + np.diag(prior) * 0.01, home.moment)
    found = (home.square - 2 * beta @ home.moment + beta @ home.gram @ beta) / free
    return float(np.clip(found, _LEAST, LARGEST)), free
