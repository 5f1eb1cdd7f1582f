"""Every verb that reads a table takes the options that say how it is written, and what they say goes before the schema."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.terminal import exit_code
from sabun import Ledger
from sabun.asking.directory import rooms
from sabun.cli import main
from sabun.density import DensityRatio
from sabun.telling.terminal.written import form_of

OPTIONS = ("--encoding", "--separator", "--decimal", "--thousands", "--sheet")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"年齢": rng.integers(20, 90, 3000), "性別": rng.choice(["女", "男"], 3000)})
    frame["費用"] = [f"{cost:,.1f}" for cost in rng.gamma(2, 1000, 3000)]
    frame.to_csv("患者.csv", index=False, encoding="cp932", sep=";")
    frame.to_csv("plain.csv", index=False)
    frame.to_excel("患者.xlsx", index=False, sheet_name="本院")
    said = ("--encoding", "shift-jis", "--separator", ";", "--thousands", ",")
    columns = ("--number", "年齢=0:120", "--number", "費用=0:20000", "--category", "性別=女,男")
    assert exit_code("schema", "new", "s.json", *columns, *said) == 0
    return tmp_path


def _asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> float:
    capsys.readouterr()
    assert exit_code("summaries", "mean", *arguments, "--column", "費用", "--epsilon", 1e6, "--json") == 0
    answer: float = json.loads(capsys.readouterr().out)["means"]["all"]
    return answer


def test_one_table_in_three_forms_gives_one_answer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = ("--bounds", "費用=0:20000", "--thousands", ",")
    answers = [
        _asked(capsys, "患者.csv", "--schema", "s.json"),
        _asked(capsys, "患者.csv", "--encoding", "cp932", "--separator", ";", *bounds),
        _asked(capsys, "患者.xlsx", "--sheet", "本院", *bounds),
        _asked(capsys, "plain.csv", "--schema", "s.json", "--encoding", "utf-8", "--separator", ","),
    ]
    assert answers == pytest.approx([answers[0]] * 4, abs=0.01)
    assert 1900 < answers[0] < 2100


def test_an_option_goes_before_the_schema_and_leaves_the_rest_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pd.ExcelWriter("two.xlsx") as book:
        for sheet, cost in (("Berlin", "1.000,5"), ("Paris", "2.000,5")):
            pd.DataFrame({"費用": [cost] * 200}).to_excel(book, index=False, sheet_name=sheet)
    form = ("--decimal", ",", "--thousands", ".", "--sheet", "Berlin")
    assert exit_code("schema", "new", "berlin.json", "--number", "費用=0:20000", *form) == 0
    assert exit_code("ledger", "create", "b.ledger", "--name", "b", "--epsilon", 1e8) == 0
    asked = ("two.xlsx", "--schema", "berlin.json", "--ledger", "b.ledger")
    said = ((), ("--sheet", "Paris"), ("--sheet", "Berlin"), ("--thousands", ""))
    assert [round(_asked(capsys, *asked, *one), 1) for one in said[:3]] == [1000.5, 2000.5, 1000.5]
    assert exit_code("summaries", "mean", *asked, *said[1], "--column", "費用", "--epsilon", 1e6) == 0
    heard = capsys.readouterr()
    assert "the table is read with sheet 'Paris', not 'Berlin'" in heard.err
    assert "asked of \"two.xlsx (sheet 'Paris')\" before" in heard.out
    assert _asked(capsys, *asked, *said[3]) == pytest.approx(10_000, abs=1), "no number, so the constant for empty cells"
    assert [entry.entry for entry in Ledger.open("b.ledger").entries()] == [1, 2, 3], "each reading is paid once"


def test_weights_of_a_table_in_another_form_can_be_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = pd.read_csv("plain.csv", dtype=str)
    frame["費用"] = [text.replace(",", " ").replace(".", ",") for text in frame["費用"]]
    frame.loc[7, "費用"] = "不明"  # the column stays text, and its numbers stay numbers
    for name, rows in (("public", slice(0, 400)), ("private", slice(400, None))):
        frame[rows].to_csv(f"{name}.csv", index=False, encoding="cp932", sep=";")
    said = ("--encoding", "cp932", "--separator", ";", "--decimal", ",", "--thousands", "space")
    assert exit_code("schema", "new", "d.json", "--number", "年齢=0:120", "--number", "費用=0:20000", *said) == 0
    asked = ("density", "weights", "--private", "private.csv", "--public", "public.csv", "--schema", "d.json", "--epsilon", 10)
    for out in ("w.csv", "w.parquet"):
        assert exit_code(*asked, "--out", out) == 0, capsys.readouterr().err
        capsys.readouterr()
        assert exit_code("density", "query", out, "mean(費用)", "median(年齢)", "--json") == 0
        answers = json.loads(capsys.readouterr().out)["answers"]
        assert 1700 < answers["mean(費用)"]["estimate"] < 2300
        restored = DensityRatio.restore(f"{out}.release.json", public=out)
        whole = DensityRatio.restore(f"{out}.release.json", public="public.csv")
        assert restored.query("年齢").estimate == pytest.approx(whole.mean("年齢"), rel=1e-12)


def test_the_owner_looks_through_the_same_door(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("schema", "check", "患者.csv", "--schema", "s.json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if line.startswith(("年齢", "費用", "性別"))] == ["ok"] * 3
    assert len({line.rindex("ok") + len([c for c in line if ord(c) > 0x2E80]) for line in lines if line.endswith("ok")}) == 1


def test_a_wrong_form_is_refused_with_what_to_do_and_nothing_is_charged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("ledger", "create", "l.ledger", "--name", "a", "--epsilon", 1) == 0
    asked = ("summaries", "mean", "患者.csv", "--column", "費用", "--bounds", "費用=0:20000", "--epsilon", 1)
    capsys.readouterr()
    wrong = (((), 4, "encoding, such as cp932"), (("--encoding", "klingon"), 2, "encoding must be one that Python knows"))
    for said, code, rule in wrong:
        assert exit_code(*asked, *said, "--ledger", "l.ledger") == code
        assert rule in capsys.readouterr().err
    assert exit_code("ledger", "show", "l.ledger", "--json") == 0
    assert json.loads(capsys.readouterr().out)["spent"]["epsilon"] == "0/1"


def test_every_verb_with_a_table_has_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert {room.name for room in rooms()} >= {"outliers", "density", "regression", "learning", "summaries"}
    verbs = [
        ("schema", "check"),
        ("outliers", "count"),
        ("outliers", "choose"),
        ("outliers", "radius"),
        ("density", "weights"),
        ("regression", "fit"),
        ("regression", "combine"),
        ("learning", "train"),
        ("learning", "predict"),
        ("learning", "audit"),
        *(("summaries", word) for word in ("count", "sum", "mean", "variance", "histogram", "quantiles")),
    ]
    for verb in verbs:
        with pytest.raises(SystemExit):
            main([*verb, "--help"])
        shown = capsys.readouterr().out
        assert all(option in shown for option in OPTIONS), verb


def test_nothing_said_is_no_form() -> None:
    assert form_of(encoding=None, sheet=None) is None
