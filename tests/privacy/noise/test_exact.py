from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, final

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sabun.errors import ParameterError
from sabun.privacy.noise import (
    Coin,
    bernoulli,
    bernoulli_exp,
    categorical,
    os_coin,
    seeded_coin,
    uniform_below,
)
from sabun.privacy.noise.exact import Tosses, exp_floor


@final
class ScriptCoin(Coin):
    """Feeds a fixed list of words; running out is an error."""

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self.left = list(words)

    def words(self, count: int) -> NDArray[np.uint64]:
        assert len(self.left) >= count, "the script has run out"
        taken, self.left = self.left[:count], self.left[count:]
        return np.array(taken, dtype=np.uint64)


def _all_halfwords() -> list[int]:
    return [int(word) for word in np.arange(1 << 16, dtype="<u2").view("<u8")]


def _floors(p: Fraction) -> Any:
    return lambda bits: (p.numerator << bits) // p.denominator


@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(1, 2), Fraction(99, 100), Fraction(1, 10**9), Fraction(3, 1 << 80)])
def test_over_all_first_words_heads_come_up_as_often_as_the_probability_says(p: Fraction) -> None:
    floors = _floors(p)
    head, rest = floors(16), floors(80) & (1 << 64) - 1
    for word, expected in [(rest - 1, True), (rest + 1, False)] if rest else [(1, False)]:
        heads = Tosses([floors]).toss(1 << 16, ScriptCoin([*_all_halfwords(), word]))[:, 0]
        assert heads[:head].all()
        assert not heads[head + 1 :].any()
        assert heads[head] == expected


def test_a_tie_in_eighty_bits_draws_on() -> None:
    floors = _floors(Fraction(1, 3))
    head, middle, last = floors(16), floors(80) & (1 << 64) - 1, floors(144) & (1 << 64) - 1
    for word, expected in [(last - 1, True), (last + 1, False)]:
        coin = ScriptCoin([head, middle, word])
        assert Tosses([floors]).toss(1, coin)[0, 0] == expected
        assert coin.left == []


def test_one_bernoulli_draw_ties_draws_on_too() -> None:
    third = (1 << 64) // 3
    assert bernoulli(Fraction(1, 3), coin=ScriptCoin([third - 1]))
    assert not bernoulli(Fraction(1, 3), coin=ScriptCoin([third + 1]))
    assert bernoulli(Fraction(1, 3), coin=ScriptCoin([third, third, third - 1]))
    assert not bernoulli(Fraction(1, 3), coin=ScriptCoin([third, third, third + 1]))


def test_each_column_of_a_toss_has_its_own_probability() -> None:
    row = [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)]
    heads = Tosses([_floors(p) for p in row]).toss(40_000, seeded_coin(0))
    assert np.abs(heads.mean(axis=0) - [0.1, 0.5, 0.9]).max() < 0.02
    assert abs(np.corrcoef(heads.T) - np.eye(3)).max() < 0.03


@pytest.mark.parametrize("weights", [[1, 2, 5], [3, 0, 5], [8], [0, 1, 7, 0]])
def test_categorical_over_all_words_counts_each_weight_exactly(weights: list[int]) -> None:
    assert sum(weights) == 8
    single = [categorical(weights, coin=ScriptCoin([word])) for word in range(8)]
    many = categorical(weights, coin=ScriptCoin([*(word << 61 for word in range(8)), *[0] * 8]), size=8)
    for drawn in (single, list(many)):
        assert [drawn.count(i) for i in range(len(weights))] == weights


def test_uniform_below_throws_away_what_is_too_large() -> None:
    assert uniform_below(6, coin=ScriptCoin([7, 6, 5])) == 5
    drawn = uniform_below(6, coin=ScriptCoin([*(word << 61 for word in (7, 0, 6, 1, 2, 3, 4, 5)), *[0] * 4]), size=6)
    assert drawn.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("bound", [1, 2, 3, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, 1 << 64, 3**200])
def test_uniform_below_stays_below_at_the_word_edges(bound: int) -> None:
    drawn = uniform_below(bound, coin=seeded_coin(1), size=64)
    assert all(0 <= int(x) < bound for x in drawn)
    assert drawn.dtype == (np.int64 if bound <= 1 << 63 else object)
    assert bound == 1 or max(int(x) for x in drawn) >= bound // 2
    assert 0 <= uniform_below(bound, coin=os_coin()) < bound


def test_categorical_takes_weights_beyond_a_word() -> None:
    weights = [1 << 200, 0, 3 << 200]
    drawn = categorical(weights, coin=seeded_coin(2), size=4000)
    assert drawn.dtype == np.int64
    assert set(drawn.tolist()) == {0, 2}
    assert abs((drawn == 0).mean() - 0.25) < 0.05
    assert categorical([0, 1 << 300], coin=os_coin()) == 1


def test_certain_events_are_certain() -> None:
    assert bernoulli(1, coin=os_coin(), size=5).all()
    assert not bernoulli(0, coin=os_coin(), size=5).any()
    assert bernoulli_exp(0, coin=os_coin(), size=5).all()
    assert not bernoulli_exp(10**6, coin=os_coin())
    assert bernoulli(Fraction(1, 2), coin=os_coin(), size=0).shape == (0,)


@given(
    st.fractions(min_value=Fraction(1, 10**30), max_value=200).filter(lambda x: x > 0),
    st.sampled_from([1, 16, 64, 80, 300]),
)
def test_exp_floor_is_the_floor(gamma: Fraction, bits: int) -> None:
    with mpmath.workprec(1000):
        expected = int(mpmath.floor(mpmath.exp(-mpmath.mpf(gamma.numerator) / gamma.denominator) * mpmath.mpf(2) ** bits))
    assert exp_floor(gamma, bits) == expected


def test_exp_floor_sees_an_exponent_far_below_its_unit() -> None:
    assert exp_floor(Fraction(1, 1 << 2000), 64) == (1 << 64) - 1
    assert exp_floor(Fraction(0), 64) == 1 << 64
    assert exp_floor(Fraction(10**9), 64) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda c: bernoulli(Fraction(3, 2), coin=c),
            r"probability must be a Fraction or int >= 0 and <= 1; got 3/2\.",
        ),
        (lambda c: bernoulli(0.5, coin=c), r"probability must be .*; got <class 'float'>\. Floats are not exact"),
        (lambda c: bernoulli_exp(-1, coin=c), r"gamma must be a Fraction or int >= 0; got -1\."),
        (lambda c: bernoulli_exp(True, coin=c), r"gamma must be .*; got <class 'bool'>\."),
        (lambda c: uniform_below(0, coin=c), r"bound must be a whole number >= 1; got 0\."),
        (lambda c: uniform_below(2, coin=c, size=-1), r"size must be a whole number >= 0; got -1\."),
        (
            lambda c: categorical([], coin=c),
            r"weights must hold a number above zero; got none\. Give at least one choice a weight\.",
        ),
        (lambda c: categorical([0, 0], coin=c), r"weights must hold a number above zero; got none"),
        (
            lambda c: categorical([1, -1], coin=c),
            r"^weights must be whole numbers >= 0; got one that is not\. Scale and round them first\.$",
        ),
        (lambda c: uniform_below(2, coin=None), r"coin must be a coin; got None\. Pass os_coin\(\) for a private result\."),
    ],
)
def test_a_broken_rule_is_named(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call(os_coin())


def test_numpy_whole_numbers_do_not_overflow() -> None:
    assert not bernoulli_exp(np.int64(2**62), coin=os_coin())  # type: ignore[arg-type]
    assert 0 <= uniform_below(np.int64(2**62), coin=os_coin()) < 2**62  # type: ignore[arg-type]
