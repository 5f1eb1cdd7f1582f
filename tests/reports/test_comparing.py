"""Releases side by side, and headlines that say no more than the intervals do."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cli.terminal import exit_code
from reports.html_checks import Page
from reports.report_samples import release_of
from sabun.errors import ParameterError
from sabun.ledger import Receipt
from sabun.release import Release
from sabun.reports import comparison, facts
from sabun.reports.comparing import _difference
from sabun.telling.language import speaking
from sabun.telling.story import Quantity


def model(coefficients: list[float], low: list[float], high: list[float]) -> Release:
    """A joined model of columns a and b (ranges 10 and 1), with a constant."""
    value = {
        "features": ["a", "b"],
        "coefficients": coefficients,
        "low": low,
        "high": high,
        "ranges": [10.0, 1.0],
        "target": "y",
        "organisations": ["one"],
    }
    return release_of(value, provenance={"kind": "regression.model"})


def headline(release: Release) -> tuple[str, str]:
    answer = facts(release, lang="en").story.answer
    return answer.big, answer.sentence


def test_a_coefficient_whose_interval_holds_0_is_no_headline() -> None:
    big, sentence = headline(model([5.0, 1.0, 0.0], [-1.0, 0.5, 0.0], [11.0, 1.5, 0.0]))
    assert big == "b: 1.00"
    assert "“b” has the largest clear effect on “y”" in sentence
    assert "which one moves it the most is open" in sentence
    big, sentence = headline(model([5.0, 1.0, 0.0], [-1.0, -0.5, 0.0], [11.0, 2.5, 0.0]))
    assert big == "No clear effect"
    assert "moves" not in sentence.replace("they move", "")


def test_the_rank_and_the_number_are_of_one_quantity() -> None:
    """a: 10 times 0.5 over its range, more than b's 2, though b's coefficient is the larger."""
    big, sentence = headline(model([0.51, 2.0, 0.0], [0.4, 1.5, 0.0], [0.62, 2.5, 0.0]))
    assert big == "a: 5.1"
    assert "“a” moves “y” the most over its whole public range: by 5.1." in sentence
    assert "For each step of 1 it is 0.51." in sentence
    assert "For each step" not in headline(model([0.1, 2.0, 0.0], [0.0, 1.5, 0.0], [0.2, 2.5, 0.0]))[1], "b has but one step"


@pytest.mark.parametrize(("second", "words"), [(0.40, "is held by the most people"), (0.55, "which one is held by the most")])
def test_the_most_frequent_key_is_named_only_where_intervals_are_apart(second: float, words: str) -> None:
    shares = [0.6, second]
    value: dict[str, Any] = {"key": ["x", "y"], "frequency": shares, "n": [100, 100]}
    value |= {"frequency_low": [one - 0.05 for one in shares], "frequency_high": [one + 0.05 for one in shares]}
    chosen = {"confidence": 0.95, "method": "mle", "means": False}
    assert words in headline(release_of(value, provenance={"kind": "keyvalue.estimates", "parameters": chosen}))[1]


def count_release(found: int, low: int, high: int) -> Release:
    value = {"counts": {"all": found}, "intervals": {"all": [low, high]}}
    chosen = {"groups": ["all"], "by": None, "confidence": 0.95, "mechanism": "discrete Laplace"}
    return release_of(value, provenance={"kind": "summaries.count", "parameters": chosen})


def test_the_same_figures_stand_side_by_side_with_their_intervals() -> None:
    page = Page(comparison({"spring": count_release(42, 38, 46), "autumn": count_release(60, 56, 64)}, lang="en"))
    assert page.problems == []
    assert page.headings[0] == (1, "Releases side by side")
    assert "42 (38 to 46)" in page.text
    assert "60 (56 to 64)" in page.text
    assert "clear" in page.text
    overlapping = Page(comparison({"a": count_release(42, 38, 46), "b": count_release(45, 41, 49)}, lang="en"))
    assert "not clear" in overlapping.text


def test_an_answer_that_was_asked_for_twice_was_paid_for_once() -> None:
    march, may = (paid_for(digit) for digit in "01")
    paid = "Each release was paid for by itself"
    twice = comparison({"march": march, "again": march}, lang="en")
    assert "march, again are one answer, which was paid for once." in twice
    assert paid not in twice
    assert paid in comparison({"march": march, "may": may}, lang="en")
    assert paid in comparison({"march": march, "again": march, "may": may}, lang="en")


def paid_for(digit: str) -> Release:
    receipt = Receipt(
        ledger_name="l",
        entry=1,
        entry_hash=digit * 64,
        epsilon=Fraction(1, 2),
        delta=Fraction(0),
        relation="replace-one",
        unit="patient",
        note="",
        time="2026-01-31T12:00:00Z",
    )
    return release_of(provenance={"receipt": receipt})


def test_releases_of_different_kinds_are_compared_in_their_promises_alone() -> None:
    releases = {"count": count_release(42, 38, 46), "model": model([1.0, 2.0, 0.0], [0.5, 1.0, 0.0], [1.5, 3.0, 0.0])}
    page = Page(comparison(releases, lang="en")).text
    assert "have no figures in common" in page
    assert "The same figures" not in page
    assert "共通の数値がありません" in Page(comparison(releases, lang="ja")).text
    with pytest.raises(ParameterError, match="releases must be two or more"):
        comparison({"alone": count_release(1, 0, 2)})


def mean_of(column: str, *, by: str | None = None) -> Release:
    value = {"means": {"all": 4.0}, "intervals": {"all": [3.0, 5.0]}}
    chosen = {"groups": ["all"], "by": by, "column": column, "confidence": 0.95, "mechanism": "discrete Laplace"}
    return release_of(value, provenance={"kind": "summaries.mean", "parameters": chosen})


@pytest.mark.parametrize("by", [None, "sex"])
def test_answers_about_different_columns_are_no_figures_in_common(by: str | None) -> None:
    fee, km, again = mean_of("fee", by=by), mean_of("km", by=by), mean_of("km", by=by)
    page = Page(comparison({"a": fee, "b": km}, lang="en")).text
    assert "have no figures in common" in page
    assert "mean of fee" in page
    assert "not clear" not in page
    assert "not clear" in Page(comparison({"a": fee, "b": km, "c": again}, lang="en")).text


def test_the_command_takes_several_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("b").mkdir()
    count_release(42, 38, 46).save("x.json")
    count_release(60, 56, 64).save("b/x.json")
    assert exit_code("report", "x.json", "b/x.json") == 2
    assert "out must be given for several releases" in capsys.readouterr().err
    assert exit_code("report", "x.json", "b/x.json", "--out", "page.html", "--json") == 0
    assert json.loads(capsys.readouterr().out)["files"] == ["x.json", "b/x.json"]
    assert "b/x" in Path("page.html").read_text()
    assert exit_code("report", "x.json", "b/x.json", "--out", "b/x.json", "--overwrite") == 2


def test_a_difference_is_clear_exactly_where_two_intervals_have_no_number_in_common() -> None:
    ends = [(low, high) for low in range(4) for high in range(low, 4)]
    for (a, b), (c, d) in itertools.product(ends, repeat=2):
        for one, other in itertools.product((a, b), (c, d)):  # wherever in it the estimate lies
            found = [Quantity(name="x", value=one, low=a, high=b), Quantity(name="x", value=other, low=c, high=d)]
            apart = not set(range(a, b + 1)) & set(range(c, d + 1))
            with speaking("en"):
                assert _difference(found) == ("clear" if apart else "not clear"), (a, b, c, d)
