from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.terminal import exit_code
from regression.worlds import clinic, unit_study
from sabun.ledger import Ledger
from sabun.records import Column, Schema, open_source
from sabun.regression import PrivateRidge, PublicModel, Study, combine, models

BOUNDS = ["--bounds", "age=0:120", "--bounds", "bmi=10:60", "--bounds", "dose=0:100", "--target", "dose"]
TINY = ["--n-records", "100", "--epsilon", "1"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(("north", "east", "home")):
        X, y = clinic(4000 if name != "home" else 80, seed=place)
        pd.DataFrame(X, columns=["age", "bmi"]).assign(dose=y).to_csv(f"{name}.csv", index=False)
    return tmp_path


def run(*arguments: str) -> None:
    assert exit_code("regression", *arguments) == 0


def study(*extra: str) -> None:
    for name in ("north", "east"):
        run("keygen", name)
    names = ["--organisation", "north=north.pub.pem", "--organisation", "east=east.pub.pem"]
    run("study", "init", "study.json", "--name", "dose", *BOUNDS, "--epsilon", "1", "--unit", "patient", *names, *extra)


def release(name: str) -> list[str]:
    assert (
        exit_code(
            "ledger",
            "create",
            f"{name}.ledger",
            "--name",
            name,
            "--unit",
            "patient",
            "--epsilon",
            "1.5",
            "--delta",
            "1e-5",
            "--accounting",
            "sums",
        )
        == 0
    )
    files = ["--key", f"{name}.pem", "--ledger", f"{name}.ledger", "--out", f"{name}.json"]
    command = ["fit", f"{name}.csv", "--study", "study.json", "--organisation", name, *files]
    run(*command)
    return command


def test_three_organisations_go_from_csv_to_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    run("study", "check", "study.json")
    for name in ("north", "east"):
        release(name)
        run("verify", f"{name}.json", "--study", "study.json")
        run("explain", f"{name}.json")
    capsys.readouterr()
    files = ["--out", "model.json", "--release", "joined.json"]
    run("combine", "north.json", "east.json", "--study", "study.json", *files, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["model"] == "public"
    assert {row["feature"]: row["coef"] for row in found["coefficients"]}["age"] == pytest.approx(0.3, abs=0.1)
    assert PublicModel.load("model.json").organisations == ("north", "east")
    assert exit_code("report", "joined.json", "--out", "joined.html") == 0
    assert "from 2 organisations" in Path("joined.html").read_text()
    predict = ["--predict", "home.csv", "--predictions", "p.csv"]
    run("combine", "north.json", "east.json", "--study", "study.json", "--home", "home.csv", *predict)
    said = capsys.readouterr().out
    assert "NOT PRIVATE for the home data" in said
    assert "without north" in said
    assert len(Path("p.csv").read_text().splitlines()) == 81
    assert (folder / "north.pem").stat().st_mode & 0o077 == 0


def test_asking_again_gives_the_same_file_and_costs_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    command = release("north")
    before = (folder / "north.json").read_bytes()
    run(*command)
    assert (folder / "north.json").read_bytes() == before
    capsys.readouterr()
    assert exit_code("ledger", "show", "north.ledger", "--json") == 0
    assert json.loads(capsys.readouterr().out)["spent"]["epsilon"] in ("1", "1/1")


def test_a_second_study_over_the_budget_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    command = release("north")
    assert (
        exit_code("regression", "study", "init", "two.json", "--name", "two", *BOUNDS, "--epsilon", "1", "--unit", "patient")
        == 0
    )
    again = [part.replace("study.json", "two.json").replace("north.json", "n2.json") for part in command]
    assert exit_code("regression", *again) == 3
    assert not (folder / "n2.json").exists()


def test_a_fit_outside_a_study_needs_only_bounds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--out", "n.json", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["guarantee"]["epsilon"] == "1"
    alone = ("--columns", "age", "--relation", "add-remove", "--n-records", "800")
    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--out", "m.json", *alone)
    run("explain", "m.json", "--json")


def test_expected_noise_asks_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["fit", "home.csv", *BOUNDS, "--epsilon", "0.01", "--out", "h.json"]
    assert exit_code("regression", *command) == 2
    assert "nothing was charged" in capsys.readouterr().err
    assert not (folder / "h.json").exists()
    run(*command, "--yes")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "north.csv", "--out", "x.json"], 2, "columns must be declared: pass --schema or --bounds"),
        (["fit", "north.csv", *BOUNDS, "--out", "x.json"], 2, "epsilon must be given. Pass --epsilon"),
        (
            ["fit", "north.csv", "--bounds", "age=0-120", "--target", "dose", "--out", "x"],
            2,
            "bounds must look like name=low:high",
        ),
        (
            ["fit", "north.csv", *BOUNDS[:-2], "--target", "height", "--epsilon", "1", "--out", "x"],
            2,
            "target must be declared; got 'height', which is not. Add --bounds 'height=low:high'.",
        ),
        (["fit", "none.csv", *BOUNDS, "--epsilon", "1", "--out", "x.json"], 4, "there is none of that name"),
        (["fit", "north.csv", *BOUNDS, "--bounds", "height=0:3", "--epsilon", "1", "--out", "x"], 4, "has no column 'height'"),
        (["combine", "north.csv"], 4, "must be valid JSON"),
        (["combine", "none.json"], 4, "must be a readable file"),
        (["verify", "north.csv", "--study", "none.json"], 4, "study file"),
        (["keygen", "a/b"], 2, "name must be a plain file name"),
        (
            ["study", "init", "s.json", "--name", "s", *BOUNDS, "--epsilon", "1", "--organisation", "x"],
            2,
            "name=public-key.pem",
        ),
        (
            ["simulate", "--rows", "0", "--features", "1", "--organisations", "1", "--epsilon", "1"],
            2,
            "--n-records must be a whole number",
        ),
        (
            ["combine", "a", "--home", "h.csv", "--out", "m.json"],
            2,
            "--out must be left out with --home: a model that used raw",
        ),
        (["combine", "a", "--home", "h.csv", "--release", "r.json"], 2, "--release must be left out with --home"),
        (["combine", "a", "--predict", "h.csv"], 2, "must be given together"),
        (["combine", "a", "--tau", "hot"], 2, "tau must be a number"),
    ],
)
def test_bad_input_has_an_exit_code_and_no_traceback(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert exit_code("regression", *arguments) == code
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said


def test_wrong_keys_and_doubled_words_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    base = ["fit", "north.csv", "--study", "study.json", "--out", "x.json", "--organisation"]
    assert exit_code("regression", *base, "west") == 2
    assert exit_code("regression", *base, "north", "--epsilon", "2") == 2
    assert "--epsilon must be left out with --study" in capsys.readouterr().err
    assert exit_code("regression", *base, "north", "--key", "north.pub.pem") == 2
    assert "key must be a private key" in capsys.readouterr().err


def test_simulate_tells_what_to_expect(capsys: pytest.CaptureFixture[str]) -> None:
    facts = ["--rows", "200", "--features", "2", "--organisations", "3", "--epsilon", "2", "--repeats", "2"]
    run("simulate", *facts, "--json")
    assert json.loads(capsys.readouterr().out)["relative_errors"]["pool"] < 1
    run("simulate", *facts, "--setting", "narrow")
    assert "pool" in capsys.readouterr().out


def test_a_release_that_no_reader_would_take_is_not_charged_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    ledger = Ledger.create("book", name="north", unit="patient", epsilon=2, delta="1e-5")
    command = ["fit", "north.csv", "--study", "study.json", "--organisation", "north", "--ledger", "book", "--out", "n.json"]
    for key, words in (
        ([], "signing-key must be given: the study takes only what 'north' signed. Pass --signing-key with its private key."),
        (["--key", "east.pem"], "the key that the study holds for 'north'; 'east.pem' is another. Pass the right one."),
        (
            ["--key", "north.pub.pem"],
            "key must be a private key; 'north.pub.pem' holds a public one. Nobody can sign with that.",
        ),
    ):
        assert exit_code("regression", *command, *key) == 2
        assert words in capsys.readouterr().err
    assert ledger.entries() == ()
    assert not Path("n.json").exists()


def test_asking_again_says_that_it_is_paid(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    command = release("north")
    capsys.readouterr()
    run(*command)
    assert (
        "Ledger: already paid ('north', entry 1): the same result again, whatever table was named; nothing was charged."
        in capsys.readouterr().out
    )
    Path("north.json").write_text("something else")
    assert exit_code("regression", *command) == 2
    assert "out must be a new file; 'north.json' exists. Choose another name." in capsys.readouterr().err
    assert len(Ledger.open("north.ledger").entries()) == 1


def test_a_column_that_is_in_the_table_but_not_declared_is_called_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    declared = ["--bounds", "age=0:120", "--bounds", "dose=0:100", "--target", "dose", "--columns", "age,bmi"]
    assert exit_code("regression", "fit", "north.csv", *declared, "--epsilon", "1", "--out", "x.json") == 2
    assert "columns must be declared; got 'bmi', which is not. Add --bounds 'bmi=low:high'." in capsys.readouterr().err


def test_joining_says_what_it_wrote(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--out", "n.json")
    capsys.readouterr()
    run("combine", "n.json", "--out", "m.json", "--predict", "home.csv", "--predictions", "p.csv")
    said = capsys.readouterr()
    assert "Wrote 'm.json'.\nWrote 'p.csv'." in said.out
    assert "with --release FILE" in said.err
    assert exit_code("regression", "combine", "n.json", "--predict", "home.csv", "--predictions", "p.csv") == 2
    assert "predictions must be a new file; 'p.csv' exists." in capsys.readouterr().err


def test_predictions_come_with_their_intervals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    for name in ("north", "east"):
        release(name)
    run("combine", "north.json", "east.json", "--predict", "home.csv", "--predictions", "p.csv")
    assert "They assume one linear model for all" in capsys.readouterr().out
    table = pd.read_csv("p.csv")
    assert list(table.columns) == ["prediction", "low", "high"]
    assert ((table.low < table.prediction) & (table.prediction < table.high)).all()
    run("combine", "north.json", "east.json", "--method", "average", "--predict", "home.csv", "--predictions", "q.csv")
    assert list(pd.read_csv("q.csv").columns) == ["prediction"]


def test_a_table_to_predict_for_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[object] = []

    def counted(source: object, **how: object) -> object:
        reads.append(source)
        return open_source(source, **how)  # type: ignore[arg-type]

    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--out", "n.json")
    monkeypatch.setattr(models, "open_source", counted)
    run("combine", "n.json", "--predict", "home.csv", "--predictions", "p.csv")
    assert [str(source) for source in reads] == ["home.csv"]
    model, table = combine(["n.json"]), pd.read_csv("p.csv")
    assert np.array_equal(table.prediction, model.predict("home.csv"))
    assert np.array_equal(table[["low", "high"]], model.predict_interval("home.csv"))


def test_ones_own_release_is_left_out_beside_ones_own_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study()
    for name in ("north", "east"):
        release(name)
    at_home = ["combine", "north.json", "east.json", "--study", "study.json", "--home", "north.csv"]
    capsys.readouterr()
    run(*at_home)
    assert "that no release was made of the home data" in capsys.readouterr().out
    for option in (["--own", "north"], ["--own-ledger", "north.ledger"]):
        run(*at_home, *option, "--json")
        found = json.loads(capsys.readouterr().out)
        assert found["organisations"] == ["east"]
        assert found["findings"][0].startswith("Left out the release of 'north'")
    for wrong in (["--own", "west"], ["--own", "north", "--own-ledger", "north.ledger"]):
        assert exit_code("regression", *at_home, *wrong) == 2
    assert exit_code("regression", "combine", "north.json", "east.json", "--own", "north") == 2


def test_the_relation_is_the_ledgers_unless_something_else_is_said(folder: Path) -> None:
    names = ("--name", "clinic", "--relation", "add-remove", "--epsilon", "3", "--delta", "1e-5")
    assert exit_code("ledger", "create", "ar.ledger", *names) == 0
    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--ledger", "ar.ledger", "--yes", "--out", "one.json")
    assert json.loads(Path("one.json").read_text())["guarantee"]["relation"] == "add-remove"


@pytest.mark.parametrize("option", [("--relation", "add-remove"), ("--method", "objpert"), ("--columns", "x0")])
def test_an_option_that_the_study_says_is_refused(
    option: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit_study().save(tmp_path / "s.json")
    (tmp_path / "d.csv").write_text("x0,x1,y\n0,0,0\n")
    files = [str(tmp_path / "d.csv"), "--study", str(tmp_path / "s.json"), "--out", str(tmp_path / "r.json"), "--yes"]
    assert exit_code("regression", "fit", *files, *option) != 0
    shown = capsys.readouterr()
    assert f"{option[0]} must be left out with --study, which says it." in " ".join((shown.err + shown.out).split())


def book(relation: str = "add-remove", name: str = "book") -> Ledger:
    return Ledger.create(name, name=name, relation=relation, epsilon=9, delta="1e-4")


def test_a_ledger_of_the_wrong_relation_is_refused_before_anything_is_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = book()
    run("study", "init", "s.json", "--name", "s", *BOUNDS, "--epsilon", "1")
    assert exit_code("regression", "fit", "no such file", "--study", "s.json", "--ledger", "book", "--out", "x.json") == 2
    assert "ledger must be kept for replace-one neighbours, the only ones this promise is about; " in capsys.readouterr().err
    assert ledger.entries() == ()
    run("study", "init", "t.json", "--name", "t", *BOUNDS, "--epsilon", "1", "--relation", "add-remove")
    guess = ("--n-records", "800")
    run("fit", "north.csv", "--study", "t.json", "--ledger", "book", "--out", "t.release.json", *guess)
    assert ledger.spent.epsilon == 1
    dearer = book("replace-one", "dearer")  # which takes an add-remove promise at its price there
    run("fit", "north.csv", "--study", "t.json", "--ledger", "dearer", "--out", "u.release.json", *guess)
    assert dearer.spent.epsilon == 2


@pytest.mark.parametrize("method", ["ssp-gauss", "ssp-laplace", "objpert"])
def test_every_method_takes_an_add_remove_ledger(folder: Path, method: str) -> None:
    ledger = book()
    guess = ("--n-records", "800")
    run("fit", "home.csv", *BOUNDS, "--epsilon", "1", "--ledger", "book", "--out", "h.json", "--method", method, *guess)
    assert ledger.entries()[0].guarantee["relation"] == "add-remove"


def test_a_retry_key_costs_nothing_again_and_gives_the_same_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = book("replace-one")
    command = ["fit", "north.csv", *BOUNDS, "--epsilon", "1", "--ledger", "book", "--retry-key", "monday"]
    run(*command, "--out", "one.json")
    capsys.readouterr()
    run(*command, "--out", "two.json", "--json")
    assert json.loads(capsys.readouterr().out)["already_paid"] is True
    assert Path("one.json").read_bytes() == Path("two.json").read_bytes()
    run(*command, "--out", "two.json")  # it holds the answer already
    assert len(ledger.entries()) == 1
    assert exit_code("regression", *command[:-1], "friday", "--out", "one.json") == 2
    assert "out must be a new file; 'one.json' exists." in capsys.readouterr().err
    assert len(ledger.entries()) == 1


def test_the_verb_asks_the_public_class(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same terms give the same study, and the table is read once."""
    reads: list[object] = []
    read = PrivateRidge.read

    def counted(self: PrivateRidge, *source: object) -> object:
        reads.append(source)
        return read(self, *source)

    monkeypatch.setattr(PrivateRidge, "read", counted)
    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--out", "n.json", "--json")
    found = json.loads(capsys.readouterr().out)
    assert len(reads) == 1
    assert found["out"] == "n.json"
    bounds = {"age": (0, 120), "bmi": (10, 60)}
    assert found["study_hash"] == PrivateRidge(epsilon=1, x_bounds=bounds, y_bounds={"dose": (0, 100)})._terms(None).hash


def test_a_schema_beside_bounds_is_added_to_and_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = (Column.number("age", lower=0, upper=5), Column.number("bmi", lower=10, upper=60))
    Schema(columns=columns).save("schema.json")
    extra = ["--schema", "schema.json", "--bounds", "age=0:120", "--bounds", "dose=0:100", "--target", "dose"]
    run("study", "init", "s.json", "--name", "s", *extra, "--epsilon", "1")
    features = Study.load("s.json").features
    assert [(c.name, c.lower, c.upper) for c in features.columns] == [("age", 0, 120), ("bmi", 10, 60)]  # type: ignore[union-attr]
    capsys.readouterr()
    assert exit_code("regression", "plan", "--schema", "schema.json", "--target", "bmi", "--columns", "agee", *TINY) == 2
    assert "columns must be declared; got 'agee', which is not. Did you mean 'age'?" in capsys.readouterr().err


def test_a_plan_touches_no_data_and_says_what_it_assumes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("plan", "--n-records", "4000", "--organisations", "3", *BOUNDS, "--epsilon", "1", "--json")
    found = json.loads(capsys.readouterr().out)
    assert (found["method"], found["n_records"], found["coefficients"]) == ("staged", 4000, 3)
    assert "fill their bounds evenly" in found["assumed"]
    assert found["error_released"] < found["error_narrow"]
    study()
    capsys.readouterr()
    run("plan", "--study", "study.json", "--rows", "4000", "--organisations", "3")  # an older name of the option
    said = capsys.readouterr().out
    assert "Yours was not looked at and may be far worse: if its features fill a third of their bounds" in said
    assert f"public model {found['error_released']:.3g}" in said
    assert exit_code("regression", "plan", *BOUNDS, "--epsilon", "100", "--n-records", "9") == 0
    assert "Warning: epsilon 100 protects hardly anybody" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epsilon", "1"], "columns must be declared: pass --schema or --bounds"),
        (["--epsilon", "1", "--bounds", "dose=0:1", "--target", "dose"], "columns must hold a feature beside the target"),
        (["--epsilon", "1", *BOUNDS, "--columns", "age,dose"], "target must be no feature; got 'dose'."),
        (["--epsilon", "1", *BOUNDS, "--organisations", "0"], "organisations must be a whole number >= 1; got 0."),
        ([*BOUNDS], "epsilon must be given. Pass --epsilon, or a --study that says it."),
        (["--study", "s.json", "--delta", "1e-6"], "--delta must be left out with --study, which says it."),
    ],
)
def test_a_plan_refuses_what_a_fit_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert exit_code("regression", "plan", "--n-records", "10", *arguments) == 2
    assert message in capsys.readouterr().err


def test_no_message_speaks_python_where_there_is_an_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("fit", "north.csv", *BOUNDS, "--epsilon", "1", "--out", "n.json")
    wrong = (
        ["combine", "n.json", "--method", "guard"],
        ["combine", "n.json", "--own", "north"],
        ["fit", "north.csv", "--epsilon", "1", "--out", "x.json"],
        ["fit", "north.csv", "--bounds", "age=0:9", "--epsilon", "1", "--out", "x.json"],
        ["study", "init", "s.json", "--name", "s"],
    )
    capsys.readouterr()
    for arguments in wrong:
        assert exit_code("regression", *arguments) == 2
    run("combine", "n.json", "--home", "home.csv")
    out, err = capsys.readouterr()
    for spelling in ("X_home", "y_home", "x_bounds", "y_bounds", "own=", "Study(", "PrivateRidge"):
        assert spelling not in out + err


def test_a_target_of_labels_is_answered_with_the_columns_of_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [
        Column.number("age", bounds=(0, 120)),
        Column.number("bmi", bounds=(10, 60)),
        Column.category("ill", ["no", "yes"]),
    ]
    Schema(columns=columns).save("s.json")
    assert (
        exit_code("regression", "fit", "north.csv", "--schema", "s.json", "--target", "ill", "--epsilon", "1", "--out", "o")
        == 2
    )
    assert "target must be a column of numbers; got 'ill'. Choose one of 'age', 'bmi'." in capsys.readouterr().err


def test_a_plan_is_told_what_tables_are_like(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("plan", "--n-records", "400", *BOUNDS, "--epsilon", "1", "--json")
    run(*asked, "--shape", "spread=0.3", "--shape", "r-squared=0.4")
    [forecast] = json.loads(capsys.readouterr().out)["forecasts"]
    assert "features spread by 0.3 around 0" in forecast["assumed"][0]
    assert "explains 40%" in forecast["assumed"][0]
    run(*asked)
    assert len(json.loads(capsys.readouterr().out)["forecasts"]) == 2


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (
            "spred=0.3",
            "shape must be KEY=VALUE with a key among spread, centre, correlation, r_squared, deviation, between, tail",
        ),
        ("spread=wide", "spread must be a number; got 'wide'."),
        ("spread=7", "spread must be above 0 and at most 1; got 7.0."),
    ],
)
def test_a_shape_that_cannot_be_is_explained(told: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("regression", "plan", "--n-records", "400", *BOUNDS, "--epsilon", "1", "--shape", told) == 2
    assert message in capsys.readouterr().err
