from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from sabun.errors import ParameterError
from sabun.privacy.noise import choice, exponential_choice, seeded_coin

COSTS = [3, 0, 1, 1, 7, 0, 2**60, 2]


def law(rate: Fraction) -> list[float]:
    weights = [math.exp(-float(rate) * min(cost, 10**6)) for cost in COSTS]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 3), Fraction(2)])
def test_the_law_is_the_stated_one_and_no_other(rate: Fraction) -> None:
    coin = seeded_coin(1)
    counts = np.bincount([exponential_choice(COSTS, rate=rate, coin=coin) for _ in range(6000)], minlength=len(COSTS))

    def p_value(of: Fraction) -> float:
        expected = 6000 * np.array(law(of))
        large = expected > 5
        rest = np.append(expected[large], expected[~large].sum() + 1e-9), np.append(counts[large], counts[~large].sum())
        return float(stats.chisquare(rest[1][:-1], rest[0][:-1] * rest[1][:-1].sum() / rest[0][:-1].sum()).pvalue)

    assert p_value(rate) > 1e-3
    if rate == Fraction(1, 3):
        assert max(p_value(rate * Fraction(7, 10)), p_value(rate * Fraction(13, 10))) < 1e-3


def test_a_steep_rate_takes_the_best_alone() -> None:
    coin = seeded_coin(2)
    assert {exponential_choice([5, 4, 2**62, 4], rate=40, coin=coin) for _ in range(200)} == {1, 3}


@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(5), Fraction(63), Fraction(64), Fraction(200)])
def test_a_proposal_is_kept_with_the_exact_ratio(exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    ceiling = choice._ceiling(exponent)
    with mpmath.workdps(200):
        weight = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator) * 2**64
        assert weight < ceiling <= weight * mpmath.exp(0.25) + 1 or exponent > 64
        asked: list[int] = []

        def finish(floors: object, *, prefix: int, bits: int, coin: object) -> bool:
            for wanted in (1, 16, 64, 200):
                asked.append(wanted)
                assert floors(wanted) == int(mpmath.floor(weight / ceiling * 2**wanted))  # type: ignore[operator]
            return True

        monkeypatch.setattr(choice, "finish", finish)
        assert choice._kept(exponent, ceiling, seeded_coin(3))
        assert asked


def test_one_choice_is_certain_and_shifts_do_not_matter() -> None:
    coin = seeded_coin(4)
    assert exponential_choice([7], rate=1, coin=coin) == 0
    first = [exponential_choice([1, 2, 4], rate=Fraction(1, 2), coin=seeded_coin(seed)) for seed in range(50)]
    assert first == [exponential_choice([-9, -8, -6], rate=Fraction(1, 2), coin=seeded_coin(seed)) for seed in range(50)]


@pytest.mark.parametrize("rate", [0, -1, 0.5, None])
def test_a_bad_rate_is_refused(rate: object) -> None:
    with pytest.raises(ParameterError, match="rate must be"):
        exponential_choice([1, 2], rate=rate, coin=seeded_coin(5))  # type: ignore[arg-type]
