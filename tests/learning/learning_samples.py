"""Small tables to learn from."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sabun.learning.features import Features, Labels
from sabun.learning.network import Floats, Network
from sabun.learning.training import Data, Problem
from sabun.records import Column, Schema

SCHEMA = Schema(
    columns=[
        Column.number("age", lower=0, upper=100),
        Column.number("income", lower=0, upper=10_000, missing=0, log1p=True),
        Column.category("sex", ["F", "M"]),
        Column.category("town", ["A", "B", "C"], missing="A"),
    ]
)


def people(count: int = 400, seed: int = 0) -> tuple[Any, Any]:
    """A frame with a label that depends on age and town."""
    import pandas as pd

    generator = np.random.default_rng(seed)
    age = generator.uniform(0, 100, count)
    town = generator.choice(["A", "B", "C"], count)
    frame = pd.DataFrame(
        {
            "age": age,
            "income": np.expm1(generator.uniform(0, 9, count)),
            "sex": generator.choice(["F", "M"], count),
            "town": town,
        }
    )
    label = np.where(age / 100 + 0.3 * (town == "B") + generator.normal(0, 0.1, count) > 0.6, "yes", "no")
    return frame, label


def points(count: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two blobs of plain numbers."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 2, count)
    return generator.normal(0, 0.5, (count, 3)) + labels[:, None], labels


def example_gradients(network: Network, weights: Floats, rows: Floats, labels: np.ndarray) -> Floats:
    """One flat gradient for each example, written out: what the room never does."""
    one_each = (network.activity(weights, rows[i : i + 1], labels[i : i + 1]) for i in range(len(rows)))
    return np.array([network.summed(activity) for activity in one_each]).reshape(len(rows), network.n_weights)


def problem(*, width: int = 3, classes: int = 2, relation: str = "add-remove", **changes: Any) -> Problem:
    """A problem of plain numbers."""
    values: dict[str, Any] = {
        "features": Features(schema=None, names=tuple(f"x{i}" for i in range(width))),
        "labels": Labels(classes=tuple(range(classes)), declared=True),
        "epsilon": Fraction(1),
        "delta": Fraction(1, 10**5),
        "relation": relation,
        "unit": "record",
        "n_public": None if relation == "add-remove" else 100,
    }
    return Problem(**(values | changes))


def data(count: int = 100, width: int = 3, classes: int = 2, seed: int = 0) -> Data:
    generator = np.random.default_rng(seed)
    return Data(rows=generator.normal(size=(count, width)), labels=generator.integers(0, classes, count))
