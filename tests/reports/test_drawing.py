from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from matplotlib import font_manager

from reports.html_checks import problems
from reports.report_samples import EVIL
from sabun.telling.charts import MOST_ROWS, bars, dots, histogram, line, overlay
from sabun.telling.drawing import JAPANESE, embeddable, fonts, label
from sabun.telling.reproduction import drawn as paper_figure

NAMES = ["a", "b", "c"]
VALUES = np.array([1.0, 2.0, 3.0])


def page(svg: str) -> str:
    return f"<h1>x</h1>{svg}"


@pytest.mark.parametrize(
    "chart",
    [
        dots(NAMES, VALUES, VALUES - 1, VALUES + 1, title=EVIL, axis=EVIL),
        bars([EVIL, "日本語", "$x$"], VALUES, title="bars", axis=EVIL),
        histogram(np.linspace(0, 1, 99), title="h", axis=EVIL),
        line(VALUES, VALUES, title="line", x_axis=EVIL, y_axis=EVIL),
        overlay([EVIL, "b", "c"], [(EVIL, VALUES), ("u", VALUES)], title="o", axis="x"),
    ],
)
def test_a_picture_is_safe_and_follows_the_page(chart: object) -> None:
    svg = chart.svg  # type: ignore[attr-defined]
    assert problems(page(svg)) == []
    assert "var(--accent)" in svg
    assert "var(--letters)" in svg
    assert "http" not in svg
    assert "\u202e" not in svg
    for stand_in in ("#010203", "#020304", "#030405", "#040506", "#050607"):
        assert stand_in not in svg


def test_names_from_a_file_are_no_formulas_and_need_no_glyphs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart = bars(["$\\frac", "日本語", "\x00"], VALUES, title="t", axis="a")
    assert chart is not None
    assert "$\\frac" in chart.svg
    assert "日本語" in chart.svg


@pytest.mark.parametrize("installed", [False, True])
def test_japanese_labels_are_drawn_without_warnings(
    installed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Where a Japanese font is installed its widths count; where none is, the text stays text all the same."""
    found = [font for font in font_manager.fontManager.ttflist if font.name not in JAPANESE]
    regular = next(font for font in found if (font.name, font.weight, font.style) == ("DejaVu Sans", 400, "normal"))
    stand_in = dataclasses.replace(regular, name="IPAexGothic")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", found + [stand_in] * installed)
    fonts.cache_clear()
    with warnings.catch_warnings(), caplog.at_level("WARNING"):
        warnings.simplefilter("error")
        made = paper_figure(name="f", title="図", draw=lambda axes: axes.set(xlabel="距離", ylabel="外れ値の件数"))
        chart = bars(["日本語"], VALUES[:1], title="表", axis="件数")
        assert fonts() == ["DejaVu Sans", *(["IPAexGothic"] * installed)]
    fonts.cache_clear()
    assert caplog.records == []
    assert "距離" in made.svg
    assert "'DejaVu Sans', 'Noto Sans CJK JP'" in made.svg
    assert chart is not None
    assert "件数" in chart.svg


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e300])
def test_what_cannot_be_drawn_is_left_out(value: float) -> None:
    mixed = np.array([1.0, value, 3.0])
    kept = dots(NAMES, mixed, mixed - 1, np.array([math.inf, value, 1e300]), title="t", axis="a")
    assert kept is not None
    assert kept.data is not None
    assert [row[0] for row in kept.data.rows] == ["a", "c"]
    assert "Not drawn: 1 more row of the release file." in kept.note
    alone = np.full(3, value)
    assert dots(NAMES, alone, title="t", axis="a") is None
    assert bars(NAMES, alone, title="t", axis="a") is None
    assert histogram(alone, title="t", axis="a") is None
    assert line(alone, alone, title="t", x_axis="a", y_axis="b") is None
    assert overlay(NAMES, [("a", alone)], title="t", axis="a") is None


def test_many_rows_are_cut() -> None:
    many = np.arange(200.0)
    chart = dots([str(place) for place in range(200)], many, title="t", axis="a")
    assert chart is not None
    assert chart.data is not None
    assert len(chart.data.rows) == MOST_ROWS


def test_equal_values_have_a_histogram() -> None:
    assert histogram(np.ones(5), title="t", axis="a") is not None


def test_two_pictures_have_different_ids() -> None:
    one, two = (bars(NAMES, VALUES * factor, title="t", axis="a") for factor in (1, 2))
    assert one is not None
    assert two is not None
    assert problems(page(one.svg + two.svg)) == []


def test_a_style_sheet_inside_a_picture_is_dropped() -> None:
    svg = '<?xml version="1.0"?><svg width="9" viewBox="0 0 1 1"><style>*{x:y}</style><g id="a"/></svg>'
    assert "<style" not in embeddable(svg, title="t")
    assert 'viewBox="0 0 1 1"' in embeddable(svg, title="t")


def test_labels_are_one_short_line() -> None:
    assert label("a\n b" + "c" * 50) == "a b" + "c" * 20 + "…"
