"""The smooth mechanisms with a delta: the true delta of their noise, integrated, and why a larger epsilon is treated as 2."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sabun.asking.evidence.needed import Density, hockey_stick
from sabun.outliers.laws import Gaussian, Laplace
from sabun.privacy.noise import seeded_coin


def _laplace(scale: float, centre: float = 0.0) -> Density:
    return lambda z: np.exp(-np.abs(z - centre) / scale) / (2 * scale)


def _worst_laplace(scale: float, beta: float, epsilon: float) -> float:
    """The largest delta between neighbours of the bound 1: the other's bound is e^beta times as large or small."""
    wide, reach = math.exp(beta), 80 * scale + 2
    pairs = [(_laplace(scale), _laplace(scale * wide, shift)) for shift in (0.0, 1.0)]
    pairs += [(_laplace(scale * wide), _laplace(scale, shift)) for shift in (0.0, 1.0)]
    return max(hockey_stick(one, other, epsilon, reach=reach) for one, other in pairs)


def _scale(law: Laplace) -> float:
    """What the noise is multiplied by, from many draws: |z| has that mean; beside so large a bound rounding is not seen."""
    coin, bound = seeded_coin(1), Fraction(10**9)
    return sum(abs(law.draw(bound, coin=coin)) for _ in range(300)) / 300 / 10**9


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
@pytest.mark.parametrize("epsilon", [1, 2, 3, 12, 20])
def test_smooth_laplace_noise_keeps_its_delta_however_large_epsilon_is(epsilon: int, delta: float) -> None:
    law = Laplace(epsilon=Fraction(epsilon), delta=Fraction(delta))
    scale = 2 / min(epsilon, 2)
    assert _scale(law) == pytest.approx(scale, rel=0.25)
    assert float(law.deviation(1.0)) == pytest.approx(scale * math.sqrt(2))
    assert _worst_laplace(scale, float(law.beta), epsilon) <= delta


@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_the_formula_of_the_smooth_laplace_breaks_for_a_large_epsilon(delta: float) -> None:
    """What the noise would be without the limit: ten times the delta it promises at epsilon 20, so there has to be one."""
    assert _worst_laplace(2 / 20, 20 / 2 / math.log(1 / delta), 20) > 8 * delta


def test_the_limit_of_epsilon_is_where_the_proof_still_holds() -> None:
    """(e^beta - 1) L - beta <= epsilon / 2 for beta = epsilon / (2 L), L = max(1, ln 1/delta): true up to 2, false at 3."""

    def holds(epsilon: float, log: float) -> bool:
        beta = epsilon / 2 / log
        return math.expm1(beta) * log - beta <= epsilon / 2 + 1e-15

    logs = [1 + i / 20 for i in range(2000)]
    assert all(holds(epsilon, log) for epsilon in (0.01, 0.5, 1.0, 2.0) for log in logs)
    assert not all(holds(3.0, log) for log in logs)
    for law in (Laplace, Gaussian):
        most, more = (law(epsilon=Fraction(epsilon), delta=Fraction(1, 100)) for epsilon in (2, 20))
        less = law(epsilon=Fraction(199, 100), delta=Fraction(1, 100))
        assert (most.beta, most.deviation(1.0)) == (more.beta, more.deviation(1.0)), "20 is calibrated as 2"
        assert most.beta > less.beta
        assert most.deviation(1.0) < less.deviation(1.0)
