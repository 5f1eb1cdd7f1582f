"""Each room's real releases become their own pages; a changed shape falls back to the general page."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from reports.html_checks import Page
from reports.report_samples import release_of
from sabun.asking import rooms
from sabun.errors import ParameterError
from sabun.release import Release
from sabun.reports import facts, report
from sabun.reports.facts import renderer_of
from sabun.telling import charts

ROWS = np.column_stack([np.arange(300.0) % 17, np.arange(300.0) % 5])


def outliers_count() -> Release:
    from sabun.outliers import OutlierCount

    return OutlierCount(k=3, radius=0.5, epsilon=20, random_state=1).fit(ROWS).release_


def outliers_regions() -> Release:
    from sabun.outliers import RegionCount

    regions = {"<left>": {"x0": (None, 8)}, "right": {"x0": (8, None)}}
    return RegionCount(regions=regions, k=3, radius=0.5, epsilon=20, random_state=1).fit(ROWS).release_


def outliers_subspace() -> Release:
    from sabun.outliers import SubspaceChoice

    return SubspaceChoice(subspaces={"a": ["x0"], "b": ["x1"]}, k=3, radius=0.5, epsilon=1, random_state=1).fit(ROWS).release_


def density() -> Release:
    from sabun.density import DensityRatio

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DensityRatio(epsilon=1, random_state=1).fit(private=ROWS[100:] / 17, public=ROWS[:60] / 17).release_


def regression(mechanism: str = "ssp-gauss") -> Release:
    from sabun.regression import PrivateRidge

    model = PrivateRidge(epsilon=5, method=mechanism, x_bounds=[(0, 17), (0, 5)], y_bounds=(0, 40), random_state=1)
    return model.fit(ROWS, ROWS @ [1.0, 3.0]).release_


def keyvalue() -> Release:
    from sabun.keyvalue import Study

    study = Study(keys=["<b>Tube</b>", "LINE", "Rare"], epsilon=2)
    return study.simulate([0.5, 0.2, 0.0], [0.1, -0.3, 0.0], n=20_000, random_state=0).estimate().release()


def learning(**changes: Any) -> Release:
    from sabun.learning import PrivateClassifier

    labels = (ROWS[:, 0] > 8).astype(int)
    model = PrivateClassifier(
        epsilon=4, classes=[0, 1], hidden=(4,), epochs=2, relation="replace-one", random_state=1, **changes
    )
    return model.fit(ROWS / 17, labels).release_


CASES: list[tuple[Callable[[], Release], str, str, int]] = [
    (outliers_count, "Private number of outliers", "fewer than 3 others lie within 0.5", 1),
    (outliers_regions, "Private number of outliers by region", "Of 2 public regions", 1),
    (outliers_subspace, "Private choice of the columns that have outliers", "It is a draw", 0),
    (density, "Weights that make a public table answer for a private one", "60 weights worth", 2),
    (regression, "Private linear model for y", "Of 2 columns,", 1),
    (lambda: regression("objpert"), "Private linear model for y", "no intervals", 1),
    (keyvalue, "What people hold, collected without learning anyone's data", "Of 3 keys, “<b>Tube</b>”", 2),
    (
        learning,
        "Privately trained classifier",
        "The answer Predicts 0 or 1 This is what the model predicts for a record, from “x0”, “x1”.",
        1,
    ),
]


@pytest.mark.parametrize(("make", "title", "words", "pictures"), CASES)
def test_a_room_has_a_page_of_its_own(make: Callable[[], Release], title: str, words: str, pictures: int) -> None:
    release = make()
    text = report(release)
    page = Page(text)
    assert page.problems == []
    assert page.headings[0] == (1, title)
    assert words in page.text
    assert page.tags.count("svg") == pictures
    assert "NOT PRIVATE" in page.text
    assert "<b>" not in text


def test_every_room_has_a_renderer_and_a_case() -> None:
    assert [room.name for room in rooms() if renderer_of(f"{room.name}.any") is None] == []
    assert {make().provenance.kind.partition(".")[0] for make, *_ in CASES} <= {room.name for room in rooms()}


@pytest.mark.parametrize("make", [make for make, *_ in CASES])
def test_a_changed_shape_falls_back_to_the_general_page(make: Callable[[], Release], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "drawn", lambda draw, *, title, height: "<svg></svg>")  # drawing is tested elsewhere
    whole = make()
    for name in whole.value:
        for other in (None, "text", -1, float("nan"), [], [1, None], {"x": 1}, np.full((2, 2), np.nan)):
            value = {**whole.value, name: other}
            facts(Release(value=value, guarantee=whole.guarantee, provenance=whole.provenance))
    for name in whole.provenance.parameters:
        for other in (None, "text", -1, [], {"x": 1}):
            changed = dataclasses.replace(whole.provenance, parameters={**whole.provenance.parameters, name: other})
            facts(Release(value=whole.value, guarantee=whole.guarantee, provenance=changed))


@pytest.mark.parametrize("room", [room.name for room in rooms()])
def test_a_kind_alone_does_not_make_a_room_s_page(room: str) -> None:
    page = Page(report(release_of({"other": 1.5}, provenance={"kind": f"{room}.count"})))
    assert page.problems == []
    assert page.headings[0][1] == f"{room.capitalize()}: count"


def test_a_per_parameter_model_shows_the_joint_epsilon() -> None:
    text = Page(report(learning(method="learning-first"))).text
    assert "epsilon (all together)" in text
    assert "what counts is the figure for all of them together" in text


def test_the_paper_s_regression_says_that_it_promises_nothing() -> None:
    assert "NO GUARANTEE" in Page(report(regression("paper"))).text


def test_wide_intervals_are_said_to_be_wide() -> None:
    from sabun.outliers import OutlierCount

    narrow = outliers_count()
    value = {"count": 5, "interval": [0, 90]}
    wide = Release(value=value, guarantee=narrow.guarantee, provenance=narrow.provenance)
    assert "The interval is wider than the answer" in Page(report(wide)).text
    assert "The interval is wider than the answer" not in Page(report(narrow)).text
    bare = OutlierCount(k=3, radius=0.5, epsilon=1, error_bar=0, random_state=1).fit(ROWS).release_
    assert "No error bar was paid for" in Page(report(bare)).text


def test_an_interval_that_holds_everything_is_not_an_answer() -> None:
    narrow = outliers_count()
    for low, high, empty in ((0, 300, True), (0, 270, True), (0, 260, False)):
        value = {"count": 290, "interval": [low, high]}
        text = Page(report(Release(value=value, guarantee=narrow.guarantee, provenance=narrow.provenance))).text
        assert ("This release says nothing" in text) == empty
        assert (f"The answer {low} to {high} Nothing can be said about how many of the 300 records" in text) == empty
        assert ("About 290 of the 300 records" in text) != empty


def test_regions_whose_order_is_open_are_said_to_be() -> None:
    whole = outliers_regions()
    apart = {"counts": {"a": 90, "b": 40}, "intervals": {"a": [80, 100], "b": [30, 50]}}
    close = {"counts": {"a": 90, "b": 40}, "intervals": {"a": [40, 140], "b": [0, 90]}}
    bare = {"counts": {"a": 90, "b": 40}}
    said = [
        Page(report(Release(value=value, guarantee=whole.guarantee, provenance=whole.provenance))).text
        for value in (apart, close, bare)
    ]
    assert ["Intervals overlap (a, b): which region has the most is open" in text for text in said] == [False, True, False]
    assert ["The interval is wider than the answer" in text for text in said] == [False, True, False]
    assert ["these answers have no intervals" in text for text in said] == [False, False, True]


def test_a_model_names_its_classes_and_columns_where_they_are_public() -> None:
    from sabun.learning import PrivateClassifier

    labels = (ROWS[:, 0] > 8).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unnamed = PrivateClassifier(epsilon=4, epochs=1, relation="replace-one", random_state=1).fit(ROWS / 17, labels).release_
    assert "The answer Predicts one of 2 classes This is what" in Page(report(unnamed)).text
    whole = learning()
    facts_ = {**whole.provenance.parameters, "sizes": [9, 8], "classes": list("abcdefgh"), "columns": list("ABCDEFGHI")}
    origin = dataclasses.replace(whole.provenance, parameters=facts_)
    value = {name: part for name, part in whole.value.items() if name != "model"}  # whose sizes go before those of the facts
    text = Page(report(Release(value=value, guarantee=whole.guarantee, provenance=origin))).text
    assert "a, b, c, d, e … (8 classes)" in text
    assert "“A”, “B”, “C”, “D”, “E” and 4 more columns" in text
    assert "it keeps epsilon 4, delta 1e-05 for everybody" in text


def test_a_model_with_labels_among_its_columns_has_a_page() -> None:
    from sabun import Column, Schema
    from sabun.regression import PrivateRidge, Study

    table = pd.DataFrame({"age": ROWS[:, 0], "ward": np.where(ROWS[:, 1] > 2, "north", "south")})
    features = Schema(columns=[Column.number("age", lower=0, upper=17), Column.category("ward", ["north", "south", "west"])])
    study = Study(features=features, target=Column.number("dose", lower=0, upper=40), epsilon=5, delta="1e-6")
    page = Page(report(PrivateRidge(study=study, organisation="one", random_state=1).fit(table, ROWS[:, 0]).release_))
    assert page.problems == []
    assert page.headings[0] == (1, "Private linear model for dose")
    assert all(name in page.text for name in ("age", "ward=south", "ward=west"))


def test_weak_means_are_left_out() -> None:
    assert "1 key so few people" in Page(report(keyvalue())).text


def test_a_public_table_is_drawn_with_and_without_the_weights(tmp_path: Path) -> None:
    release = density()
    kinds = np.where(ROWS[:60, 0] > 8, "<b>many</b>", "few")
    table = pd.DataFrame({"first": ROWS[:60, 0], "kind": kinds, "yes": ROWS[:60, 1] > 2, "none": np.nan})
    page = Page(report(release, public=table))
    assert page.problems == []
    assert [words for level, words in page.headings if level == 3 and words.startswith("Column")] == [
        "Column first",
        "Column kind",
        "Column yes",
        "Column none",
    ]
    table.to_csv(tmp_path / "public.csv", index=False)
    assert report(release, public=tmp_path / "public.csv").count("<svg") == 2 + 4
    assert report(release, public=ROWS[:60]).count("<svg") == 2 + 2


def test_another_table_is_refused() -> None:
    with pytest.raises(ParameterError, match="public must be the table the weights are for, with 60 rows; got one with 59"):
        report(density(), public=ROWS[:59])
    with pytest.raises(
        ParameterError, match=r"public must be left out for a release without weights; this one is 'outliers.co"
    ):
        report(outliers_count(), public=ROWS)
    with pytest.raises(ParameterError, match="public must be left out for a release without weights"):
        report(release_of({"weights": "x"}, provenance={"kind": "density.weights"}), public=ROWS)
