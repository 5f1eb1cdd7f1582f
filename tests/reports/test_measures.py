"""Units stand beside the numbers of their column, and days are dates: in answers, tables, axes, and page by page."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from reports.report_samples import release_of
from sabun.records import Column
from sabun.release import Release
from sabun.reports import comparison, facts
from sabun.telling.language import speaking
from sabun.telling.measures import PLAIN, Measure, measure_in, units_of

DAY = 20_148.0  # 2025-03-01


def mean(value: float, low: float, high: float, **more: Any) -> Release:
    """A released mean of one column."""
    told = {"column": "x", "by": None, "groups": ["all"], "where": {}, "mechanism": "noise", "confidence": 0.95}
    parameters = told | {name: fact for name, fact in more.items() if name != "dates"}
    found = {"means": {"all": value}, "intervals": {"all": [low, high]}}
    found |= {"dates": more["dates"]} if "dates" in more else {}
    return release_of(found, provenance={"kind": "summaries.mean", "parameters": parameters})


@pytest.mark.parametrize(
    ("unit", "lang", "big", "spread", "axis"),
    [
        ("kg", "en", "62.3 kg", "± 1.3 kg (95 %)", "mean of x (kg)"),
        ("円", "en", "62.3 円", "± 1.3 円 (95 %)", "mean of x (円)"),
        ("years", "ja", "62.3 年", "± 1.3 年 (95 %)", "（年）"),
    ],
)
def test_a_unit_stands_beside_the_answer_its_interval_and_its_axis(
    unit: str, lang: str, big: str, spread: str, axis: str
) -> None:
    release = mean(62.31, 61.05, 63.57, units={"x": unit})
    story = facts(release, lang=lang).story
    assert (story.answer.big, story.answer.spread) == (big, spread)
    assert axis in story.charts[0].svg
    assert story.grids[0].columns[1].endswith(("(kg)", "(円)", "（年）"))
    assert story.grids[0].rows[0][1:] == ("62.3", "61.0", "63.6")


def test_days_are_dates_on_the_axis_too_and_their_error_is_in_days() -> None:
    release = mean(DAY, DAY - 11.4, DAY + 11.4, dates=["x"])
    story = facts(release, lang="en").story
    assert (story.answer.big, story.answer.spread) == ("2025-03-01", "± 12 days (95 %)")
    assert facts(release, lang="ja").story.answer.spread == "± 12 日 (95 %)"
    assert story.grids[0].rows[0][1:] == ("2025-03-01", "2025-02-17", "2025-03-13")
    assert ("interval", "2025-02-17 to 2025-03-13") in story.grids[-1].rows, "outwards everywhere"
    assert "2025-0" in story.charts[0].svg
    for grid in (*story.grids, story.charts[0].data):
        assert grid is not None
        assert "20,1" not in str(grid.rows)


def test_a_comparison_has_units_and_dates() -> None:
    page = comparison(
        {"one": mean(62.31, 61.0, 63.6, units={"x": "kg"}), "two": mean(60, 58, 62, units={"x": "kg"})}, lang="en"
    )
    assert "62.3 kg (61.0 to 63.6)" in page
    dated = mean(DAY, DAY - 9, DAY + 9, dates=["x"])
    assert "2025-03-01 (2025-02-20 to 2025-03-10)" in comparison({"one": dated, "two": dated}, lang="en")


def test_one_of_something_and_rates_are_told_as_people_say_them() -> None:
    days, weight = Measure(dates=True), Measure(unit="kg")
    assert (days.off(1.0), days.off(0.4), days.apart.squared.unit) == ("1 day", "0.40 days", "days²")
    assert weight.per(Measure(unit="years")).unit == "kg per year"
    assert (weight.per(PLAIN).unit, PLAIN.per(weight).unit, PLAIN.per(PLAIN)) == ("kg", "per kg", PLAIN)
    assert (days.per(weight).unit, weight.per(days).unit) == ("days per kg", "kg per day")
    with speaking("ja"):
        assert weight.per(Measure(unit="years")).unit == "kg/年"


def test_facts_hold_units_only_where_one_was_declared() -> None:
    plain, heavy = Column.number("a", lower=0, upper=1), Column.number("b", lower=0, upper=1, unit="kg")
    assert units_of({"a": plain}) == {}
    assert units_of({"a": plain, "b": heavy}) == {"units": {"b": "kg"}}


@pytest.mark.parametrize("units", ["kg", {"x": 7}, ["x"], {"x": "k" * 500}, {"x": "\u202ekg\n"}])
def test_whatever_a_file_has_for_a_unit_the_page_is_made(units: Any) -> None:
    release = mean(62.31, 61.05, 63.57, units=units)
    assert len(measure_in(release, "x").unit) <= 24
    assert "62.3" in facts(release, lang="en").story.answer.big
    assert "\u202e" not in facts(release, lang="en").story.answer.big


def test_public_choices_about_dates_are_told_as_dates() -> None:
    told = {"column": "x", "by": None, "groups": ["all"], "where": {"x": [[DAY, None]]}, "mechanism": "discrete Laplace noise"}
    told |= {
        "bins": ["20148 to 20178.3333333"],
        "edges": [DAY, 20178.3333333],
        "noise": Fraction(4_000_000),
        "confidence": 0.95,
    }
    found = {"counts": {"all": [7]}, "intervals": {"all": [[5, 9]]}, "dates": ["x"]}
    release = release_of(found, provenance={"kind": "summaries.histogram", "parameters": told})
    rows = dict(facts(release, lang="en").parameters.rows)
    assert rows["condition.x"] == "from 2025-03-01 on"
    assert rows["bins"] == "2025-03-01 to 2025-04-01"
    assert rows["edges of the bins"] == "2025-03-01, 2025-04-01"
    assert rows["scale of the noise"] == "4,000,000"
    japanese = facts(release, lang="ja")
    assert dict(japanese.parameters.rows)["メカニズム"] == "離散ラプラスノイズ"
    assert {name for name, _ in japanese.story.grids[-1].rows} == {"件数", "区間", "日付の列"}
    assert dict(japanese.parameters.rows)["グループ"] == "全体"
