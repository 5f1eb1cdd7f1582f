"""The parameters of the torch trainer: what belongs together is one object, and each part has its flat name too."""

from __future__ import annotations

import pickle
from inspect import signature
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")
pytest.importorskip("safetensors", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import ParameterError  # noqa: E402
from sabun.learning import Plan  # noqa: E402
from sabun.learning.poisson import PoissonPlan  # noqa: E402
from sabun.learning.torch_modules import Descent, Runtime, TorchTrainer  # noqa: E402
from sabun.ledger import Ledger  # noqa: E402

FLAT: dict[str, Any] = {
    "sampling_rate": 0.5,
    "epochs": 2,
    "clip_norm": 0.5,
    "learning_rate": 0.1,
    "momentum": 0.0,
    "device": "cpu",
    "most_rows": 64,
    "precision": "single",
    "noise": "torch",
}
DESCENT = Descent(sampling_rate=0.5, epochs=2, clip_norm=0.5, learning_rate=0.1, momentum=0.0)
RUNTIME = Runtime(device="cpu", most_rows=64, precision="single", noise="torch")
ROWS = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
LABELS = np.arange(60) % 2


def linear() -> nn.Module:
    module = nn.Linear(3, 2)
    for part in module.parameters():
        nn.init.zeros_(part)
    return module


def test_the_constructor_has_at_most_sixteen_parameters() -> None:
    assert len(signature(TorchTrainer).parameters) <= 16


def test_flat_names_and_settings_ask_for_the_same_release() -> None:
    flat = TorchTrainer(linear(), n_public=60, random_state=1, **FLAT)
    whole = TorchTrainer(linear(), n_public=60, random_state=1, descent=DESCENT, runtime=RUNTIME)
    assert (flat.descent, flat.runtime) == (DESCENT, RUNTIME)
    assert {name: getattr(whole, name) for name in FLAT} == FLAT
    first, second = (made.fit(ROWS, LABELS).release_ for made in (flat, whole))
    assert first.value == second.value
    assert first.provenance.parameters == second.provenance.parameters


def test_a_setting_given_twice_is_refused() -> None:
    with pytest.raises(TypeError, match="epochs is part of descent: give one of them"):
        TorchTrainer(linear(), descent=DESCENT, epochs=3)


def test_settings_are_seen_and_replaced_one_by_one() -> None:
    asked = TorchTrainer(linear(), descent=DESCENT)
    shared = asked.descent
    assert asked.get_params()["descent__epochs"] == 2
    assert asked.get_params()["runtime__noise"] == "certified"
    assert "epochs" not in asked.get_params()
    asked.set_params(descent__epochs=7, device="cpu", epsilon=3)
    assert (asked.epochs, asked.sampling_rate, asked.device, asked.epsilon) == (7, 0.5, "cpu", 3)
    assert shared == DESCENT
    asked.set_params(epochs=4, descent=Descent(momentum=0.1))
    assert asked.descent == Descent(momentum=0.1, epochs=4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"descent__depth": 3}, "descent must be told one of sampling_rate, epochs, .*; got 'depth'"),
        ({"descent__epochs": 0, "epsilon": 7}, "epochs must be a whole number >= 1; got 0"),
        ({"depth": 3}, "Invalid parameter 'depth'"),
    ],
)
def test_a_change_that_cannot_be_leaves_everything_as_it_was(changes: dict[str, Any], message: str) -> None:
    asked = TorchTrainer(linear(), descent=DESCENT)
    before = asked.get_params()
    with pytest.raises(ValueError, match=message):
        asked.set_params(**changes)
    assert asked.get_params() == before


@pytest.mark.parametrize("spoiled", [{"descent": None}, {"runtime": "cpu"}, {"tokens": -1}, {"n_public": 0}, {"checkpoint": 3}])
def test_what_was_spoiled_is_noticed_at_fit(spoiled: dict[str, Any]) -> None:
    [name] = spoiled
    with pytest.raises(ParameterError, match=f"{name} must be"):
        TorchTrainer(linear(), **spoiled)
    asked = TorchTrainer(linear()).set_params(**spoiled)
    with pytest.raises(ParameterError, match=f"{name} must be"):
        asked.fit(ROWS, LABELS)


def test_clones_and_pickles_train_a_module_of_their_own() -> None:
    asked = TorchTrainer(linear(), n_public=60, random_state=1, descent=DESCENT)
    for twin in (clone(asked), pickle.loads(pickle.dumps(asked))):
        assert twin.module is not asked.module
        assert twin.descent == DESCENT
        twin.fit(ROWS, LABELS)
        assert not asked.module.weight.detach().any()
    assert clone(asked).descent is asked.descent  # frozen: there is nothing to copy


def test_numbers_of_other_libraries_are_taken_as_the_numbers_they_are() -> None:
    small = Descent(sampling_rate=np.float16(0.5), epochs=np.int8(100))  # type: ignore[arg-type]
    assert small.plan == PoissonPlan.of(sampling_rate=0.5, epochs=100)
    large = TorchTrainer(linear(), n_public=np.int32(10**9), descent=DESCENT)  # type: ignore[arg-type]
    assert large.plan(n_records=10**9) == TorchTrainer(linear(), n_public=10**9, descent=DESCENT).plan(n_records=10**9)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_plan_says_what_fit_will_do(relation: str, tmp_path: Any) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation=relation, epsilon=2, delta=0.1)
    asked = TorchTrainer(linear(), epsilon=1, delta=1e-3, descent=DESCENT, ledger=book)
    plan = asked.plan(n_records=60)
    assert isinstance(plan, Plan)
    assert book.entries() == ()
    facts = asked.fit(ROWS, LABELS).release_.provenance.parameters
    assert (plan.steps, plan.noise_multiplier) == (facts["steps"], float(facts["noise_multiplier"]))
    assert (plan.relation, plan.delta, plan.n_weights) == (relation, "0.001", 8)
    assert plan.noise_to_signal == pytest.approx(plan.noise_multiplier / 30)
    with pytest.raises(ParameterError, match="n_records must be a whole number >= 1"):
        asked.plan(n_records=0)


def test_a_ledger_for_local_data_is_refused_at_once(tmp_path: Any) -> None:
    book = Ledger.create(tmp_path / "book", name="book", relation="local", epsilon=2)
    with pytest.raises(ParameterError, match="ledger must be kept for add-remove or replace-one neighbours"):
        TorchTrainer(linear(), ledger=book)
