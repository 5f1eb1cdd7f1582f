"""From concentrated differential privacy (zCDP) to (epsilon, delta), with every rounding on the safe side.

Notation: rho is the zCDP parameter, alpha > 1 the Renyi order. For every alpha, rho-zCDP implies (epsilon, delta) with
log delta = (alpha-1)(alpha rho - epsilon) + alpha log(1 - 1/alpha) - log(alpha-1)      (Canonne-Kamath-Steinke 2020, Cor. 13).
A good alpha is found in floating point; the bound is then evaluated at that alpha in certified arithmetic, so a poor alpha can
only cost accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeAlias

from sabun import checks
from sabun.privacy.amounts import AmountLike, exact, exact_positive
from sabun.privacy.certified import exp_up, log_down, log_up

__all__ = ["delta_of_rho", "epsilon_of_rho", "rho_of"]

_Curve: TypeAlias = Callable[[float], float]

_LOG_ALPHA_RANGES = ((-30.0, 60.0), (50.0, 300.0))
"""Where log(alpha - 1) is sought: alpha is about log(1/delta)/epsilon, for the smallest epsilons beyond the first range."""
_SMALLEST_DELTA = Fraction(1, 10**1000)
_SMALLEST_EPSILON, _LARGEST_EPSILON = Fraction(1, 10**100), Fraction(10**100)


def delta_of_rho(rho: AmountLike, *, epsilon: AmountLike) -> Fraction:
    """A delta such that every rho-zCDP mechanism is (epsilon, delta)-DP.

    Example:
        >>> float(delta_of_rho(Fraction(1, 8), epsilon=2)) < 1e-3
        True
    """
    rho_exact, epsilon_exact = _finite(rho, "rho"), _finite(epsilon, "epsilon")
    if rho_exact == 0:
        return Fraction(0)
    rho_near, epsilon_near = _near(rho_exact), _near(epsilon_exact)
    alpha = _best_alpha(lambda a: _log_delta(rho_near, epsilon_near, a))
    exponent = (alpha - 1) * (alpha * rho_exact - epsilon_exact)
    exponent += alpha * log_up(1 - 1 / alpha) - log_down(alpha - 1)  # proof: certified-delta
    return min(Fraction(exp_up(exponent)), Fraction(1)) if exponent < 0 else Fraction(1)


def epsilon_of_rho(rho: AmountLike, *, delta: AmountLike) -> Fraction:
    """An epsilon such that every rho-zCDP mechanism is (epsilon, delta)-DP.

    Example:
        >>> round(float(epsilon_of_rho(Fraction(1, 2), delta=1e-6)), 3)
        5.222
    """
    rho_exact, delta_exact = _finite(rho, "rho"), _finite(delta, "delta")
    checks.require(0 < delta_exact < 1, "above 0 and below 1", delta=delta)
    if rho_exact == 0:
        return Fraction(0)
    rho_near, log_delta = _near(rho_exact), float(log_up(delta_exact))
    alpha = _best_alpha(lambda a: _epsilon(rho_near, log_delta, a))
    bound = (
        alpha * rho_exact + log_up(1 - 1 / alpha) + log_up(1 / (alpha * delta_exact)) / (alpha - 1)
    )  # proof: certified-epsilon
    return max(_shortened(bound), Fraction(0))


def rho_of(epsilon: AmountLike, delta: AmountLike) -> Fraction:
    """A large rho such that every rho-zCDP mechanism is (epsilon, delta)-DP.

    Guarantee: `delta_of_rho(result, epsilon=epsilon) <= delta` was checked in certified arithmetic before returning.

    Example:
        >>> rho = rho_of(1, 1e-6)
        >>> delta_of_rho(rho, epsilon=1) <= Fraction(1, 10**6)
        True
    """
    epsilon_exact, delta_exact = exact_positive(epsilon, name="epsilon"), _finite(delta, "delta")
    checks.require(_SMALLEST_DELTA <= delta_exact < 1, "at least 1e-1000 and below 1", delta=delta)
    checks.require(_SMALLEST_EPSILON <= epsilon_exact <= _LARGEST_EPSILON, "from 1e-100 to 1e100", epsilon=epsilon)
    rho = Fraction(_search_rho(float(epsilon_exact), float(log_down(delta_exact))))
    shrink = Fraction(1, 10**9)
    while delta_of_rho(rho, epsilon=epsilon_exact) > delta_exact:  # proof: safe-side
        rho, shrink = rho * (1 - shrink), min(2 * shrink, Fraction(1, 2))
    return rho


def _search_rho(epsilon: float, log_delta: float) -> float:
    """Bisection in floating point, from the weaker bound epsilon = rho + 2 sqrt(rho log(1/delta)) upwards."""
    low, high = (epsilon / (math.sqrt(epsilon - log_delta) + math.sqrt(-log_delta))) ** 2, epsilon
    for _ in range(60):
        middle = (low + high) / 2
        alpha = _best_alpha(lambda a, rho=middle: _log_delta(rho, epsilon, a))  # type: ignore[misc]
        low, high = (middle, high) if _log_delta(middle, epsilon, float(alpha)) <= log_delta else (low, middle)
    return low


def _log_delta(rho: float, epsilon: float, alpha: float) -> float:
    return (alpha - 1) * (alpha * rho - epsilon) + alpha * math.log1p(-1 / alpha) - math.log(alpha - 1)


def _epsilon(rho: float, log_delta: float, alpha: float) -> float:
    return alpha * rho + math.log1p(-1 / alpha) - (math.log(alpha) + log_delta) / (alpha - 1)


def _near(value: Fraction) -> float:
    """A float to choose alpha by; how near it is matters for tightness only."""
    return float(min(value, _LARGEST_EPSILON))


def _best_alpha(curve: _Curve) -> Fraction:
    """Golden-section search over log(alpha - 1); the result is only a good choice, never a premise."""
    near, far = _LOG_ALPHA_RANGES
    found = _least(curve, *near)
    if found > near[1] - 1:
        found = _least(curve, *far)
    return 1 + Fraction(math.exp(found)).limit_denominator(10**9 if found > 0 else 10**20)


def _least(curve: _Curve, low: float, high: float) -> float:
    """The place of the least value of a curve that falls and then rises."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = _value(curve, left), _value(curve, right)
    for _ in range(120):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = _value(curve, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = _value(curve, right)
    return (low + high) / 2


def _value(curve: _Curve, log_excess: float) -> float:
    alpha = 1 + math.exp(log_excess)
    return curve(alpha) if alpha > 1 else math.inf


def _shortened(bound: Fraction) -> Fraction:
    """The bound with at most 15 decimals, rounded up."""
    return Fraction(math.ceil(bound * 10**15), 10**15)


def _finite(value: AmountLike, name: str) -> Fraction:
    read = exact(value, name=name)
    checks.require(isinstance(read, Fraction) and read >= 0, "finite and >= 0", **{name: value})
    return Fraction(read)
