"""Full-batch Adam: its account, its scaling of inputs, what it keeps from step to step, and which network it takes."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from learning.learning_samples import SCHEMA, data, people, points, problem
from sabun.errors import ParameterError
from sabun.learning import DpAdamSettings, DpSgdSettings, PrivateClassifier, dpadam, load_model, standardizing, verify
from sabun.learning.accounting import whole_events
from sabun.learning.dpadam import DpAdam
from sabun.learning.features import Features
from sabun.learning.network import Network
from sabun.learning.recompute import recompute
from sabun.learning.standardizing import Standardizing, folded
from sabun.learning.stream import Stream
from sabun.learning.training import Data, train, unheard
from sabun.privacy.noise import os_coin, seeded_coin
from sabun.records import Column, Schema, open_source

BOUNDED = Features(schema=SCHEMA, names=SCHEMA.names)


def run(**changes: Any) -> DpAdam:
    about = {name: changes.pop(name) for name in ("relation", "epsilon", "delta", "n_public") if name in changes}
    given = problem(**about)
    values = {"problem": given, "network": given.network(()), "layered": None, "steps": 5, "clip_norm": 1.0}
    return DpAdam(**{**values, "learning_rate": 0.1, "standardize": True, **changes})


def rows_of(frame: Any) -> np.ndarray:
    return BOUNDED.inputs(open_source(frame, schema=SCHEMA).matrix())


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_account_proves_the_promise_and_little_less(relation: str, scaled: bool) -> None:
    given = dataclasses.replace(problem(relation=relation), features=BOUNDED)
    method = run(problem=given, network=given.network(()), standardize=scaled)
    assert len(method.events) == 1 + scaled + (relation == "add-remove")
    epsilon, delta = recompute(method.account)
    assert Fraction(98, 100) * method.guarantee.epsilon < epsilon <= method.guarantee.epsilon
    assert delta <= method.guarantee.delta


def test_a_replacement_moves_two_rows() -> None:
    one, two = run(n_public=100).multiplier, run(relation="replace-one").multiplier
    assert 1.99 < two / one < 2.01


def test_a_card_cannot_call_sampled_steps_whole_ones() -> None:
    account = run(relation="replace-one").account
    event = {"kind": "sampled-gaussian", "noise_multiplier": "5", "sampling_probability": "1/10", "count": 1}
    with pytest.raises(ParameterError, match="relation of the account"):
        recompute({**account, "events": [event]})


def test_all_steps_together_tell_nine_times_what_the_scaling_tells() -> None:
    steps, scaling = whole_events(Fraction(10), 50, moved=2, count_epsilon=Fraction(0), scaled=True)
    assert steps.rho() / scaling.rho() == pytest.approx(9, rel=1e-5)


def test_an_empty_table_gives_noise_and_no_error() -> None:
    empty = Data(rows=np.empty((0, 3)), labels=np.empty(0, dtype=np.int64))
    weights = train(run(), empty, coin=os_coin(), progress=unheard)["weights"]
    assert np.isfinite(weights).all()
    assert np.abs(weights).max() > 0


def test_rows_without_a_known_label_count_as_absent() -> None:
    method, whole = run(), data(60)
    some = Data(rows=np.concatenate([whole.rows, np.ones((5, 3))]), labels=np.concatenate([whole.labels, np.full(5, -1)]))
    both = [train(method, table, coin=seeded_coin(3), progress=unheard)["weights"] for table in (whole, some)]
    assert (both[0] == both[1]).all()


def test_a_state_says_all_that_later_steps_need() -> None:
    given = dataclasses.replace(problem(), features=BOUNDED)
    method = run(problem=given, network=given.network(()), layered=given.network((4,)), steps=9)
    frame, _ = people(50)
    table = Data(rows=rows_of(frame), labels=np.arange(50) % 2)
    steps = list(method.states(table, Stream(bytes(32)), progress=unheard, start=method.first()))
    again = list(method.states(table, Stream(bytes(32)), progress=unheard, start=steps[2]))
    assert [state.bits for state in again] == [state.bits for state in steps[3:]]
    assert {len(state.velocity) for state in steps} == {len(method.first().velocity)}


def test_no_two_draws_share_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    def listener(centre: Any, *, step: int, **how: Any) -> Any:
        used.append(step)
        return centre

    for module in (dpadam, standardizing):
        monkeypatch.setattr(module, "rounded_gaussian", listener)
    given = dataclasses.replace(problem(), features=BOUNDED)
    method = run(problem=given, network=given.network(()))
    table = Data(rows=np.full((4, 7), 0.5), labels=np.zeros(4, dtype=np.int64))
    train(method, table, coin=os_coin(), progress=unheard)
    assert len(used) == len(set(used)) == method.steps + 1


def test_no_record_adds_more_than_its_length() -> None:
    scaling = Standardizing(features=BOUNDED, paid=True)
    corners = np.array([[u, v, 1, 0, 1, 0, 0] for u in (0.0, 0.5, 1.0) for v in (0.0, 0.3, 1.0)])
    lengths = [float(np.linalg.norm(scaling._sums(row[None, :]))) for row in corners]
    assert max(lengths) == pytest.approx(float(scaling.length), rel=1e-12)
    assert max(lengths) <= float(scaling.length) * (1 + 1e-12)


def test_sums_of_inputs_are_exact() -> None:
    generator = np.random.default_rng(0)
    rows = generator.uniform(0, 1, (5000, 7))
    scaling = Standardizing(features=BOUNDED, paid=True)
    parts = sum((Fraction(float(part)) for row in rows for part in scaling._sums(row[None, :])[2:3]), Fraction(0))
    assert Fraction(float(scaling._sums(rows)[2])) == parts


@pytest.mark.parametrize("count", [1, 3, 50])
def test_a_row_without_a_known_label_adds_less_and_none_adds_more(count: int) -> None:
    """The sums' sensitivity rests on it: of each category a row has one label, or none where the cell holds another."""
    frame, _ = people(count)
    frame.loc[frame.index[::2], "sex"] = "X"
    rows, scaling = rows_of(frame), Standardizing(features=BOUNDED, paid=True)
    assert rows[:, scaling.labels[:2]].sum(axis=1).max() <= 1
    assert all(np.linalg.norm(scaling._sums(row[None, :])) <= float(scaling.length) * (1 + 1e-12) for row in rows)


def test_means_and_spreads_are_found_where_there_is_little_noise() -> None:
    frame, _ = people(4000)
    rows, scaling = rows_of(frame), Standardizing(features=BOUNDED, paid=True)
    found = scaling.drawn(rows, Fraction(1, 10), 1, stream=Stream(bytes(32)))
    z = 2 * rows[:, :2] - 1
    assert found[:2] == pytest.approx(z.mean(axis=0), abs=0.01)
    assert found[2:4] == pytest.approx(z.std(axis=0), abs=0.01)
    shares = rows[:, 2:].mean(axis=0)
    assert found[4:-1] == pytest.approx(shares, abs=0.01)
    assert found[-1] == pytest.approx(2 + 2 - (shares**2).sum(), abs=0.02)  # two numbers with a spread of one, two categories


def test_noisy_means_of_many_columns_help_each_other_and_few_differ_as_they_please() -> None:
    rng = np.random.default_rng(0)
    noise = 0.35
    ends = standardizing._together(-0.96 + noise * rng.normal(size=100), noise)
    assert np.abs(ends + 0.96).max() < 0.15  # towards the middle alone, they were .3 off, all in one direction
    apart = rng.uniform(-1, 1, 40)
    assert standardizing._together(apart + 0.01 * rng.normal(size=40), 0.01) == pytest.approx(apart, abs=0.05)
    assert np.abs(standardizing._together(np.array([0.9]), 5.0)).max() < 0.05
    assert len(standardizing._together(np.empty(0), 1.0)) == 0


def test_columns_that_crowd_at_one_end_of_their_bounds_are_told_apart() -> None:
    """A hundred columns of money that say the same, 400 records: one class was said of every row."""
    rng = np.random.default_rng(2)
    behind = rng.normal(size=(3400, 1))
    rows = np.exp(0.6 * (0.8 * behind + 0.6 * rng.normal(size=(3400, 100))))
    clf = PrivateClassifier(epsilon=1, delta=1e-5, schema=Schema.of_bounds([(0, 60)] * 100), classes=[0, 1], random_state=3)
    labels = (behind[:, 0] + 0.2 * rng.normal(size=3400) > 0).astype(int)
    assert clf.fit(rows[:400], labels[:400]).score(rows[400:], labels[400:]) > 0.7


def test_with_much_noise_inputs_are_centred_and_no_more() -> None:
    rows, scaling = np.full((3, 7), 1.0), Standardizing(features=BOUNDED, paid=True)
    found = scaling.drawn(rows, Fraction(10**6), 1, stream=Stream(bytes(32)))
    assert (np.abs(found[:2]) < 1).all()
    assert ((found[2:4] >= 0.25) & (found[2:4] <= 1)).all()
    assert ((found[4:-1] >= 0) & (found[4:-1] <= 1)).all()


@pytest.mark.parametrize(("spread", "longer"), [(0.3, True), (0.003, False)])
def test_the_constant_is_longer_beside_long_rows_and_not_beside_short_ones(spread: float, longer: bool) -> None:
    """A hundred columns that hardly fill their bounds make rows shorter than one: a longer constant cost up to .29 there."""
    schema = Schema.of_bounds([(0, 1)] * 100)
    features = Features(schema=schema, names=schema.names)
    method = run(problem=dataclasses.replace(problem(), features=features), network=Network(sizes=(100, 2)))
    rows = 0.5 + spread * np.random.default_rng(0).choice([-1, 1], (4000, 100))
    scaling = method.standardizing.drawn(rows, Fraction(1, 10), 1, stream=Stream(bytes(32)))
    constant = method.constant_of(method.network, scaling)
    assert constant == pytest.approx(math.sqrt(100 / 32), rel=0.01) if longer else constant == 1.0
    assert method.constant_of(Network(sizes=(100, 4, 2)), scaling) == 1.0
    assert method.constant_of(method.network, method.standardizing.first()) == 1.0


def test_without_bounds_no_constant_is_longer_and_no_weight_is_drawn() -> None:
    """Rows of a thousand columns without a schema may be of length one: a longer constant cost .29."""
    rng = np.random.default_rng(1)
    told = rng.random((3500, 400)) ** 8
    rows, labels = (
        told / np.linalg.norm(told, axis=1)[:, None],
        (told[:, :200].sum(axis=1) > told[:, 200:].sum(axis=1)).astype(int),
    )
    clf = PrivateClassifier(epsilon=5, delta=1e-5, classes=[0, 1], random_state=1).fit(rows[:2500], labels[:2500])
    assert clf.score(rows[2500:], labels[2500:]) > 0.75


def test_shares_below_their_noise_move_no_input() -> None:
    """Noise over two thousand labels would shift every input of every row."""
    schema = Schema(columns=[Column.category("town", [f"t{place}" for place in range(2000)])])
    scaling = Standardizing(features=Features(schema=schema, names=schema.names), paid=True)
    found = scaling.drawn(np.eye(500, 2000), Fraction(10), 1, stream=Stream(bytes(32)))
    assert np.linalg.norm(found[:-1]) < 0.5


def test_the_first_layer_takes_the_scaling_in() -> None:
    network = Network(sizes=(7, 4, 2))
    weights, rows = network.initial(), np.random.default_rng(1).uniform(0.3, 0.7, (20, 7))
    scaling = Standardizing(features=BOUNDED, paid=True)
    values = np.array([0.1, -0.2, 0.5, 0.8, 0.4, 0.6, 0.2, 0.3, 0.5, 4.0])
    through = network.probabilities(weights, scaling.applied(rows, values, 2.5))
    assert network.probabilities(folded(network, weights, *scaling.affine(values, 2.5)), rows) == pytest.approx(through)


@pytest.mark.parametrize(("n_public", "hidden"), [(100, ()), (10**6, (32,))])
def test_a_public_number_of_records_decides_on_the_layer(n_public: int, hidden: tuple[int, ...]) -> None:
    clf = PrivateClassifier(epsilon=1, schema=SCHEMA, classes=["no", "yes"], n_public=n_public, epochs=2)
    clf.fit(*people(60))
    assert clf.model_.network.sizes[1:-1] == hidden


@pytest.mark.parametrize(("n_records", "layered"), [(1598, False), (2411, False), (2412, True)])
def test_a_layer_needs_three_records_for_each_weight_however_little_noise_there_is(n_records: int, layered: bool) -> None:
    """The largest of four columns of twenty, 1,598 records, epsilon 8: a layer had .038 less than the former default."""
    schema = Schema.of_bounds({f"x{place}": (0, 1) for place in range(20)})
    plan = PrivateClassifier(epsilon=8, delta=1e-5, schema=schema, classes=[0, 1, 2, 3]).plan(n_records=n_records)
    assert plan.n_weights == (804 if layered else 84)


@pytest.mark.parametrize("count", [10, 10**6])
def test_a_noisy_number_of_records_decides_on_the_layer(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DpAdam, "noisy_count", lambda *_: count)
    how: dict[str, Any] = {"epsilon": 1, "delta": 1e-9, "classes": ["no", "yes"], "epochs": 2}
    clf = PrivateClassifier(schema=SCHEMA, **how).fit(*people(60))
    assert (len(clf.model_.network.sizes) == 3) == (count > 1000)
    assert clf.release_["model"]["sizes"] == clf.model_.network.sizes
    assert clf.release_.provenance.parameters["sizes"] == (7, 2)
    assert clf.release_.provenance.parameters["layered_from"] > 100


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_what_is_remembered_of_the_number_of_records_is_public_or_noisy(relation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DpAdam, "noisy_count", lambda self, *_: None if self.problem.n_public else 123)
    method = run(relation=relation)
    [*_, last] = method.states(data(60), Stream(bytes(32)), progress=unheard, start=method.first())
    assert dpadam._Memory.read(last, method).count == (123 if relation == "add-remove" else 100)


def test_a_layered_model_is_saved_verified_and_loaded(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DpAdam, "noisy_count", lambda *_: 10**6)
    frame, labels = people(60)
    clf = PrivateClassifier(epsilon=1, delta=1e-9, schema=SCHEMA, classes=["no", "yes"], epochs=2).fit(frame, labels)
    clf.save(tmp_path / "model")
    assert "recomputed" in verify(tmp_path / "model")
    assert (load_model(tmp_path / "model").predict(frame) == clf.predict(frame)).all()


def test_wide_bounds_and_off_centre_numbers_do_not_matter() -> None:
    """900 rows far from the middle of bounds fifty times as wide: without scaling they are one point to the network."""
    from sabun.records import Column, Schema

    rows, labels = points(900, seed=3)
    wide = Schema(columns=[Column.number(f"x{i}", lower=-20, upper=30) for i in range(3)])
    clf = PrivateClassifier(epsilon=8, delta=1e-5, schema=wide, classes=[0, 1]).fit(rows, labels)
    # Two blobs two standard deviations of sqrt(3) apart: the best line is right 95.8 % of the time; chance is 50 %.
    assert clf.score(rows, labels) > 0.85


@pytest.mark.parametrize("changes", [{"sampling_rate": 0.05}, {"momentum": 0.5}, {"clip_norm": 0.5, "sampling_rate": 0.2}])
def test_names_that_only_the_former_default_has_choose_it(changes: dict[str, Any]) -> None:
    assert PrivateClassifier(**changes).method == DpSgdSettings(**changes)


def test_other_names_keep_the_default() -> None:
    assert PrivateClassifier(clip_norm=0.5, sampling_rate=0.1).method == DpAdamSettings(clip_norm=0.5)
    with pytest.raises(ParameterError, match=r"momentum must be 0\.9 for method 'dp-adam', which does without"):
        PrivateClassifier(method="dp-adam", momentum=0.5)


def test_a_table_too_long_for_whole_sums_is_refused() -> None:
    with pytest.raises(ParameterError, match="n_public must be at most 6000000"):
        PrivateClassifier(n_public=10**7, delta=1e-9).plan(n_records=10**7, n_features=3)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_without_a_schema_a_warning_names_what_to_declare(relation: str) -> None:
    rows, labels = points(50)
    with pytest.warns(UserWarning, match=r"without a schema .*Column.number\('x0', lower=\.\.\., upper=\.\.\.\)"):
        PrivateClassifier(classes=[0, 1], epochs=1, delta=1e-3, relation=relation).fit(rows, labels)


def test_the_warning_comes_before_the_charge(tmp_path: Any) -> None:
    from sabun.ledger import Ledger

    book = Ledger.create(tmp_path / "book.ledger", name="book", epsilon=3, delta=1e-3)
    rows, labels = points(50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sabun.learning.classifier.warn", _raised)
        with pytest.raises(UserWarning, match="without a schema"):
            PrivateClassifier(classes=[0, 1], epochs=1, delta=1e-5, ledger=book).fit(rows, labels)
    assert book.spent.epsilon == 0


def _raised(words: str, **how: Any) -> None:
    raise UserWarning(words)


def test_more_records_than_classes_need_no_warning_with_a_schema(recwarn: pytest.WarningsRecorder) -> None:
    PrivateClassifier(schema=SCHEMA, classes=["no", "yes"], epochs=1).fit(*people(50))
    assert not [found for found in recwarn if "schema" in str(found.message)]


def test_a_gradient_is_scaled_by_its_noise_alone() -> None:
    """Adam's first step is plus or minus the rate in each weight: nothing divides by a number of records."""
    method = run(steps=1, learning_rate=0.25, n_public=100)
    [state] = method.states(data(100), Stream(bytes(32)), progress=unheard, start=method.first())
    assert np.abs(state.weights) == pytest.approx(np.full(method.network.n_weights, 0.25), rel=1e-6)
    assert math.isfinite(float(np.abs(state.velocity).max()))


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_the_released_model_predicts_as_the_trained_one_did(hidden: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd at one end of the bounds and a few records at the other, which are scaled farthest."""
    trained: list[dpadam._Memory] = []
    read = dpadam._Memory.read
    monkeypatch.setattr(dpadam._Memory, "read", lambda *of: trained.append(read(*of)) or trained[-1])
    rows = np.zeros((400, 7))
    rows[:8, :2], rows[8:, 2], rows[:8, 3] = 1.0, 1.0, 1.0
    given = dataclasses.replace(problem(n_public=400, epsilon=50), features=BOUNDED)
    method = run(problem=given, network=given.network(hidden))
    value = train(method, Data(rows=rows, labels=(rows[:, 0] > 0).astype(np.int64)), coin=os_coin(), progress=unheard)
    seen = method.standardizing.applied(rows, trained[-1].scaling, 1.0)
    assert 6.5 < np.abs(seen).max() <= 8  # means of 0.96 from the middle, spreads of a quarter: 7.84 but for noise
    inside = method.network.probabilities(trained[-1].weights, seen)
    assert method.network.probabilities(value["weights"], rows) == pytest.approx(inside, abs=1e-9)
