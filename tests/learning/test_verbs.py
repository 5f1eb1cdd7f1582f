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
from learning.learning_samples import SCHEMA, people
from sabun.learning import PrivateClassifier, verify
from sabun.learning.typed import read_once
from sabun.learning.verbs import train as train_verb
from sabun.ledger import Ledger
from sabun.records import Column, FilePart, Schema, read
from sabun.release import generate_key, save_key


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
    Ledger.create("book", name="book", relation="add-remove", epsilon="5/2", delta=0.01)
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
    assert exit_code(*TRAIN, "--out", "other", "--ledger", "book", "--again") == 3


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
    again = (*words, "--method", "anonymizing-first", "--out", "model2", "--synthetic")
    assert exit_code(*again, "made.csv") == 2  # it is there already
    assert exit_code(*again, "made.txt") == 2
    assert not Path("model2").exists()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("learning", "train", "people.csv", "--target", "answer", "--out", "m"),
            2,
            "columns must be declared: pass",
        ),
        (
            (*TRAIN, "--out", "m", "--columns", "age,Town"),
            2,
            "got 'Town', which is not. Did you mean 'town'?",
        ),
        ((*TRAIN, "--out", "m", "--set", "threshold=0.5"), 2, "set must be one of epochs, learning_rate, clip_norm"),
        ((*TRAIN, "--out", "m", "--retry-key", "k"), 2, "must be left out when there is no ledger"),
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
            "bounds must look like name=low:high, such as age=0:120",
        ),
        (
            ("learning", "card", "nowhere"),
            2,
            "model must be a folder that `sabun learning train` wrote; there is none called 'nowhere'.",
        ),
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


AUDIT = ("learning", "audit", "people.csv", "--target", "answer")


def test_an_audit_is_for_the_owner(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = (*AUDIT, "--schema", "schema.json", "--method", "laplace-sgd", "--epsilon", "2", "--set", "epochs=2")
    assert exit_code(*words, "--canaries", "50") == 0
    shown = capsys.readouterr().out
    assert "NOT PRIVATE" in shown
    assert "zero does not mean private" in shown
    assert exit_code(*words, "--canaries", "50", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["claimed_epsilon"] == 2
    assert record["summary"].startswith("NOT PRIVATE")


def test_an_audit_without_a_table_may_be_published(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("learning", "audit", "--epsilon", "4", "--delta", "1e-5", "--canaries", "50", "--set", "epochs=5")
    assert exit_code(*words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Made without a private row: this may be published")
    assert "Without noise: " in shown
    assert exit_code(*words, "--bounds", "age=0:100", "--classes", "a,b,c", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["publishable"]
    assert [set(one) >= {"name", "epsilon_lower", "without_noise"} for one in record["verdicts"]] == [True] * 4
    assert exit_code("learning", "audit", "people.csv") == 2
    assert "table and target must be given together" in capsys.readouterr().err


def test_membership_is_inferred_from_a_models_folder(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, label = people(200, seed=5)
    frame.assign(answer=label).to_csv("others.csv", index=False)
    train = ("learning", "train", *AUDIT[2:], "--schema", "schema.json", "--method", "laplace-sgd", "--set", "epochs=2")
    assert exit_code(*train, "--out", "model") == 0
    capsys.readouterr()
    words = (*AUDIT, "--attack", "membership", "--model", "model", "--others", "others.csv")
    assert exit_code(*words) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("NOT PRIVATE")
    assert "zero does not mean private" in shown
    assert exit_code(*words, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert 0.3 < record["auc"] < 0.7
    assert record["summary"].startswith("NOT PRIVATE")
    assert exit_code(*words, "--shadows", "4", "--method", "laplace-sgd", "--set", "epochs=2", "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["shadows"] == 4
    assert 0.3 < record["auc"] < 0.7
    assert record["without_noise"]["auc"] > 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--attack", "guessing"), "attack must be 'canaries' or 'membership'; got 'guessing'"),
        (("--attack", "membership"), "model and others must be given for the membership attack"),
        (("--schema", "schema.json", "--set", "colour=red"), "set must be one of epochs"),
        (("--schema", "schema.json", "--set", "epochs=few"), "epochs must be a number; got 'few'"),
        (("--schema", "schema.json", "--set", "epochs=0"), "epochs must be a whole number >= 1"),
    ],
)
def test_a_mistake_about_an_audit_is_explained(
    more: tuple[str, ...], message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*AUDIT, *more) == 2
    assert message in capsys.readouterr().err


def test_further_settings_reach_the_method(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("learning", "train", *AUDIT[2:], "--schema", "schema.json", "--method", "anonymized-learning", "--hidden", "4")
    chosen = ("--set", "joint-epsilon=2", "--set", "threshold=0.5", "--set", "batch_size=25")
    assert exit_code(*words, *chosen, "--out", "model", "--json", "--allow-per-parameter") == 0
    card = json.loads(capsys.readouterr().out)["card"]
    assert (card["parameters"]["threshold"], card["parameters"]["batch_size"]) == (0.5, 25)
    assert card["guarantee"].get("joint_epsilon", card["guarantee"]["epsilon"]) in ("2", 2)


def test_a_model_that_could_not_be_handed_over_is_not_paid_for(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create("book", name="book", epsilon=1000, delta=0.01)
    words = ("learning", "train", *AUDIT[2:], "--schema", "schema.json", "--hidden", "4", "--ledger", "book", "--out", "model")
    for method in ("learning-first", "anonymized-learning"):
        assert exit_code(*words, "--method", method) == 2
        said = capsys.readouterr().err
        assert "allow-per-parameter must be given to hand over a model whose promise bounds each weight only by itself" in said
        assert "All weights together are bounded by epsilon 42" in said
    assert Ledger.open("book").spent.epsilon == 0
    assert exit_code(*words, "--method", "anonymized-learning", "--delta", "1e-4") == 0


def test_a_plan_knows_the_target_and_the_ledger(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*TRAIN, "--hidden", "", "--out", "model", "--json") == 0
    weights = json.loads(capsys.readouterr().out)["card"]["parameters"]["sizes"]
    plan = ("learning", "plan", "--records", "300", "--schema", "schema.json", "--hidden", "", "--epsilon", "2")
    assert exit_code(*plan, "--target", "answer", "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_weights"] == (weights[0] + 1) * weights[1]
    assert exit_code(*plan, "--json") == 0
    assert json.loads(capsys.readouterr().out)["n_weights"] > (weights[0] + 1) * weights[1]
    Ledger.create("book", name="clinic", epsilon=3, delta=0.01)
    assert exit_code(*plan, "--target", "answer", "--ledger", "book") == 0
    out = capsys.readouterr().out
    assert "(replace-one)" in out
    assert "'clinic' has epsilon 3 of 3 and delta 0.01 of 0.01 left." in out
    assert Ledger.open("book").entries() == ()


def test_a_table_without_rows_is_not_paid_for(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.csv").write_text(Path("people.csv").read_text().splitlines()[0] + "\n")
    ledger = Ledger.create("book", name="clinic", epsilon=3)
    command = ("learning", "train", "empty.csv", "--target", "answer", "--schema", "schema.json", "--ledger", "book")
    assert exit_code(*command, "--method", "objective-perturbation", "--yes", "--out", "model") == 4
    assert "a table must have at least one row; got none." in capsys.readouterr().err
    assert ledger.entries() == ()


def test_the_means_of_groups_are_written_as_a_table(table: Path) -> None:
    Ledger.create("book", name="book", epsilon=3)
    words = ("learning", "train", "people.csv", "--target", "answer", "--schema", "schema.json", "--ledger", "book")
    grouped = ("--method", "anonymizing-first", "--set", "synthesis=microaggregation", "--set", "group_size=100")
    assert exit_code(*words, *grouped, "--out", "model", "--synthetic", "made.csv") == 0
    lines = Path("made.csv").read_text().splitlines()
    assert lines[0] == '"age","income","sex","town","label"'
    assert len(lines) == 301
    assert len(set(lines[1:])) <= 3
    Path("other.csv.release.json").write_text("")
    assert exit_code(*words, *grouped, "--out", "model2", "--synthetic", "other.csv") == 2
    assert not Path("model2").exists()
    assert Ledger.open("book").spent.epsilon == 1


@pytest.mark.parametrize(
    ("target", "classes", "message"),
    [
        ("age", None, "target must be a column of categories; the schema declares 'age' a number"),
        ("age", "young,old", "classes must be labels that the schema declares for 'age': numbers from 0 to 100; got 'young'"),
        ("age", "5,150", "got '150'"),
        ("answer", "ja,nein", "classes must be labels that the schema declares for 'answer': the categories no, yes; got 'ja'"),
        ("answer", "yes,maybe", "got 'maybe'"),
    ],
)
def test_a_target_that_cannot_hold_the_classes_is_not_paid_for(
    target: str, classes: str | None, message: str, table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Ledger.create("book", name="book", relation="add-remove", epsilon=3, delta=0.01)
    given = () if classes is None else ("--classes", classes)
    words = ("people.csv", "--target", target, "--schema", "schema.json", *given, "--epsilon", "2", "--delta", "1e-3")
    assert exit_code("learning", "train", *words, "--ledger", "book", "--out", "model") == 2
    assert message in capsys.readouterr().err
    assert exit_code("learning", "audit", *words) == 2
    assert Ledger.open("book").entries() == ()
    assert not Path("model").exists()


def test_numbers_within_the_bounds_can_be_classes(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("coded.csv").write_text(Path("people.csv").read_text().replace(",yes\n", ",1\n").replace(",no\n", ",0\n"))
    Schema(columns=[*SCHEMA.columns, Column.number("answer", lower=0, upper=1)]).save("coded.json")
    words = ("learning", "train", "coded.csv", "--target", "answer", "--schema", "coded.json", "--classes", "1,0")
    assert exit_code(*words, "--method", "objective-perturbation", "--epsilon", "40", "--out", "model") == 0
    assert exit_code("learning", "predict", "model", "coded.csv", "--out", "found.csv") == 0
    assert {line.split(",")[0] for line in Path("found.csv").read_text().splitlines()[1:]} == {"0", "1"}
    plan = ("learning", "plan", "--records", "300", "--schema", "coded.json", "--target", "answer")
    assert exit_code(*plan) == 2
    assert exit_code(*plan, "--classes", "2") == 0


def test_a_delta_too_large_is_said_before_and_after(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = tuple("0.3" if word == "1e-3" else word for word in TRAIN)
    assert exit_code(*words, "--out", "model", "--set", "epochs=2", "--set", "standardize=false") == 0
    said = capsys.readouterr()
    assert "Warning: delta 0.3 is not below one over the number of records " in said.out
    assert "UserWarning" not in said.err
    plan = ("learning", "plan", "--records", "2000", "--features", "3", "--delta", "0.3")
    assert exit_code(*plan) == 0
    assert "Warning: delta 0.3 is not below one over the number of records (2000)" in capsys.readouterr().out
    assert exit_code(*plan, "--relation", "replace-one") == 2


def test_the_command_says_that_labels_are_read_off_the_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,y\n" + "".join(f"{i / 50},{'yes' if i > 25 else 'no'}\n" for i in range(50)))
    for classes in (None, "no,yes"):
        made = FilePart.of(table)
        train_verb(made, target="y", out=tmp_path / f"model-{classes}", bounds=["a=0:1"], classes=classes, epsilon="8")
        assert ("Notice: the list of labels is read off the data" in capsys.readouterr().out) == (classes is None)
    assert json.loads((tmp_path / "model-None" / "card.json").read_text())["guarantee"]


def test_bounds_add_to_a_schema_or_replace_what_it_says(table: Path) -> None:
    inputs = ("--columns", "age,income", "--bounds", "age=0:50", "--set", "epochs=1")
    assert exit_code(*TRAIN, *inputs, "--out", "model") == 0
    columns = json.loads(Path("model/card.json").read_text())["model"]["features"]["schema"]["columns"]
    assert [(column["name"], column["upper"]) for column in columns] == [("age", 50.0), ("income", 10_000.0)]


def test_training_says_how_to_judge_the_model(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*TRAIN, "--out", "my model", "--set", "epochs=1") == 0
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("How often it is right")]
    command = line.partition("trained on: ")[2].partition(". What")[0].replace("OTHERS", "people.csv")
    assert exit_code(*shlex.split(command)[1:]) == 0
    assert "Right about " in capsys.readouterr().out


def test_a_retry_key_brings_the_same_model_back_for_nothing(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger.create("book", name="book", relation="add-remove", epsilon=3, delta=0.01)
    words = (*TRAIN, "--set", "epochs=1", "--ledger", "book", "--retry-key", "monday")
    assert exit_code(*words, "--out", "model") == 0
    capsys.readouterr()
    assert exit_code(*words, "--out", "again") == 0
    assert "already paid ('book', entry 1): the same result again" in capsys.readouterr().out
    for name in ("release.json", "card.json", "model.safetensors"):
        assert Path("again", name).read_bytes() == Path("model", name).read_bytes()
    assert Ledger.open("book").spent.epsilon == 2
    assert exit_code(*words, "--out", "third", "--checkpoint", "run") == 2
    assert "--retry-key must be left out when there is a checkpoint" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "audit", "membership"])
def test_no_table_is_read_twice(command: str, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people(100, seed=2)[0].assign(answer=people(100, seed=2)[1]).to_csv("others.csv", index=False)
    assert exit_code(*TRAIN, "--out", "model", "--set", "epochs=1") == 0
    read: list[str] = []
    real = FilePart.chunks

    def noted(part: FilePart, names: Any, *, rows: int) -> Any:
        read.append(part.name)
        return real(part, names, rows=rows)

    monkeypatch.setattr(FilePart, "chunks", noted)
    commands: dict[str, tuple[str, ...]] = {
        "train": (*TRAIN, "--out", "second", "--set", "epochs=1"),
        "audit": (*AUDIT, "--schema", "schema.json", "--method", "laplace-sgd", "--set", "epochs=1", "--canaries", "10"),
        "membership": (*AUDIT, "--attack", "membership", "--model", "model", "--others", "others.csv"),
    }
    assert exit_code(*commands[command]) == 0
    assert sorted(read) == (["others.csv", "people.csv"] if command == "membership" else ["people.csv"])


def test_a_table_read_by_the_command_is_encoded_as_one_that_is_read_by_name(table: Path) -> None:
    frame, label = people(300)
    frame.assign(answer=label, income=["", "1e3", " 7 ", "x", "-1", "1e400"] * 50).to_csv("odd.csv", index=False)
    rows, labels = read_once(FilePart.of("odd.csv"), SCHEMA.names, "answer")
    assert np.array_equal(read(rows, schema=SCHEMA), read("odd.csv", schema=SCHEMA))
    assert labels == label.tolist()


def test_older_spellings_of_options_are_taken(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ("learning", "plan", "--features", "3", "--epsilon", "1", "--json")
    shown = []
    for words in (("--n-records", "300", "--n-classes", "3"), ("--records", "300", "--classes", "3")):
        assert exit_code(*plan, *words) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    linear = ("--method", "objective-perturbation", "--n-records", "300")
    assert exit_code(*plan, *linear, "--set", "regularization=20") == 0
    new = capsys.readouterr().out
    assert exit_code(*plan, *linear, "--set", "regularisation=20") == 0
    assert capsys.readouterr().out == new
    assert exit_code(*TRAIN, "--out", "model", "--set", "epochs=1") == 0
    save_key(key := generate_key(), "me.pem")
    save_key(key.public_key(), "me.pub.pem")
    for signing, trusted in (("--signing-key", "--trusted-key"), ("--key", "--key")):
        assert exit_code("learning", "sign", "model", signing, "me.pem") == 0
        assert exit_code("learning", "verify", "model", trusted, "me.pub.pem") == 0
    assert "every file is signed by the trusted key" in capsys.readouterr().out
    assert verify("model", public_key=key.public_key()) == verify("model", trusted_key=key.public_key())  # type: ignore[call-arg]


def test_where_the_number_of_records_is_private_a_guess_gives_a_plan(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noisy = (*TRAIN, "--relation", "add-remove", "--epsilon", "1/1000", "--out", "model")
    assert exit_code(*noisy, "--n-records", "25") == 2
    told = capsys.readouterr().err
    assert "about 25 records" in told
    assert "300" not in told, "the true number is private"
    assert "nothing was charged" in told
    assert not Path("model").exists()


def test_without_a_guess_of_a_private_number_it_is_said_what_would_be_noise(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame, labels = people(300)
    frame.iloc[:40].assign(answer=labels[:40]).to_csv("few.csv", index=False)
    pure = ("--schema", "schema.json", "--method", "noisy-centroids", "--ledger", "book")
    ledger = Ledger.create("book", name="book", relation="add-remove", epsilon=5)
    said = []
    for name in ("people.csv", "few.csv"):  # the true number decides nothing
        train = ("learning", "train", name, "--target", "answer", *pure)
        assert exit_code(*train, "--out", "model", "--epsilon", "1/1000") == 2
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    floor = r"fewer than about ([\d,]+) records"
    numbers = re.findall(floor, said[0])
    assert len(numbers) == 2, "once before, once in the refusal"
    assert "Nothing was released, nothing was charged. Pass a public guess" in said[0]
    assert not Path("model").exists()
    assert ledger.entries() == ()
    train = ("learning", "train", "few.csv", "--target", "answer", *pure)
    assert exit_code(*train, "--out", "model", "--epsilon", "1/1000", "--json") == 2
    assert "--n-records must be guessed" in json.loads(capsys.readouterr().err)["error"]["message"]
    enough = int(numbers[0].replace(",", ""))
    assert exit_code(*train, "--out", "guessed", "--epsilon", "1/1000", "--n-records", str(enough)) == 0
    assert exit_code(*train, "--out", "agreed", "--epsilon", "1/1000", "--yes", "--again", "--json") == 0
    told = json.loads(capsys.readouterr().out.partition("\n{")[2].join(("{", "")))
    assert told["plan"] is None
    assert enough * 0.9 < told["vacuous_below"] <= enough
    assert exit_code(*train, "--out", "usual", "--epsilon", "1/10") == 0, "a hundred records are enough"
    said = capsys.readouterr().err
    assert "No plan: the number of records is private here" in said
    assert not re.search(floor, said)


def test_labels_that_are_read_off_the_table_are_counted_in_the_plan(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, _ = people(300)
    labels = [f"c{row % 10}" for row in range(300)]
    frame.assign(answer=labels).to_csv("ten.csv", index=False)
    SCHEMA.save("inputs.json")
    train = ("learning", "train", "ten.csv", "--target", "answer", "--schema", "inputs.json", "--out", "model")
    noise = ("--method", "noisy-centroids", "--epsilon", "1/1000", "--relation", "add-remove", "--n-records", "300")
    foretold = []
    for classes in ((), ("--classes", ",".join(sorted(set(labels))))):
        assert exit_code(*train, *noise, *classes) == 2
        foretold.append([line for line in capsys.readouterr().err.splitlines() if line.startswith(("Plan", "error"))])
    assert "10 classes" in foretold[0][0]
    assert foretold[0] == foretold[1]
    assert exit_code(*train, "--method", "learning-first", "--epsilon", "2") == 2
    n_weights = PrivateClassifier(method="learning-first", schema=SCHEMA).plan(n_records=300, n_classes=10).n_weights
    assert f"bounded by epsilon {2 * n_weights}" in capsys.readouterr().err


def test_a_model_of_persons_predicts_and_is_measured_by_person(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, label = people(120)
    single = frame.assign(answer=label, who=[f"P{number}" for number in range(120)])
    younger = single.assign(age=single["age"] - 1, who=single["who"].str.lower())
    nobody = single.head(3).assign(who="")
    pd.concat([nobody, younger, single]).to_csv("visits.csv", index=False)
    single.to_csv("single.csv", index=False)
    words = ["visits.csv" if word == "people.csv" else word for word in TRAIN if word not in ("--delta", "1e-3")]
    words += ["--method", "noisy-centroids"]
    trained = ("--id", "who", "--rule", "age=max", "--spelling", "caseless")
    assert exit_code(*words, *trained, "--yes", "--out", "model") == 0
    capsys.readouterr()
    assert exit_code("learning", "predict", "model", "single.csv", "--keep", "who", "--out", "one.csv") == 0
    assert exit_code("learning", "predict", "model", "visits.csv", "--id", "who", "--out", "by.csv") == 0
    told = capsys.readouterr()
    assert "by.csv: 120 people." in told.out
    assert "120 people, one row each" in told.err
    assert "age=max, spelling caseless" in told.err
    assert "Left out: 3 rows without anything under 'who'." in told.err
    by, one = (Path(name).read_text().splitlines() for name in ("by.csv", "one.csv"))
    assert by[0] == "who,class,probability"
    assert [line.upper() for line in by] == [line.upper() for line in one]  # each id as it stood first
    last = ("--rule", "age=min", "--out", "least.csv")
    assert exit_code("learning", "predict", "model", "visits.csv", "--id", "who", *last) == 0
    capsys.readouterr()
    assert Path("least.csv").read_text().splitlines() != by
    measured = []
    for asked in (("single.csv",), ("visits.csv", "--id", "who")):
        assert exit_code("learning", "evaluate", "model", *asked, "--target", "answer", "--by", "sex", "--json") == 0
        measured.append(json.loads(capsys.readouterr().out))
    assert [found.pop("unit") for found in measured] == ["row", "person"]
    assert measured[0] == measured[1]
    assert measured[1]["accuracy"]["rows"] == 120
    assert exit_code("learning", "evaluate", "model", "visits.csv", "--id", "who") == 0
    assert "% of 120 people (" in capsys.readouterr().out
    assert exit_code("learning", "predict", "model", "visits.csv", "--id", "who", "--keep", "age", "--out", "x.csv") == 2
    assert "--keep must be left out with --id" in capsys.readouterr().err


def test_a_wrong_target_of_persons_is_asked_back_about(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Schema(columns=[*SCHEMA.columns, Column.category("answer", ["no", "yes"])]).save("whole.json")
    asked = ("learning", "train", "people.csv", "--schema", "whole.json", "--id", "who", "--epsilon", "1", "--out", "model")
    for target, advice in ("anwser", "Did you mean 'answer'?"), ("who", "Declare it, or pass --classes."):
        assert exit_code(*asked, "--target", target) == 2
        said = capsys.readouterr()
        assert (
            f"target must be declared, or its labels listed, where a person may have several rows; got {target!r}." in said.err
        )
        assert advice in said.err
        assert "Notice" not in said.out


def test_a_wrong_column_is_asked_back_about(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*TRAIN, "--out", "model", "--columns", "agee,income") == 2
    assert "Did you mean 'age'?" in capsys.readouterr().err
    assert exit_code(*TRAIN, "--out", "model", "--id", "sex", "--rule", "incom=max") == 2
    assert not Path("model").exists()


def test_a_plan_refuses_a_target_that_is_not_declared(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ("learning", "plan", "--n-records", "300", "--schema", "schema.json")
    for target, advice in ("anwser", "Did you mean 'answer'?"), ("foo", "Leave --target out"):
        assert exit_code(*plan, "--target", target) == 2
        said = capsys.readouterr()
        assert f"target must be declared; got {target!r}. {advice}" in said.err
        assert not said.out


@pytest.mark.parametrize("verb", [("train", "people.csv", "--out", "model"), ("plan", "--n-records", "300")])
def test_a_target_among_the_columns_is_refused(verb: tuple[str, ...], table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("learning", *verb, "--schema", "schema.json", "--target", "answer")
    assert exit_code(*words, "--columns", "age,answer") == 2
    assert "target must be no input; got 'answer'. Leave it out of --columns." in capsys.readouterr().err
    assert not Path("model").exists()


def test_a_target_that_no_table_has_is_all_that_is_said(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("learning", "train", "people.csv", "--bounds", "age=0:100", "--target", "foo", "--out", "model")
    assert exit_code(*words) == 2
    said = capsys.readouterr()
    assert "target must be a column of people.csv; got 'foo'." in said.err
    assert not said.out


def test_a_range_beyond_what_can_be_drawn_is_refused_for_that_reason(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for word in TRAIN if word not in ("--delta", "1e-3")]
    for typed, reason in (("1e300:2e300", "weight_range must be within plus or minus"), ("2:1", "the second at least")):
        first = (*words, "--method", "learning-first", "--out", "m", "--allow-per-parameter", "--set", f"weight_range={typed}")
        assert exit_code(*first) == 2
        assert reason in capsys.readouterr().err.replace("weight-range", "weight_range")
