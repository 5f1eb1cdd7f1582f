"""Rounding from the error, the same for every room."""

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sabun.telling.rounding import between, days_between, give_or_take, rounded

EPOCH = datetime.date(1970, 1, 1).toordinal()

NUMBERS = st.floats(-1e12, 1e12)


def read(text: str) -> float:
    return float(text.replace(",", ""))


@given(NUMBERS, NUMBERS)
def test_told_ends_hold_the_interval_and_widen_it_by_a_fifth_at_most(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assume(high - low > 1e-9 * max(abs(low), abs(high), 1e-300))
    told = [read(text) for text in between(low, high)]
    assert told[0] <= low
    assert told[1] >= high
    whole = low == round(low) and high == round(high)
    assert told[1] - told[0] <= (high - low) * 1.2 + (2 if whole else 0) + 1e-12 * max(abs(low), abs(high))


@given(st.floats(1e-9, 1e12))
def test_an_error_is_never_told_too_small(error: float) -> None:
    assert error * (1 - 1e-12) <= read(give_or_take(error)) <= error * 1.1 * (1 + 1e-12)


@pytest.mark.parametrize(
    ("value", "low", "high", "told", "ends"),
    [
        (39.5488, 38.5037, 41.1658, "39.5", ("38.5", "41.2")),
        (42, 38, 46, "42", ("38", "46")),  # whole numbers stay whole
        (0.3, 0.0, 1.0, "0.30", ("0", "1")),
        (-0.2, -0.37, -0.001, "-0.20", ("-0.37", "0.00")),
        (1234567.8, 1.2e6, 1.3e6, "1,235,000", ("1,200,000", "1,300,000")),
        (2e-12, 1e-12, 3.04e-12, "2.0e-12", ("1.0e-12", "3.1e-12")),
        (0.0, -1e-12, 1e-12, "0", ("-1.0e-12", "1.0e-12")),
        (5.0, 5.0, 5.0, "5", ("5", "5")),
        (math.nan, math.nan, math.nan, "–", ("–", "–")),
        (3.0, -math.inf, 7.0, "3", ("−∞", "7")),
        (200.0, 123.456, math.inf, "200", ("123.4", "∞")),  # the end that is known is rounded outwards all the same
        (0.0, -math.inf, 1.23412e-9, "0", ("−∞", "1.235e-09")),
        (123.456, 123.456, 123.456, "123.5", ("123.4", "123.5")),
        (5.0, 5 - 1e-9, 5 + 1e-9, "5.0000000000", ("4.9999999990", "5.0000000010")),
    ],
)
def test_digits_follow_the_error(value: float, low: float, high: float, told: str, ends: tuple[str, str]) -> None:
    assert rounded(value, low, high) == told
    assert between(low, high) == ends


@given(st.floats(-20_000, 40_000), st.floats(0, 5000))
def test_dates_told_as_ends_hold_the_interval(low: float, width: float) -> None:
    first, last = (datetime.date.fromisoformat(day).toordinal() - EPOCH for day in days_between(low, low + width))
    assert first <= low < first + 1
    assert last - 1 < low + width <= last
