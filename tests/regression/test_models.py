from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regression.test_exchange import EAST, NORTH, STUDY
from regression.worlds import CLINIC, clinic, unit_study
from sabun.errors import DataError, ParameterError
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study, combine
from sabun.release import generate_key
from sabun.reports import facts

KEYS = {name: generate_key() for name in ("A", "B")}
AGREED = unit_study(2, name="s", organisations={name: key.public_key() for name, key in KEYS.items()})
ZEROS = np.zeros((5, 2)), np.zeros(5)
FIRST, SECOND = (
    PrivateRidge(study=AGREED, organisation=name, signing_key=key).fit(*ZEROS).release_ for name, key in KEYS.items()
)


def test_a_model_without_privacy_says_so_everywhere(tmp_path: Path) -> None:
    X, y = clinic(50)
    printed = combine([PrivateRidge(epsilon=1, method="paper", **CLINIC).fit(X, y).release_], method="average")
    seeded = combine([PrivateRidge(epsilon=1, random_state=1, **CLINIC).fit(X, y).release_])
    for model, word in ((printed, "eq. (8)"), (seeded, "seeded coin")):
        [warning] = model.to_dict()["warnings"]
        assert warning.startswith("NOT PRIVATE")
        assert word in warning
        assert warning in str(model)
    assert printed.to_dict()["guarantees"][0]["epsilon"] == "inf"
    assert seeded.to_dict()["simulated"] is True
    assert isinstance(printed, PublicModel)
    printed.save(tmp_path / "m.json")
    assert "NOT PRIVATE" in (tmp_path / "m.json").read_text()
    assert "NOT PRIVATE" in str(PublicModel.load(tmp_path / "m.json"))


def test_a_saved_model_keeps_the_guarantees(tmp_path: Path) -> None:
    model = combine([FIRST, SECOND], study=AGREED)
    assert isinstance(model, PublicModel)
    assert model.warnings == ()
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").guarantees == (FIRST.guarantee, SECOND.guarantee)


def test_a_home_model_cannot_be_saved_as_a_public_one(tmp_path: Path) -> None:
    home: Any = combine([FIRST, SECOND], *ZEROS, study=AGREED)
    with pytest.raises(ParameterError, match="a model to save must be a PublicModel; one that used raw data stays at home"):
        PublicModel.save(home, tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()
    assert "NOT PRIVATE for the home data" in str(pickle.loads(pickle.dumps(home)))


def model_file(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    model = combine([PrivateRidge(**CLINIC, epsilon=5).fit(*clinic(300)).release_])
    assert isinstance(model, PublicModel)
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").conf_int().tolist() == model.conf_int().tolist()
    return tmp_path / "m.json", json.loads((tmp_path / "m.json").read_text())


def promised(**facts: Any) -> Callable[[dict[str, Any]], None]:
    return lambda record: [promise.update(facts) for promise in record["guarantees"]] and None


@pytest.mark.parametrize(
    "change",
    [
        promised(epsilon="1/1000", joint_epsilon="1/1000"),
        promised(unit="visit"),
        promised(relation="add-remove"),
        promised(simulated=True),
        lambda record: record.update(beta=[float("nan")] * 3),
        lambda record: record.update(covariance=[[float("inf")] * 3] * 3),
        lambda record: record.update(covariance=(-np.eye(3)).tolist()),
        lambda record: record.update(error=(-np.eye(3)).tolist()),
        lambda record: record.update(error=np.triu(np.ones((3, 3))).tolist()),
        lambda record: record.update(error=None),
        lambda record: record.update(variance=-1),
        lambda record: record["doubt"].update(spread=2),
        lambda record: record["doubt"].update(spread=float("nan")),
        lambda record: record["doubt"].update(slope=None),
        lambda record: record["doubt"].update(slope=(-np.eye(3)).tolist()),
        lambda record: record["doubt"].update(variances=[]),
        lambda record: record["doubt"].update(variances=[-0.1]),
        lambda record: record["doubt"].update(variances=[[0.1]]),
        lambda record: record["doubt"].update(variances=[0.1] * 2000),
        lambda record: record.update(doubt=[]),
        lambda record: record.update(method="guard"),
        lambda record: record["study"].update(mechanism="paper", ridge="1"),
        lambda record: record["study"].update(epsilon="1/1000"),
    ],
)
def test_a_model_file_must_be_possible_and_promise_what_its_study_does(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """A file that said epsilon 1/1000 under a study of 5 was believed, and published again."""
    path, record = model_file(tmp_path)
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match=r"must be a model file written by PublicModel\.save; it is not"):
        PublicModel.load(path)


def test_a_model_file_of_a_study_names_its_organisations_once(tmp_path: Path) -> None:
    model = combine([NORTH, EAST], study=STUDY)
    assert isinstance(model, PublicModel)
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").release().guarantee == NORTH.guarantee
    for names in (["north", "north"], ["north", "nobody"]):
        record = json.loads((tmp_path / "m.json").read_text()) | {"organisations": names}
        (tmp_path / "n.json").write_text(json.dumps(record))
        with pytest.raises(DataError, match="must be a model file"):
            PublicModel.load(tmp_path / "n.json")


def test_releases_of_other_terms_still_make_a_model_that_can_be_read(tmp_path: Path) -> None:
    releases = [PrivateRidge(**CLINIC, epsilon=e, delta=d).fit(*clinic(300)).release_ for e, d in ((2, "1e-6"), (3, "1e-7"))]
    model = combine(releases)
    assert isinstance(model, PublicModel)
    model.save(tmp_path / "m.json")
    assert PublicModel.load(tmp_path / "m.json").release().guarantee.epsilon == 5


def test_coefficients_have_units_of_the_target_for_one_of_the_features() -> None:
    features = Schema(
        columns=[
            Column.number("height", lower=100, upper=220, unit="cm"),
            Column.date("born", lower="1950-01-01", upper="2000-12-31"),
            Column.category("sex", ["F", "M"]),
        ]
    )
    study = Study(features=features, target=Column.number("weight", lower=0, upper=200, unit="kg"), epsilon=50)
    bare = Study.from_dict(study.to_dict() | {"target": Column.number("weight", lower=0, upper=200).to_dict()})
    assert bare.hash != study.hash
    rng = np.random.default_rng(0)
    height, sex = rng.uniform(120, 200, 3000), rng.choice(["F", "M"], 3000)
    born = (np.datetime64("1950-01-01") + rng.integers(0, 18_000, 3000)).astype(str)
    table = pd.DataFrame({"height": height, "born": born, "sex": sex, "weight": height - 100})
    release = PrivateRidge(study=study).fit(table.drop(columns="weight"), table["weight"]).release_
    model = combine([release])
    assert [measure.unit for measure in model.measures] == ["kg per cm", "kg per day", "kg", "kg"]
    lines = str(model).splitlines()
    assert lines[0] == "Public model from release 1, made of releases only: what that release gives by itself."
    assert [line.rpartition("] ")[2] for line in lines[1:5]] == ["kg per cm", "kg per day", "kg", "kg"]
    assert "coef_bound" not in str(model)
    for shown in (release, model.release()):
        story = facts(shown, lang="en").story
        assert re.fullmatch(r"height: [\d.]+ kg", story.answer.big)
        assert "For each step of 1 cm it is " in story.answer.sentence
        assert story.grids[0].rows[0][1].endswith(" kg per cm")
        assert "change of weight (kg)" in story.charts[0].svg
    assert "1 cm 増えるごとに" in facts(release, lang="ja").story.answer.sentence
    (name, _, _), [low, high] = facts(release, lang="en").story.grids[0].rows[-1], model.intercept_interval()
    assert name == "(constant at born 1950-01-01)", "not on 1970-01-01"
    assert "intercept (born 1950-01-01)" in lines[4]
    at = model.study.features["born"].lower
    least, most = model.intercept_interval(at={"born": at}, tails="light")
    assert (least + most) / 2 == pytest.approx(model.intercept_ + at * model.coef_[1])
    assert most - least != pytest.approx(high - low)
    assert "a date is 0 on 1970-01-01" in " ".join(facts(model.release(), lang="en").story.cautions)


def test_a_model_of_dates_predicts_from_a_date_on() -> None:
    day = Column.date("visit", lower="2020-01-01", upper="2020-12-31")
    study = Study(features=Schema.of_bounds({"age": (0, 100)}), target=day, epsilon=50)
    age = np.linspace(0, 100, 2000)
    model = combine([PrivateRidge(study=study).fit(age[:, None], pd.Series(18_300 + age, name="visit")).release_])
    assert [measure.unit for measure in model.measures] == ["days", ""]
    [constant] = [line for line in str(model).splitlines() if "intercept" in line]
    assert re.search(r"20\d\d-\d\d-\d\d   \[\d{4}-\d\d-\d\d, \d{4}-\d\d-\d\d\]$", constant)
