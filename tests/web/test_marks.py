"""Small pictures: inside their frame whatever the numbers, with a name, without a style."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from sabun.web import Assets
from sabun.web.marks import columns, dot, gauge

numbers = st.floats(-1e6, 1e6)


def percents(svg: str) -> list[float]:
    return [float(text) for text in re.findall(r'="(-?[\d.]+)%"', svg)]


@given(numbers | st.none(), numbers | st.none(), numbers | st.none(), numbers, numbers)
def test_a_dot_stays_on_its_line(value: float | None, low: float | None, high: float | None, least: float, most: float) -> None:
    svg = dot(value, low, high, least=least, most=most, line=least)
    assert all(0 <= percent <= 100.6 for percent in percents(svg))
    assert ("<circle" in svg) == (value is not None)


def test_a_dot_stands_where_its_value_is() -> None:
    svg = dot(0.25, 0.2, 0.5, least=0, most=1)
    assert 'cx="25.00%"' in svg
    assert 'x="20.00%" width="30.00%"' in svg


def test_a_gauge_and_columns_have_names_that_cannot_break_out() -> None:
    for svg in (gauge(2.0, label='"><script>', line=0.5), columns([1, 4, 0], label='"><script>', open_end=True)):
        assert "<script>" not in svg
        assert 'role="img" aria-label="' in svg
        assert "style=" not in svg
        assert all(0 <= percent <= 100 for percent in percents(svg))
    assert columns([], label="x").count("<rect") == 0
    assert 'height="100.00%"' in columns([1, 4], label="x")


def test_assets_are_those_of_the_package_and_nothing_else() -> None:
    assets = Assets("sabun.service")
    style = assets.found("style.css")
    assert style is not None
    assert style[1] == "text/css"
    assert b"svg.mark" in style[0]
    assert b"--paper" in style[0]
    assert assets.found("client/index.js") is not None
    for name in (
        "",
        "..",
        "../__init__.py",
        "client/../../__init__.py",
        "style",
        "client/index.d.ts",
        "/etc/passwd",
        "x.css",
        "\0",
    ):
        assert assets.found(name) is None
