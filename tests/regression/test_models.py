from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regression.test_exchange import EAST, NORTH, STUDY
from regression.worlds import CLINIC, clinic, unit_study
from sabun.errors import DataError, ParameterError
from sabun.regression import PrivateRidge, PublicModel, combine
from sabun.release import generate_key

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
