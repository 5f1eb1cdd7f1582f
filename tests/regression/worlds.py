"""Small studies and tables that the tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

from sabun.asking import state_of
from sabun.records import Column, Schema
from sabun.regression import Study
from sabun.regression.design import Design
from sabun.regression.statistic import Labelled, Moments, Totals


def unit_study(width: int = 2, **terms: Any) -> Study:
    """Features in [-1, 1], no intercept, rows shortened to the unit ball."""
    if not terms.keys() & {"method", "mechanism"}:
        terms["method"] = "ssp-gauss"
    facts: dict[str, Any] = {"epsilon": 1, "fit_intercept": False, "clip_radius": 1, "coef_bound": 1}
    return Study(features=Schema.of_bounds([(-1, 1)] * width), target=Column.number("y", lower=-1, upper=1), **(facts | terms))


def totals(design: Design, features: object, target: object) -> Totals:
    """The exact sums of two tables in memory."""
    return state_of(Moments(design=design), Labelled(features, target))


def clinic(rows: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Age, body mass index and a dose that depends on both."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 120, rows), rng.uniform(10, 60, rows)])
    return X, np.clip(20 + 0.3 * X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=rows) * 5, 0, 100)


CLINIC: dict[str, Any] = {"x_bounds": [(0, 120), (10, 60)], "y_bounds": (0, 100)}
