from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from outliers import brute
from sabun.outliers.laws import Gaussian, Laplace, PowerTail, normal, power_theta
from sabun.outliers.sensitivity import measure
from sabun.privacy.noise import os_coin, seeded_coin

HALF = Fraction(1, 2)


def power_tail(law: PowerTail, bound: Fraction, x: float) -> mpmath.mpf:
    """P(|z| > x) of the continuous law."""
    scaled = mpmath.mpf(law.theta.numerator) / law.theta.denominator * x * bound.denominator / bound.numerator
    return (1 + scaled) ** (-mpmath.mpf(law.exponent.numerator) / law.exponent.denominator)


def pmf(law: PowerTail, q: int, bound: Fraction, n: int) -> list[mpmath.mpf]:
    """Probabilities of the released counts 0 .. n: the rounded draw, clamped."""
    if bound == 0:
        return [mpmath.mpf(int(y == q)) for y in range(n + 1)]

    def above(j: int) -> mpmath.mpf:
        """P(count + noise >= j - 1/2)."""
        gap = j - mpmath.mpf(1) / 2 - q
        return power_tail(law, bound, gap) / 2 if gap > 0 else 1 - power_tail(law, bound, -gap) / 2

    ends = [mpmath.mpf(1), *(above(j) for j in range(1, n + 1)), mpmath.mpf(0)]
    return [ends[y] - ends[y + 1] for y in range(n + 1)]


@pytest.mark.parametrize(
    ("domain", "n", "k"), [(brute.line(6), 3, 1), (brute.line(5), 4, 2), (brute.square(3), 3, 1), (brute.line(3), 2, 2)]
)
@pytest.mark.parametrize(
    ("epsilon", "ratio"), [(HALF, 5), (Fraction(2), 5), (Fraction(1), Fraction(11, 10)), (Fraction(1), 40)]
)
def test_the_whole_mechanism_keeps_epsilon_on_every_pair_of_tiny_tables(
    domain: list[tuple[float, ...]], n: int, k: int, epsilon: Fraction, ratio: Fraction
) -> None:
    law = PowerTail(epsilon=epsilon, beta=epsilon / ratio)
    tables = {
        db: pmf(law, *measure(np.array(db), k=k, radius=1.0, beta=law.beta, cover="degeneracy", relation="replace-one"), n)
        for db in brute.databases(domain, n)
    }
    worst = max(
        (
            mpmath.log(a / b)
            for db, p in tables.items()
            for other in brute.replaced(db, domain)
            for a, b in zip(p, tables[other], strict=True)
            if a
        ),
        default=mpmath.mpf(0),
    )
    assert worst <= mpmath.mpf(epsilon.numerator) / epsilon.denominator


@pytest.mark.parametrize("outputs", [1, 2, 5])
@pytest.mark.parametrize("ratio", [Fraction(21, 20), Fraction(5), Fraction(50)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 100), Fraction(1), Fraction(6)])
def test_theta_is_as_large_as_the_proof_admits_and_not_larger(outputs: int, ratio: Fraction, epsilon: Fraction) -> None:
    beta = epsilon / (ratio * outputs)
    theta = power_theta(epsilon=epsilon, beta=beta, outputs=outputs)
    with mpmath.workdps(60):
        e, b, t = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, beta, theta))
        a = outputs + e / b
        losses = (a * mpmath.log(1 + t), outputs * b + a * mpmath.log(1 + t * mpmath.exp(-b)))
        assert max(losses) <= e
        assert max(losses) >= e * (1 - mpmath.mpf(10) ** -9)


def test_tiny_amounts_still_give_a_positive_theta() -> None:
    tiny = Fraction(1, 10**60)
    assert power_theta(epsilon=tiny, beta=tiny / 5) > 0


def test_the_drawn_power_tail_has_its_law_and_a_wrong_scale_is_noticed() -> None:
    law, bound, coin = PowerTail(epsilon=Fraction(1), beta=Fraction(1, 5)), Fraction(3), seeded_coin(11)
    drawn = Counter(abs(law.draw(bound, coin=coin)) for _ in range(6000))
    edges = [0, 1, 3, 6, 10, 16, 25, 40]

    def pvalue(scale: Fraction) -> float:
        tails = [1.0, *(float(power_tail(law, scale, e - 0.5)) for e in edges[1:]), 0.0]
        expected = -np.diff(tails) * 6000
        seen = [
            sum(c for j, c in drawn.items() if low <= j < high) for low, high in zip(edges, [*edges[1:], 1 << 60], strict=True)
        ]
        return float(stats.chisquare(seen, expected).pvalue)

    assert pvalue(bound) > 1e-4
    assert pvalue(bound * Fraction(13, 10)) < 1e-6
    assert pvalue(bound * Fraction(7, 10)) < 1e-6


@pytest.mark.parametrize(
    "law", [Laplace(epsilon=Fraction(1), delta=Fraction(1, 10**6)), Gaussian(epsilon=Fraction(1), delta=Fraction(1, 10**6))]
)
def test_smooth_laplace_and_gaussian_draws_have_their_deviation(law: Laplace | Gaussian) -> None:
    coin = seeded_coin(3)
    drawn = np.array([law.draw(Fraction(40), coin=coin) for _ in range(4000)])
    assert drawn.std() == pytest.approx(law.deviation(40.0), rel=0.06)
    assert abs(drawn.mean()) < 5 * law.deviation(40.0) / math.sqrt(4000)
    assert np.mean(np.abs(drawn) > law.reach(40.0, miss=0.1)) == pytest.approx(0.1, abs=0.025)


def test_rounded_normal_numbers_follow_the_normal_law() -> None:
    coin = seeded_coin(5)
    drawn = np.array([normal(Fraction(3, 2), coin=coin) for _ in range(4000)])
    edges = np.array([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5])
    expected = np.diff([0, *stats.norm(scale=1.5).cdf(edges), 1]) * 4000
    seen = np.diff([0, *[(drawn < e).sum() for e in edges], 4000])
    assert stats.chisquare(seen, expected).pvalue > 1e-4


def exact_delta(density: stats.rv_continuous, shift: float, ratio: float, epsilon: float) -> float:
    """The hockey-stick divergence between unit noise and noise of another scale, moved."""
    grid = np.concatenate([-np.geomspace(300, 1e-9, 60_000), np.geomspace(1e-9, 300, 60_000)])
    gap = np.maximum(density.pdf(grid) - math.exp(epsilon) * density.pdf((grid - shift) / ratio) / ratio, 0)
    return float(np.trapezoid(gap, grid))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(2), Fraction(7)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**6), Fraction(1, 20), Fraction(9, 10)])
@pytest.mark.parametrize("family", [Laplace, Gaussian])
def test_the_smooth_laws_keep_delta_at_the_worst_shift_and_stretch(family: type, epsilon: Fraction, delta: Fraction) -> None:
    law = family(epsilon=epsilon, delta=delta)
    unit = law.deviation(1.0)
    density = stats.laplace(scale=unit / math.sqrt(2)) if family is Laplace else stats.norm(scale=unit)
    beta = float(law.beta)
    for ratio in (math.exp(-beta), 1.0, math.exp(beta)):
        shift = min(1.0, ratio)
        assert exact_delta(density, shift, ratio, float(epsilon)) <= float(delta)


def test_reach_is_the_smallest_width_that_misses_rarely_enough() -> None:
    law = PowerTail(epsilon=Fraction(1), beta=Fraction(1, 5))
    for miss in (0.5, 0.1, 0.01):
        width = law.reach(3.0, miss=miss)
        assert float(power_tail(law, Fraction(3), width + 0.5)) <= miss
        assert float(power_tail(law, Fraction(3), width - 0.5)) > miss


def test_two_draws_from_the_operating_system_differ() -> None:
    law = PowerTail(epsilon=Fraction(1, 10**6), beta=Fraction(1, 10**7))
    assert law.draw(Fraction(1000), coin=os_coin()) != law.draw(Fraction(1000), coin=os_coin())


@pytest.mark.parametrize("law", [Laplace, Gaussian])
def test_an_epsilon_beyond_what_is_proved_changes_nothing(law: type[Laplace | Gaussian]) -> None:
    most, more = (law(epsilon=Fraction(epsilon), delta=Fraction(1, 10**6)) for epsilon in (2, 7))
    assert most.beta == more.beta
    assert most.tail(np.arange(9.0)).tolist() == more.tail(np.arange(9.0)).tolist()
    assert [most.reach(3.0, miss=0.1), most.deviation(3.0)] == [more.reach(3.0, miss=0.1), more.deviation(3.0)]
    one, other = (
        [each.draw(Fraction(1000), coin=coin) for _ in range(9)]
        for each, coin in zip((most, more), (seeded_coin(1), seeded_coin(1)), strict=True)
    )
    assert one == other
