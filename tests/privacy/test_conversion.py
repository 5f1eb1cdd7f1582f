from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.privacy import analytic_gaussian_delta, delta_of_rho, epsilon_of_rho, rho_of

RHO = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=10**6)
EPSILON = st.fractions(min_value=Fraction(1, 100), max_value=30, max_denominator=10**4)


def _grid_delta(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The same bound minimised over a dense grid of alpha in high precision."""
    best = mpmath.mpf(0)
    for step in range(-60, 121):
        alpha = 1 + mpmath.power(10, mpmath.mpf(step) / 20)
        exponent = (alpha - 1) * (
            alpha * mpmath.mpf(rho.numerator) / rho.denominator - mpmath.mpf(epsilon.numerator) / epsilon.denominator
        )
        best = min(best, exponent + alpha * mpmath.log(1 - 1 / alpha) - mpmath.log(alpha - 1))
    return mpmath.exp(best)


@given(RHO, EPSILON)
@settings(max_examples=40, deadline=None)
def test_delta_is_as_good_as_a_dense_grid_of_alpha(rho: Fraction, epsilon: Fraction) -> None:
    ours = delta_of_rho(rho, epsilon=epsilon)
    assert float(ours) <= float(_grid_delta(rho, epsilon)) * (1 + 1e-6)


@given(RHO, EPSILON)
@settings(max_examples=60, deadline=None)
def test_delta_is_above_the_exact_curve_of_the_gaussian(rho: Fraction, epsilon: Fraction) -> None:
    sigma = 1 / math.sqrt(2 * rho)
    exact = analytic_gaussian_delta(sigma=sigma, l2=1.0, epsilon=float(epsilon))
    # The exact curve itself is known up to 1e-290.
    assert float(delta_of_rho(rho, epsilon=epsilon)) >= exact * (1 - 1e-6) or exact <= 1e-289


@given(RHO, st.integers(min_value=2, max_value=14))
@settings(max_examples=40, deadline=None)
def test_epsilon_and_delta_agree(rho: Fraction, digits: int) -> None:
    delta = Fraction(1, 10**digits)
    epsilon = epsilon_of_rho(rho, delta=delta)
    if epsilon > 0:
        assert delta_of_rho(rho, epsilon=epsilon) <= delta * (1 + Fraction(1, 10**9))
        assert delta_of_rho(rho, epsilon=epsilon * Fraction(999, 1000)) > delta


@pytest.mark.parametrize("epsilon", ["0.01", "0.1", "1", "3", "10", "50"])
@pytest.mark.parametrize("delta", ["1e-2", "1e-6", "1e-12"])
def test_rho_ends_on_the_safe_side_and_is_not_wasteful(epsilon: str, delta: str) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of_rho(rho, epsilon=epsilon) <= Fraction(delta)
    assert delta_of_rho(rho * Fraction(1001, 1000), epsilon=epsilon) > Fraction(delta)


def test_an_alpha_of_exactly_two_ends() -> None:
    assert 0 < delta_of_rho("1.164", epsilon=2.7988528494400544) < 1
    assert 0 < delta_of_rho("1.22", epsilon=2.9668528194400547) < 1


@pytest.mark.parametrize(("epsilon", "delta"), [(1.4e-6, 1e-300), (1e-6, 1e-300), (1, "1e-400"), (1e3, 1e-6)])
def test_extreme_promises_are_calibrated_quickly(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert rho > 0
    assert delta_of_rho(rho, epsilon=epsilon) <= Fraction(str(delta))
    assert epsilon_of_rho(rho, delta=delta) <= Fraction(str(epsilon)) * (1 + Fraction(1, 10**6))


def test_an_enormous_rho_is_still_a_bound() -> None:
    assert epsilon_of_rho("1e400", delta=1e-6) > 10**400


def test_nothing_released_costs_nothing() -> None:
    assert delta_of_rho(0, epsilon=1) == 0
    assert epsilon_of_rho(0, delta=1e-6) == 0


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ParameterError, match=r"rho must be finite and >= 0; got -1"):
        delta_of_rho(-1, epsilon=1)
    with pytest.raises(ParameterError, match=r"delta must be above 0 and below 1; got 0"):
        epsilon_of_rho(1, delta=0)
    with pytest.raises(ParameterError, match=r"epsilon must be finite and > 0; got 0"):
        rho_of(0, 1e-6)
    with pytest.raises(ParameterError, match=r"delta must be at least 1e-1000 and below 1"):
        rho_of(1, "1e-2000")
    with pytest.raises(ParameterError, match=r"epsilon must be from 1e-100 to 1e100"):
        rho_of("1e-200", 1e-6)
    with pytest.raises(ParameterError, match=r"epsilon must be finite and >= 0; got inf"):
        delta_of_rho(1, epsilon=math.inf)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [("1e-100", "1e-100"), ("1e-100", "1e-1000"), ("1e-30", "1e-300"), ("1e100", "1e-6")]
)
def test_a_rho_is_found_at_the_ends_of_what_is_allowed(epsilon: str, delta: str) -> None:
    rho = rho_of(epsilon, delta)
    assert rho > 0
    assert delta_of_rho(rho, epsilon=epsilon) <= Fraction(delta)
