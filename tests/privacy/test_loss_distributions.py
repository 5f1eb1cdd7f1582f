"""What a second review broke: the accountant loses probability with every run; a delta that is no number below one."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest

from sabun.errors import ParameterError
from sabun.privacy import pld_epsilon, tight_epsilon
from sabun.privacy.events import Approximate, Gaussian, SampledGaussian


def exact_delta(multiplier: Fraction, runs: int, epsilon: Fraction) -> mpmath.mpf:
    """The curve of `runs` Gaussians, which are one of multiplier / sqrt(runs) (Balle and Wang 2018)."""
    with mpmath.workdps(40):
        one = mpmath.mpf(multiplier.numerator) / multiplier.denominator / mpmath.sqrt(runs)
        spent = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        half = 1 / (2 * one)
        return mpmath.ncdf(half - spent * one) - mpmath.exp(spent) * mpmath.ncdf(-half - spent * one)


@pytest.mark.parametrize(
    ("multiplier", "runs", "delta"),
    [
        ("2000", 10**6, "1.01e-10"),
        ("2000", 10**6, "3e-10"),
        ("331.3", 989_624, "2e-10"),
        ("299.11", 357_876, "2e-10"),
        ("2000", 10**6, "1.1e-8"),
        ("100", 10**5, "2e-9"),
        ("10", 1000, "1.01e-10"),
        ("3", 10, "1e-5"),
    ],
)
def test_no_epsilon_is_below_the_exact_curve(multiplier: str, runs: int, delta: str) -> None:
    event = Gaussian(noise_multiplier=Fraction(multiplier), count=runs)
    epsilon = tight_epsilon([event], delta=delta)
    assert isinstance(epsilon, Fraction)
    assert (
        exact_delta(Fraction(multiplier), runs, epsilon) <= mpmath.mpf(Fraction(delta).numerator) / Fraction(delta).denominator
    )


@pytest.mark.parametrize(("runs", "least"), [(2, 1e-10), (10_000, 1e-10), (1_000_000, 1e-8)])
def test_the_margin_grows_with_the_number_of_runs(runs: int, least: float) -> None:
    """Counted over all events: a loss is a loss, whichever event it comes from."""
    parts = [Gaussian(noise_multiplier=3000, count=runs // 2)] * 2
    assert pld_epsilon(parts, delta=Fraction(least) * Fraction(999, 1000)) is None
    assert pld_epsilon(parts, delta=Fraction(least) * Fraction(1001, 1000)) is not None


def test_usual_training_costs_what_it_did() -> None:
    """Up to ten thousand steps the margin is what it was; at a hundred thousand it moves the seventh digit."""
    steps = SampledGaussian(noise_multiplier=1, sampling_probability=Fraction(1, 100), count=100_000)
    wide, narrow = pld_epsilon([steps], delta=1e-5), pld_epsilon([steps], delta=Fraction("1e-5") + Fraction(9, 10**11))
    assert wide is not None
    assert narrow is not None
    assert narrow <= wide <= narrow * (1 + Fraction(1, 10**5))


@pytest.mark.parametrize("delta", [math.inf, "inf", 0, 1, -1e-6, 2])
@pytest.mark.parametrize("account", [tight_epsilon, pld_epsilon])
def test_a_delta_is_above_zero_and_below_one(account: object, delta: object) -> None:
    with pytest.raises(ParameterError, match="delta must be above 0 and below 1; got "):
        account([Approximate(epsilon=1)], delta=delta)  # type: ignore[operator]
