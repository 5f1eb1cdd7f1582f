from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli.terminal import exit_code
from sabun.ledger import Ledger
from sabun.records import FilePart, sources
from sabun.release import Release


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = ["age,bmi,ward"] + [f"{30 + i % 5},{20 + i % 3},A" for i in range(400)] + ["119,59,B", "?,1e999,B"]
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


BOUNDS = ("--bounds", "age=0:120", "--bounds", "bmi=10:60")


def test_one_command_gives_a_private_count_with_an_interval(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "5000", "--out", "c.json") == 0
    out = capsys.readouterr().out
    assert "Outliers: 2" in out
    assert "between 2 and 2" in out
    assert Release.load("c.json")["count"] == 2


def test_an_engine_counts_the_same_outliers_in_pieces(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "5000", "--engine", "serial")
    assert exit_code(*command) == 0
    assert "Outliers: 2" in capsys.readouterr().out
    (here / "regions.json").write_text('{"old": {"age": [100, null]}}')
    assert exit_code(*command, "--regions", "regions.json") == 2
    assert "engine must be left out with --regions" in capsys.readouterr().err


def test_json_is_for_machines_and_the_ledger_pays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create(here / "book", name="book", epsilon=1)
    command = ("outliers", "count", "t.csv", *BOUNDS, "--columns", "age", "--radius", "0.2", "--json", "--ledger", "book")
    assert exit_code(*command, "--epsilon", "0.4") == 0
    record = json.loads(capsys.readouterr().out)
    assert isinstance(record["count"], int)
    assert record["guarantee"]["epsilon"] == "2/5"
    assert float(ledger.remaining.epsilon) == pytest.approx(0.6)
    assert exit_code(*command, "--epsilon", "0.7") == 3
    assert json.loads(capsys.readouterr().err)["error"]["type"] == "BudgetExceeded"


def test_regions_come_from_a_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "r.json").write_text(json.dumps({"young": {"age": [None, 80]}, "old": {"age": [80, None]}}))
    command = ("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "50000", "--regions", "r.json")
    assert exit_code(*command, "--out", "r.out") == 0
    assert "old: 1" in capsys.readouterr().out
    assert exit_code(*command, "--json") == 0
    assert json.loads(capsys.readouterr().out)["counts"] == {"old": 1, "young": 1}
    assert exit_code(*command, "--relation", "add-remove") == 2


def test_a_subspace_is_chosen(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "outliers",
        "choose",
        "t.csv",
        *BOUNDS,
        "--radius",
        "0.1",
        "--epsilon",
        "9",
        "--subspace",
        "a=age",
        "--subspace",
        "b=bmi",
    )
    assert exit_code(*command, "--json", "--out", "s.json") == 0
    assert json.loads(capsys.readouterr().out)["choice"] in ("a", "b")
    assert exit_code(*command) == 0
    assert "Most outliers" in capsys.readouterr().out
    assert exit_code(*command, "--subspace", "a=age、bmi") == 2
    assert "one name stands there twice" in "".join(capsys.readouterr())
    assert exit_code(*command, "--subspace", "both=age、bmi") == 0


def test_a_plan_and_a_radius_cost_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("outliers", "plan", "--records", "300", "--dimensions", "30", "--epsilon", "0.05") == 0
    assert "too small to be useful" in capsys.readouterr().out
    assert exit_code("outliers", "plan", "--records", "300", "--dimensions", "30", "--epsilon", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["records"] == 300
    asked = ("--n-records", "300", "--epsilon", "1", "--radius", "0.2", "--json")
    for columns, dimensions in ((), 2), (("--columns", "bmi"), 1), (("--columns", "age、bmi"), 2):
        assert exit_code("outliers", "plan", *BOUNDS, *columns, *asked) == 0
        assert json.loads(capsys.readouterr().out)["dimensions"] == dimensions, "columns tell it, as they do when counting"
    assert exit_code("outliers", "radius", "t.csv", *BOUNDS, "--share", "0.1", "--json") == 0
    assert 0 < json.loads(capsys.readouterr().out)["radius"] < 1
    assert exit_code("outliers", "radius", "t.csv", *BOUNDS, "--columns", "age") == 0


BAD = [
    (("count", "t.csv", "--radius", "0.2", "--epsilon", "1"), 2, "columns must be declared"),
    (("count", "t.csv", "--bounds", "age", "--radius", "0.2", "--epsilon", "1"), 2, "bounds must look like"),
    (("count", "none.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "1"), 4, "none.csv"),
    (("count", "t.csv", *BOUNDS, "--radius", "-1", "--epsilon", "1"), 2, "radius must be"),
    (("count", "t.csv", *BOUNDS, "--radius", "1", "--epsilon", "1", "--out", "t.csv"), 2, "out must be a new file"),
    (("count", "t.csv", *BOUNDS, "--radius", "1", "--epsilon", "1", "--regions", "no.json"), 4, "cannot be read"),
    (("count", "t.csv", *BOUNDS, "--radius", "1", "--epsilon", "1", "--regions", "t.csv"), 4, "must be valid JSON"),
    (("choose", "t.csv", *BOUNDS, "--radius", "1", "--epsilon", "1", "--subspace", "a"), 2, "subspace must look like"),
    (("radius", "t.csv"), 2, "columns must be declared"),
    (
        ("count", "t.csv", *BOUNDS, "--columns", "ward", "--radius", "1", "--epsilon", "1"),
        2,
        "columns must be declared; got 'ward', which is not. Add --bounds 'ward=low:high'.",
    ),
    (
        ("choose", "t.csv", *BOUNDS, "--radius", "1", "--epsilon", "1", "--subspace", "a=ward", "--subspace", "b=age"),
        2,
        "subspace must be declared; got 'ward'",
    ),
]


@pytest.mark.parametrize(("command", "code", "words"), BAD)
def test_mistakes_have_their_exit_code_and_a_way_out(
    here: Path, command: tuple[str, ...], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("outliers", *command) == code
    assert words in capsys.readouterr().err


def test_a_list_is_no_regions_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "l.json").write_text("[1]")
    assert exit_code("outliers", "count", "t.csv", *BOUNDS, "--radius", "1", "--epsilon", "1", "--regions", "l.json") == 4
    assert "one JSON object" in capsys.readouterr().err


def test_an_interval_that_says_nothing_is_not_charged_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create(here / "book", name="book", epsilon=1)
    command = ("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "0.05", "--ledger", "book")
    assert exit_code(*command) == 2
    said = capsys.readouterr().err
    assert "epsilon must be larger to tell anything about 402 records; got 0.05: even at best, error of the count" in said
    assert "nothing was charged. From --epsilon 0.8 or 12864 records on it is no longer refused; a good answer takes" in said
    assert ledger.entries() == ()
    assert exit_code(*command, "--yes") == 0
    assert len(ledger.entries()) == 1


def test_a_refusal_never_depends_on_a_number_of_rows_that_is_private(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "0.05", "--relation", "add-remove")
    told = set()
    for rows in (50, 402, 30_000):
        (here / "t.csv").write_text("age,bmi\n" + "40,25\n" * rows)
        assert exit_code(*command) == 2
        told.add(capsys.readouterr().err)
    assert len(told) == 1
    assert exit_code(*command, "--yes") == 0


def test_the_ledger_names_the_columns(here: Path) -> None:
    ledger = Ledger.create(here / "book", name="book", epsilon=2)
    command = ("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "1", "--ledger", "book")
    assert exit_code(*command) == 0
    assert exit_code(*command, "--columns", "bmi") == 0
    assert [entry.purpose.partition(" (")[0] for entry in ledger.entries()] == [
        "outliers.count on age, bmi",
        "outliers.count on bmi",
    ]


def test_a_column_that_is_nearly_declared_is_suggested(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ("--bounds", "age=0:120", "--bounds", "bmi=10:60")
    assert exit_code("outliers", "count", "t.csv", *bounds, "--columns", "age,BMI", "--radius", "1", "--epsilon", "1") == 2
    assert "got 'BMI', which is not. Did you mean 'bmi'?" in capsys.readouterr().err


def test_a_count_without_an_interval_says_why(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "r.json").write_text('{"old": {"age": [65, null]}}')
    command = ("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "5", "--error-bar", "0")
    why = "There is no interval: the error bar got no share of epsilon, and how much noise was added depends on the table, so"
    for more in ((), ("--regions", "r.json")):
        assert exit_code(*command, *more) == 0
        assert why in capsys.readouterr().out
    for more in (("--method", "global-laplace"), ("--confidence", "0.8", "--error-bar", "0.3")):
        assert exit_code(*command, *more) == 0
        out = capsys.readouterr().out
        assert "There is no interval" not in out
    assert "with probability 0.8 or more" in out
    assert exit_code(*command, "--method", "paper", "--delta", "1e-6") == 0
    assert "There is no interval: the formula as printed promises nothing." in capsys.readouterr().out


@pytest.mark.parametrize("more", [(), ("--yes",), ("--relation", "add-remove"), ("--columns", "age")])
def test_a_table_is_parsed_once_for_one_command(here: Path, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    parse = sources._stream

    def counted(origin: object, *rest: Any, **how: Any) -> Any:
        parsed.extend([origin] if isinstance(origin, FilePart) else [])
        return parse(origin, *rest, **how)

    monkeypatch.setattr(sources, "_stream", counted)
    assert exit_code("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "5", *more) == 0
    assert len(parsed) == 1


def test_the_help_says_what_each_method_promises(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("count", "plan"):
        assert exit_code("outliers", verb, "--help") == 0
        said = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert "paper: the printed formula (24), to compare with, which promises NOTHING" in said
        assert "--mechanism" in said


def test_the_papers_formula_is_reached_by_both_names_and_promises_nothing(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--method", "--mechanism"):
        asked = (
            "outliers",
            "count",
            "t.csv",
            *BOUNDS,
            "--radius",
            "0.2",
            "--epsilon",
            "5",
            "--delta",
            "1e-6",
            "--json",
            "--yes",
        )
        assert exit_code(*asked, option, "paper") == 0
        assert json.loads(capsys.readouterr().out)["guarantee"]["epsilon"] == "inf"


def test_the_owner_alone_sees_the_sensitivity_of_the_table(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("outliers", "sensitivity", "t.csv", *BOUNDS, "--radius", "0.2", "--columns", "age")
    assert exit_code(*asked) == 2
    refused = capsys.readouterr()
    assert "NOT PRIVATE. Add --owner-only" in refused.err
    assert refused.out == ""
    assert exit_code(*asked, "--owner-only", "--exact") == 0
    said = capsys.readouterr().out
    assert said.startswith("NOT PRIVATE")
    assert "of 402 records are outliers" in said
    assert "Theorem 4: max(OC = 0, IC = 0) + 1 = 1" in said
    assert exit_code(*asked, "--owner-only", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["warning"].startswith("NOT PRIVATE")
    assert found["local_bound"] <= found["global_bound"]


def test_a_public_reference_makes_the_plan_of_a_count(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "public.csv").write_bytes((here / "t.csv").read_bytes())
    told = ("--like", "public.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "2", "--json")
    assert exit_code("outliers", "plan", "--n-records", "402", *told) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["expected_width"] > 0
    assert plan["forecasts"][0]["assumed"][0] == "the table is like the reference of 402 records"
    assert exit_code("outliers", "count", "t.csv", *told) == 0
    assert json.loads(capsys.readouterr().out)["plan"] == plan


def test_both_ends_of_the_interval_are_told_before_the_charge(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("outliers", "count", "t.csv", *BOUNDS, "--radius", "0.2", "--epsilon", "2") == 0
    told = capsys.readouterr().err
    assert re.search(r"The interval reaches about \d+ up or down at best, about \d+ at worst\.\n", told)
    assert "Its length is drawn too: in eight of ten runs" in told


@pytest.mark.parametrize("asked", ["age,bmi", "bmi,age"])
def test_a_reference_needs_only_the_columns_that_are_asked_about(
    here: Path, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (here / "t.csv").read_text().splitlines()
    (here / "public.csv").write_text("".join(f"{','.join(line.split(',')[:2])}\n" for line in lines))
    (here / "p.csv").write_text("".join(f"{line},{'ill' if at == 0 else at % 2}\n" for at, line in enumerate(lines)))
    told = ("--like", "public.csv", "--radius", "0.2", "--epsilon", "2", "--json")
    assert exit_code("outliers", "plan", "--n-records", "402", *told, *BOUNDS) == 0
    exact = json.loads(capsys.readouterr().out)
    wider = ("--bounds", "ill=0:1", *BOUNDS, "--columns", asked)
    assert exit_code("outliers", "plan", "--n-records", "402", *told, *wider) == 0
    assert json.loads(capsys.readouterr().out) == exact
    assert exit_code("outliers", "count", "p.csv", *told, *wider) == 0
    assert json.loads(capsys.readouterr().out)["plan"] == exact
    assert exit_code("outliers", "plan", "--n-records", "402", *told, "--bounds", "ill=0:1", *BOUNDS) == 4
    assert "has no column 'ill'" in capsys.readouterr().err


def test_the_private_table_is_no_reference(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = (*BOUNDS, "--radius", "0.2", "--epsilon", "2")
    assert exit_code("outliers", "count", "t.csv", "--like", "t.csv", *common) == 2
    assert "like must be another table than the private one; got the same file." in capsys.readouterr().err
    (here / "regions.json").write_text('{"old": {"age": [65, null]}}')
    assert exit_code("outliers", "count", "t.csv", "--like", "public.csv", "--regions", "regions.json", *common) == 2
    assert "like must be left out with --regions" in capsys.readouterr().err
    assert exit_code("outliers", "plan", "--n-records", "5", "--epsilon", "1", "--like", "t.csv") == 2
    assert "like and radius must come together" in capsys.readouterr().err
