"""Whatever is rounded, is rounded to the side on which promises stay true."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.privacy import conversion
from sabun.privacy.amounts import Amount, compact, float_above, float_below, plain, rounded_up
from sabun.privacy.calibration import discrete_gaussian_variance_of_rho, discrete_laplace_scale
from sabun.privacy.certified import sqrt_up
from sabun.privacy.composition import pld_epsilon
from sabun.privacy.events import Approximate, Event, Gaussian
from sabun.privacy.noise import Grid
from sabun.privacy.renyi import stepped

AWKWARD = (
    *(Fraction(above, below) for above in (1, 2, 10**17 + 1) for below in (3, 7, 10**6 + 3)),
    Fraction(3**1400 - 1, 3**1400),  # of more bits than a total keeps
    Fraction(1, 2**2048 + 1),
    1 + Fraction(1, 2**80),
    Fraction(10**25 + 1, 10**25),
)

UP: dict[str, Callable[[Fraction], Amount]] = {
    "a total": compact,
    "a float": lambda value: Fraction(float_above(value)),
    "a computed float": lambda value: rounded_up(float_above(value)),
    "what a person reads": lambda value: Fraction(plain(value)),
    "a cost at an order": stepped,
    "an epsilon of a rho": conversion._shortened,
    "the square of a root": lambda value: sqrt_up(value) ** 2,
    "a variance": lambda value: discrete_gaussian_variance_of_rho(l2_squared=value, rho=Fraction(1, 2)),
    "a scale": lambda value: discrete_laplace_scale(l1=value, epsilon=1),
}
DOWN: dict[str, Callable[[Fraction], Amount]] = {
    "a float": lambda value: Fraction(float_below(value)),
    "the noise of a stated deviation": lambda value: Gaussian.of(sigma=1, l2_squared=1 / value).noise_multiplier ** 2,
}


@pytest.mark.parametrize("what", UP)
def test_what_is_spent_needed_or_lost_is_never_rounded_down(what: str) -> None:
    for value in AWKWARD:
        assert value <= UP[what](value), value.limit_denominator(10**9)


@pytest.mark.parametrize("what", DOWN)
def test_what_protects_is_never_rounded_up(what: str) -> None:
    for value in (value for value in AWKWARD if value > Fraction(1, 10**300)):
        assert DOWN[what](value) <= value, value.limit_denominator(10**9)


@pytest.mark.parametrize("runs", [10**5, 10**7])
def test_the_accountants_margin_grows_with_the_runs_however_they_are_written(runs: int) -> None:
    """Below ten margins nothing is said; just above, the figure is that of a smaller delta."""
    delta = Fraction(9 * runs, 10**15)
    lists: list[list[Event]] = [[Gaussian(noise_multiplier=10**5, count=runs)]]
    lists.append([Gaussian(noise_multiplier=10**5, count=runs // 2)] * 2)
    lists.append([Approximate(epsilon=Fraction(1, 10**9), count=runs - 1), Gaussian(noise_multiplier=10**5)])
    assert [pld_epsilon(events, delta=delta) for events in lists] == [None] * 3


def test_a_grid_finds_an_index_of_any_size_or_refuses_it() -> None:
    ends = [sign * 2.0**power for sign in (-1, 1) for power in (52, 53, 62, 63, 64)]
    for value in (beside for end in ends for beside in (np.nextafter(end, -np.inf), end, np.nextafter(end, np.inf))):
        try:
            [found] = Grid(0).index(np.array([value]))
        except ParameterError:
            assert abs(value) >= 2.0**63
        else:
            assert int(found) == Grid(0).index(float(value))
