"""What a plan foretells: more noise costs more, nothing is foretold where nothing is known, and hopeless plans say so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from learning.learning_samples import SCHEMA, problem
from sabun.asking import Planned
from sabun.learning import PrivateClassifier
from sabun.learning.dpadam import DpAdam
from sabun.learning.forecasting import foretold

STEPPING = ("dp-adam", "dp-sgd", "laplace-sgd", "noisy-centroids")


def plan(method: str = "dp-adam", n_records: int = 1000, **changes: Any) -> Any:
    facts: dict[str, Any] = {"epsilon": 1, "schema": SCHEMA, "classes": ["no", "yes"]} | changes
    return PrivateClassifier(method=method, **facts).plan(n_records=n_records)


@pytest.mark.parametrize("method", STEPPING)
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


@pytest.mark.parametrize("method", STEPPING)
def test_less_epsilon_and_fewer_records_cost_accuracy(method: str) -> None:
    usual = plan(method).forecasts[0].middle
    assert plan(method, epsilon=0.1).forecasts[0].middle > usual
    assert plan(method, n_records=100).forecasts[0].middle > usual
    assert plan(method, n_records=10_000_000).forecasts[0].middle < 0.01


def test_a_hidden_layer_may_lose_more_than_its_noise_says() -> None:
    linear, layered = (plan(hidden=hidden).forecasts for hidden in ((), (32,)))
    shares = [[one.middle / (0.5 - one.middle) for one in found] for found in (linear, layered)]
    assert shares[0][1] / shares[0][0] == pytest.approx(4)
    assert shares[1][1] / shares[1][0] == pytest.approx(12)


def test_where_noise_on_the_number_of_records_decides_about_a_layer_both_models_are_foretold() -> None:
    """The count's noise has a scale of 1 / (0.005 epsilon), here 200 records."""
    given = problem(epsilon=1)
    both = {"network": given.network(()), "layered": given.network((32,)), "standardize": False, "learning_rate": 0.1}
    method = DpAdam(problem=given, steps=100, clip_norm=1.0, **both)
    surely_linear, near, layered = (foretold(method, method.plenty + far, 2) for far in (-1010, -990, 1010))
    assert near[0].middle == pytest.approx(surely_linear[0].middle, rel=0.05)
    assert near[1].middle > layered[1].middle > surely_linear[1].middle


def test_noisy_centroids_are_foretold_unkindly_for_one_column_that_tells() -> None:
    kind, unkind = plan("noisy-centroids").forecasts
    columns = plan("noisy-centroids").n_weights // 2 - 1
    assert unkind.middle / (0.5 - unkind.middle) == pytest.approx(2 * columns * kind.middle / (0.5 - kind.middle))


@pytest.mark.parametrize("method", STEPPING)
def test_a_model_of_noise_is_called_one(method: str) -> None:
    found = plan(method, n_records=5, epsilon=0.05)
    assert found.vacuous
    assert found.to_dict()["vacuous"] is True
    assert "will tell nothing" in str(found)
    assert not plan(method, n_records=100_000).vacuous


def test_where_nothing_is_known_nothing_is_foretold() -> None:
    found = plan("anonymizing-first")
    assert found.forecasts == ()
    assert not found.vacuous
