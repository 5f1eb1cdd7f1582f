"""The paper's estimator exactly as printed (eq. 8), with the guarantee that is really true: none.

Notation: zeta = 2 (B + 1) and Lambda = 2 for the loss (y - x't)**2 on rows with |x| <= 1, |y| <= 1; b has density
proportional to
exp(-epsilon |b| / (2 zeta)); theta = (A + R)**-1 (c + b/2) with R = n lambda + Lambda / epsilon, without any constraint on
theta.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.privacy.noise import Coin, spherical_laplace
from sabun.regression.design import UNIT
from sabun.regression.statistic import Totals
from sabun.regression.study import Study

__all__ = ["least_delta", "printed_estimate", "warning_of"]

_FINE = 2**40
_LARGEST = 700
"""e to a larger power is no float."""


def printed_estimate(study: Study, totals: Totals, coin: Coin) -> dict[str, Any]:
    """Eq. (8) in floating point. NOT PRIVATE for any epsilon; it is here to reproduce the paper."""
    epsilon, bound = Fraction(study.epsilon), Fraction(study.coef_bound)
    scale = 4 * (bound + 1) / epsilon
    draws = spherical_laplace(scale * _FINE, dimension=study.width, coin=coin)  # proof: printed-noise
    noise = np.array([float(draw) for draw in draws]) / _FINE
    gram = totals.products[:-1, :-1] / UNIT**2
    ridge = float(Fraction(study.regularization or 0) + 2 / epsilon)
    right = totals.products[:-1, -1] / UNIT**2 + noise / 2
    theta = np.linalg.solve(gram + ridge * np.eye(study.width), right)  # proof: unconstrained
    public_rows = study.relation == "replace-one"
    return {"estimate": theta, "rows": totals.rows if public_rows else None}


def least_delta(epsilon: float, *, claimed: float, coef_bound: float = 1.0, ridge: float = 0.0) -> float:
    """A delta that eq. (8) at least has at `epsilon` when it was calibrated for `claimed`.

    Exact integration of two neighbours with one feature: one record (1, 1) against (0, 0), all others (0, 0). The released
    densities are Laplace with different scales, so the ratio of their tails has no bound.

    Args:
        epsilon: Where to evaluate.
        claimed: The epsilon in the formula.
        coef_bound: B in zeta.
        ridge: n lambda.

    Example:
        >>> round(least_delta(1.0, claimed=1.0), 4)
        0.0226
    """
    if epsilon > _LARGEST:
        return 0.0  # true, and all that can be said in floating point
    total = ridge + 2 / claimed
    rate = claimed / (2 * (coef_bound + 1))
    wide = (0.0, rate * total)
    narrow = (1 / (1 + total), rate * (1 + total))
    return max(_hockey_stick(narrow, wide, epsilon), _hockey_stick(wide, narrow, epsilon))


def warning_of(study: Study) -> str:
    """What a release of this method says about itself."""
    found = least_delta(
        float(study.epsilon),
        claimed=float(study.epsilon),
        coef_bound=float(study.coef_bound),
        ridge=float(study.regularization or 0),
    )
    return (
        "Eq. (8) of the paper as printed is not differentially private for any epsilon: the gradient is not bounded without a "
        f"constraint on the coefficients. At the epsilon it claims, delta is at least {found:.2g} already for one feature."
    )


def _hockey_stick(first: tuple[float, float], second: tuple[float, float], epsilon: float) -> float:
    """Integral of max(f - e**epsilon g, 0) for Laplace densities given as (centre, rate)."""
    edges = [-math.inf, *sorted({first[0], second[0]}), math.inf]
    return sum(_piece(left, right, first, second, epsilon) for left, right in itertools.pairwise(edges))


def _piece(left: float, right: float, first: tuple[float, float], second: tuple[float, float], epsilon: float) -> float:
    """The part of the integral between two knots, where the log ratio is linear."""
    (centre_f, rate_f), (centre_g, rate_g) = first, second
    middle = left + 1 if math.isinf(right) else right - 1 if math.isinf(left) else (left + right) / 2
    sign_f, sign_g = math.copysign(1, middle - centre_f), math.copysign(1, middle - centre_g)
    slope = -rate_f * sign_f + rate_g * sign_g
    start = math.log(rate_f / rate_g) - epsilon + rate_f * sign_f * centre_f - rate_g * sign_g * centre_g
    if slope:
        root = -start / slope
        left, right = (max(left, root), right) if slope > 0 else (left, min(right, root))
    elif start <= 0:
        return 0.0
    if left >= right:
        return 0.0
    mass = [_laplace(right, *pair) - _laplace(left, *pair) for pair in (first, second)]
    return max(mass[0] - math.exp(epsilon) * mass[1], 0.0)


def _laplace(x: float, centre: float, rate: float) -> float:
    """The distribution function."""
    if math.isinf(x):
        return float(x > 0)
    side = math.exp(-rate * abs(x - centre)) / 2
    return side if x < centre else 1 - side
