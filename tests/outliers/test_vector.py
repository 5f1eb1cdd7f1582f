from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sabun.errors import ParameterError
from sabun.outliers.laws import PowerTail
from sabun.outliers.vector import PowerVector
from sabun.privacy.noise import seeded_coin


@pytest.mark.parametrize("outputs", [1, 2, 4])
def test_the_density_keeps_epsilon_for_every_move_and_stretch(outputs: int) -> None:
    """The loss is largest on the axis of the move; scan it there and at random places."""
    law = PowerVector.of(epsilon=Fraction(1), outputs=outputs, beta=None)
    theta, beta, a = float(law.theta), float(law.beta), outputs + law.exponent
    rng = np.random.default_rng(0)
    worst = 0.0
    for ratio in (math.exp(-beta), 1.0, math.exp(beta)):
        move = np.zeros(outputs)
        move[0] = min(1.0, ratio)
        places = np.vstack(
            [
                np.outer(np.geomspace(1e-3, 1e6, 400), np.eye(outputs)[0]),
                rng.normal(size=(4000, outputs)) * 5,
                np.zeros((1, outputs)),
            ]
        )
        for sign in (-1, 1):
            here = np.abs(places).sum(axis=1)
            there = np.abs(places - sign * move).sum(axis=1)
            loss = -a * np.log1p(theta * here) + a * np.log1p(theta * there / ratio) + outputs * math.log(ratio)
            worst = max(worst, float(np.abs(loss).max()))
    assert worst <= 1 + 1e-9
    assert worst > 0.99


def test_each_coordinate_has_the_scalar_law_and_the_sum_its_own() -> None:
    law, coin = PowerVector.of(epsilon=Fraction(1), outputs=3, beta=None), seeded_coin(7)
    drawn = np.array([law.draw(Fraction(2000), coin=coin) for _ in range(900)])
    scaled = np.abs(drawn) * float(law.theta) / 2000
    for column in scaled.T:
        assert stats.kstest(column, lambda x: 1 - (1 + x) ** -float(law.exponent)).pvalue > 1e-4
    assert stats.kstest(scaled.sum(axis=1), stats.betaprime(3, law.exponent).cdf).pvalue > 1e-4
    assert stats.kstest(scaled.sum(axis=1) * 1.4, stats.betaprime(3, law.exponent).cdf).pvalue < 1e-6
    assert abs(np.mean(drawn > 0) - 0.5) < 0.05


def test_one_output_has_the_scalar_tail() -> None:
    vector = PowerVector.of(epsilon=Fraction(1), outputs=1, beta=None)
    x = np.linspace(0, 50, 20)
    assert np.allclose(vector.tail(x), PowerTail(epsilon=Fraction(1), beta=Fraction(1, 5)).tail(x))


def test_beta_is_lowered_until_the_exponent_is_whole() -> None:
    law = PowerVector.of(epsilon=Fraction(1), outputs=2, beta=0.3)
    assert (law.exponent, law.beta) == (4, Fraction(1, 4))


def test_beta_must_leave_room_for_every_region() -> None:
    with pytest.raises(ParameterError, match="beta must be below the counts' epsilon divided by the number of regions"):
        PowerVector.of(epsilon=Fraction(1), outputs=2, beta=0.5)
