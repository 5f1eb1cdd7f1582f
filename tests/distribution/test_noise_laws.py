"""The law of each sampler: the true scale is accepted, a scale wrong by 30 % is rejected."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

from sabun.privacy.noise import (
    Coin,
    bernoulli,
    bernoulli_exp,
    categorical,
    discrete_gaussian,
    discrete_laplace,
    os_coin,
    rounded_gaussian,
    seeded_coin,
    spherical_laplace,
    uniform_below,
)

NEVER = 1e-9
N = 60_000
SCALES = [Fraction(2, 5), Fraction(1), Fraction(7, 3), Fraction(12), Fraction(150)]


def _laplace_pmf(scale: float, reach: int) -> NDArray[np.float64]:
    return np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale) * math.tanh(1 / (2 * scale))


def _gaussian_pmf(sigma: float, reach: int) -> NDArray[np.float64]:
    far = max(reach, int(60 * sigma) + 5)
    weights = np.exp(-(np.arange(-far, far + 1) ** 2) / (2 * sigma**2))
    return np.asarray(weights[far - reach : far + reach + 1] / weights.sum())


def _fit(drawn: NDArray[Any], pmf: NDArray[np.float64]) -> float:
    """The p-value of chi-square over the whole numbers -reach .. reach, rare ones pooled with everything outside."""
    reach = len(pmf) // 2
    counts = np.bincount((drawn[np.abs(drawn) <= reach] + reach).astype(np.int64), minlength=len(pmf))
    common = pmf * len(drawn) >= 10
    observed = np.append(counts[common], len(drawn) - counts[common].sum())
    expected = np.append(pmf[common], 1 - pmf[common].sum()) * len(drawn)
    if expected[-1] < 1e-6 * len(drawn):
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    return float(stats.chisquare(observed, expected).pvalue)


def _same_law(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The p-value of two samples of whole numbers having one law."""
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 41)))
    table = np.array([np.histogram(x, bins=np.append(edges, np.inf))[0] for x in (first, second)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue)


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_has_its_law(scale: Fraction) -> None:
    drawn = discrete_laplace(scale, coin=seeded_coin(11), size=N)
    reach = int(12 * scale) + 6
    assert _fit(drawn, _laplace_pmf(float(scale), reach)) > NEVER
    assert _fit(drawn, _laplace_pmf(0.7 * float(scale), reach)) < NEVER
    assert _fit(drawn, _laplace_pmf(1.3 * float(scale), reach)) < NEVER


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_gaussian_has_its_law(scale: Fraction) -> None:
    drawn = discrete_gaussian(scale * scale, coin=seeded_coin(12), size=N)
    reach = int(5 * scale) + 5
    assert _fit(drawn, _gaussian_pmf(float(scale), reach)) > NEVER
    assert _fit(drawn, _gaussian_pmf(0.7 * float(scale), reach)) < NEVER
    assert _fit(drawn, _gaussian_pmf(1.3 * float(scale), reach)) < NEVER


@pytest.mark.parametrize("exponent", [20, 40, 62, 100])
def test_large_scales_have_the_continuous_shape(exponent: int) -> None:
    size = 20_000 if exponent < 50 else 8000
    laplace = discrete_laplace(1 << exponent, coin=seeded_coin(13), size=size) / 2.0**exponent
    gauss = discrete_gaussian(1 << 2 * exponent, coin=seeded_coin(14), size=size // 2) / 2.0**exponent
    for drawn, law in [(laplace, stats.laplace), (gauss, stats.norm)]:
        assert stats.kstest(drawn.astype(float), law.cdf).pvalue > NEVER
        assert stats.kstest(drawn.astype(float) * 1.3, law.cdf).pvalue < NEVER
        assert stats.kstest(drawn.astype(float) * 0.7, law.cdf).pvalue < NEVER


def _textbook_exp(gamma: Fraction, coin: Coin) -> bool:
    """Canonne, Kamath, Steinke 2020, Algorithm 1."""
    while gamma > 1:
        if not _textbook_exp(Fraction(1), coin):
            return False
        gamma -= 1
    k = 1
    while uniform_below(gamma.denominator * k, coin=coin) < gamma.numerator:
        k += 1
    return k % 2 == 1


def _textbook_laplace(scale: Fraction, coin: Coin) -> int:
    """Algorithm 2."""
    t, s = scale.numerator, scale.denominator
    while True:
        u = uniform_below(t, coin=coin)
        if not _textbook_exp(Fraction(u, t), coin):
            continue
        v = 0
        while _textbook_exp(Fraction(1), coin):
            v += 1
        y, negative = (u + t * v) // s, uniform_below(2, coin=coin)
        if y or not negative:
            return -y if negative else y


def _textbook_gaussian(variance: Fraction, coin: Coin) -> int:
    """Algorithm 3."""
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = _textbook_laplace(Fraction(t), coin)
        if _textbook_exp((abs(y) - variance / t) ** 2 / (2 * variance), coin):
            return y


@pytest.mark.parametrize(("ours", "textbook"), [(discrete_laplace, _textbook_laplace), (discrete_gaussian, _textbook_gaussian)])
@pytest.mark.parametrize("parameter", [Fraction(7, 3), Fraction(90)])
def test_the_textbook_sampler_has_the_same_law(ours: Any, textbook: Callable[..., int], parameter: Fraction) -> None:
    slow = np.array([textbook(parameter, seeded_coin(1000 + i)) for i in range(4000)])
    assert _same_law(slow, ours(parameter, coin=seeded_coin(15), size=20_000)) > NEVER
    assert _same_law(slow, ours(parameter * 2, coin=seeded_coin(15), size=20_000)) < NEVER


@pytest.mark.parametrize("scale", [3, 1000])
def test_opendp_draws_from_the_same_law(scale: int) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=float(scale))
    gauss = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=float(scale))
    for oracle, ours, parameter in [(laplace, discrete_laplace, scale), (gauss, discrete_gaussian, scale**2)]:
        theirs = np.array(oracle([0] * 20_000))
        assert _same_law(theirs, ours(parameter, coin=os_coin(), size=20_000)) > NEVER
        assert _same_law(theirs, ours(parameter * 2, coin=os_coin(), size=20_000)) < NEVER


@pytest.mark.parametrize("gamma", [Fraction(1, 10), Fraction(1), Fraction(5, 2)])
def test_bernoulli_exp_comes_up_with_its_probability(gamma: Fraction) -> None:
    one_by_one = seeded_coin(16)
    for heads in (
        bernoulli_exp(gamma, coin=seeded_coin(17), size=N),
        np.array([bernoulli_exp(gamma, coin=one_by_one) for _ in range(3000)]),
    ):
        k, n = int(heads.sum()), len(heads)
        assert stats.binomtest(k, n, math.exp(-gamma)).pvalue > NEVER
        assert stats.binomtest(int(heads[:3000].sum()), 3000, min(0.99, math.exp(-gamma) * 0.5)).pvalue < NEVER


def test_bernoulli_categorical_uniform_have_their_laws() -> None:
    coin = seeded_coin(18)
    assert stats.binomtest(int(bernoulli(Fraction(2, 7), coin=coin, size=N).sum()), N, 2 / 7).pvalue > NEVER
    counts = np.bincount(categorical([1, 5, 0, 10**6, 3 * 10**5], coin=coin, size=N), minlength=5)
    assert counts[2] == 0
    assert stats.chisquare(counts[3:], np.array([10, 3]) / 13 * counts[3:].sum()).pvalue > NEVER
    assert stats.chisquare(np.bincount(uniform_below(11, coin=coin, size=N), minlength=11)).pvalue > NEVER


def _spherical(scale: Fraction, dimension: int, count: int, seed: int) -> NDArray[np.float64]:
    coin = seeded_coin(seed)
    return np.array([spherical_laplace(scale, dimension=dimension, coin=coin) for _ in range(count)], dtype=float)


@pytest.mark.parametrize(("dimension", "count"), [(1, 1500), (3, 900), (40, 100)])
def test_the_radius_of_spherical_noise_is_gamma(dimension: int, count: int) -> None:
    radius = np.linalg.norm(_spherical(Fraction(10**9), dimension, count, 19), axis=1) / 1e9
    law = stats.gamma(dimension)
    assert stats.kstest(radius, law.cdf).pvalue > NEVER
    assert stats.kstest(radius * 1.3, law.cdf).pvalue < NEVER
    assert stats.kstest(radius * 0.7, law.cdf).pvalue < NEVER


def test_spherical_noise_looks_the_same_in_every_direction() -> None:
    drawn = _spherical(Fraction(10**6), 3, 2000, 20)
    unit = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    # Archimedes: each coordinate of a uniform point on the sphere in three dimensions is uniform.
    for direction in [*np.eye(3), np.array([1, 1, 1]) / math.sqrt(3), np.array([1, -2, 0]) / math.sqrt(5)]:
        assert stats.kstest(unit @ direction, stats.uniform(-1, 2).cdf).pvalue > NEVER
    stretched = drawn * [1.6, 1, 1]
    unit = stretched / np.linalg.norm(stretched, axis=1, keepdims=True)
    assert stats.kstest(unit[:, 0], stats.uniform(-1, 2).cdf).pvalue < NEVER, "an egg is not a ball"


def _cell(scale: float, x: int, y: int) -> float:
    density = integrate.dblquad(
        lambda v, u: math.exp(-math.hypot(u, v) / scale), x - 0.5, x + 0.5, y - 0.5, y + 0.5, epsabs=1e-7
    )[0]
    return float(density / (2 * math.pi * scale**2))


def test_spherical_noise_in_the_plane_has_its_brute_force_law() -> None:
    drawn = _spherical(Fraction(6, 5), 2, 2500, 21).astype(int)
    seen = np.array([np.sum((drawn == (x, y)).all(axis=1)) for x in range(-2, 3) for y in range(-2, 3)])

    def fit(scale: float) -> float:
        folded = {(x, y): _cell(scale, x, y) for x in range(3) for y in range(x + 1)}
        pmf = np.array([folded[max(abs(x), abs(y)), min(abs(x), abs(y))] for x in range(-2, 3) for y in range(-2, 3)])
        observed, expected = np.append(seen, 2500 - seen.sum()), np.append(pmf, 1 - pmf.sum()) * 2500
        return float(stats.chisquare(observed, expected).pvalue)

    assert fit(1.2) > NEVER
    assert fit(1.2 * 1.3) < NEVER
    assert fit(1.2 * 0.7) < NEVER


def test_spherical_noise_on_the_line_is_rounded_laplace() -> None:
    drawn = _spherical(Fraction(3, 2), 1, 3000, 22)[:, 0].astype(int)

    def pmf(scale: float) -> NDArray[np.float64]:
        return np.diff(stats.laplace(scale=scale).cdf(np.arange(-20, 22) - 0.5))

    assert _fit(drawn, pmf(1.5)) > NEVER
    assert _fit(drawn, pmf(1.5 * 1.3)) < NEVER
    assert _fit(drawn, pmf(1.5 * 0.7)) < NEVER


def test_noise_of_the_operating_system_has_the_law_too() -> None:
    assert _fit(discrete_laplace(4, coin=os_coin(), size=N), _laplace_pmf(4, 50)) > NEVER
    assert _fit(discrete_gaussian(16, coin=os_coin(), size=N), _gaussian_pmf(4, 30)) > NEVER


def _rounded_normal_pmf(sigma: float, reach: int) -> NDArray[np.float64]:
    edges = np.arange(-reach, reach + 2) - 0.5
    return np.diff(stats.norm.cdf(edges / sigma))


@pytest.mark.parametrize("variance", [Fraction(1, 5), Fraction(1), Fraction(23, 3), Fraction(400)])
def test_rounded_gaussian_has_its_law(variance: Fraction) -> None:
    drawn = rounded_gaussian(variance, coin=os_coin(), size=N)
    sigma = math.sqrt(variance)
    reach = int(8 * sigma) + 2
    assert _fit(drawn, _rounded_normal_pmf(sigma, reach)) > NEVER
    for wrong in (0.7, 1.3):
        assert _fit(drawn, _rounded_normal_pmf(math.sqrt(wrong) * sigma, reach)) < NEVER


def test_rounded_gaussians_of_one_pair_are_independent() -> None:
    drawn = rounded_gaussian(Fraction(10**16), coin=os_coin(), size=2 * N).reshape(-1, 2) / 1e8
    for power in (1, 2):
        # A correlation of N independent pairs is normal with deviation 1 / sqrt(N): 6 of them happen once in 10**9.
        assert abs(np.corrcoef((drawn**power).T)[0, 1]) < 6 / math.sqrt(N)
    quadrants = np.bincount((drawn[:, 0] > 0) + 2 * (drawn[:, 1] > 0), minlength=4)
    assert stats.chisquare(quadrants).pvalue > NEVER
