"""From how many records on a question is more than noise, where their number is private."""

from __future__ import annotations

import pytest

from sabun.telling.floor import FEW, MOST, Floor


@pytest.mark.parametrize("least", [1, FEW])
@pytest.mark.parametrize("enough", [1, 2, 7, 99, 100, 101, 250, 12_345, 999_999, MOST])
def test_the_floor_is_the_least_number_that_is_not_vacuous_to_two_digits(enough: int, least: int) -> None:
    asked: list[int] = []

    def vacuous(n_records: int) -> bool:
        asked.append(n_records)
        return n_records < enough

    found = Floor.of(vacuous, least=least).records
    assert found is not None
    assert max(enough, least) <= found <= max(enough * 1.01, least)
    assert len(asked) <= 20


def test_what_is_noise_for_all_that_are_tried_has_no_floor() -> None:
    floor = Floor.of(lambda n_records: True)
    assert floor.records is None
    assert floor.high
    assert str(floor).startswith("With up to 1,000,000 records nothing but noise would be expected. ")


def test_a_floor_is_high_where_a_hundred_records_are_too_few() -> None:
    assert not Floor(records=FEW).high
    assert Floor(records=FEW + 1).high
    assert "fewer than about 13,000 records" in str(Floor(records=12_001))
