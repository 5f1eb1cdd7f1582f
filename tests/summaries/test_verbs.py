from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from cli.terminal import exit_code
from sabun import Ledger, Release
from sabun.records import Column, Schema
from sabun.reports import facts
from sabun.summaries.story import story

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f"{20 + i % 60},{'FM'[i % 2]},x" for i in range(400)]
    Path("t.csv").write_text("\n".join(["age,sex,note", *rows]) + "\n")
    Schema(columns=[Column.number("age", bounds=(0, 100)), Column.category("sex", ["F", "M"])]).save("s.json")


ASK = ("t.csv", "--schema", "s.json", "--epsilon", "20")


@pytest.mark.parametrize(
    ("verb", "said"),
    [
        (("count", "--by", "sex", "--where", "age=40:"), "Only rows with age at least 40:\ncount, sex F: "),
        (("sum", "--column", "age"), "sum of age: "),
        (("mean", "--column", "age", "--by", "sex", "--delta", "1e-6"), "mean of age, sex M: "),
        (("variance", "--column", "age", "--where", "sex=F"), "Only rows with sex F:\nvariance of age: "),
        (("histogram", "--column", "age", "--bins", "0,50,100"), "histogram of age, 0 to 50: "),
        (("histogram", "--column", "sex"), "histogram of sex, F: "),
        (
            ("quantiles", "--column", "age", "--shares", "0.5,0.9", "--resolution", "1", "--by", "sex"),
            "quantiles of age, sex F, 0.5: ",
        ),
    ],
)
def test_every_verb_answers(verb: tuple[str, ...], said: str, capsys: Capture) -> None:
    assert exit_code("summaries", verb[0], *ASK, *verb[1:], "--out", "out.json") == 0
    assert said in capsys.readouterr().out
    assert Release.load("out.json").provenance.kind == f"summaries.{verb[0]}"
    assert exit_code("summaries", verb[0], *ASK, *verb[1:], "--json") == 0
    assert json.loads(capsys.readouterr().out)["intervals"]
    assert exit_code("summaries", "plan", verb[0], *ASK[1:], *verb[1:], "--n-records", "400") == 0
    assert f"{verb[0]} over 400 records" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        (("mean", "--column", "age"), "an empty or unreadable one counts as 50.\n"),
        (("quantiles", "--column", "age"), "an empty or unreadable one counts as 50.\n"),
        (("mean", "--column", "age", "--id", "note"), "a person without any that can be read counts as 50.\n"),
        (("histogram", "--column", "sex"), ""),
        (("count", "--by", "sex"), ""),
    ],
)
def test_an_answer_about_numbers_says_what_other_cells_count_as(verb: tuple[str, ...], told: str, capsys: Capture) -> None:
    assert exit_code("summaries", verb[0], *ASK, *verb[1:], "--yes") == 0
    said = capsys.readouterr().out
    assert (f"of the cells as they are read; {told}" in said) if told else ("as they are read" not in said)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("count", *ASK), "a count of all rows must be asked under add-remove"),
        (("count", *ASK, "--where", "age"), "where must look like"),
        (("count", *ASK, "--where", "age=old"), "where must look like"),
        (("count", *ASK, "--where", "age >= 40"), "where must look like"),
        (("count", *ASK, "--where", "height=1:"), "where must be about declared columns"),
        (("count", *ASK, "--where", "age=1:", "--where", "age=2:"), "once for a column"),
        (("histogram", *ASK, "--column", "age", "--bins", "few"), "bins must be a whole number"),
        (("quantiles", *ASK, "--column", "age", "--shares", "half"), "shares must be"),
        (("mean", *ASK, "--column", "note"), "column must be a declared column"),
        (("mean", *ASK, "--column", "Aeg"), "got 'Aeg'. Did you mean 'age'?"),
        (("count", *ASK, "--by", "sexe"), "Did you mean 'sex'?"),
        (("count", *ASK, "--where", "agee=3:"), "where must be about declared columns; got 'agee'. Did you mean 'age'?"),
        (("plan", "median", "--n-records", "9", "--epsilon", "1"), "question must be one of"),
        (("plan", "mean", "--n-records", "9", "--epsilon", "1", "--schema", "s.json"), "column must be given"),
    ],
)
def test_bad_input_is_refused_in_words(arguments: tuple[str, ...], complaint: str, capsys: Capture) -> None:
    assert exit_code("summaries", *arguments) == 2
    assert complaint in capsys.readouterr().err


def test_dates_are_typed_and_told_as_dates(capsys: Capture) -> None:
    days = [f"2025-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(400)]
    Path("d.csv").write_text("\n".join(["in,sex", *(f"{day},{'FM'[i % 2]}" for i, day in enumerate(days))]) + "\n")
    Schema(columns=[Column.date("in", lower="2025-01-01", upper="2025-12-31"), Column.category("sex", ["F", "M"])]).save(
        "d.json"
    )
    table = ("d.csv", "--schema", "d.json", "--epsilon", "1e6")
    first, middle = sum(day < "2025-04-01" for day in days), sorted(days)[199]
    assert exit_code("summaries", "count", *table, "--where", "in=:2025/4/1", "--out", "count.json") == 0
    assert f"count: {first} " in capsys.readouterr().out
    assert exit_code("summaries", "quantiles", *table, "--column", "in", "--shares", "0.5", "--resolution", "1") == 0
    assert f"quantiles of in, 0.5: {middle}   (between 2025-" in capsys.readouterr().out
    for name, by in (("all", ()), ("sexes", ("--by", "sex"))):
        assert exit_code("summaries", "mean", *table, "--column", "in", *by, "--out", f"{name}.json") == 0
        assert ": 2025-06-" in capsys.readouterr().out
        told = story(Release.load(f"{name}.json"))
        assert all(str(cell).startswith("2025-0") for row in told.grids[0].rows for cell in row[1:])
    assert story(Release.load("all.json")).answer.big.startswith("2025-06-")
    assert "in before 2025-04-01" in story(Release.load("count.json")).answer.sentence
    bins = ("--column", "in", "--bins")
    for typed, first in (("2", "2025-01-01 to 2025-07-02"), ("2025-01-01,2025-02-01,2025-12-31", "2025-01-01 to 2025-02-01")):
        assert exit_code("summaries", "histogram", *table, *bins, typed, "--out", f"h{typed[0]}{len(typed)}.json") == 0
        assert f"histogram of in, {first}: " in capsys.readouterr().out
    assert story(Release.load("h21.json")).grids[0].rows[1][0] == "2025-07-02 to 2025-12-31"
    told = ("plan", "mean", "--n-records", "400", "--schema", "d.json", "--column", "in", "--epsilon", "1")
    assert exit_code("summaries", *told) == 0
    assert "Error of the mean, in days: about " in capsys.readouterr().out
    assert exit_code("summaries", "count", *table, "--where", "in=spring:") == 2
    assert "where must look like day=2026-01-01:2026-04-01" in capsys.readouterr().err


def test_units_are_told_beside_numbers_and_change_nothing_where_there_are_none(capsys: Capture) -> None:
    Path("w.csv").write_text("\n".join(["weight", *(str(60 + i % 5) for i in range(400))]) + "\n")
    for name, unit in (("plain", ""), ("kg", "kg")):
        Schema(columns=[Column.number("weight", lower=0, upper=200, unit=unit)]).save(f"{name}.json")
    facts = {}
    for name in ("plain", "kg"):
        asked = ("w.csv", "--schema", f"{name}.json", "--epsilon", "1e5", "--column", "weight")
        for word in ("mean", "sum", "variance"):
            assert exit_code("summaries", word, *asked, "--out", f"{name}-{word}.json") == 0
        out = capsys.readouterr().out
        told = re.search(r"mean of [a-z]+: 6[12][\d.]*( kg)?   \(between 6[12][\d.]* and 6[12][\d.]*( kg)?\)", out)
        assert told is not None
        assert told.groups() == ((" kg",) * 2 if name == "kg" else (None,) * 2)
        assert (" kg²   (between" in out) == (name == "kg")
        assert exit_code("summaries", "histogram", *asked, "--bins", "50,60,70") == 0
        assert f"histogram of weight, 60 to 70{' kg' if name == 'kg' else ''}: 400" in capsys.readouterr().out
        assert exit_code("summaries", "plan", "mean", *asked[1:], "--n-records", "400") == 0
        measured = "kg" if name == "kg" else "units of 'weight'"
        assert f"Error of the mean, in {measured}: about " in capsys.readouterr().out
        facts[name] = Release.load(f"{name}-mean.json").provenance.parameters
    assert dict(facts["kg"]["units"]) == {"weight": "kg"}
    assert "units" not in facts["plain"]
    assert exit_code("summaries", "mean", "w.csv", "--bounds", "weight=0:100", *asked[1:]) == 0  # bounds keep the unit
    assert " kg   (between" in capsys.readouterr().out


def test_a_condition_on_labels_is_told_by_its_labels_and_keeps_its_facts() -> None:
    assert exit_code("summaries", "mean", *ASK, "--column", "age", "--where", "sex=M,F", "--out", "both.json") == 0
    assert exit_code("summaries", "mean", *ASK, "--column", "age", "--where", "sex=M", "--out", "one.json") == 0
    both, one = (Release.load(f"{name}.json") for name in ("both", "one"))
    assert "with sex F or M." in story(both).answer.sentence
    assert "with sex M." in story(one).answer.sentence
    assert dict(facts(one, lang="en").parameters.rows)["condition.sex"] == "M"
    assert one.provenance.parameters["where"]["sex"] == ((0.5, 1.5),), "what retry keys digest"
    old = replace(one, value={name: leaf for name, leaf in one.value.items() if name != "labels"})
    assert "with sex from 0.5 to below 1.5." in story(old).answer.sentence, "a file of an earlier version"


def test_too_few_is_said_on_the_terminal_too(capsys: Capture) -> None:
    few = ("--column", "age", "--where", "age=99:", "--confidence", "0.9999999", "--out")
    assert exit_code("summaries", "mean", *ASK[:-1], "1", *few, "few.json") == 0
    assert "mean of age: too few to tell   (between 0 and 100)" in capsys.readouterr().out
    told = story(Release.load("few.json"))
    assert told.answer.big == "Too few to tell"
    assert told.cautions[0].startswith("Too few rows to tell anything about")


@pytest.mark.parametrize("delta", [(), ("--delta", "1e-9")])
@pytest.mark.parametrize("verb", ["mean", "variance"])
def test_few_is_said_only_where_noise_hides_few(verb: str, delta: tuple[str, ...], capsys: Capture) -> None:
    """All 400 rows are in question, and noise hides thousands."""
    drowned = (*ASK[:-1], "0.0001", "--column", "age", "--where", "sex=F,M", "--confidence", "0.999", "--yes", *delta)
    assert exit_code("summaries", verb, *drowned, "--out", "noisy.json") == 0
    said, told = capsys.readouterr().out, story(Release.load("noisy.json"))
    if "between 0 and 100)" in said or "between 0 and 2,500)" in said:  # chance may leave a size, once in a thousand runs
        assert f"{verb} of age: too noisy to tell" in said
        assert told.answer.big == "Too noisy to tell"
        assert told.cautions[0].startswith("Too much noise to tell anything about")
    assert "too few" not in said.lower()


@pytest.mark.parametrize("cost", [("1e-330",), ("1e-99", "--delta", "1e-9")])
@pytest.mark.parametrize("verb", ["mean", "variance"])
def test_noise_near_and_beyond_the_largest_float_is_told_too(verb: str, cost: tuple[str, ...], capsys: Capture) -> None:
    tiny = (*ASK[:-1], *cost, "--column", "age", "--by", "sex", "--yes")
    assert exit_code("summaries", verb, *tiny, "--out", "noisy.json") == 0
    said = capsys.readouterr().out
    assert "too few" not in said
    assert story(Release.load("noisy.json")).answer.big == "2 answers"


def test_ranks_are_told_as_shares_of_the_table_in_the_plan_and_before_the_charge(capsys: Capture) -> None:
    asked = ("--column", "age", "--shares", "0.5", "--resolution", "1")
    assert exit_code("summaries", "plan", "quantiles", *ASK[1:], *asked, "--n-records", "400", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    off = plan["usual_error"] / 400
    told = f"of 400 rows, a value for 0.5 that is {plan['usual_error']:.3g} ranks off stands between {0.5 - off:.3g} and"
    assert exit_code("summaries", "plan", "quantiles", *ASK[1:], *asked, "--n-records", "400") == 0
    said = capsys.readouterr().out
    assert told in said
    ends = re.search(r"reaches about (\d+) up or down at worst \(at 0\.5: from ([\d.]+) to ([\d.]+)\)", said)
    assert ends is not None
    assert float(ends[3]) - 0.5 == pytest.approx(int(ends[1]) / 400, abs=0.001)
    assert exit_code("summaries", "quantiles", *ASK, *asked) == 0
    assert told in capsys.readouterr().err
    assert exit_code("summaries", "plan", "mean", *ASK[1:], "--column", "age", "--n-records", "400") == 0
    assert "rank" not in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["mean", "variance", "quantiles"])
def test_a_plan_and_a_charge_say_the_same(verb: str, capsys: Capture) -> None:
    """Quantiles that were told well had been planned as of no use: a wide interval in ranks is not one in values."""
    asked = (*ASK[1:-1], "0.5", "--column", "age", "--by", "sex")
    assert exit_code("summaries", "plan", verb, *asked, "--n-records", "400") == 0
    planned = capsys.readouterr().out
    assert "too small" not in planned
    assert exit_code("summaries", verb, ASK[0], *asked) == 0
    told = [line.removeprefix("Plan: error") for line in capsys.readouterr().err.splitlines() if line.startswith("Plan: error")]
    assert told
    assert all(line in planned for line in told)
    assert "groups have about 200 records each; " in planned


def test_a_plan_speaks_json(capsys: Capture) -> None:
    assert exit_code("summaries", "plan", "count", *ASK[1:], "--by", "sex", "--n-records", "400", "--json") == 0
    assert json.loads(capsys.readouterr().out)["groups"] == 2


def test_intervals_are_told_about_only_where_they_were_paid_for(capsys: Capture) -> None:
    assert exit_code("summaries", "quantiles", *ASK, "--column", "age", "--resolution", "1", "--error-bar", "0") == 0
    said = capsys.readouterr().out
    assert "No intervals were paid for." in said
    assert "Each interval" not in said


def test_a_hopeless_confidence_costs_nothing(capsys: Capture) -> None:
    book = Ledger.create("b.ledger", name="b", unit="person", epsilon=30)
    for verb in ("sum", "mean", "variance"):
        assert exit_code("summaries", verb, *ASK, "--column", "age", "--confidence", "1e-17", "--ledger", "b.ledger") == 2
        assert "confidence must be above 0" in capsys.readouterr().err
    assert book.spent.epsilon == 0


def test_a_table_in_pieces_and_one_of_persons_are_asked_for_by_options(capsys: Capture) -> None:
    Path("visits.csv").write_text("who,cost\n" + "".join(f"{n % 40},{n % 100}\n" for n in range(200)), encoding="utf-8")
    asked = ["summaries", "mean", "visits.csv", "--column", "cost", "--bounds", "cost=0:100", "--epsilon", "5", "--json"]
    of_persons = ["--id", "who", "--rule", "cost=max"]
    for more, records in (["--engine", "serial"], 200), (of_persons, 40), ([*of_persons, "--engine", "serial"], 40):
        Path("kept.json").unlink(missing_ok=True)
        assert exit_code(*asked, *more, "--out", "kept.json") == 0
        capsys.readouterr()
        facts = Release.load("kept.json").provenance.parameters
        assert facts["records"] == records
        assert ("persons" in facts) == (more != ["--engine", "serial"])
    for wrong, words in (
        (["--rule", "cost=max"], "--rule must come with --id"),
        (["--id", "who", "--rule", "cost"], "such as cost=mean"),
        (["--id", "who", "--rule", "cost=sum"], "make a table of totals"),
        (["--engine", "cluster"], "engine must be serial"),
    ):
        assert exit_code(*asked, *wrong) == 2
        assert words in "".join(capsys.readouterr())
    assert exit_code(*asked[:-1], *of_persons) == 0
    assert "All rows of one person were made into one first (cost: max)" in capsys.readouterr().out


def test_where_rows_become_persons_and_nobody_named_the_unit_the_promise_speaks_of_persons(capsys: Capture) -> None:
    Path("visits.csv").write_text("who,cost\n" + "".join(f"{n % 40},{n % 100}\n" for n in range(200)), encoding="utf-8")
    asked = ["summaries", "mean", "visits.csv", "--column", "cost", "--bounds", "cost=0:100", "--epsilon", "5"]
    for more, whom in ([], "record"), (["--id", "who"], "person"):
        assert exit_code(*asked, *more, "--out", f"{whom}.json") == 0
        assert f"when one {whom} is replaced" in capsys.readouterr().out
        release = Release.load(f"{whom}.json")
        assert release.guarantee.unit == "record", "the release is what it was"
        told = facts(release, lang="en")
        assert f"one {whom}" in dict(told.figures).values()
        assert f"any one {whom}'s data" in " ".join(told.promise)
        assert f"among the {whom.replace('person', 'people').replace('record', 'records')}" in told.story.answer.sentence
    Ledger.create("b.ledger", name="b", unit="rider", epsilon=30)
    assert exit_code(*asked, "--id", "who", "--ledger", "b.ledger") == 0
    assert "when one rider is replaced" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "way_out"),
    [
        ("median", "sabun summaries quantiles --shares 0.5"),
        ("share", "sabun summaries count --where"),
        ("max", "one person's own value"),
        ("top", "sabun summaries histogram"),
        ("correlation", "sabun regression fit"),
        ("std", "sabun summaries variance"),
    ],
)
def test_plain_questions_by_other_words_are_shown_the_way(word: str, way_out: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("summaries", word, "people.csv", "--epsilon", "1") == 2
    assert way_out in " ".join(capsys.readouterr().err.split())
