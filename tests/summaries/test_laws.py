from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sabun.summaries.laws import Noise

SCALES = [Fraction(1, 20), Fraction(1, 2), Fraction(2), Fraction(7, 3), Fraction(40)]


def law(noise: Noise, reach: int) -> tuple[np.ndarray, np.ndarray]:
    at = np.arange(-reach, reach + 1)
    logs = -(at**2) / (2 * float(noise.size)) if noise.gaussian else -np.abs(at) / float(noise.size)
    weights = np.exp(logs)
    return at, weights / weights.sum()


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("size", SCALES)
@pytest.mark.parametrize("miss", [0.5, 0.05, 0.001])
@pytest.mark.parametrize("numbers", [1, 3])
def test_a_reach_holds_as_often_as_it_says(gaussian: bool, size: Fraction, miss: float, numbers: int) -> None:
    noise = Noise(gaussian=gaussian, size=size)
    reach = noise.reach(miss, numbers=numbers)
    at, chances = law(noise, 2000)

    def inside(k: int) -> float:
        return float(chances[np.abs(at) <= k].sum()) ** numbers

    assert inside(reach) >= 1 - miss - 1e-12
    if not gaussian:
        assert reach == 0 or inside(reach - 1) < 1 - miss
    else:
        assert reach <= 1 or inside(reach - 2) < 1 - miss


def test_reaches_of_noise_beyond_every_float() -> None:
    assert Noise(gaussian=False, size=Fraction(10) ** 400).reach(0.05) > 10**400
    assert Noise(gaussian=True, size=Fraction(10) ** 800).reach(0.05) > 10**400
    assert Noise(gaussian=False, size=Fraction(1, 10**6)).reach(0.05) == 0


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("one", [0.0, 0.1, 0.5, 0.5000001, 0.8, 1.0])
@pytest.mark.parametrize("miss", [0.5, 0.05])
def test_two_draws_are_within_their_reach_and_seldom_far_inside(gaussian: bool, one: float, miss: float) -> None:
    noise = Noise(gaussian=gaussian, size=Fraction(900 if gaussian else 30))
    at, chances = law(noise, 800)
    reach = float(noise.reach_of_two(one, 1 - one, miss))
    distance = np.abs(one * at[:, None] - (1 - one) * at[None, :])
    both = chances[:, None] * chances[None, :]
    assert both[distance <= reach + 1e-9].sum() >= 1 - miss - 1e-9
    assert both[distance <= reach - 3].sum() < 1 - miss


def test_equal_weights_are_no_edge() -> None:
    noise = Noise(gaussian=False, size=Fraction(10**6))
    around = [float(noise.reach_of_two(0.5 + shift, 0.5 - shift, 0.05)) for shift in (0, 1e-9, 1e-7, 1e-6, 1e-5)]
    assert max(around) - min(around) < 1e-3 * max(around)
    assert math.isclose(around[0], 0.5e6 * 4.113, rel_tol=2e-2)
