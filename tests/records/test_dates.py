"""Days as texts: those that a calendar has, and no other."""

from __future__ import annotations

import datetime
import itertools
import math

import pytest

from sabun.records.dates import days, iso_of

WRITTEN = ("{:04d}-{:02d}-{:02d}", "{:04d}/{}/{}", "{:04d}年{}月{}日", "{:04d}{:02d}{:02d}", "{:04d}-{}-{}T23:59:59")
EPOCH = datetime.date(1970, 1, 1).toordinal()


def _ordinal(year: int, month: int, day: int) -> float:
    try:
        return datetime.date(year, month, day).toordinal() - EPOCH
    except ValueError:
        return math.nan


@pytest.mark.parametrize("form", WRITTEN)
def test_every_day_of_a_calendar_and_no_other_is_a_date(form: str) -> None:
    parts = list(itertools.product((1, 1899, 1900, 1970, 2023, 2024, 9999), range(15), (0, 1, 28, 29, 30, 31, 32, 99)))
    found = days([form.format(*each) for each in parts], name="day").tolist()
    wanted = [_ordinal(*each) for each in parts]
    assert [each for each, one, other in zip(parts, found, wanted, strict=True) if str(one) != str(float(other))] == []
    assert all(iso_of(day) == datetime.date.fromordinal(EPOCH + int(day)).isoformat() for day in found if not math.isnan(day))
