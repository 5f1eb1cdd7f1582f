from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cli.terminal import exit_code
from sabun import Column, Ledger, Release, Schema
from sabun.density import DensityRatio
from sabun.density.marginals import marginals
from sabun.errors import DataError, ParameterError
from sabun.records import FileFormat
from sabun.records.files import FilePart


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name, rows, mean, share in (("public", 300, 40, 0.3), ("private", 4000, 45, 0.6)):
        frame = pd.DataFrame({"age": rng.normal(mean, 10, rows), "sex": rng.choice(["F", "M"], rows, p=[share, 1 - share])})
        frame.to_csv(f"{name}.csv", index=False)
        frame.to_parquet(f"{name}.parquet")
    Schema(columns=[Column.number("age", lower=0, upper=120), Column.category("sex", ["F", "M"])]).save("schema.json")
    return tmp_path


WEIGHTS = ("density", "weights", "--epsilon", "1", "--schema", "schema.json")


def test_a_new_users_first_try(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv", "--plot", "w.svg", "--lang", "fr") == 2
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv", "--plot", "w.svg", "--lang", "ja") == 0
    said = capsys.readouterr().out
    assert "300 public rows with a column 'weight' of mean 1" in said
    assert "epsilon = 1 (replace-one)" in said
    assert ">公開（重みあり）<" in Path("w.svg").read_text()
    assert "NOT PRIVATE" not in Path("w.svg").read_text()
    assert exit_code("density", "query", "w.csv", "mean(age)", "mean(sex = F)", "mean(age where sex = F)", "--json") == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert abs(answers["mean(age)"]["estimate"] - 45) < 2
    assert abs(answers["mean(sex = F)"]["estimate"] - 0.6) < 0.08
    assert all(found["noise_error"] > 0 for found in answers.values())
    assert exit_code("density", "query", "w.csv", "mean(age)") == 0
    said = capsys.readouterr().out
    assert "mean(age) = 4" in said
    assert "covered rows:" in said
    assert "of the private rows are unlike any public row" in said
    Path("w.csv.release.json").unlink()
    assert exit_code("density", "query", "w.csv", "mean(age)") == 0
    assert "no interval: there is no w.csv.release.json, which holds the noise" in capsys.readouterr().out
    assert exit_code("density", "query", "w.csv", "mean(age)", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["answers"]["mean(age)"]["interval"], told["intervals_cover_noise"]) == (None, False)


def test_dates_are_compared_and_asked_about(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    for name, rows in (("public", 300), ("private", 2000)):
        days = np.datetime64("2025-01-01") + rng.integers(0, 365, rows)
        pd.DataFrame({"in": days.astype(str), "age": rng.normal(40, 9, rows)}).to_csv(f"{name}.csv", index=False)
    columns = [
        Column.date("in", lower="2025-01-01", upper="2025-12-31"),
        Column.number("age", lower=0, upper=120, unit="years"),
    ]
    Schema(columns=columns).save("schema.json")
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--out", "w.csv") == 0
    capsys.readouterr()
    assert exit_code("density", "query", "w.csv", "share(in < 2025-07-01)", "mean(in)", "--json") == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert abs(answers["share(in < 2025-07-01)"]["estimate"] - 0.5) < 0.15
    assert all(found["interval"] is not None for found in answers.values())
    assert answers["mean(in)"]["dates"]["estimate"][:5] == "2025-"
    asked = ("mean(in)", "median(in)", "mean(age)", "share(age > 40)", "count(in > 2025-12-20) by in")
    assert exit_code("density", "query", "w.csv", *asked, "--bounds", "in=2025-01-01:2025-12-31") == 2  # too many days
    told = capsys.readouterr().out
    assert re.search(r"mean\(in\) = 2025-\d\d-\d\d   \(95%, whole table: 2025-\d\d-\d\d to 2025-\d\d-\d\d\)", told)
    assert re.search(r"median\(in\) = 2025-\d\d-\d\d   \(95%, .*: 2025-\d\d-\d\d to 2025-\d\d-\d\d\)", told)
    assert re.search(r"mean\(age\) = [\d.]+ years   \(95%, .* to [\d.]+ years\)", told)
    assert re.search(r"share\(age > 40\) = [\d.]+   \(", told)
    pictures = marginals(Release.load("w.csv.release.json"), "public.csv")
    assert "2025-0" in pictures[0].svg
    assert pictures[0].data is not None
    assert pictures[0].data.rows[0][0].startswith("2025-01-0")
    assert "(years)" in pictures[1].svg


def test_pictures_of_columns_are_of_what_was_declared_and_not_of_ids(folder: Path) -> None:
    rng = np.random.default_rng(1)
    for name, rows in (("public", 300), ("private", 2000)):
        pay = [f"{amount:,}" for amount in rng.integers(1000, 90_000, rows)]
        age = ["unknown", *map(str, rng.integers(0, 99, rows - 1))]
        who = [f"{name[:2]}{place}" for place in range(rows)]
        pd.DataFrame({"who": who, "age": age, "pay": pay}).to_csv(f"{name}.csv", index=False)
    columns = [Column.number("age", lower=0, upper=120), Column.number("pay", lower=0, upper=1e5, unit="円")]
    Schema(columns=columns, file=FileFormat(thousands=",")).save("schema.json")
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv", "--plot", "w.svg") == 0
    assert "unknown" not in Path("w.svg").read_text()
    for public in ("public.csv", "w.csv"):
        age, pay = marginals(Release.load("w.csv.release.json"), public)
        assert all(picture.data is not None and len(picture.data.rows) == 16 for picture in (age, pay))
        assert "円" in pay.svg


def test_dates_are_asked_about_from_python_and_group_as_dates() -> None:
    rng = np.random.default_rng(1)
    tables = [
        pd.DataFrame(
            {"in": (np.datetime64("2025-01-01") + rng.integers(0, 3, rows)).astype(str), "age": rng.normal(40, 9, rows)}
        )
        for rows in (1500, 300)
    ]
    columns = [Column.date("in", lower="2025-01-01", upper="2025-01-03"), Column.number("age", lower=0, upper=99, unit="years")]
    ratio = DensityRatio(epsilon=8, schema=Schema(columns=columns)).fit(private=tables[0], public=tables[1])
    by_day = ratio.ask("mean(age) by in")
    assert list(by_day) == [f"mean(age where in = 2025-01-0{day})" for day in (1, 2, 3)]
    assert all(" years (" in str(answer) for answer in by_day.values())
    assert str(ratio.query("in")).startswith("2025-01-02 (covered rows), 95% interval 2025-01-0")
    assert str(ratio.query("in", kind="median")).startswith("2025-01-0")
    assert 20_089 <= ratio.mean("in") <= 20_091
    with pytest.raises(DataError, match=r"no column 'agee'\. Did you mean 'age'\?"):
        ratio.ask("mean(agee)")


def test_parquet_json_ledger(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create("l.ledger", name="clinic", unit="patient", epsilon=1.5, delta=1e-5, accounting="sums")
    options = (
        *WEIGHTS,
        "--private",
        "private.parquet",
        "--public",
        "public.parquet",
        "--ledger",
        "l.ledger",
        "--delta",
        "1e-6",
    )
    assert exit_code(*options, "--out", "w.parquet", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["guarantee"]["unit"] == "patient"
    assert record["remaining"]["epsilon"] == "1/2"
    assert Release.load("w.parquet.release.json").provenance.receipt is not None
    assert exit_code(*options, "--out", "again.parquet", "--json", "--again") == 3
    assert not Path("again.parquet").exists()


def test_numbers_need_neither_schema_nor_bounds(folder: Path) -> None:
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code("density", "weights", *tables, "--epsilon", "1", "--columns", "age", "--out", "a.csv") == 0
    assert exit_code("density", "weights", *tables, "--epsilon", "1", "--bounds", "age=0:120", "--out", "b.csv") == 0
    assert (
        exit_code(*WEIGHTS, *tables, "--columns", "sex", "--relation", "add-remove", "--private-rows", "4000", "--out", "c.csv")
        == 0
    )


def test_the_owners_picture_says_what_it_is(folder: Path) -> None:
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv", "--plot", "o.svg", "--owner-only") == 0
    assert "NOT PRIVATE" in Path("o.svg").read_text()


def test_no_file_is_written_over_another(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create("l.ledger", name="clinic", epsilon=1)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    options = (*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--ledger", "l.ledger", "--overwrite")
    for out, plot in (("w.csv", "w.csv"), ("w.csv", "./w.csv"), ("w.csv", "w.csv.release.json")):
        assert exit_code(*options, "--out", out, "--plot", plot, "--owner-only") == 2
        assert "must be another file than w.csv" in capsys.readouterr().err
    Path("link.csv").symlink_to("private.csv")
    for out, plot in (("private.csv", "p.svg"), ("link.csv", "p.svg"), ("w.csv", "public.csv"), ("w.csv", "schema.json")):
        assert exit_code(*options, "--out", out, "--plot", plot) == 2
        assert "must not be a file that is read" in capsys.readouterr().err
    assert exit_code(*options, "--out", "w.csv", "--plot", "l.ledger") == 2
    Path("link.csv").unlink()
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert ledger.remaining.epsilon == 1


def test_one_file_cannot_be_private_and_public(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.csv").symlink_to("private.csv")
    Path("hard.csv").hardlink_to("private.csv")
    ledger = Ledger.create("l.ledger", name="clinic", epsilon=1)
    asked = (*WEIGHTS, "--private", "private.csv", "--out", "w.csv", "--ledger", "l.ledger")
    for public in ("private.csv", "./private.csv", "link.csv", "hard.csv"):
        assert exit_code(*asked, "--public", public) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert "private and public must be two files" in said
        assert "it must hold no private record" in said
    assert not Path("w.csv").exists()
    assert ledger.remaining.epsilon == 1


def test_a_file_of_the_private_folder_cannot_be_public(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("months").mkdir()
    for name in ("one", "two"):
        Path(f"months/{name}.parquet").write_bytes(Path("private.parquet").read_bytes())
    asked = (*WEIGHTS, "--private", "months", "--out", "w.csv")
    assert exit_code(*asked, "--public", "months/two.parquet") == 2
    assert "private and public must be two files" in capsys.readouterr().err
    assert exit_code(*asked, "--public", "public.parquet") == 0


def test_bounds_add_to_a_schema_or_stand_instead(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As everywhere: --bounds says something about a column more, or something else about one of the schema's."""
    for name in ("private", "public"):
        pd.read_csv(f"{name}.csv").assign(hours=40.0 + np.arange(4000 if name == "private" else 300) % 7).to_csv(
            f"{name}.csv", index=False
        )
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code(*WEIGHTS, *tables, "--bounds", "hours=0:100", "--bounds", "age=10:100", "--out", "w.csv") == 0
    release = Release.load("w.csv.release.json")
    schema = Schema.from_json(release["features"]["schema"])
    assert schema.names == ("age", "sex", "hours")
    assert (schema["age"].lower, schema["age"].upper) == (10, 100)
    assert exit_code(*WEIGHTS, *tables, "--bounds", "hours=0:100", "--columns", "hours,sex", "--out", "v.csv") == 0
    assert list(Release.load("v.csv.release.json").provenance.parameters["columns"]) == ["hours", "sex"]


def test_a_retry_costs_nothing_and_is_the_same_result(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create("l.ledger", name="clinic", epsilon="1.5")
    tables = ("--private", "private.csv", "--public", "public.csv", "--ledger", "l.ledger", "--columns", "age")
    for out in ("w.csv", "again.csv"):
        assert exit_code(*WEIGHTS, *tables, "--retry-key", "spring", "--out", out) == 0
    assert "already paid" in capsys.readouterr().out
    assert Path("w.csv").read_bytes() == Path("again.csv").read_bytes()
    assert Path("w.csv.release.json").read_bytes() == Path("again.csv.release.json").read_bytes()
    assert float(ledger.remaining.epsilon) == 0.5


def test_one_bad_question_does_not_cost_the_others(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--out", "w.csv") == 0
    capsys.readouterr()
    asked = (
        "density",
        "query",
        "w.csv",
        "mean(age)",
        "max(age)",
        "mean(height)",
        "mean(age where sex = X)",
        "mean(sex = F)",
    )
    assert exit_code(*asked) == 2
    said = capsys.readouterr()
    assert "mean(age) = 4" in said.out
    assert "mean(sex = F) = 0." in said.out
    assert "\n'mean(height)' has no answer" in said.err, "each on its own line"
    told = " ".join(said.err.split())
    assert "'max(age)' has no answer: a question must look like" in told
    assert "'mean(height)' has no answer: the table has no column 'height'." in told
    assert "'mean(age where sex = X)' has no answer: no public row" in told
    assert "The other questions are answered." in told
    assert exit_code(*asked, "--json") == 2
    found = json.loads(capsys.readouterr().out)
    assert list(found["answers"]) == ["mean(age)", "mean(sex = F)"]
    assert list(found["refused"]) == ["max(age)", "mean(height)", "mean(age where sex = X)"]
    assert exit_code("density", "query", "w.csv", "max(age)") == 2
    assert "are answered" not in capsys.readouterr().err


def test_older_spellings_of_options_are_taken(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ("density", "plan", "--public", "public.csv", "--schema", "schema.json", "--epsilon", "1", "--json")
    found = []
    for option in ("--n-records", "--private-rows"):
        assert exit_code(*plan, option, "4000") == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    tables = ("--private", "private.csv", "--public", "public.csv", "--columns", "age", "--epsilon", "5")
    assert exit_code("density", "weights", *tables, "--out", "w.csv") == 0
    capsys.readouterr()
    for option in ("--confidence", "--level"):
        assert exit_code("density", "query", "w.csv", "mean(age)", option, "0.8", "--json") == 0
        answer = json.loads(capsys.readouterr().out)["answers"]["mean(age)"]
        assert (answer["confidence"], answer["level"]) == (0.8, 0.8)
    assert exit_code("density", "query", "w.csv", "mean(age)", "--confidence", "95") == 2
    assert "confidence must be above 0 and below 1; got 95" in capsys.readouterr().err


def test_a_ledger_for_add_remove_serves_the_weights(folder: Path) -> None:
    Ledger.create("l.ledger", name="clinic", epsilon=1, relation="add-remove")
    tables = ("--private", "private.csv", "--public", "public.csv", "--ledger", "l.ledger", "--columns", "age")
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv") == 0
    assert Release.load("w.csv.release.json").guarantee.relation == "add-remove"


def test_the_owners_picture_reads_the_private_table_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    read = FilePart.chunks

    def watched(part: FilePart, *names: Any, **how: Any) -> Any:
        opened.append(part.name)
        return read(part, *names, **how)

    monkeypatch.setattr(FilePart, "chunks", watched)
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv", "--plot", "o.svg", "--owner-only") == 0
    assert sorted(opened) == ["private.csv", "public.csv"]


def test_the_owners_wish_needs_a_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = ("--private", "private.csv", "--public", "public.csv")
    assert exit_code(*WEIGHTS, *tables, "--out", "w.csv", "--owner-only") == 2
    assert "plot must be given beside --owner-only" in capsys.readouterr().err


def test_a_plan_touches_no_private_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("private.csv").unlink()
    plan = (
        "density",
        "plan",
        "--public",
        "public.csv",
        "--schema",
        "schema.json",
        "--private-rows",
        "4000",
        "--epsilon",
        "0.1",
    )
    assert exit_code(*plan) == 0
    assert "Costs epsilon = 0.1" in capsys.readouterr().out
    assert exit_code(*plan, "--json") == 0
    assert json.loads(capsys.readouterr().out)["private_rows"] == 4000


def test_nothing_is_charged_for_a_table_that_has_weights(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create("l.ledger", name="clinic", epsilon=1)
    pd.read_csv("public.csv").assign(weight=1.0).to_csv("weighed.csv", index=False)
    options = (*WEIGHTS, "--private", "private.csv", "--public", "weighed.csv", "--ledger", "l.ledger")
    assert exit_code(*options, "--out", "w.csv") == 4
    assert "the public table must not have a column 'weight' of its own. Rename it." in capsys.readouterr().err
    assert ledger.remaining.epsilon == 1


def test_nothing_is_charged_for_files_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = Ledger.create("l.ledger", name="clinic", epsilon=1)
    options = (*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--ledger", "l.ledger")
    Path("taken.csv").write_text("x")
    assert exit_code(*options, "--out", "taken.csv") == 2
    assert exit_code(*options, "--out", "absent/w.csv") == 2
    assert exit_code(*options, "--out", "w.xlsx") == 2
    assert "out must end in .csv or .parquet; got 'w.xlsx'" in capsys.readouterr().err
    assert ledger.remaining.epsilon == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--epsilon", "0", "--columns", "age"), 2, "epsilon must be finite and > 0; got '0'"),
        (("--epsilon", "1", "--columns", "height"), 4, "no column 'height'"),
        (("--epsilon", "1", "--bounds", "age"), 2, "bounds must look like name=low:high, such as age=0:120; got 'age'"),
        (("--epsilon", "1", "--columns", "age", "--bounds", "age=120:0"), 2, "must be"),
        (("--epsilon", "1"), 4, "column 'sex' of the public table must hold finite numbers"),
        (("--epsilon", "1", "--columns", "age", "--relation", "local"), 2, "relation must be one of"),
    ],
)
def test_mistakes_are_told_with_their_exit_code(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    options = ("density", "weights", "--private", "private.csv", "--public", "public.csv", "--out", "w.csv")
    assert exit_code(*options, *arguments) == code
    assert message in capsys.readouterr().err


def test_queries_on_other_tables_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("density", "query", "public.csv", "mean(age)") == 4
    assert "has no column 'weight'" in capsys.readouterr().err
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--out", "w.csv") == 0
    assert exit_code("density", "query", "w.csv", "mean(age where sex = X)") == 2
    assert "no public row has 'sex' = 'X'" in capsys.readouterr().err


def test_a_missing_column_is_looked_for_in_a_file_with_a_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("narrow.csv").write_text("age\n30\n40\n50\n")
    asked = ("density", "weights", "--epsilon", "1", "--columns", "age,hours", "--out", "w.csv")
    bounded = ("--bounds", "age=0:120", "--bounds", "hours=0:100")
    for options in (asked, (*asked, *bounded)):
        assert exit_code(*options, "--private", "private.csv", "--public", "narrow.csv") == 4
        assert "narrow.csv has no column 'hours'" in capsys.readouterr().err
    assert exit_code(*asked, "--bounds", "age=0:120", "--private", "private.csv", "--public", "public.csv") == 2
    assert "columns must be declared; got 'hours', which is not." in capsys.readouterr().err


def test_what_is_published_as_it_is_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--out", "w.csv") == 0
    assert "Published as they are: every row and every column of 'public.csv'." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("columns", "labels", "expected"),
    [
        ("department,age", ["sales", "it"], "mean(age)"),
        ("department", ["none", "sales", "it"], "share(department = sales)"),
        ("department", ["sales and it", "it"], "share(department = 'sales and it')"),
    ],
)
def test_the_question_that_is_offered_next_can_be_asked(
    folder: Path, capsys: pytest.CaptureFixture[str], columns: str, labels: list[str], expected: str
) -> None:
    rng = np.random.default_rng(4)
    for name, rows in (("public", 200), ("private", 2000)):
        held = {"department": rng.choice(labels[-2:], rows), "age": rng.normal(40, 9, rows)}
        pd.DataFrame(held).to_csv(f"{name}.csv", index=False)
    Schema(columns=[Column.category("department", labels), Column.number("age", lower=0, upper=120)]).save("schema.json")
    tables = ("--private", "private.csv", "--public", "public.csv", "--columns", columns)
    assert exit_code(*WEIGHTS, *tables, "--out", "my weights.csv") == 0
    offered = shlex.split(capsys.readouterr().out.partition("Next, try: ")[2])
    assert offered == ["sabun", "density", "query", "my weights.csv", expected]
    assert exit_code(*offered[1:]) == 0


def test_labels_that_other_readers_take_for_missing_are_labels(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    for name, rows, share in (("p", 5000, 0.81), ("e", 400, 0.4)):
        codes = rng.choice(["NA", "01", "null"], rows, p=[share, 0.1, 0.9 - share])
        Path(f"{name}.csv").write_text("code\n" + "".join(f"{code}\n" for code in codes))
    Schema(columns=[Column.category("code", ["NA", "01", "null"])]).save("codes.json")
    tables = ("--private", "p.csv", "--public", "e.csv", "--schema", "codes.json", "--epsilon", "1", "--out", "w.csv")
    assert exit_code("density", "weights", *tables) == 0
    capsys.readouterr()
    assert exit_code("density", "query", "w.csv", "mean(code = NA)", "mean(code = 01)", "--json") == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    for question, truth in (("mean(code = NA)", 0.81), ("mean(code = 01)", 0.1)):
        found = answers[question]
        assert abs(found["estimate"] - truth) < 0.05
        assert found["interval"][0] < truth < found["interval"][1]
        assert found["target"] == "whole table"


def test_bounds_make_an_answer_about_the_whole_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--out", "w.csv") == 0
    assert "of the private rows are unlike any public row (95%)" in capsys.readouterr().out
    asked = ("density", "query", "w.csv", "mean(age)", "mean(age > 50)", "--worst-case")
    assert exit_code(*asked, "--bounds", "age=0:120") == 0
    said = capsys.readouterr().out
    assert said.count("95%, whole table:") == 2
    assert said.count("whatever the ratio:") == 2
    assert exit_code(*asked, "--bounds", "age=30:40") == 2
    assert "such that every public row lies within" in capsys.readouterr().err


def test_a_question_reads_cells_as_the_weights_did(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Leading zeros, empty cells and words in a number column: what `weights` took, `query` takes."""
    frame = pd.read_csv("public.csv").astype({"age": object})
    frame.loc[:3, "age"] = ["061", "", "unknown", "1e9"]
    frame.to_csv("dirty.csv", index=False)
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "dirty.csv", "--out", "w.csv") == 0
    capsys.readouterr()
    assert exit_code("density", "query", "w.csv", "mean(age)", "mean(age > 60)", "--json") == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    assert abs(answers["mean(age)"]["estimate"] - 45) < 4


PLAIN = ("density", "weights", "--epsilon", "1", "--columns", "age", "--private", "private.csv", "--public", "public.csv")


@pytest.mark.parametrize(
    ("method", "more", "delta"),
    [
        ("rkhs", ("--setting", "n_centers=40", "--setting", "tau2=0.4"), "0"),
        ("ulsif-b", ("--setting", "n_centers=20", "--setting", "bandwidth=median"), "0"),
        ("ulsif-c", ("--setting", "n_centers=20", "--accept-publishing-raw-records"), "1/200"),
        ("ulsif-parametric", ("--basis", "1", "--basis", "age > 45", "--setting", "basis_bounds=0:1"), "0"),
        ("ji-elkan", ("--setting", "clip_norm=3", "--delta", "1e-6"), "1/1000000"),
    ],
)
def test_every_method_is_reached_with_the_guarantee_that_is_true_of_it(
    folder: Path, capsys: pytest.CaptureFixture[str], method: str, more: tuple[str, ...], delta: str
) -> None:
    assert exit_code(*PLAIN, "--method", method, *more, "--out", "w.csv", "--json") == 0
    guarantee = json.loads(capsys.readouterr().out)["guarantee"]
    assert (guarantee["epsilon"], guarantee["delta"], guarantee["relation"]) == ("1", delta, "replace-one")
    release = Release.load("w.csv.release.json")
    assert release.provenance.parameters["method"] == method
    assert ("20 private records are published as they are" in release.guarantee.assumptions) == (method == "ulsif-c")
    assert exit_code("density", "query", "w.csv", "mean(age)", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["intervals_cover_noise"] == (method == "rkhs")
    assert (told["answers"]["mean(age)"]["interval"] is None) == (method != "rkhs")


def test_method_a_takes_its_box_from_the_declared_bounds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "density",
        "weights",
        "--epsilon",
        "2",
        "--private",
        "private.csv",
        "--public",
        "public.csv",
        "--method",
        "ulsif-a",
    )
    assert exit_code(*asked, "--columns", "age", "--out", "w.csv") == 2
    assert "needs bounds" in capsys.readouterr().err
    assert exit_code(*asked, "--bounds", "age=0:120", "--out", "w.csv") == 0
    said = capsys.readouterr().out
    assert "epsilon = 2 (replace-one)" in said
    assert "unlike any public row" not in said  # only the default method releases that share
    assert exit_code("density", "query", "w.csv", "mean(age)") == 0
    assert "no interval: method 'ulsif-a' does not release how far answers may be off" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--method", "ulsif-c"), "--accept-publishing-raw-records must be given"),
        (("--method", "other"), "method must be one of"),
        (("--method", "ulsif-b", "--setting", "tau2=1"), "one of bandwidth, centers, n_centers, regularization"),
        (("--method", "ulsif-b", "--setting", "n_centers=many"), "n_centers must be a whole number"),
        (("--method", "ulsif-b", "--setting", "regularization=-1"), "regularization must be"),
        (("--method", "ulsif-b", "--basis", "1"), "basis must be left out with method 'ulsif-b'"),
        (
            ("--method", "ulsif-parametric", "--basis", "age ~ 3", "--setting", "basis_bounds=0:1"),
            "basis must be a number, a col",
        ),
        (("--method", "ulsif-parametric", "--basis", "1"), "basis has no bounds"),
        (("--method", "ulsif-b", "--accept-publishing-raw-records"), "--accept-publishing-raw-records must be left out"),
    ],
)
def test_a_method_that_does_not_fit_its_settings_costs_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    ledger = Ledger.create("l.ledger", name="clinic", unit="patient", epsilon=9)
    assert exit_code(*PLAIN, *more, "--out", "w.csv", "--ledger", "l.ledger") in (2, 4)
    assert said in capsys.readouterr().err
    assert ledger.remaining.epsilon == 9
    assert not Path("w.csv").exists()


def test_the_help_says_what_each_method_promises(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("weights", "plan"):
        assert exit_code("density", verb, "--help") == 0
        said = " ".join(capsys.readouterr().out.replace("│", " ").split())
        assert "ulsif-c (its C): epsilon and delta = n_centers / rows, and it publishes" in said
        assert "private rows AS THEY ARE" in said


def test_a_plan_takes_the_settings_of_the_default_method(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("density", "plan", "--public", "public.csv", "--columns", "age", "--n-records", "4000", "--epsilon", "1", "--json")
    ranks = []
    for centres in ("3", "200"):
        assert exit_code(*asked, "--setting", f"n_centers={centres}") == 0
        ranks.append(json.loads(capsys.readouterr().out)["rank"])
    assert ranks[0] <= 3 < ranks[1]
    assert exit_code(*asked, "--method", "ulsif-b") == 2
    assert "method must be 'rkhs' for a plan" in capsys.readouterr().err


def test_public_centres_may_come_from_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("centres.csv").write_text("age\n20\n40\n60\n")
    assert exit_code(*PLAIN, "--method", "ulsif-b", "--setting", "centers=centres.csv", "--out", "w.csv") == 0
    assert Release.load("w.csv.release.json").provenance.parameters["basis_functions"] == 3


def test_an_answer_about_a_column_that_was_not_compared_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = ("--private", "private.csv", "--public", "public.csv", "--columns", "sex", "--out", "w.csv")
    assert exit_code(*WEIGHTS, *tables) == 0
    capsys.readouterr()
    for question, told in (("mean(age)", ["age"]), ("share(sex = F)", []), ("share(sex = F where age > 40)", ["age"])):
        assert exit_code("density", "query", "w.csv", question) == 0
        assert ("'age' was not compared" in capsys.readouterr().out) == bool(told)
        assert exit_code("density", "query", "w.csv", question, "--json") == 0
        assert json.loads(capsys.readouterr().out)["not_compared"] == told


def test_columns_that_were_not_compared_are_named_by_what_a_question_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a schema too; and a word of the question that is also a column's name is none."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = ["x", "g", "other", "mean", "count", "income", "age", "age group"]
    for name, rows in (("public", 200), ("private", 2000)):
        pd.DataFrame({column: rng.integers(0, 9, rows) for column in names}).to_csv(f"{name}.csv", index=False)
    tables = ("--private", "private.csv", "--public", "public.csv", "--columns", "x,g", "--out", "w.csv")
    assert exit_code("density", "weights", "--epsilon", "1", *tables) == 0
    capsys.readouterr()
    asked = {
        "mean(other)": ["other"],
        "mean(x)": [],
        "count()": [],
        "mean(mean)": ["mean"],
        "mean(age group)": ["age group"],
        "share(x > 3 and not (income = 2 or 'count' < 4))": ["count", "income"],
        "median(x where income > 2)": ["income"],
        "mean(x) by age": ["age"],
        "quantile(other, 0.9)": ["other"],
    }
    for question, told in asked.items():
        assert exit_code("density", "query", "w.csv", question, "--json") == 0, question
        assert json.loads(capsys.readouterr().out)["not_compared"] == told, question
    assert exit_code("density", "query", "w.csv", "mean(other)") == 0
    assert "'other' was not compared" in capsys.readouterr().out
    Path("w.csv.release.json").unlink()
    assert exit_code("density", "query", "w.csv", "mean(other)", "--json") == 0
    assert json.loads(capsys.readouterr().out)["not_compared"] is None, "nobody knows"


def test_weights_are_no_column_and_bounds_name_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*WEIGHTS, "--private", "private.csv", "--public", "public.csv", "--out", "w.csv") == 0
    capsys.readouterr()
    for question, why in (
        ("mean(weight)", "the table has no column 'weight'"),
        ("share(age > nan)", "a number or a date must"),
    ):
        assert exit_code("density", "query", "w.csv", question) == 2
        assert why in capsys.readouterr().err
    assert exit_code("density", "query", "w.csv", "mean(age)", "--bounds", "nosuch=0:1") == 2
    assert "--bounds must name a column of the table; got 'nosuch'. Choose one of 'age', 'sex'." in capsys.readouterr().err
    reader = DensityRatio.restore("w.csv.release.json", public="w.csv")
    with pytest.raises(DataError, match="the table has no column 'weight'"):
        reader.ask("mean(weight)")
    with pytest.raises(DataError, match="column 'weight' must not be asked about"):
        reader.query("weight")
    with pytest.raises(ParameterError, match="bounds must name a column of the table; got 'nosuch'"):
        reader.ask("mean(age)", bounds={"nosuch": (0, 1)})


@pytest.mark.parametrize("guess", ["-5", "0"])
def test_a_guess_of_no_records_is_refused_by_the_name_it_was_typed_under(
    folder: Path, capsys: pytest.CaptureFixture[str], guess: str
) -> None:
    tables = ("--private", "private.csv", "--public", "public.csv", "--relation", "add-remove", "--out", "w.csv")
    for asked in (
        (*WEIGHTS, *tables),
        ("summaries", "mean", "private.csv", "age", "--epsilon", "1", "--bounds", "age=0:120", "--relation", "add-remove"),
    ):
        assert exit_code(*asked, f"--n-records={guess}") == 2
        assert f"--n-records must be a whole number >= 1; got {guess}" in capsys.readouterr().err
    assert not Path("w.csv").exists()
