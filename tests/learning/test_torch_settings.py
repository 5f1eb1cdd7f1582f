"""The parameters of the torch trainer: what belongs together is one object, and each part has its flat name too."""

from __future__ import annotations

import pickle
from dataclasses import replace
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


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"descent": DESCENT, "epochs": 3}, "epochs"),
        ({"descent": Descent(sampling_rate=0.1), "descent__sampling_rate": 0.5}, "sampling_rate"),
        ({"sampling_rate": 0.5, "descent": Descent(sampling_rate=0.1)}, "sampling_rate"),
        ({"noise": "torch", "runtime__noise": "certified"}, "noise"),
    ],
)
def test_a_setting_with_two_values_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be given one value; got one as .* and another as .*"):
        TorchTrainer(linear(), **given)
    with pytest.raises(ParameterError, match=f"{name} must be given one value"):
        TorchTrainer(linear()).set_params(**given)
    assert TorchTrainer(linear(), descent=DESCENT, epochs=2, descent__epochs=2).descent is DESCENT  # type: ignore[call-arg]


def old_state(plan: PoissonPlan) -> dict[str, Any]:
    """What the last version without settings wrote down."""
    flat = {name: value for name, value in FLAT.items() if name not in ("sampling_rate", "epochs")}
    given = dict.fromkeys(("delta", "relation", "n_public", "checkpoint", "tokens", "ledger", "progress", "random_state"))
    return {"module": linear(), "epsilon": 1, "loss": "cross_entropy", "input_bound": 1e6, "plan": plan, **given, **flat}


@pytest.mark.parametrize(
    ("rate", "epochs"), [(0.5, 2), (0.1, 3), (1 / 3, 10), (0.07, 1), (1.0, 4), (0.003, 7), (256 / 49_999, 5)]
)
def test_a_pickle_with_flat_names_keeps_every_setting(rate: float, epochs: int) -> None:
    plan = PoissonPlan.of(sampling_rate=rate, epochs=epochs)
    old = TorchTrainer.__new__(TorchTrainer)
    old.__setstate__(old_state(plan))
    assert old.descent.plan == plan
    assert old.descent == replace(DESCENT, sampling_rate=old.sampling_rate, epochs=epochs)
    assert old.sampling_rate == pytest.approx(rate, abs=2**-32), "it was kept on that grid"
    assert old.runtime == RUNTIME
    assert not set(vars(old)) & {*FLAT, "plan"}
    today = TorchTrainer(linear(), epsilon=1, descent=replace(DESCENT, sampling_rate=rate, epochs=epochs), runtime=RUNTIME)
    assert old.plan(n_records=60) == clone(old).plan(n_records=60) == today.plan(n_records=60)


def test_a_rate_that_no_short_fraction_is_near_is_kept_too() -> None:
    rare = Descent(sampling_rate=2.0**-30, epochs=1)
    assert Descent().following(rare.plan) == rare


def test_a_pickle_whose_settings_have_no_place_is_refused() -> None:
    old = TorchTrainer.__new__(TorchTrainer)
    with pytest.raises(ParameterError, match="plan must follow from a sampling rate and epochs; it does not"):
        old.__setstate__(old_state(PoissonPlan(threshold=12345, steps=3)))
    with pytest.raises(
        ParameterError, match="a pickled TorchTrainer must hold settings that this version takes; noise must be"
    ):
        old.__setstate__(old_state(PoissonPlan.of(sampling_rate=0.5, epochs=2)) | {"noise": "loud"})
    with pytest.raises(ParameterError, match="a pickled TorchTrainer must hold its descent; it does not"):
        old.__setstate__({"module": linear(), "epsilon": 1})


def test_settings_are_seen_and_replaced_one_by_one() -> None:
    asked = TorchTrainer(linear(), descent=DESCENT)
    shared = asked.descent
    assert asked.get_params()["descent__epochs"] == 2
    assert asked.get_params()["runtime__noise"] == "certified"
    assert "epochs" not in asked.get_params()
    asked.set_params(descent__epochs=7, device="cpu", epsilon=3)
    assert (asked.epochs, asked.sampling_rate, asked.device, asked.epsilon) == (7, 0.5, "cpu", 3)
    assert shared == DESCENT
    asked.set_params(epochs=4, descent=Descent(momentum=0.1, epochs=4))
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
