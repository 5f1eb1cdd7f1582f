from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.outliers import OutlierCount
from sabun.outliers.error_bar import ErrorBar
from sabun.outliers.laws import PowerTail
from sabun.outliers.sensitivity import measure
from sabun.privacy.certified import exp_down, log_down
from sabun.privacy.noise import seeded_coin

BAR = ErrorBar(epsilon=Fraction(3, 10), beta=Fraction(7, 50))


def index_of(bar: ErrorBar, bound: Fraction) -> int:
    """The number of grid steps, with the noise taken away again."""
    drawn = bar.draw(bound, coin=seeded_coin(1))
    return drawn - (bar.draw(Fraction(1), coin=seeded_coin(1)))


def test_a_smooth_change_moves_the_index_by_no_more_than_the_noise_is_made_for() -> None:
    factor = exp_down(BAR.beta)
    for bound in (Fraction(1), Fraction(2), Fraction(31, 7), Fraction(10**9 + 7, 3), Fraction(10**30)):
        moved = index_of(BAR, bound * factor) - index_of(BAR, bound)
        assert abs(moved) <= math.floor(BAR.scale * BAR.epsilon)
        assert abs(moved) >= BAR.scale * BAR.epsilon * Fraction(99, 100)


@pytest.mark.parametrize("cap", [7, 10**9])
@pytest.mark.parametrize("miss", [0.05, 0.3])
def test_the_interval_misses_as_rarely_as_it_says_and_not_much_more_rarely(cap: int, miss: float) -> None:
    """At the cap the estimate is clipped from above, far below it is not; both keep the promise."""
    law, coin, rng = PowerTail(epsilon=Fraction(7, 10), beta=BAR.beta), seeded_coin(2), np.random.default_rng(0)
    bound, times = Fraction(7), 4000
    noise = 7 / float(law.theta) * (rng.uniform(size=times) ** (-1 / float(law.exponent)) - 1)
    factor = BAR.multiplier(law.tail, miss=miss)
    widths = np.array([factor * BAR.estimate(BAR.draw(bound, coin=coin), cap=cap) for _ in range(times)])
    missed = float((noise > widths).mean())
    assert missed <= miss + 3 * math.sqrt(miss / times)
    assert missed >= miss * (0.85 if cap == 7 else 0.6)


def test_the_width_is_whole_and_grows_with_the_estimate() -> None:
    law = PowerTail(epsilon=Fraction(7, 10), beta=BAR.beta)
    widths = [BAR.width(index, tail=law.tail, miss=0.05, cap=1000) for index in (-(10**6), 0, 40_000, 10**6)]
    assert widths == sorted(widths)
    assert all(isinstance(width, int) for width in widths)


def test_the_estimate_stays_between_one_and_the_public_cap() -> None:
    assert BAR.estimate(10**9, cap=31) == pytest.approx(31)
    assert BAR.estimate(10**9, cap=2**5000) < math.inf
    assert BAR.estimate(-(10**9), cap=31) == 1


@pytest.mark.parametrize("beta", ["5e-40", "9e-21"])
def test_an_error_bar_needs_a_grid_that_a_logarithm_can_tell_apart(beta: str) -> None:
    rule = (
        r"beta must be at least 1e-20 with an error bar; got .*\. Ask for a larger beta or epsilon, or turn the error bar off"
    )
    with pytest.raises(ParameterError, match=rule):
        OutlierCount(k=3, radius=1, epsilon=1, beta=Fraction(beta))
    with pytest.raises(ParameterError, match=rule):
        OutlierCount(k=3, radius=1, epsilon=Fraction(beta))
    with pytest.raises(ParameterError, match=rule):
        ErrorBar(epsilon=Fraction(1), beta=Fraction(beta))
    OutlierCount(k=3, radius=1, epsilon=1, beta=Fraction(beta), error_bar=0)


def test_at_the_smallest_beta_the_index_still_moves_as_little_as_the_noise_covers() -> None:
    beta = Fraction(1, 10**20)
    bar = ErrorBar(epsilon=Fraction(3, 10), beta=beta)
    for size in (8, 12):
        rng = np.random.default_rng(0)
        for _ in range(10):
            one = rng.integers(0, 8, size=(size, 1)).astype(float)
            other = one.copy()
            other[rng.integers(size)] = rng.integers(-3, 30)
            bounds = [
                measure(t, k=3, radius=1.0, beta=beta, cover="degeneracy", relation="replace-one")[1] for t in (one, other)
            ]
            index = [log_down(bound) // bar.step for bound in bounds]
            assert abs(index[0] - index[1]) <= 4098


def test_the_smallest_error_bar_that_is_taken_can_be_drawn() -> None:
    model = OutlierCount(k=1, radius=1, error_bar="1e-279", random_state=1, epsilon=5, beta=1).fit(np.zeros((9, 2)))
    assert model.interval_ is not None
    with pytest.raises(ParameterError, match="turn it off"):
        ErrorBar(epsilon=Fraction(1, 10**281), beta=Fraction(1))


@pytest.mark.parametrize("epsilon", [Fraction(3, 10), Fraction(10**4), Fraction(10**5)])
def test_a_bound_is_read_no_lower_than_continuous_noise_would_have_it(epsilon: Fraction) -> None:
    """Just below a step of the grid, where the most is rounded away: each end of each noisy step, against Laplace noise."""
    bar = ErrorBar(epsilon=epsilon, beta=Fraction(7, 50))
    decay, step, scale = math.exp(-1 / float(bar.scale)), float(bar.step), float(bar.step * bar.scale)
    bound = Fraction(math.exp((10**5 + 1) * step - 1e-9))
    index = bar._index(bound)
    for noise in range(-40, 1):
        below = math.log(bar.estimate(index + noise, cap=1 << 99)) - math.log(bound)
        chance = decay**-noise / (1 + decay)
        assert chance <= (math.exp(below / scale) / 2 if below < 0 else 1 - math.exp(-below / scale) / 2) + 1e-9
