from __future__ import annotations

import math
from fractions import Fraction

import mpmath
from hypothesis import given
from hypothesis import strategies as st

from sabun.privacy.certified import exp_down, exp_up, log_down, log_up, sqrt_up

RATIONALS = st.fractions(min_value=-700, max_value=700, max_denominator=10**9)
POSITIVE = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


def _mp(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


@given(RATIONALS)
def test_exponentials_enclose_the_truth(value: Fraction) -> None:
    with mpmath.workdps(80):
        truth = mpmath.exp(_mp(value))
        assert _mp(exp_down(value)) < truth < _mp(Fraction(exp_up(value)))
        assert _mp(Fraction(exp_up(value))) / truth - 1 < 1e-36


@given(POSITIVE)
def test_logarithms_enclose_the_truth(value: Fraction) -> None:
    with mpmath.workdps(80):
        truth = mpmath.log(_mp(value))
        assert _mp(log_down(value)) < truth < _mp(log_up(value))


@given(st.fractions(min_value=0, max_value=10**15))
def test_the_root_is_never_too_small(value: Fraction) -> None:
    root = sqrt_up(value)
    assert root * root >= value
    assert root * root <= value * (1 + Fraction(1, 2**60)) + Fraction(1, 2**120)


def test_logarithms_at_and_beside_one_end() -> None:
    assert log_up(Fraction(1)) == log_down(Fraction(1)) == 0
    beside = Fraction(10**60 + 1, 10**60)
    assert log_down(beside) <= Fraction(1, 10**60) <= log_up(beside)
    assert log_down(1 / beside) <= -Fraction(1, 10**61) <= log_up(1 / beside)


def test_far_tails_stay_bounds() -> None:
    assert exp_up(Fraction(10**9)) == math.inf
    assert exp_up(math.inf) == math.inf
    assert 0 < exp_up(Fraction(-(10**9))) < Fraction(1, 10**2000)
    assert exp_down(Fraction(-(10**9))) == 0
    assert exp_down(math.inf) > 10**2000
