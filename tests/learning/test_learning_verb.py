from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.terminal import exit_code
from learning.learning_samples import SCHEMA, people
from sabun.ledger import Ledger
from sabun.records import Column, Schema


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    frame, label = people(300)
    frame.assign(answer=label).to_csv("people.csv", index=False)
    Schema(columns=[*SCHEMA.columns, Column.category("answer", ["no", "yes"])]).save("schema.json")
    return tmp_path / "people.csv"


TRAIN = (
    "learning",
    "train",
    "people.csv",
    "--target",
    "answer",
    "--schema",
    "schema.json",
    "--delta",
    "1e-3",
    "--epsilon",
    "2",
)


def test_train_predict_card_and_verify_by_hand(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create("book", name="book", relation="add-remove", epsilon=3, delta=0.01)
    assert exit_code(*TRAIN, "--out", "model", "--ledger", "book") == 0
    assert "epsilon = 2" in capsys.readouterr().out
    assert Ledger.open("book").spent.epsilon == 2
    assert exit_code("learning", "predict", "model", "people.csv", "--out", "predictions.csv") == 0
    lines = Path("predictions.csv").read_text().splitlines()
    assert lines[0] == "class,probability"
    assert len(lines) == 301
    assert exit_code("learning", "card", "model") == 0
    assert "Not covered" in capsys.readouterr().out
    assert exit_code("learning", "verify", "model", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
    assert exit_code(*TRAIN, "--out", "other", "--ledger", "book") == 3


def test_the_schema_names_the_classes(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*TRAIN, "--out", "model", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["card"]["model"]["classes"] == ["no", "yes"]
    assert "answer" not in record["card"]["model"]["features"]["names"]
    assert not any("taken from y" in words for words in record["card"]["guarantee"]["assumptions"])


def test_a_synthetic_table_is_written_beside_the_model(table: Path) -> None:
    words = [word for word in TRAIN if word not in ("--delta", "1e-3")]
    assert exit_code(*words, "--method", "anonymizing-first", "--out", "model", "--synthetic", "made.csv") == 0
    assert Path("made.csv").read_text().startswith('"age","income","sex","town","label"')
    assert Path("made.csv.release.json").exists()
    assert exit_code(*words, "--out", "model2", "--synthetic", "made2.csv") == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("learning", "train", "people.csv", "--target", "answer", "--out", "m"), 2, "the columns must be declared"),
        ((*TRAIN, "--out", "m", "--bounds", "age=0:1"), 2, "bounds must be left out when there is a schema"),
        ((*TRAIN, "--out", "."), 2, "out must be a new or empty folder"),
        ((*TRAIN, "--out", "m", "--hidden", "a,b"), 2, "hidden must be whole numbers separated by commas"),
        (
            ("learning", "train", "people.csv", "--target", "x", "--schema", "schema.json", "--out", "m"),
            2,
            "target must be a column",
        ),
        (
            ("learning", "train", "people.csv", "--target", "answer", "--bounds", "age", "--out", "m"),
            2,
            "bounds must be name=low:high",
        ),
        (("learning", "card", "nowhere"), 4, "must be a readable file"),
    ],
)
def test_a_mistake_is_explained(
    words: tuple[str, ...], code: int, message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*words) == code
    assert message in capsys.readouterr().err


def test_bounds_stand_for_a_schema(table: Path) -> None:
    words = ("learning", "train", "people.csv", "--target", "answer", "--bounds", "age=0:100", "--bounds", "income=0:10000")
    assert exit_code(*words, "--epsilon", "2", "--delta", "1e-3", "--out", "model") == 0


def test_an_audit_is_for_the_owner(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "learning",
        "audit",
        "people.csv",
        "--target",
        "answer",
        "--schema",
        "schema.json",
        "--epsilon",
        "2",
        "--delta",
        "1e-3",
    )
    assert exit_code(*words, "--canaries", "50") == 0
    shown = capsys.readouterr().out
    assert "NOT PRIVATE" in shown
    assert "zero does not mean private" in shown
