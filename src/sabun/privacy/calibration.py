"""How much noise an (epsilon, delta) needs: epsilon goes in, a scale comes out, never below what the proof asks for.

Sensitivities are in units of the public grid (whole numbers of grid steps, or a rational upper bound of an L2 norm).
"""

from __future__ import annotations

import math
from fractions import Fraction

from sabun import checks
from sabun.privacy.amounts import AmountLike, exact_positive, float_above, float_below, ratio
from sabun.privacy.conversion import rho_of

__all__ = [
    "analytic_gaussian_delta",
    "analytic_gaussian_sigma",
    "discrete_gaussian_variance",
    "discrete_gaussian_variance_of_rho",
    "discrete_laplace_scale",
]

_FLOAT_UNIT = 2.0**-52
_SMALLEST = 1e-150
_NORMAL_RANGE = 1e-290
_LARGEST_EXPONENT = 700
_SMALLEST_LOSS = 1e-100


def discrete_laplace_scale(*, l1: AmountLike, epsilon: AmountLike) -> Fraction:
    """The exact scale of discrete Laplace noise for an L1 sensitivity on the integers: l1 / epsilon.

    Guarantee: adding independent discrete Laplace noise of this scale to each integer coordinate is epsilon-DP.

    Example:
        >>> discrete_laplace_scale(l1=1, epsilon=0.1)
        Fraction(10, 1)
    """
    return exact_positive(l1, name="l1") / exact_positive(epsilon, name="epsilon")


def discrete_gaussian_variance(*, l2_squared: AmountLike, epsilon: AmountLike, delta: AmountLike) -> Fraction:
    """The parameter sigma^2 of the discrete Gaussian for (epsilon, delta), for a squared L2 sensitivity on the integers.

    Guarantee: adding independent discrete Gaussian noise of this parameter to each integer coordinate is l2_squared /
    (2 sigma^2)-zCDP (Canonne-Kamath-Steinke 2020, Thm. 14), hence (epsilon, delta)-DP by `conversion.proof.md`.

    Example:
        >>> round(math.sqrt(discrete_gaussian_variance(l2_squared=1, epsilon=1, delta=1e-6)), 3)
        4.531
    """
    return discrete_gaussian_variance_of_rho(l2_squared=l2_squared, rho=rho_of(epsilon, delta))


def discrete_gaussian_variance_of_rho(*, l2_squared: AmountLike, rho: AmountLike) -> Fraction:
    """The parameter sigma^2 of the discrete Gaussian for rho-zCDP, rounded up to a short rational."""
    needed = exact_positive(l2_squared, name="l2_squared") / (2 * exact_positive(rho, name="rho"))
    bits = max(0, 40 - (needed.numerator.bit_length() - needed.denominator.bit_length()))
    return Fraction(math.ceil(needed * 2**bits), 2**bits)  # proof: variance-up


def analytic_gaussian_delta(*, sigma: float, l2: float, epsilon: float) -> float:
    """An upper bound of the exact delta of continuous Gaussian noise at epsilon (Balle-Wang 2018, Thm. 8).

    The bound is the formula plus a band for the floating-point error of erfc and of its argument, see the proof file.
    """
    checks.positive(sigma=sigma, l2=l2)
    checks.non_negative(epsilon=epsilon)
    sigma, l2, epsilon = float_below(ratio(sigma)), float_above(ratio(l2)), float_below(ratio(epsilon))  # proof: wide-floats
    for scale in (sigma, l2):
        checks.require(_SMALLEST < scale < 1 / _SMALLEST, "between 1e-150 and 1e150", scale=scale)
    multiplier = sigma / l2
    left, right = 1 / (2 * multiplier), epsilon * multiplier
    upper, lower = _normal_tail(right - left), _normal_tail(right + left)
    if lower < _NORMAL_RANGE or epsilon >= _LARGEST_EXPONENT:
        lower = 0.0  # proof: no-subnormal-tail
    band = 16 * _FLOAT_UNIT * (2 + (right + left) ** 2)  # proof: erfc-band
    return max(upper * (1 + band) - (math.exp(epsilon) * lower * (1 - band) if lower else 0.0), _NORMAL_RANGE)


def analytic_gaussian_sigma(*, l2: float, epsilon: AmountLike, delta: AmountLike) -> float:
    """The smallest standard deviation of continuous Gaussian noise for (epsilon, delta) that the certified bound admits.

    For noise that is continuous and then rounded (post-processing). The discrete Gaussian needs `discrete_gaussian_variance`.

    Example:
        >>> round(analytic_gaussian_sigma(l2=1.0, epsilon=1, delta=1e-5), 5)
        3.73063
    """
    checks.positive(l2=l2)
    l2 = float_above(ratio(l2))
    checks.require(_SMALLEST < l2 < 1 / _SMALLEST, "between 1e-150 and 1e150", l2=l2)
    target, loss = float_below(exact_positive(delta, name="delta")), float_below(exact_positive(epsilon, name="epsilon"))
    checks.require(_NORMAL_RANGE < target < 1, "above 1e-290 and below 1", delta=delta)
    checks.require(loss > _SMALLEST_LOSS, "above 1e-100", epsilon=epsilon)
    low, high = 0.0, 1.0
    while analytic_gaussian_delta(sigma=high, l2=1.0, epsilon=loss) > target:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        if not max(low, 2 * _SMALLEST) < middle < high:
            break
        good = analytic_gaussian_delta(sigma=middle, l2=1.0, epsilon=loss) <= target
        low, high = (low, middle) if good else (middle, high)
    return math.nextafter(high * l2, math.inf)  # proof: last-good-side


def _normal_tail(x: float) -> float:
    """P[N(0, 1) > x]."""
    return math.erfc(x / math.sqrt(2)) / 2
