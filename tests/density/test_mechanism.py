from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sabun.density.mechanism import EuclideanNoise, ManhattanNoise
from sabun.privacy import analytic_gaussian_sigma
from sabun.privacy.noise import os_coin, seeded_coin

DRAWS = 1500


def radii(scale: Fraction, dimension: int) -> np.ndarray:
    noise = EuclideanNoise(l2=scale, epsilon=Fraction(1), delta=None, dimension=dimension)
    coin = seeded_coin(3)
    drawn = np.array([noise.add([0] * dimension, coin=coin) for _ in range(DRAWS)], dtype=float)
    return np.linalg.norm(drawn, axis=1)


@pytest.mark.parametrize("dimension", [1, 4])
def test_the_radius_follows_a_gamma_law_and_other_scales_are_rejected(dimension: int) -> None:
    found = radii(Fraction(2**40), dimension) / 2.0**40
    assert stats.kstest(found, "gamma", args=(dimension,)).pvalue > 1e-4
    for wrong in (0.7, 1.3):
        assert stats.kstest(found * wrong, "gamma", args=(dimension,)).pvalue < 1e-6


def test_stated_variances_are_those_of_the_draws() -> None:
    coin = seeded_coin(5)
    pure = EuclideanNoise(l2=Fraction(2**35), epsilon=Fraction(1, 2), delta=None, dimension=6)
    gaussian = EuclideanNoise(l2=Fraction(2**35), epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), dimension=6)
    laplace = ManhattanNoise(l1=Fraction(2**35), epsilon=Fraction(1, 2), dimension=6)
    for noise, variance in ((pure, pure.variance), (gaussian, gaussian.variance), (laplace, 2 * (2**36) ** 2)):
        drawn = np.array([noise.add([0] * 6, coin=coin) for _ in range(600)], dtype=float)
        assert drawn.var() == pytest.approx(float(variance), rel=0.15)


def test_gaussian_noise_is_a_little_above_the_continuous_one() -> None:
    noise = EuclideanNoise(l2=Fraction(2**40), epsilon=Fraction(1), delta=Fraction(1, 10**5), dimension=1)
    least = analytic_gaussian_sigma(l2=1.0, epsilon=1, delta=1e-5)
    assert 1.0 <= float(noise.variance) ** 0.5 / 2**40 / least < 1.12


def test_vectors_of_any_size_are_taken() -> None:
    noise = EuclideanNoise(l2=Fraction(1), epsilon=Fraction(1000), delta=None, dimension=2)
    assert all(abs(v - 10**40) < 10 for v in noise.add([10**40, 10**40], coin=os_coin()))


def test_an_audit_of_the_released_vector_finds_no_more_than_epsilon() -> None:
    """Two neighbours whose vectors are as far apart as they can be; half-spaces along that direction are the best test."""
    epsilon, runs = 1.0, 2500
    noise = EuclideanNoise(l2=Fraction(2**40), epsilon=Fraction(1), delta=None, dimension=2)
    coin = seeded_coin(11)
    zero = np.array([noise.add([0, 0], coin=coin)[0] for _ in range(runs)], dtype=float) / 2**40
    one = np.array([noise.add([2**40, 0], coin=coin)[0] for _ in range(runs)], dtype=float) / 2**40
    best = 0.0
    for cut in np.linspace(-1, 2, 13):
        hits, misses = int((one > cut).sum()), int((zero > cut).sum())
        low = stats.beta.ppf(0.001, hits, runs - hits + 1) if hits else 0.0
        high = stats.beta.ppf(0.999, misses + 1, runs - misses)
        best = max(best, float(np.log(low / high)) if low > 0 else 0.0)
    assert 0.4 < best <= epsilon
