"""Noisy centroids: what a record can move, what the promise costs, how well the model does."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from learning.learning_samples import SCHEMA, people, points, problem
from sabun.errors import BoundsError, ParameterError
from sabun.learning import PrivateClassifier, load_model, verify
from sabun.learning.centroids import NoisyCentroids
from sabun.learning.features import Features
from sabun.learning.network import Network
from sabun.learning.recompute import recompute
from sabun.learning.training import Data, train, unheard
from sabun.privacy.noise import os_coin
from sabun.records import Column, Schema

BOUNDED = Features(schema=SCHEMA, names=SCHEMA.names)


def run(relation: str = "add-remove", epsilon: Fraction = Fraction(1), **changes: Any) -> NoisyCentroids:
    given = problem(relation=relation, epsilon=epsilon, delta=Fraction(0), n_public=100)
    given = dataclasses.replace(given, features=BOUNDED, **changes)
    return NoisyCentroids(problem=given, network=given.network(()))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_account_is_the_promise(relation: str) -> None:
    assert recompute(run(relation).account) == (1, 0)


def test_no_record_moves_a_coordinate_by_more_than_one() -> None:
    method, generator = run(), np.random.default_rng(0)
    corners = np.concatenate([generator.choice([-1.0, 0.0, 1.0], (50, 7)), generator.uniform(-1, 1, (50, 7))])
    for sums in ([method._pooled(row[None, :]) for row in corners], [method._of_class(row[None, :]) for row in corners]):
        sizes = [np.abs(found.places).max() / found.unit for found in sums]
        assert max(sizes) == 1.0


def test_a_row_far_from_the_others_adds_no_more_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    parts: list[int] = []

    def listener(self: NoisyCentroids, sums: Any, *rest: Any) -> Any:
        seen.append(float(np.abs(sums.places).max()) / sums.unit)
        parts.append(rest[-1])
        return sums.places / sums.unit

    monkeypatch.setattr(NoisyCentroids, "_noisy", listener)
    rows = np.concatenate([np.zeros((30, 7)), np.ones((1, 7))])
    train(run(), Data(rows=rows, labels=np.array([0] * 30 + [1])), coin=os_coin(), progress=unheard)
    assert seen == [31.0, 30.0, 1.0]
    assert len(set(parts)) == 3, "no two sums share their noise"


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [1, 8, 300, 1000])
@pytest.mark.parametrize("inputs", [7, 503, 5000])
def test_no_table_is_so_wide_that_most_draws_of_its_noise_are_thrown_away(inputs: int, epsilon: int, relation: str) -> None:
    """A draw is kept with a probability of about exp(-dimension / (2 scale)), and the noise in units of one is the same."""
    method = run(relation, Fraction(epsilon))
    wide = NoisyCentroids(problem=method.problem, network=Network(sizes=(inputs, 2)))
    scale = wide.moved * wide.steps_to_one / wide.epsilons[1]
    assert scale > inputs
    assert wide.steps_to_one == 1 << 12 or scale <= 2 * (inputs + 1), "no finer than it must be"


def test_pooled_sums_leave_out_squares_of_labels() -> None:
    assert len(run()._pooled(np.zeros((3, 7))).places) == 7 + 2 + 1


def test_means_and_spreads_come_out_where_there_is_no_noise() -> None:
    method, rows = run(epsilon=Fraction(10**6)), np.random.default_rng(0).uniform(-1, 1, (5000, 7))
    sums = method._pooled(rows)
    means, spreads = method._scaling(sums.places / sums.unit)
    assert means == pytest.approx(rows.mean(axis=0), abs=0.001)
    assert spreads[:2] == pytest.approx(rows[:, :2].std(axis=0), abs=0.001)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_an_empty_table_or_class_gives_noise_and_no_error(relation: str) -> None:
    empty = Data(rows=np.empty((0, 7)), labels=np.empty(0, dtype=np.int64))
    alone = Data(rows=np.ones((4, 7)), labels=np.zeros(4, dtype=np.int64))
    for table in (empty, alone):
        assert np.isfinite(train(run(relation), table, coin=os_coin(), progress=unheard)["weights"]).all()


def test_few_records_are_told_apart_with_pure_epsilon() -> None:
    """Blobs whose best line is right 95.8 % of the time; chance is a half, and 300 rows at epsilon 3 leave noise of .02."""
    schema = Schema(columns=[Column.number(f"x{i}", lower=-2, upper=3) for i in range(3)])
    rows, labels = points(300)
    clf = PrivateClassifier(method="noisy-centroids", epsilon=3, schema=schema, classes=[0, 1]).fit(rows, labels)
    assert clf.guarantee_.delta == 0
    assert clf.score(rows, labels) > 0.85


def test_the_model_is_saved_and_verified(tmp_path: Any) -> None:
    frame, labels = people(100)
    clf = PrivateClassifier(method="noisy-centroids", epsilon=1, schema=SCHEMA, classes=["no", "yes"]).fit(frame, labels)
    clf.save(tmp_path / "model")
    assert "recomputed joint epsilon 1 at delta 0" in verify(tmp_path / "model")
    assert (load_model(tmp_path / "model").predict(frame) == clf.predict(frame)).all()


def test_bounds_are_needed() -> None:
    rows, labels = points(20)
    with pytest.raises(BoundsError, match="schema must be given for 'noisy-centroids'"):
        PrivateClassifier(method="noisy-centroids", classes=[0, 1]).fit(rows, labels)


def test_the_default_points_to_it_for_delta_zero() -> None:
    with pytest.raises(ParameterError, match="Use the method 'noisy-centroids' for delta 0"):
        PrivateClassifier(delta=0)
