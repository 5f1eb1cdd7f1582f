from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.privacy.amounts import exact, float_above, float_below, is_short, plain, ratio, rounded_up


def test_a_float_is_the_decimal_it_prints_as() -> None:
    assert exact(0.1) * 10 == 1
    assert exact(np.float64(0.3)) == Fraction(3, 10)
    assert exact(np.int64(2**62 + 255)) == 2**62 + 255
    assert type(exact(Fraction(np.int8(100), np.int8(3))).numerator) is int  # type: ignore[union-attr]
    assert exact(Decimal("0.25")) == exact("1/4") == exact("0.25") == exact(Fraction(1, 4))
    wide = np.longdouble(1) + np.finfo(np.longdouble).eps
    assert exact(wide) == ratio(wide)  # its nearest 64-bit float may be smaller
    assert exact(math.inf) == exact("inf") == exact(Decimal("inf")) == math.inf


@pytest.mark.parametrize(
    "bad",
    [
        math.nan,
        True,
        None,
        "one",
        "1/0",
        Decimal("nan"),
        [1],
        "1e999999999",
        Decimal("1e9999999"),
        "1e4500",
        "1e-4500",
        "1/" + "9" * 4200,
        "9" * 4001,
        "1" * 4200 + "e-4000",
    ],
)
def test_what_is_not_a_number_is_refused_by_name(bad: object) -> None:
    with pytest.raises(ParameterError, match=r"epsilon must be a number"):
        exact(bad, name="epsilon")  # type: ignore[arg-type]


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_computed_number_is_never_rounded_down(value: float) -> None:
    up = rounded_up(value)
    assert value <= up <= Fraction(value) * (1 + Fraction(2, 10**11))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_floats_around_a_rational_enclose_it(value: Fraction) -> None:
    assert Fraction(float_below(value)) <= value <= Fraction(float_above(value))


@given(st.fractions(min_value=0, max_value=10**9))
def test_what_a_person_reads_is_never_optimistic(value: Fraction) -> None:
    assert Fraction(plain(value)) >= value


def test_rounding_edges() -> None:
    assert rounded_up(math.inf) == math.inf
    assert rounded_up(0.0) == 0
    assert plain(math.inf) == "infinity"
    assert plain(Fraction(0)) == "0"
    assert plain(Fraction(1, 10**400)) == "1E-400"
    assert plain(Fraction(10**400)) == "1E+400"
    with pytest.raises(ParameterError, match=r"value must be a number >= 0; got -1\.0"):
        rounded_up(-1.0)


@pytest.mark.parametrize(
    "number", [np.float16(0.1), np.float32(0.1), np.float64(0.1), np.longdouble("0.1"), 0.1, 7, np.int8(100)]
)
def test_a_number_of_any_width_is_the_very_number_it_is(number: Any) -> None:
    above, below = number.as_integer_ratio() if hasattr(number, "as_integer_ratio") else (int(number), 1)
    assert ratio(number) == Fraction(int(above), int(below))
    assert type(ratio(number).numerator) is int
    assert rounded_up(number) >= ratio(number)


def test_every_amount_that_is_taken_can_be_written_down_and_read_again() -> None:
    for text in ("1e4000", "1e-3999", "1/" + "9" * 3999, "0." + "1" * 3999):
        if is_short(Fraction(text)):
            assert exact(str(exact(text))) == Fraction(text)
        else:
            with pytest.raises(ParameterError):
                exact(text)
