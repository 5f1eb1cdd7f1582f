"""A privacy card proves what it promises, about its own model."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from learning.learning_samples import points
from sabun.errors import ParameterError, ReleaseError
from sabun.learning import PrivateClassifier, verify
from sabun.learning.card import Card, _text
from sabun.learning.folder import model_bytes
from sabun.learning.recompute import recompute_alone


@pytest.mark.parametrize("method", ["learning-first", "anonymized-learning"])
def test_a_card_cannot_claim_less_for_each_weight_than_its_numbers_prove(method: str, tmp_path: Path) -> None:
    clf = PrivateClassifier(method=method, epsilon=1, classes=[0, 1], hidden=(8,), epochs=1, batch_size=50).fit(*points(200))
    assert clf.guarantee_.scope == "per-parameter"
    assert recompute_alone(clf.card_.account) == clf.guarantee_.epsilon
    less = dataclasses.replace(clf.guarantee_, epsilon=Fraction(1, 100))
    clf.card_ = dataclasses.replace(clf.card_, guarantee=less)
    clf.release_ = dataclasses.replace(clf.release_, guarantee=less)
    clf.save(tmp_path / "model", allow_per_parameter=True)
    with pytest.raises(ReleaseError, match=r"for each weight by itself; it claims 0\.01"):
        verify(tmp_path / "model")


def test_an_account_about_all_weights_proves_nothing_about_one() -> None:
    with pytest.raises(ParameterError, match="rule must be one of"):
        recompute_alone({"rule": "objective", "epsilon": "1"})


@pytest.fixture(scope="module")
def fitted() -> PrivateClassifier:
    return PrivateClassifier(method="learning-first", epsilon=1, epochs=1, classes=[0, 1]).fit(*points())


@pytest.mark.parametrize(
    ("account", "promise"),
    [
        ({"rule": "weight-noise", "n_weights": 1, "epsilon": "1"}, {"joint_epsilon": 1}),
        (
            {"rule": "noisy-updates", "n_weights": 1, "epsilon": "1", "epochs": 1, "batches": 1, "delta": "0"},
            {"joint_epsilon": 1},
        ),
        (None, {"relation": "add-remove"}),
        (
            {"rule": "parts", "pure": [], "rho": "0", "delta": "0"},
            {"scope": "joint", "joint_epsilon": None, "epsilon": 0},
        ),
    ],
)
def test_an_account_of_another_model_proves_nothing(
    account: dict[str, Any] | None, promise: dict[str, Any], fitted: PrivateClassifier
) -> None:
    guarantee = dataclasses.replace(fitted.guarantee_, **promise)
    forged = dataclasses.replace(fitted.card_, account=account or fitted.card_.account, guarantee=guarantee)
    with pytest.raises(ReleaseError):
        forged.check(model_bytes(fitted.model_))


@pytest.mark.parametrize("change", ["classes", "noise"])
def test_a_card_that_contradicts_its_release_is_noticed(change: str, tmp_path: Path) -> None:
    PrivateClassifier(epsilon=1, delta=1e-3, classes=[0, 1]).fit(*points()).save(tmp_path / "model")
    file = tmp_path / "model" / "card.json"
    assert verify(tmp_path / "model")
    record = json.loads(file.read_bytes())
    if change == "classes":
        record["model"]["classes"] = record["model"]["classes"][::-1]
    else:
        record["parameters"]["noise_multiplier"] = "1000"
    del record["card_sha256"]
    card = Card(
        guarantee=Card.from_json(file.read_bytes()).guarantee,
        account=record["account"],
        model=record["model"],
        parameters=record["parameters"],
        sha256=record["model_sha256"],
        software=record["accountant"],
        randomness=record["randomness"],
        warnings=tuple(record["warnings"]),
    )
    file.write_bytes(_text(card.to_dict()))
    with pytest.raises(ReleaseError, match="card, release and model must tell one story"):
        verify(tmp_path / "model")
