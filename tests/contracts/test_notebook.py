"""What a notebook shows: plans, guarantees and releases as pages would, tried in a real kernel."""

from __future__ import annotations

import io
from typing import Any

import pytest

from sabun.notebook import Rich, progress_bar
from sabun.outliers import OutlierCount
from sabun.records import Schema
from sabun.regression import PrivateRidge
from sabun.summaries import Mean

SCHEMA = Schema.of_bounds({"age": (0, 100)})


def test_a_plan_shows_its_text_and_a_bar_for_each_forecast() -> None:
    plan = PrivateRidge(epsilon=1, x_bounds=[(-1, 1)] * 3, y_bounds=(-1, 1)).plan(n_records=1000)
    html = plan._repr_html_()
    assert html.startswith("<div")
    assert html.count("<svg") == len(plan.forecasts) == 2
    for forecast in plan.forecasts:
        assert f"from {forecast.low:.2g} to {forecast.high:.2g}" in html
    assert str(plan).splitlines()[0] in html


def test_guarantee_and_release_show_the_promise() -> None:
    model = Mean(column="age", epsilon=1, schema=SCHEMA).fit([[20], [30]])
    assert "no outcome becomes more than 2.719 times as likely" in model.guarantee_._repr_html_()
    shown = model.release_._repr_html_()
    assert "summaries.mean" in shown
    assert "Not signed" in shown
    simulated = Mean(column="age", epsilon=1, schema=SCHEMA, random_state=1).fit([[20]]).release_._repr_html_()
    assert simulated.index("NOT PRIVATE") < 60


def test_foreign_words_cannot_become_markup() -> None:
    class Hostile(Rich):
        def __str__(self) -> str:
            return "<script>alert(1)</script>\n  <img src=x onerror=alert(1)>"

    html = Hostile()._repr_html_()
    assert "<script" not in html
    assert "<img" not in html


def test_a_forecast_without_an_end_has_no_bar() -> None:
    class Endless(Rich):
        forecasts = ()

    assert "<svg" not in Endless()._repr_html_()
    assert "<svg" in OutlierCount(k=3, radius=1.0, epsilon=1).plan(n_records=100, dimensions=2)._repr_html_()


def test_in_a_terminal_the_bar_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr("sys.stderr", written)
    bar = progress_bar()
    bar(0.5, "half")
    bar(1.0, "done")
    assert "50% half" in written.getvalue()
    assert written.getvalue().endswith("\n")


def test_a_real_kernel_shows_a_plan_as_html_and_draws_the_bar_over() -> None:
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    import nbformat

    cells = [
        "from sabun.outliers import OutlierCount\nOutlierCount(k=3, radius=1.0, epsilon=1).plan(n_records=100, dimensions=2)",
        "from sabun.notebook import progress_bar\nbar = progress_bar()\nbar(0.5, 'half')\nbar(1.0, 'done')",
    ]
    book: Any = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(book, timeout=300, kernel_name="python3").execute()
    plan, bar = (cell["outputs"] for cell in book.cells)
    assert "<svg" in plan[0]["data"]["text/html"]
    assert len(bar) == 1
    assert "100%" in bar[0]["data"]["text/html"]
    assert "done" in bar[0]["data"]["text/html"]
