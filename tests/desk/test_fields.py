"""Forms are the options of the commands: none is lost, none is invented, and no value becomes an option."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from sabun.cli._frame import run, whole
from sabun.desk.fields import as_typed, fields_of, helped, misfit, offered, on_page, plainly, private_table
from sabun.desk.jobs import jobs
from sabun.records import Column, Schema
from sabun.records.ids import SPELLINGS
from sabun.reports.purposes import in_full, in_short
from sabun.telling.language import retold, speaking
from sabun.telling.terminal.output import heard, print_line

JOBS = {" ".join(job.words): job for own in jobs(whole).values() for job in own}
BY_THE_DESK = {"json", "overwrite", "encoding", "separator", "decimal", "thousands", "sheet", "owner_only", "lang"}
FILES = {"regions", "study", "organisation", "signing_key", "checkpoint", "synthetic", "plot"}


@pytest.mark.parametrize("job", JOBS)
def test_every_option_is_a_field_or_is_known_to_be_none(job: str) -> None:
    options = {option.name for option in JOBS[job].command.params}
    fields = {one.name for one in JOBS[job].fields}
    assert fields <= options
    assert options - fields <= BY_THE_DESK | FILES
    assert private_table(JOBS[job].fields).name in ("table", "private")
    assert all(one.choices for one in JOBS[job].fields if one.kind == "choice")
    usual = [one for one in JOBS[job].fields if one.kind == "choice" and one.usual]
    assert all(one.usual in one.choices for one in usual), "what is usual can be chosen"


def test_a_value_is_never_taken_for_an_option() -> None:
    fields = JOBS["summaries mean"].fields
    typed_wide = plainly(fields, {"where": ["a＝1:2\nb=＝"], "epsilon": ["０.5"]})
    assert typed_wide == {"where": ["a=1:2\nb=＝"], "epsilon": ["0.5"]}
    typed = as_typed(fields, {"column": ["--yes"], "where": ["-a=1:2\n\n b=3: "], "confidence": ["0.95"]}, {"table": "-x.csv"})
    assert typed == ["./-x.csv", "--column=--yes", "--where=-a=1:2", "--where", "b=3:"]


def test_only_columns_that_can_be_meant_are_offered() -> None:
    schema = Schema(columns=[Column.number("age", bounds=(0, 1)), Column.category("sex", ["F", "M"])])
    named = {one.name: offered(one, schema=schema, names=("nr", "age", "sex")) for one in JOBS["summaries mean"].fields}
    assert (named["column"], named["by"], named["id"]) == (("age",), ("sex",), ("nr", "age", "sex"))
    [histogram] = [one for one in JOBS["summaries histogram"].fields if one.name == "column"]
    assert offered(histogram, schema=schema, names=()) == ("age", "sex")
    [spelling] = [one for one in JOBS["summaries mean"].fields if one.name == "spelling"]
    assert spelling.choices == SPELLINGS


def test_a_complaint_finds_its_field() -> None:
    fields = fields_of(JOBS["summaries mean"].command)
    assert misfit(fields, "epsilon must be finite and > 0; got -1.", None) == "epsilon"
    assert misfit(fields, "--rule must come with --id.", None) == "rule"
    assert misfit(fields, "'clinic' has epsilon 1 left.", None) == ""
    assert on_page("Missing option. See: sabun summaries mean --help") == "Missing option."


def test_the_digest_in_a_purpose_is_for_machines() -> None:
    assert in_short(f"summaries.mean on age (parameters {'0' * 64})") == "Summaries: mean (age)"
    assert in_short("regression.staged on age, bmi") == "Regression: linear model (age, bmi)"
    assert in_short("nobody.knows on age") == "nobody.knows on age"
    with speaking("ja"):
        assert in_short("outliers.count on 年齢, 性別, 日数 and 2 more") == "外れ値：件数（年齢, 性別, 日数、ほか 2 列）"
        assert in_full(f"summaries.mean on 年齢 (parameters {'0' * 64})") == f"要約：平均（年齢）［設定 {'0' * 64}］"
    assert in_short("by hand (parameters unknown)") == "by hand (parameters unknown)"


def test_a_command_is_heard_by_who_runs_it_and_by_nobody_else(capsys: pytest.CaptureFixture[str]) -> None:
    with heard() as hears:
        other = threading.Thread(target=print_line, args=("from elsewhere",))
        other.start()
        other.join()
        assert run(["summaries", "mean"]) == 2
    assert "Missing" in hears.complaint
    assert hears.remarks == []
    assert capsys.readouterr() == ("from elsewhere\n", "")


def test_every_field_has_its_japanese() -> None:
    shown = [*JOBS.values()]
    fields = [
        one for job in shown for one in job.fields if one.kind not in ("schema", "out") and one is not private_table(job.fields)
    ]
    fields += [one for one in fields_of(whole().commands["ledger"].commands["create"]) if one.option]
    with speaking("ja"):
        assert {text for one in fields for text in (one.label, one.help) if text and retold(text) == text} == set()
        assert {text for job in shown for text in (job.verb, job.about) if retold(text) == text} == set()
    assert "--" not in "".join(helped(job.fields, one) for job in shown for one in job.fields if one.name in ("rule", "order"))


WRONG: dict[str, list[dict[str, str]]] = {
    "summaries mean": [
        *({"column": "age", "epsilon": given} for given in ("0", "much")),
        *({"column": "age", "where": given} for given in ("age", "age=a:b", "age=5:1", "sex=X", "who=1:2", "day=x:")),
        *({"column": "age", "id": "nr", "rule": given} for given in ("age", "age=mode", "age=sum", "who=max")),
        *({"column": "age", "id": given} for given in ("age", "who")),
        *(
            {"column": "sex"},
            {"column": "age", "by": "age"},
            {"column": "age", "confidence": "x"},
            {"column": "age", "rule": "age=last"},
            {"column": "age", "bounds": "age"},
            {"column": "age", "id": "nr", "memory": "much"},
            {"column": "age", "n_records": "few"},
            {"column": "age", "delta": "2"},
        ),
    ],
    "summaries count": [{}],
    "summaries histogram": [{"column": "age", "bins": given} for given in ("3,1", "few", "1、x", "0")],
    "summaries quantiles": [{"column": "age", "shares": given} for given in ("2", "x")],
    "outliers count": [{"radius": "-1"}, {"radius": "1", "delta": "0.1"}],
    "outliers choose": [{"radius": "1", "subspace": given} for given in ("x=age", "x", "x=age\nx=day", "x=age\ny=who")],
    "regression fit": [{"target": "sex"}, {"target": "age", "columns": "age"}],
    "learning train": [
        {"target": "age"},
        {"target": "sex", "classes": "A,B"},
        {"target": "sex", "method": "anonymized-learning"},
    ],
}


def test_what_is_wrong_with_a_form_is_told_in_japanese(tmp_path: Path) -> None:
    files = {"table": tmp_path / "people.csv", "schema": tmp_path / "people.schema.json", "out": tmp_path / "out"}
    files["table"].write_text("nr,age,sex,day\n" + "".join(f"{i},{i},{'FM'[i % 2]},2026-01-01\n" for i in range(40)))
    columns = ["--number", "age=0:120", "--category", "sex=F,M", "--date", "day=2026-01-01:2026-12-31"]
    assert run(["schema", "new", str(files["schema"]), *columns]) == 0
    told = []
    for job, case in ((JOBS[name], case) for name, cases in WRONG.items() for case in cases):
        filled = {name: [value] for name, value in ({"epsilon": "1"} | case).items()}
        needed = {
            one.name: files[one.name] for one in job.fields if one.name in files and (one.required or one.name == "schema")
        }
        with heard(plan_only=True) as hears:
            run([*job.words, *as_typed(job.fields, filled, needed), "--json"])
        assert hears.complaint, (job.words, case)
        with speaking("ja"):
            told.append(on_page(hears.complaint, job.fields, hears.error))
    assert [text for text in told if not re.search("[ぁ-ん]", text)] == [], "none is English"
    assert [text for text in told if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,}", re.sub(r"'.*?'|`.*?`", "", text))] == [], (
        "not even half"
    )
    assert [text for text in told if "--" in text] == [], "fields have names"
