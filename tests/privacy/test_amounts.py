from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.privacy.amounts import exact, float_above, float_below, plain, rounded_up


def test_a_float_is_the_decimal_it_prints_as() -> None:
    assert exact(0.1) * 10 == 1
    assert exact(np.float64(0.3)) == Fraction(3, 10)
    assert exact(np.int64(2**62 + 255)) == 2**62 + 255
    assert type(exact(Fraction(np.int8(100), np.int8(3))).numerator) is int  # type: ignore[union-attr]
    assert exact(Decimal("0.25")) == exact("1/4") == exact("0.25") == exact(Fraction(1, 4))
    assert exact(math.inf) == exact("inf") == exact(Decimal("inf")) == math.inf


@pytest.mark.parametrize("bad", [math.nan, True, None, "one", "1/0", Decimal("nan"), [1], "1e999999999", Decimal("1e9999999")])
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
