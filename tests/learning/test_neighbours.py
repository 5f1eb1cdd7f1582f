"""Attacks on the guarantee from scratch: worst-case neighbours through the real code, and what shapes and errors reveal."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import betaincinv

from learning.learning_samples import SCHEMA, people, problem
from sabun.learning import PrivateClassifier
from sabun.learning.dpsgd import DpSgd
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.objective import ObjectivePerturbation
from sabun.learning.poisson import PoissonPlan
from sabun.learning.training import Data, train, unheard
from sabun.privacy.noise import os_coin


def epsilon_at(hits: int, others: int, delta: float, runs: int) -> float:
    """A lower bound on epsilon from an event seen so often under each neighbour; both bounds at error 1e-6."""
    low = betaincinv(hits, runs - hits + 1, 1e-6) if hits else 0.0
    high = betaincinv(others + 1, max(runs - others, 1e-9), 1 - 1e-6)
    return math.log((low - delta) / high) if low > delta else 0.0


def worst(method: Any, member: Data, absent: Data, direction: np.ndarray, *, runs: int) -> float:
    """The best bound over thresholds of the released weights along one direction, chosen on separate runs."""
    score = {
        name: np.array([train(method, table, coin=os_coin(), progress=unheard)["weights"] @ direction for _ in range(runs)])
        for name, table in (("in", member), ("out", absent))
    }
    delta = float(method.problem.delta)
    edges = np.quantile(np.concatenate([score["in"], score["out"]]), [0.02, 0.1, 0.5, 0.9, 0.98])
    bounds = [0.0]
    for edge in edges:
        for sign in (1, -1):
            counts = [int((sign * score[name] > sign * edge).sum()) for name in ("in", "out")]
            bounds += [epsilon_at(counts[0], counts[1], delta, runs), epsilon_at(counts[1], counts[0], delta, runs)]
    return max(bounds)


def single(relation: str, epsilon: str, kind: type) -> tuple[Any, Data, Data, np.ndarray]:
    """One full-batch step on a single record whose gradient points one way: the worst case of the analysis."""
    given = problem(
        width=1, relation=relation, epsilon=Fraction(epsilon), delta=Fraction(0 if kind is LaplaceSgd else 1, 10**5), n_public=1
    )
    method = kind(
        problem=given,
        network=given.network(()),
        plan=PoissonPlan(threshold=2**32, steps=1),
        clip_norm=1.0,
        learning_rate=1.0,
        momentum=0.0,
    )
    empty = Data(rows=np.empty((0, 1)), labels=np.empty(0, dtype=np.int64))
    record = Data(rows=np.array([[50.0]]), labels=np.array([1]))
    return method, record, empty, np.array([-1.0, 1.0, 0.0, 0.0])


@pytest.mark.parametrize(("kind", "least"), [(DpSgd, 0.1), (LaplaceSgd, 0.1)])
def test_a_worst_case_step_stays_within_its_promise_and_the_audit_sees_it(kind: type, least: float) -> None:
    method, record, empty, direction = single("add-remove", "2", kind)
    found = worst(method, record, empty, direction, runs=2500 if kind is DpSgd else 1500)
    assert least < found <= 2.0


def test_the_same_audit_catches_half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    method, record, empty, direction = single("add-remove", "2", DpSgd)
    true = method.multiplier
    monkeypatch.setattr(DpSgd, "multiplier", property(lambda self: true / 4))
    assert worst(method, record, empty, direction, runs=1500) > 2.0


def test_objective_perturbation_stays_within_its_promise() -> None:
    given = problem(width=1, relation="replace-one", epsilon=Fraction(2), delta=Fraction(0), n_public=1)
    method = ObjectivePerturbation(problem=given, network=given.network(()), regularisation=Fraction(5, 2))
    one, two = (Data(rows=np.array([[1.0]]), labels=np.array([label])) for label in (0, 1))
    assert worst(method, one, two, np.array([0.0, 1.0, 0.0, 1.0]), runs=400) <= 2.0


EXTREMES: list[Any] = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, -0.0]


@pytest.mark.parametrize("method", ["dp-sgd", "laplace-sgd", "objective-perturbation", "anonymized-learning", "learning-first"])
def test_no_cell_can_raise_or_change_a_shape(method: str) -> None:
    settings: dict[str, Any] = {"epochs": 1, "random_state": 1, "classes": [0, 1], "method": method}
    settings |= {"sampling_rate": 0.5} if method.endswith("-sgd") else {}
    settings |= (
        {"delta": 0.01, "n_public": 8, "relation": "replace-one", "epsilon": Fraction(1, 2)} if method == "dp-sgd" else {}
    )
    shapes = set()
    for value in EXTREMES:
        rows = np.array([[value, 1.0], *[[0.5, 0.2]] * 7])
        labels: Any = [1, 0, 1, 0, 1, 0, 1, 0]
        clf = PrivateClassifier(hidden=(), **settings).fit(rows, labels)
        assert np.isfinite(clf.model_.weights).all()
        shapes.add((clf.model_.weights.shape, clf.classes_.tolist() == [0, 1], len(clf.release_.provenance.parameters)))
    assert len(shapes) == 1


@pytest.mark.parametrize("label", [None, "maybe", 7, math.nan])
def test_a_strange_label_is_a_record_without_weight(label: Any) -> None:
    frame, labels = people(60)
    strange = labels.astype(object)
    strange[3] = label
    clf = PrivateClassifier(schema=SCHEMA, classes=["no", "yes"], delta=1e-3, sampling_rate=0.5, epochs=1).fit(frame, strange)
    assert clf.classes_.tolist() == ["no", "yes"]


def test_declared_classes_do_not_depend_on_who_is_there() -> None:
    frame, labels = people(60)
    for some in (labels, np.full(60, "no")):
        clf = PrivateClassifier(schema=SCHEMA, classes=["no", "yes"], delta=1e-3, sampling_rate=0.5, epochs=1).fit(frame, some)
        assert clf.predict_proba(frame).shape == (60, 2)


def test_the_release_says_nothing_about_a_private_number_of_records() -> None:
    frame, labels = people(77)
    clf = PrivateClassifier(schema=SCHEMA, classes=["no", "yes"], delta=1e-3, sampling_rate=0.5, epochs=1).fit(frame, labels)
    assert clf.release_.provenance.parameters["n_public"] is None
    assert not any("number of records is public" in words for words in clf.guarantee_.assumptions)
