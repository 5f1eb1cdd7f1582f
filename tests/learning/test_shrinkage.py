"""Weights drawn towards zero: what is noise goes, what stands out stays, and what many columns say together comes back."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from learning.learning_samples import SCHEMA, problem
from sabun.learning import PrivateClassifier
from sabun.learning.dpadam import DpAdam
from sabun.learning.features import Features
from sabun.learning.network import Floats, Network
from sabun.learning.shrinkage import shrunk
from sabun.learning.training import Problem
from sabun.records import Column, Schema

NOISE = 0.16


def drawn(matrix: Floats, noise: float = NOISE) -> Floats:
    """The matrix of a linear model without constants, drawn towards zero."""
    network = Network(sizes=matrix.shape)
    return network.layers(shrunk(network, np.append(matrix, np.zeros(matrix.shape[1])), noise=noise))[0][0]


def opposite(column: Floats) -> Floats:
    """Weights of two classes, which say the same with opposite signs, with noise of a length of one in each."""
    return np.column_stack([column, -column]) / np.sqrt(2)


def test_what_noise_alone_has_done_is_undone() -> None:
    noise = np.random.default_rng(0).normal(size=(500, 4)) * NOISE
    assert np.sqrt((drawn(noise) ** 2).mean()) < 0.1 * NOISE


def test_weights_that_stand_out_stay() -> None:
    column = np.random.default_rng(1).normal(size=500) * NOISE
    column[:3] = 20 * NOISE
    before, after = opposite(column), drawn(opposite(column))
    assert after[:3] == pytest.approx(before[:3], rel=0.02)
    assert np.sqrt((after[3:] ** 2).mean()) < 0.3 * np.sqrt((before[3:] ** 2).mean())


def test_a_model_without_noise_worth_the_name_is_left_as_it_is() -> None:
    before = opposite(np.random.default_rng(2).normal(size=50) * 30 * NOISE)
    # The few weights beside zero are drawn a little farther towards it: noise could have moved them as far.
    assert drawn(before) == pytest.approx(before, rel=0.02, abs=0.5 * NOISE)


def test_with_a_handful_of_weights_little_is_learned_and_little_drawn() -> None:
    before = opposite(np.array([2.5, -2.8, 2.2]) * NOISE)
    share = np.abs(drawn(before)) / np.abs(before)
    assert (share > 0.7).all()


@pytest.mark.parametrize("inputs", [3, 100, 10_000])
def test_no_weight_grows_or_turns_and_none_overtakes_another(inputs: int) -> None:
    before = opposite(np.random.default_rng(inputs).standard_t(2, size=inputs) * NOISE)
    after, order = drawn(before), np.argsort(np.abs(before[:, 0]))
    assert (np.abs(after) <= np.abs(before)).all()
    assert (after * before >= 0).all()
    assert (np.diff(np.abs(after[order, 0])) >= -1e-12 * NOISE).all()


def test_only_differences_between_classes_count() -> None:
    matrix = np.random.default_rng(4).normal(size=(40, 3)) * 3 * NOISE
    assert drawn(matrix + np.arange(40.0)[:, None]) == pytest.approx(drawn(matrix), abs=1e-12)


def test_weights_are_measured_by_their_noise() -> None:
    matrix = np.random.default_rng(5).normal(size=(40, 3)) * 3 * NOISE
    assert drawn(7 * matrix, noise=7 * NOISE) == pytest.approx(7 * drawn(matrix), rel=1e-12)


@pytest.mark.parametrize("hidden", [(), (3,)])
def test_the_more_records_the_less_noise_is_left_and_nothing_is_drawn_where_nothing_centres(hidden: tuple[int, ...]) -> None:
    given = dataclasses.replace(problem(), features=Features(schema=SCHEMA, names=SCHEMA.names))
    method = run_of(given, hidden, standardize=True)
    network = given.network(hidden)
    assert method.turn_of(network) == (75 if not hidden else 0)
    assert run_of(given, hidden, standardize=False).turn_of(network) == 0
    assert run_of(problem(width=7), hidden, standardize=True).turn_of(network) == 0
    few, more, many = (method.noise_left(network, count) for count in (10, 10**5, 4 * 10**5))
    assert few == pytest.approx(0.6 * method.turn_of(network) ** 0.5)
    assert many == pytest.approx(more / 2)
    assert more < few or hidden


def test_constants_stay_and_so_does_the_order_of_inputs() -> None:
    network = Network(sizes=(6, 3))
    weights = np.random.default_rng(6).normal(size=network.n_weights)
    after = shrunk(network, weights, noise=NOISE)
    assert after[18:] == pytest.approx(weights[18:], abs=0)
    turned = np.concatenate([weights[:18].reshape(6, 3)[::-1].ravel(), weights[18:]])
    assert shrunk(network, turned, noise=NOISE)[:18].reshape(6, 3)[::-1].ravel() == pytest.approx(after[:18])


def run_of(given: Problem, hidden: tuple[int, ...], *, standardize: bool) -> DpAdam:
    how: dict[str, Any] = {"network": given.network(hidden), "layered": None, "steps": 100, "clip_norm": 1.0}
    return DpAdam(problem=given, learning_rate=None, standardize=standardize, **how)


def right(rows: object, labels: Floats, schema: Schema, *, epsilon: float, records: int) -> float:
    """How often the default is right on rows that it was not trained on."""
    of = rows.iloc if isinstance(rows, pd.DataFrame) else rows
    clf = PrivateClassifier(epsilon=epsilon, delta=1e-5, schema=schema, classes=[0, 1], random_state=7)
    return float(clf.fit(of[:records], labels[:records]).score(of[records:], labels[records:]))  # type: ignore[index]


def numbers(rows: Floats) -> Schema:
    return Schema.of_bounds({f"x{at}": (-4.0 * spread, 4.0 * spread) for at, spread in enumerate(rows.std(axis=0))})


def test_what_many_columns_say_together_comes_back() -> None:
    """One strong column beside a hundred weak copies of another thing: .81 where weights were drawn at the end, .94 without."""
    rng = np.random.default_rng(8)
    alone, shared = rng.normal(size=7000), rng.normal(size=7000)
    rows = np.column_stack([alone, shared[:, None] + 1.5 * rng.normal(size=(7000, 100))])
    labels = (alone + shared + 0.2 * rng.normal(size=7000) > 0.8).astype(int)
    assert right(rows, labels, numbers(rows), epsilon=3, records=5000) > 0.915


def test_what_the_constant_says_is_not_drawn_away_with_labels_that_nearly_all_have() -> None:
    """Rare yes/no columns and a common class: where labels were not centred, drawing took .07."""
    rng = np.random.default_rng(9)
    labels = (rng.random(9000) < 0.1).astype(int)
    often = rng.uniform(0.01, 0.1, 300) * np.where(rng.random((2, 300)) < 0.1, 4, 1)
    said = pd.DataFrame(np.where(rng.random((9000, 300)) < often[labels], "yes", "no")).add_prefix("q")
    schema = Schema(columns=tuple(Column.category(name, ["no", "yes"]) for name in said))
    assert right(said, labels, schema, epsilon=5, records=7000) > 0.935


def test_one_telling_column_among_very_many_is_found() -> None:
    """Without drawing: .80."""
    rng = np.random.default_rng(10)
    rows = rng.integers(0, 2, (4000, 150)) * 2.0 - 1.0
    labels = (rows[:, 0] > 0) ^ (rng.random(4000) < 0.03)
    assert right(rows, labels.astype(int), numbers(rows), epsilon=2, records=1500) > 0.93
