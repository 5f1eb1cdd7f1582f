from __future__ import annotations

from fractions import Fraction

import mpmath
import pytest

from sabun.errors import ParameterError
from sabun.privacy.noise import choice, exponential_choice, seeded_coin


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
