"""What a plan foretells: more noise costs more, nothing is foretold where nothing is known, and hopeless plans say so."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression

from learning.learning_samples import SCHEMA, problem
from sabun.asking import Planned
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier
from sabun.learning.dpadam import DpAdam
from sabun.learning.features import Features, Labels
from sabun.learning.forecasting import floor_of, foretold
from sabun.learning.methods import calibrated, problem_of
from sabun.learning.training import Method
from sabun.records import Schema
from sabun.telling.floor import MOST

FORETOLD = ("dp-adam", "dp-sgd", "laplace-sgd", "noisy-centroids", "objective-perturbation")
EITHER = FORETOLD[:-1]
"""Those that protect who comes or goes as well as who is replaced."""


def plan(method: str = "dp-adam", n_records: int = 1000, **changes: Any) -> Any:
    facts: dict[str, Any] = {"epsilon": 1, "schema": SCHEMA, "classes": ["no", "yes"]} | changes
    return PrivateClassifier(method=method, **facts).plan(n_records=n_records)


@pytest.mark.parametrize("method", FORETOLD)
def test_a_plan_foretells_an_optimistic_and_a_pessimistic_loss(method: str) -> None:
    found = plan(method)
    assert isinstance(found, Planned)
    kind, unkind = found.forecasts
    assert kind.middle < unkind.middle <= 0.5
    assert 0 == kind.low < kind.middle < kind.high <= 0.5, "a model that would learn nothing without noise loses nothing"
    assert json.loads(json.dumps(found.to_dict()))["forecasts"][0]["middle"] == kind.middle
    assert "accuracy lost to noise" in str(found)
    assert (kind.low, kind.high) == (unkind.low, unkind.high), "what was measured is the span of both"
    assert all("in nine of ten tables" in words for words in (str(found), *map(str, found.forecasts)))


@pytest.mark.parametrize("method", FORETOLD)
def test_less_epsilon_and_fewer_records_cost_accuracy(method: str) -> None:
    usual = plan(method).forecasts[0].middle
    assert plan(method, epsilon=0.1).forecasts[0].middle > usual
    assert plan(method, n_records=100).forecasts[0].middle > usual
    assert plan(method, n_records=10_000_000).forecasts[0].middle < 0.01


def test_a_hidden_layer_may_lose_more_than_its_noise_says() -> None:
    linear, layered = (plan(hidden=hidden).forecasts for hidden in ((), (32,)))
    shares = [[one.middle / (0.5 - one.middle) for one in found] for found in (linear, layered)]
    assert shares[0][1] / shares[0][0] == pytest.approx(10)
    assert shares[1][1] / shares[1][0] == pytest.approx(12)


def test_where_noise_on_the_number_of_records_decides_about_a_layer_both_models_are_foretold() -> None:
    """The count's noise has a scale of 1 / (0.005 epsilon), here 200 records."""
    given = problem(epsilon=1)
    both = {"network": given.network(()), "layered": given.network((32,)), "standardize": False, "learning_rate": 0.1}
    method = DpAdam(problem=given, steps=100, clip_norm=1.0, **both)
    surely_linear, near, layered = (foretold(method, method.plenty + far, 2) for far in (-1010, -990, 1010))
    assert near[0].middle == pytest.approx(surely_linear[0].middle, rel=0.05)
    assert near[1].middle > layered[1].middle > surely_linear[1].middle


def test_noisy_centroids_are_foretold_unkindly_for_one_column_that_tells_and_noise_on_spreads() -> None:
    found = plan("noisy-centroids")
    kind, unkind = (one.middle / (0.5 - one.middle) for one in found.forecasts)
    columns = found.n_weights // 2 - 1
    numbers = sum(Features(schema=SCHEMA, names=SCHEMA.names).bounded)
    spreads = math.sqrt((columns + numbers + 2) * (columns + numbers + 3) / 3) / (0.3 * 1000)
    assert unkind == pytest.approx(2 * columns * kind + 5 * spreads)


@pytest.mark.parametrize(
    ("columns", "records", "epsilon", "lost"),
    [(5, 200, 2, 0.237), (5, 800, 2, 0.113), (3, 800, 2, 0.040), (3, 200, 0.5, 0.125), (2, 200, 0.5, 0.125)],
)
def test_what_was_lost_where_values_fill_little_of_their_bounds_is_foretold(
    columns: int, records: int, epsilon: float, lost: float
) -> None:
    """Medians of three runs beside epsilon 30: bounds stretched by outliers, long tails, a column and its square."""
    schema = Schema.of_bounds({f"x{place}": (0, 1) for place in range(columns)})
    assert lost <= 3 * plan("noisy-centroids", n_records=records, epsilon=epsilon, schema=schema).forecasts[1].middle + 0.01


@pytest.mark.parametrize("method", FORETOLD)
def test_a_model_of_noise_is_called_one(method: str) -> None:
    found = plan(method, n_records=5, epsilon=0.001)
    assert found.vacuous
    assert found.to_dict()["vacuous"] is True
    assert "nine tenths" in str(found)
    assert found.forecasts[0].middle > 0.44, "the kind forecast says so too"
    assert not plan(method, n_records=100_000).vacuous


@pytest.mark.parametrize(("epsilon", "said"), [("1/1000", False), ("1/10000", True)])
def test_a_plan_says_where_the_kind_forecast_itself_loses_nearly_all(epsilon: str, said: bool) -> None:
    """With two classes at most one half can be lost; nine tenths of that are 0.45."""
    found = plan(n_records=2200, epsilon=epsilon)
    assert not found.vacuous, "columns that all tell the classes apart could still do"
    assert (found.forecasts[0].middle >= 0.45) is said
    assert "always saying the most common class" in str(found) or said
    assert ("not refused only because tables in which" in str(found)) is said
    assert found.to_dict()["remarks"] == list(found.remarks)


def test_a_plan_that_would_be_refused_says_so() -> None:
    vacuous = plan(n_records=5, epsilon=0.001)
    assert "refuses that without --yes" in str(vacuous)
    assert "is not refused" not in str(vacuous)
    assert "refuse" not in str(plan())


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("dp-adam", {"epochs": 1_000_001}, "epochs must be at most 1,000,000; got 1000001"),
        ("dp-sgd", {"epochs": 500_001}, "epochs must be at most 500,000 at a sampling rate of 0.1; got 500001"),
        ("dp-sgd", {"sampling_rate": 1e-6}, "sampling_rate must be at least 6e-06 with epochs=30"),
        ("laplace-sgd", {"sampling_rate": 1e-7, "epochs": 1}, "sampling_rate must be at least 2e-07 with epochs=1"),
    ],
)
def test_more_steps_than_can_be_planned_are_refused(method: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(message)):
        plan(method, **settings)


@pytest.mark.parametrize(
    ("method", "records", "columns", "epsilon", "vacuous"),
    [
        ("noisy-centroids", 250, 40, 0.5, False),
        ("noisy-centroids", 250, 40, 0.0025, True),
        ("dp-adam", 200, 200, 0.2, False),
        ("dp-adam", 200, 40, 0.0005, True),
    ],
)
def test_where_many_columns_say_the_same_only_a_model_of_noise_is_called_one(
    method: str, records: int, columns: int, epsilon: float, vacuous: bool
) -> None:
    """Copies of the class with one error in ten; where it is learned, in all of ten runs by more than 95 rows of 100."""
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, records + 1000)
    rows = np.abs(labels[:, None] - (rng.random((len(labels), columns)) < 0.1)).astype(float)
    clf = PrivateClassifier(
        method=method,
        epsilon=epsilon,
        delta=1e-5 if method == "dp-adam" else 0,
        schema=Schema.of_bounds({f"x{place}": (0, 1) for place in range(columns)}),
        classes=[0, 1],
        relation="replace-one",
    )
    assert clf.plan(n_records=records).vacuous is vacuous
    if vacuous:  # in Python nobody is asked: it is said before the charge
        with pytest.warns(UserWarning, match="nine tenths of what there is to learn would be lost"):
            clf.fit(rows[:records], labels[:records])
    else:
        clf.fit(rows[:records], labels[:records])
        assert clf.score(rows[records:], labels[records:]) > 0.75


def calibrated_for(clf: PrivateClassifier, *, n_classes: int) -> Method:
    """The way of training of such a classifier, whose number of records is private."""
    assert clf.schema is not None
    features = Features(schema=clf.schema, names=clf.schema.names)
    labels = Labels(classes=tuple(range(n_classes)), declared=True)
    return calibrated(clf._checked(), problem_of(clf._checked(), features=features, labels=labels, n_records=1))


@pytest.mark.parametrize("method", EITHER)
def test_the_floor_is_where_plans_stop_being_vacuous(method: str) -> None:
    settings = {"dp-adam": "1/1000", "dp-sgd": "1/100"}
    clf = PrivateClassifier(
        method=method,
        epsilon=settings.get(method, "1/10"),
        schema=Schema.of_bounds({f"x{place}": (0, 1) for place in range(60)}),
    )
    floor = floor_of(calibrated_for(clf, n_classes=3))
    assert floor.records is not None
    assert floor.records > 20
    assert not clf.plan(n_records=floor.records, n_classes=3).vacuous
    assert clf.plan(n_records=int(floor.records * 0.99) - 1, n_classes=3).vacuous


def test_a_drowned_run_is_not_told_to_use_the_method_it_uses() -> None:
    table = {"schema": Schema.of_bounds({"x": (0, 1)}), "epsilon": "1/1000000"}
    spends, pure = (
        PrivateClassifier(method=method, delta=delta, **table).plan(n_records=50)
        for method, delta in (("dp-adam", 1e-5), ("noisy-centroids", 0))
    )
    assert spends.vacuous
    assert pure.vacuous
    assert "dp-adam" not in spends.remarks[0]
    assert "'dp-adam', which spends a delta" in pure.remarks[0]


def test_a_plan_says_where_an_unkind_table_would_leave_little_but_guessing() -> None:
    table: dict[str, Any] = {"schema": Schema.of_bounds({f"x{i}": (0, 1) for i in range(8)}), "delta": 1e-5}
    close = PrivateClassifier(epsilon="1/100", **table).plan(n_records=1200)
    assert not close.vacuous
    assert max(one.middle for one in close.forecasts) > 0.25, "of one half that there is to lose"
    assert "little better than always saying the most common class" in close.remarks[0]
    assert PrivateClassifier(epsilon=1, **table).plan(n_records=1200).remarks == ()


def test_a_floor_beyond_all_that_is_tried_is_none() -> None:
    clf = PrivateClassifier(method="noisy-centroids", epsilon="1/1000000", schema=Schema.of_bounds({"x": (0, 1)}))
    assert clf.plan(n_records=MOST, n_classes=9).vacuous
    floor = floor_of(calibrated_for(clf, n_classes=9))
    assert floor.records is None
    assert floor.high
    assert "up to 1,000,000 records nine tenths of what there is to learn" in str(floor)


@pytest.mark.parametrize("records", [30, 3000])
def test_python_warns_by_public_facts_alone_where_the_number_of_records_is_private(records: int) -> None:
    rng = np.random.default_rng(8)
    rows, labels = rng.random((records, 100)), rng.integers(0, 2, records)
    schema = Schema.of_bounds({f"x{place}": (0, 1) for place in range(100)})
    clf = PrivateClassifier(epsilon=0.001, delta=1e-5, schema=schema, classes=[0, 1], epochs=100, random_state=1)
    with pytest.warns(UserWarning, match=r"With fewer than about 240 records nine tenths .* it was not looked at"):
        clf.fit(rows, labels)
    clf.set_params(epsilon=1).fit(rows, labels)  # a hundred records are enough: nothing is said


def test_where_nothing_is_known_nothing_is_foretold() -> None:
    found = plan("anonymizing-first")
    assert found.forecasts == ()
    assert not found.vacuous


@pytest.mark.parametrize("method", EITHER)
def test_who_is_replaced_is_foretold_to_cost_more_than_who_comes_or_goes(method: str) -> None:
    """Somebody goes and somebody comes: about twice the noise, in each forecast."""
    ways = ({"relation": relation, "hidden": (), "n_records": 10_000} for relation in ("add-remove", "replace-one"))
    one, other = (plan(method, **way).forecasts for way in ways)
    for comes, replaced in zip(one, other, strict=True):
        assert replaced.middle / (0.5 - replaced.middle) > 1.5 * comes.middle / (0.5 - comes.middle)


@pytest.mark.parametrize("epsilon", [1, 3, 8])
def test_what_objective_perturbation_loses_is_foretold(epsilon: int) -> None:
    data = load_breast_cancer()
    rows = (data.data - data.data.min(axis=0)) / np.ptp(data.data, axis=0)
    schema = Schema.of_bounds(dict.fromkeys(data.feature_names, (0, 1)))
    how: dict[str, Any] = {"method": "objective-perturbation", "schema": schema, "classes": [0, 1], "epsilon": epsilon}
    dice, lost = np.random.default_rng(epsilon), []
    for seed in range(8):
        train, test = np.split(dice.permutation(len(rows)), [455])
        model = PrivateClassifier(**how, random_state=seed).fit(rows[train], data.target[train])
        plain = LogisticRegression(C=10, max_iter=500).fit(rows[train], data.target[train])
        lost.append(plain.score(rows[test], data.target[test]) - model.score(rows[test], data.target[test]))
    kind, unkind = PrivateClassifier(**how).plan(n_records=455).forecasts
    assert kind.middle / 3 < np.mean(lost) < 3 * unkind.middle
