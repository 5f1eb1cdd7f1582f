"""The law of each sampler: the true scale is accepted, a scale wrong by 30 % is rejected; the p-values are told.

A sound sampler fails one of these tests less than once in a thousand million runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, stats

from sabun.asking.evidence import Bench, Checklist
from sabun.audit.black_box import mechanism
from sabun.privacy.noise import (
    Coin,
    Grid,
    bernoulli,
    bernoulli_exp,
    categorical,
    cubical_laplace,
    discrete_gaussian,
    discrete_laplace,
    exponential_choice,
    os_coin,
    rounded_gaussian,
    rounded_gaussians,
    spherical_laplace,
    uniform_below,
)

__all__ = ["CHECKS", "NEVER", "fit_of", "same_law", "untried"]

CHECKS = Checklist()

NEVER, NOTICED = 1e-9, 1e-4
"""A sound sampler is rejected at the first level; a wrong one must be at the second, with so many draws that it always is."""
N = 60_000
WRONG = (0.7, 1.3)
SCALES = (Fraction(2, 5), Fraction(1), Fraction(7, 3), Fraction(12), Fraction(150))
_Row = NDArray[np.float64]


def untried(noise: ModuleType) -> list[str]:
    """The samplers of the house that no check here names: whatever takes a coin."""
    tried = {name for check in CHECKS for name in check.mechanisms}
    return [name for name in noise.__all__ if "coin" in signature(getattr(noise, name)).parameters and name not in tried]


def _judged(bench: Bench, p_value: Callable[[float], float]) -> str:
    """The true scale must be accepted, both wrong ones rejected."""
    true, *wrong = (p_value(times) for times in (1.0, *WRONG))
    bench.must(true > NEVER, f"the law is not the stated one: p = {true:.2g}.")
    bench.must(max(wrong) < NOTICED, f"the test has no power: a wrong scale has p = {max(wrong):.2g}.")
    return f"p = {true:.2g} at the stated scale, at most {max(wrong):.0e} at 0.7 and 1.3 times it"


def _laplace_pmf(scale: float, reach: int) -> _Row:
    return np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale) * math.tanh(1 / (2 * scale))


def _gaussian_pmf(sigma: float, reach: int) -> _Row:
    far = max(reach, int(60 * sigma) + 5)
    weights = np.exp(-(np.arange(-far, far + 1) ** 2) / (2 * sigma**2))
    return np.asarray(weights[far - reach : far + reach + 1] / weights.sum())


def _rounded_pmf(law: Any, reach: int) -> _Row:
    return np.asarray(np.diff(law.cdf(np.arange(-reach, reach + 2) - 0.5)))


def fit_of(drawn: NDArray[Any], pmf: _Row) -> float:
    """The p-value of chi-square over the whole numbers -reach .. reach, rare ones pooled with everything outside."""
    reach = len(pmf) // 2
    counts = np.bincount((drawn[np.abs(drawn) <= reach] + reach).astype(np.int64), minlength=len(pmf))
    common = pmf * len(drawn) >= 10
    observed = np.append(counts[common], len(drawn) - counts[common].sum())
    expected = np.append(pmf[common], 1 - pmf[common].sum()) * len(drawn)
    if expected[-1] < 1e-6 * len(drawn):
        observed, expected = observed[:-1], expected[:-1] * observed[:-1].sum() / expected[:-1].sum()
    return float(stats.chisquare(observed, expected).pvalue)


def same_law(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The p-value of two samples of whole numbers having one law."""
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 41)))
    table = np.array([np.histogram(x, bins=np.append(edges, np.inf))[0] for x in (first, second)])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 20]).pvalue)


@CHECKS("discrete_laplace", scale=SCALES)
def _discrete_laplace_has_its_law(bench: Bench, scale: Fraction) -> str:
    drawn, reach = discrete_laplace(scale, coin=os_coin(), size=N), int(12 * scale) + 6
    return _judged(bench, lambda times: fit_of(drawn, _laplace_pmf(times * float(scale), reach)))


@CHECKS("discrete_gaussian", scale=SCALES)
def _discrete_gaussian_has_its_law(bench: Bench, scale: Fraction) -> str:
    drawn, reach = discrete_gaussian(scale * scale, coin=os_coin(), size=N), int(5 * scale) + 5
    return _judged(bench, lambda times: fit_of(drawn, _gaussian_pmf(times * float(scale), reach)))


@CHECKS("rounded_gaussian", scale=(Fraction(9, 20), Fraction(1), Fraction(14, 5), Fraction(20)))
def _rounded_gaussian_has_its_law(bench: Bench, scale: Fraction) -> str:
    drawn, reach = rounded_gaussian(scale * scale, coin=os_coin(), size=N), int(8 * scale) + 2
    return _judged(bench, lambda times: fit_of(drawn, _rounded_pmf(stats.norm(scale=times * float(scale)), reach)))


@CHECKS("rounded_gaussians")
def _rounded_gaussians_of_several_variances_have_their_laws(bench: Bench) -> str:
    """An odd number of each, so that pairs are shared between parts; the same place of two parts must not be one draw."""
    scales, size = (Fraction(9, 20), Fraction(14, 5), Fraction(20)), N // 2 + 1
    parts = rounded_gaussians([(scale * scale, size) for scale in scales], coin=os_coin())
    told = ""
    for scale, drawn in zip(scales, parts, strict=True):
        law, reach = float(scale), int(8 * scale) + 2
        told = _judged(bench, lambda times, d=drawn, s=law, r=reach: fit_of(d, _rounded_pmf(stats.norm(scale=times * s), r)))  # type: ignore[misc]
    found = abs(np.corrcoef(np.array(parts, dtype=float)) - np.eye(len(scales))).max()
    # As below: 6 deviations of a correlation of independent numbers happen once in 10**9.
    bench.must(found < 6 / math.sqrt(size), "two parts share their noise.")
    return f"{told}; correlation of parts at most {found:.4f}"


@CHECKS("rounded_gaussians")
def _rounded_gaussians_beyond_every_float_have_their_laws(bench: Bench) -> str:
    """Noise of no ordinary size is settled draw by draw; each part must get its own."""
    scales, size = (1 << 60, 3 << 62, 1 << 70), 301
    parts = rounded_gaussians([(scale * scale, size) for scale in scales], coin=os_coin())
    told = ""
    for scale, drawn in zip(scales, parts, strict=True):
        squares = float(sum((int(number) / scale) ** 2 for number in drawn))

        def p_value(times: float, squares: float = squares) -> float:
            tail = stats.chi2.cdf(squares / times**2, size)
            return 2 * float(min(tail, 1 - tail))

        told = _judged(bench, p_value)
    return told


@CHECKS("rounded_gaussian")
def _rounded_gaussians_of_one_pair_are_independent(bench: Bench) -> str:
    drawn = rounded_gaussian(Fraction(10**16), coin=os_coin(), size=2 * N).reshape(-1, 2) / 1e8
    found = [abs(float(np.corrcoef((drawn.astype(float) ** power).T)[0, 1])) for power in (1, 2)]
    # A correlation of N independent pairs is normal with deviation 1 / sqrt(N): 6 of them happen once in 10**9.
    bench.must(max(found) < 6 / math.sqrt(N))
    quadrants = np.bincount((drawn[:, 0] > 0) + 2 * (drawn[:, 1] > 0), minlength=4)
    bench.must(stats.chisquare(quadrants).pvalue > NEVER)
    return f"correlation at most {max(found):.4f} among {N} pairs"


@CHECKS("discrete_laplace", "discrete_gaussian", exponent=(20, 40, 62, 100))
def _large_scales_have_the_continuous_shape(bench: Bench, exponent: int) -> str:
    size = 20_000 if exponent < 50 else 10_000
    laplace = discrete_laplace(1 << exponent, coin=os_coin(), size=size).astype(float) / 2.0**exponent
    gauss = discrete_gaussian(1 << 2 * exponent, coin=os_coin(), size=size).astype(float) / 2.0**exponent
    both = ((laplace, stats.laplace), (gauss, stats.norm))
    for drawn, law in both:
        _judged(bench, lambda times, drawn=drawn, law=law: float(stats.kstest(drawn / times, law.cdf).pvalue))  # type: ignore[misc]
    return f"scale 2^{exponent}"


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


_OURS: dict[str, tuple[Callable[..., Any], Callable[..., int]]] = {
    "discrete_laplace": (discrete_laplace, _textbook_laplace),
    "discrete_gaussian": (discrete_gaussian, _textbook_gaussian),
}


@CHECKS(*_OURS, name=tuple(_OURS), parameter=(Fraction(7, 3), Fraction(90)))
def _the_textbook_sampler_has_the_same_law(bench: Bench, name: str, parameter: Fraction) -> str:
    ours, textbook = _OURS[name]
    slow = np.array([textbook(parameter, os_coin()) for _ in range(4000)])
    same = same_law(slow, ours(parameter, coin=os_coin(), size=20_000))
    bench.must(same > NEVER)
    bench.must(same_law(slow, ours(parameter * 2, coin=os_coin(), size=20_000)) < NEVER)
    return f"p = {same:.2g}"


@CHECKS("bernoulli_exp", gamma=(Fraction(1, 10), Fraction(1), Fraction(5, 2)))
def _bernoulli_exp_comes_up_with_its_probability(bench: Bench, gamma: Fraction) -> str:
    many = bernoulli_exp(gamma, coin=os_coin(), size=N)
    single = np.array([bernoulli_exp(gamma, coin=os_coin()) for _ in range(3000)])
    found = min(float(stats.binomtest(int(heads.sum()), len(heads), math.exp(-gamma)).pvalue) for heads in (many, single))
    bench.must(found > NEVER)
    for heads in (many, single):
        bench.must(stats.binomtest(int(heads.sum()), len(heads), math.exp(-gamma) * 0.4).pvalue < NOTICED)
    return f"p = {found:.2g}; rejected at 0.4 times the probability"


@CHECKS("bernoulli")
def _bernoulli_comes_up_with_its_probability(bench: Bench) -> str:
    heads = int(bernoulli(Fraction(2, 7), coin=os_coin(), size=N).sum())
    return _judged(bench, lambda times: float(stats.binomtest(heads, N, times * 2 / 7).pvalue))


@CHECKS("categorical")
def _categorical_has_its_law(bench: Bench) -> str:
    weights = np.array([1, 5, 0, 10**6, 3 * 10**5])
    counts = np.bincount(categorical(weights.tolist(), coin=os_coin(), size=N), minlength=5)
    bench.must(counts[2] == 0)
    return _judged(
        bench, lambda times: float(stats.binomtest(int(counts[3]), int(counts[3:].sum()), min(1.0, times * 10 / 13)).pvalue)
    )


@CHECKS("uniform_below")
def _uniform_below_has_no_favourite(bench: Bench) -> str:
    counts = np.bincount(uniform_below(11, coin=os_coin(), size=N), minlength=11)
    even = float(stats.chisquare(counts).pvalue)
    bench.must(even > NEVER)
    twelfth = np.full(11, N / 12) + np.eye(11)[0] * N / 12  # a die with twelve sides, two of them the same
    bench.must(stats.chisquare(counts, twelfth).pvalue < NEVER)
    return f"p = {even:.2g}; a die with one side doubled is rejected"


_COSTS = (3, 0, 1, 1, 7, 0, 2**60, 2)


@CHECKS("exponential_choice", rate=(Fraction(1),))
def _an_exponential_choice_has_its_law(bench: Bench, rate: Fraction) -> str:
    drawn = [exponential_choice(_COSTS, rate=rate, coin=os_coin()) for _ in range(6000)]
    counts = np.bincount(drawn, minlength=len(_COSTS))
    bench.must(counts[6] == 0)

    def p_value(times: float) -> float:
        weights = np.array([math.exp(-times * float(rate) * min(cost, 10**6)) for cost in _COSTS])
        expected = 6000 * weights / weights.sum()
        common = expected > 5
        both = (np.append(each[common], each[~common].sum()) for each in (counts, expected + 1e-9))
        return float(stats.chisquare(*both).pvalue)

    return _judged(bench, p_value)


@CHECKS("Grid", shown="lower bound")
def _digits_on_a_grid_do_not_tell_neighbours_apart(bench: Bench) -> str:
    """The attack of Mironov 2012, with its power: the same noise in floating-point numbers is refuted."""
    coin, grid, pair = os_coin(), Grid(-20), [([0.0], [1.0])]
    ours = mechanism(
        lambda table: grid.value(grid.index(sum(table)) + discrete_laplace(1 << 20, coin=coin)),
        pair,
        1.0,
        runs=4000,
        confidence=1 - NEVER,
    )
    bench.must(not ours.refuted, str(ours))

    def floating(table: Any) -> float:
        first, sign = (uniform_below(1 << 53, coin=coin) / 2**53 for _ in range(2))
        return float(sum(table) + math.log1p(-first) * (1 if sign < 0.5 else -1))

    plain = mechanism(floating, pair, 1.0, runs=4000)
    bench.must(plain.refuted, "floating-point noise was not noticed: the attack has no power.")
    return f"at least {ours.epsilon:.3f} of 1; floating-point noise: at least {plain.epsilon:.3f} of 1"


def _spherical(scale: Fraction, dimension: int, count: int) -> _Row:
    coin = os_coin()
    return np.array([spherical_laplace(scale, dimension=dimension, coin=coin) for _ in range(count)], dtype=float)


@CHECKS("spherical_laplace", dimension=(3, 40))
def _the_radius_of_spherical_noise_is_gamma(bench: Bench, dimension: int) -> str:
    count = {3: 900, 40: 150}[dimension]
    radius = np.linalg.norm(_spherical(Fraction(10**9), dimension, count), axis=1) / 1e9
    return _judged(bench, lambda times: float(stats.kstest(radius / times, stats.gamma(dimension).cdf).pvalue))


@CHECKS("spherical_laplace")
def _spherical_noise_looks_the_same_in_every_direction(bench: Bench) -> str:
    drawn = _spherical(Fraction(10**6), 3, 2000)
    directions = [*np.eye(3), np.array([1, 1, 1]) / math.sqrt(3), np.array([1, -2, 0]) / math.sqrt(5)]

    def p_value(points: _Row, direction: _Row) -> float:
        # Archimedes: each coordinate of a uniform point on the sphere in three dimensions is uniform.
        unit = points / np.linalg.norm(points, axis=1, keepdims=True)
        return float(stats.kstest(unit @ direction, stats.uniform(-1, 2).cdf).pvalue)

    least = min(p_value(drawn, direction) for direction in directions)
    bench.must(least > NEVER)
    bench.must(p_value(drawn * [2.5, 1, 1], directions[0]) < NOTICED, "an egg is not a ball")
    return f"p = {least:.2g} in {len(directions)} directions"


def _cell(scale: float, x: int, y: int) -> float:
    density = integrate.dblquad(
        lambda v, u: math.exp(-math.hypot(u, v) / scale), x - 0.5, x + 0.5, y - 0.5, y + 0.5, epsabs=1e-7
    )[0]
    return float(density / (2 * math.pi * scale**2))


@CHECKS("spherical_laplace")
def _spherical_noise_in_the_plane_has_its_brute_force_law(bench: Bench) -> str:
    drawn = _spherical(Fraction(6, 5), 2, 2500).astype(int)
    seen = np.array([np.sum((drawn == (x, y)).all(axis=1)) for x in range(-2, 3) for y in range(-2, 3)])

    def p_value(times: float) -> float:
        folded = {(x, y): _cell(1.2 * times, x, y) for x in range(3) for y in range(x + 1)}
        pmf = np.array([folded[max(abs(x), abs(y)), min(abs(x), abs(y))] for x in range(-2, 3) for y in range(-2, 3)])
        observed, expected = np.append(seen, 2500 - seen.sum()), np.append(pmf, 1 - pmf.sum()) * 2500
        return float(stats.chisquare(observed, expected).pvalue)

    return _judged(bench, p_value)


@CHECKS("spherical_laplace")
def _spherical_noise_on_the_line_is_rounded_laplace(bench: Bench) -> str:
    drawn = _spherical(Fraction(3, 2), 1, 5000)[:, 0].astype(int)
    return _judged(bench, lambda times: fit_of(drawn, _rounded_pmf(stats.laplace(scale=1.5 * times), 20)))


@CHECKS("cubical_laplace")
def _every_point_of_cubical_noise_has_its_probability(bench: Bench) -> str:
    """In the plane, by adding up q^largest over a far larger square."""
    coin, half = os_coin(), 3
    draws = np.array([cubical_laplace(Fraction(2), dimension=2, coin=coin) for _ in range(3000)], dtype=int)
    inside = draws[np.abs(draws).max(axis=1) <= half] + half
    counts = np.bincount(inside[:, 0] * (2 * half + 1) + inside[:, 1], minlength=(2 * half + 1) ** 2)

    def p_value(times: float) -> float:
        sides = np.arange(400)
        total = float((np.where(sides > 0, 8.0 * sides, 1.0) * np.exp(-sides / (2 * times))).sum())
        grid = np.abs(np.array(np.meshgrid(*[np.arange(-half, half + 1)] * 2))).max(axis=0)
        pmf = np.exp(-grid / (2 * times)).ravel() / total
        return float(stats.chisquare(np.append(counts, 3000 - len(inside)), np.append(pmf, 1 - pmf.sum()) * 3000).pvalue)

    return _judged(bench, p_value)


@CHECKS("cubical_laplace")
def _the_largest_coordinate_of_cubical_noise_is_gamma(bench: Bench) -> str:
    """It is r max|u| with r ~ Gamma(k + 1) and max|u| ~ Beta(k, 1)."""
    coin = os_coin()
    radii = np.array([np.abs(cubical_laplace(Fraction(10**6), dimension=20, coin=coin)).max() for _ in range(400)]) / 1e6
    return _judged(bench, lambda times: float(stats.kstest(radii.astype(float) / times, stats.gamma(20).cdf).pvalue))
