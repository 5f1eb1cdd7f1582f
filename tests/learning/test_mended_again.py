"""What a second adversarial review broke in learning, and how it was mended."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from learning.learning_samples import points
from sabun.errors import ParameterError, ReleaseError
from sabun.learning import PrivateClassifier, checkpoint, methods, verify
from sabun.learning.card import Card, _text
from sabun.learning.clipping import SENSITIVITY, ClippedSum, row_by_row
from sabun.learning.folder import model_bytes
from sabun.learning.network import Network
from sabun.ledger import Ledger


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("count", [63, 64, 65, 127])
def test_filling_rows_that_overflow_do_not_spoil_the_sum(kind: type, norm: str, count: int) -> None:
    network = Network(sizes=(1, 1, 2))
    huge = float(np.finfo(kind).max) / 4
    # The hidden unit is huge for a row of zeros and nothing for a row of ones: only rows that fill up overflow.
    weights = np.array([-huge, huge, huge, -huge, 0.0, 0.0])
    clipped = ClippedSum(network, clip_norm=1.0, norm=norm, piece=64, kind=kind)
    rows, labels = np.ones((count, 1)), np.zeros(count, dtype=np.int64)
    whole, part = clipped(weights, rows, labels), clipped(weights, rows[1:], labels[1:])
    assert np.isfinite(whole).all()
    assert np.abs(whole - part).sum() <= 2 * float(SENSITIVITY)


def test_a_square_that_vanishes_hides_no_gradient() -> None:
    network = Network(sizes=(1, 1, 1000))
    weights = np.zeros(network.n_weights)
    weights[0] = 1.3e154  # the hidden unit; its square is finite
    weights[2:1002] = -1e-152
    weights[2] = 0.0
    clipped = ClippedSum(network, clip_norm=1e-6)
    total = clipped(weights, np.ones((1, 1)), np.zeros(1, dtype=np.int64))
    assert np.linalg.norm(total) <= float(SENSITIVITY)


@pytest.mark.parametrize("sizes", [(105, 32, 2), (258, 33, 2), (34, 17, 5)])
def test_the_installed_matrix_library_passes_its_trial(sizes: tuple[int, ...]) -> None:
    assert row_by_row(Network(sizes=sizes), piece=112)


def test_a_library_that_rounds_by_place_fails_its_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Network.activity

    def uneven(self: Network, weights: Any, rows: Any, labels: Any) -> Any:
        found = real(self, weights, rows, labels)
        found.errors[0][:, -1] *= 1 + 2.0**-50
        return found

    monkeypatch.setattr(Network, "activity", uneven)
    assert not row_by_row(Network(sizes=(5, 4, 2)), piece=64)


@pytest.mark.parametrize(("precision", "way_out"), [("single", "Use precision='double'"), ("double", "Install a numpy")])
def test_such_a_library_is_refused_before_the_charge(
    precision: str, way_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "row_by_row", lambda *given, **named: False)
    book = Ledger.create(tmp_path / "book", name="book", epsilon=9, delta=0.1)
    with pytest.raises(ParameterError, match=f"computes a row the same wherever it stands.*{way_out}"):
        PrivateClassifier(epsilon=1, delta=1e-3, precision=precision, classes=[0, 1], ledger=book).fit(*points())
    assert book.spent.epsilon == 0


def test_another_processor_is_another_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fake:
        guarantee = "promise"

        def fingerprint(self) -> list[bytes]:
            return []

    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    plain = checkpoint._fingerprint(bytes(32), Fake(), "purpose")  # type: ignore[arg-type]
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    assert checkpoint._fingerprint(bytes(32), Fake(), "purpose") != plain  # type: ignore[arg-type]


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


def test_a_solution_too_far_out_for_the_grid_is_cut() -> None:
    X, y = np.r_[np.zeros(100), np.ones(100)][:, None], np.r_[np.zeros(100, int), np.ones(100, int)]
    for seed in range(6):
        clf = PrivateClassifier(
            method="objective-perturbation", epsilon="5.8163", regularisation="0.001", classes=[0, 1], random_state=seed
        ).fit(X, y)
        assert np.isfinite(clf.model_.weights).all()
