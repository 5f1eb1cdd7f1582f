from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.privacy import (
    analytic_gaussian_delta,
    analytic_gaussian_sigma,
    discrete_gaussian_variance,
    discrete_gaussian_variance_of_rho,
    discrete_laplace_scale,
)
from sabun.privacy.amounts import float_above, ratio


def test_the_laplace_scale_is_exact() -> None:
    assert discrete_laplace_scale(l1=3, epsilon=0.1) == 30
    assert discrete_laplace_scale(l1=Fraction(7, 2), epsilon="1/3") == Fraction(21, 2)


@pytest.mark.parametrize(("epsilon", "published"), [(0.1, 30.7496), (1, 3.73063), (10, 0.499889)])
def test_analytic_sigma_matches_published_values(epsilon: float, published: float) -> None:
    assert analytic_gaussian_sigma(l2=1.0, epsilon=epsilon, delta=1e-5) == pytest.approx(published, rel=2e-6)


def _true_delta(sigma: float, epsilon: float) -> mpmath.mpf:
    left, right = mpmath.mpf(1) / (2 * mpmath.mpf(sigma)), mpmath.mpf(epsilon) * mpmath.mpf(sigma)
    return mpmath.ncdf(left - right) - mpmath.exp(epsilon) * mpmath.ncdf(-left - right)


@given(st.floats(min_value=0.05, max_value=200), st.floats(min_value=0.001, max_value=60))
@settings(max_examples=150, deadline=None)
def test_analytic_delta_is_never_below_the_truth(sigma: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        truth = _true_delta(sigma, epsilon)
        ours = analytic_gaussian_delta(sigma=sigma, l2=1.0, epsilon=epsilon)
        assert ours >= truth


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(650, 1e-40), (699, 1e-16), (750, 1e-10), (1, 1e-280), (1e-8, 0.9), (1e-8, 1e-15)]
)
def test_analytic_sigma_is_safe_where_tails_underflow(epsilon: float, delta: float) -> None:
    sigma = analytic_gaussian_sigma(l2=1.0, epsilon=epsilon, delta=delta)
    with mpmath.workdps(400):
        assert _true_delta(sigma, epsilon) <= mpmath.mpf(delta)


@pytest.mark.parametrize("sigma_epsilon", [(0.060353959703335965, 500.0), (0.1135114032643288, 300.0)])
def test_a_subnormal_second_tail_is_not_subtracted(sigma_epsilon: tuple[float, float]) -> None:
    sigma, epsilon = sigma_epsilon
    with mpmath.workdps(400):
        assert analytic_gaussian_delta(sigma=sigma, l2=1.0, epsilon=epsilon) >= _true_delta(sigma, epsilon)


@pytest.mark.parametrize("l2", [1e-140, 3.0, 1e140])
def test_analytic_sigma_scales_with_the_sensitivity(l2: float) -> None:
    unit = analytic_gaussian_sigma(l2=1.0, epsilon=0.3, delta=1e-5)
    assert 1 <= analytic_gaussian_sigma(l2=l2, epsilon=0.3, delta=1e-5) / (unit * l2) <= 1 + 1e-12


@given(st.floats(min_value=0.01, max_value=20), st.integers(min_value=1, max_value=12))
@settings(max_examples=60, deadline=None)
def test_analytic_sigma_is_safe_at_sixty_digits(epsilon: float, digits: int) -> None:
    delta = 10.0**-digits
    sigma = analytic_gaussian_sigma(l2=1.0, epsilon=epsilon, delta=delta)
    with mpmath.workdps(60):
        assert _true_delta(sigma, epsilon) <= mpmath.mpf(delta)


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-4), (1, 1e-6), (3, 1e-3)])
def test_the_discrete_gaussian_keeps_its_delta_by_brute_force(epsilon: float, delta: float, sensitivity: int) -> None:
    variance = discrete_gaussian_variance(l2_squared=sensitivity**2, epsilon=epsilon, delta=delta)
    reach = int(40 * math.sqrt(variance)) + 10
    weight = {x: math.exp(-(x**2) / (2 * variance)) for x in range(-reach, reach + sensitivity + 1)}
    total = sum(weight.values())
    divergence = sum(
        max(weight[x] - math.exp(epsilon) * weight.get(x - sensitivity, 0.0), 0.0) for x in weight if x - sensitivity >= -reach
    )
    assert divergence / total <= delta


def test_the_variance_of_a_rho_is_rounded_up_to_a_short_rational() -> None:
    variance = discrete_gaussian_variance_of_rho(l2_squared=Fraction(1, 3), rho=Fraction(1, 7))
    assert Fraction(7, 6) <= variance <= Fraction(7, 6) * (1 + Fraction(1, 2**38))
    assert variance.denominator <= 2**41


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ParameterError, match=r"epsilon must be finite and > 0; got 0"):
        discrete_laplace_scale(l1=1, epsilon=0)
    with pytest.raises(ParameterError, match=r"l2_squared must be finite and > 0; got -1"):
        discrete_gaussian_variance(l2_squared=-1, epsilon=1, delta=1e-6)
    with pytest.raises(ParameterError, match=r"delta must be above 1e-290 and below 1; got 1\.5"):
        analytic_gaussian_sigma(l2=1.0, epsilon=1, delta=1.5)
    with pytest.raises(ParameterError, match=r"delta must be above 1e-290 and below 1; got '1e-400'"):
        analytic_gaussian_sigma(l2=1.0, epsilon=1, delta="1e-400")
    with pytest.raises(ParameterError, match=r"l2 must be between 1e-150 and 1e150; got 1e\+308"):
        analytic_gaussian_sigma(l2=1e308, epsilon=0.3, delta=1e-5)
    with pytest.raises(ParameterError, match=r"sigma must be finite and > 0; got -5"):
        analytic_gaussian_delta(sigma=-5, l2=1, epsilon=1)


WIDTHS = [np.float16, np.float32, np.float64, np.longdouble, Fraction]


@pytest.mark.parametrize("width", WIDTHS)
def test_parameters_of_any_width_give_the_bound_of_the_numbers_they_are(width: Any) -> None:
    """In 16 bits the bound itself fell below the truth: 2.55e-5 where 2.7298e-5 is the least."""
    sigma, l2, epsilon = width(3.5), width(1), width(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        delta = analytic_gaussian_delta(sigma=sigma, l2=l2, epsilon=epsilon)
        assert type(delta) is float
        assert delta == analytic_gaussian_delta(sigma=3.5, l2=1.0, epsilon=1.0)
        small = width(0.1)
        found = analytic_gaussian_sigma(l2=small, epsilon=1, delta=1e-5)
    assert type(found) is float
    assert Fraction(found) >= Fraction(analytic_gaussian_sigma(l2=1.0, epsilon=1, delta=1e-5)) * ratio(small) * (
        1 - Fraction(1, 2**50)
    )
    assert analytic_gaussian_delta(sigma=found, l2=float_above(ratio(small)), epsilon=1.0) <= 1e-5 * (1 + 1e-9)


def test_a_fraction_is_rounded_to_the_side_of_more_noise() -> None:
    third = Fraction(1, 3)
    assert analytic_gaussian_delta(sigma=third, l2=1.0, epsilon=1.0) >= analytic_gaussian_delta(
        sigma=float_above(third), l2=1.0, epsilon=1.0
    )
    assert analytic_gaussian_sigma(l2=third, epsilon=1, delta=1e-5) >= analytic_gaussian_sigma(
        l2=float_above(third), epsilon=1, delta=1e-5
    )


@pytest.mark.parametrize("beyond", [10**400, Fraction(10**400), np.longdouble("1e-4000")])
def test_scales_beyond_floating_point_are_refused(beyond: Any) -> None:
    with pytest.raises(ParameterError):
        analytic_gaussian_sigma(l2=beyond, epsilon=1, delta=1e-5)
    with pytest.raises(ParameterError):
        analytic_gaussian_delta(sigma=beyond, l2=1.0, epsilon=1.0)
