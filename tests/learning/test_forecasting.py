"""What a plan foretells: more noise costs more, nothing is foretold where nothing is known, and hopeless plans say so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from learning.learning_samples import SCHEMA
from sabun.asking import Planned
from sabun.learning import PrivateClassifier

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
    assert kind.low < kind.middle < kind.high <= 0.5
    assert json.loads(json.dumps(found.to_dict()))["forecasts"][0]["middle"] == kind.middle
    assert "accuracy lost to noise" in str(found)
    assert (kind.low, kind.high) == (unkind.low, unkind.high), "what was measured is the span of both"
    for words in (str(found), *map(str, found.forecasts)):
        assert "in four of five tables" in words
        assert "nine" not in words


@pytest.mark.parametrize("method", STEPPING)
def test_less_epsilon_and_fewer_records_cost_accuracy(method: str) -> None:
    usual = plan(method).forecasts[0].middle
    assert plan(method, epsilon=0.1).forecasts[0].middle > usual
    assert plan(method, n_records=100).forecasts[0].middle > usual
    assert plan(method, n_records=10_000_000).forecasts[0].middle < 0.01


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
