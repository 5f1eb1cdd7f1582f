"""Bounds drawn in around what pilots show: where they go, what is refused, what it is worth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sabun.errors import ParameterError, ReleaseError
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Study, narrowed


def off_centre(rows: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Six features that crowd around half of their upper bound."""
    rng = np.random.default_rng(seed)
    X = np.clip(0.5 + 0.12 * rng.normal(size=(rows, 6)), -1, 1)
    return X, np.clip((X - 0.5) @ np.full(6, 0.8) + 0.1 * rng.normal(size=rows), -1, 1)


def study(epsilon: Any, **terms: Any) -> Study:
    return Study(
        features=Schema.of_bounds([(-1, 1)] * 6), target=Column.number("y", lower=-1, upper=1), epsilon=epsilon, **terms
    )


@pytest.mark.parametrize("method", ["staged", "rounds", "ssp-gauss", "ssp-laplace"])
def test_bounds_go_around_the_features(method: str) -> None:
    terms = study(1000, method=method)
    X, y = off_centre(4000)
    made = narrowed(terms, [PrivateRidge(study=terms, random_state=1).fit(X, y).release_], epsilon="0.8", method="staged")
    for column in made.features.columns:
        assert (column.lower, column.upper) == (pytest.approx(0.14, abs=0.05), pytest.approx(0.86, abs=0.05))
        assert column.lower <= column.missing <= column.upper
    assert (made.method, float(made.epsilon), made.delta, made.target) == (
        "staged",
        0.8,
        terms.delta or made.delta,
        terms.target,
    )


def test_noise_alone_draws_no_bounds_in() -> None:
    """60 rows at epsilon 0.01: what is seen is noise, and no bound may move because of it, in any of 20 draws."""
    terms = study("0.01")
    X, y = off_centre(60)
    for seed in range(20):
        made = narrowed(terms, [PrivateRidge(study=terms, random_state=seed).fit(X, y).release_], epsilon=1)
        assert all((column.lower, column.upper) == (-1, 1) for column in made.features.columns)


def test_labels_dates_and_logarithms_keep_their_kind() -> None:
    features = Schema(
        columns=[
            Column.number("income", lower=0, upper=10**6, log1p=True),
            Column.date("seen", lower="2000-01-01", upper="2030-01-01"),
            Column.category("smoker", ["no", "yes"], missing="no"),
        ]
    )
    terms = Study(features=features, target=Column.number("y", lower=0, upper=1), epsilon=1000, name="pilot")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "income": np.exp(rng.normal(10, 0.3, 3000)),
            "seen": pandas.Timestamp("2024-01-01") + pandas.to_timedelta(rng.integers(0, 300, 3000), "D"),
            "smoker": rng.choice(["no", "yes"], 3000),
        }
    )
    pilot = PrivateRidge(study=terms, organisation="a", random_state=1).fit(frame, rng.random(3000)).release_
    income, seen, smoker = narrowed(terms, [pilot], epsilon=1).features.columns
    assert income.log1p
    assert 2000 < income.lower < math.exp(9.5) < math.exp(10.5) < income.upper < 10**6
    assert seen.dates
    assert seen.lower == int(seen.lower) > 0.9 * seen.upper
    assert smoker == features["smoker"]


def test_what_cannot_be_narrowed_is_refused() -> None:
    X, y = off_centre(300)
    flat, other = study(1, fit_intercept=False), study(2)
    pilot = PrivateRidge(study=flat).fit(X, y).release_
    with pytest.raises(ParameterError, match="fit_intercept must be True to be centred"):
        narrowed(flat, [pilot], epsilon=1)
    with pytest.raises(ReleaseError, match="must be made for study"):
        narrowed(other, [pilot], epsilon=1)
    with pytest.raises(ParameterError, match="releases sums"):
        narrowed(study(1, method="objpert"), [pilot], epsilon=1)


def test_a_pilot_pays_where_features_are_off_centre() -> None:
    """Epsilon 1 in all, by sums: a fifth of it for the pilot. Medians of 5 fixed runs on fresh rows."""
    X, y = off_centre(4000)
    fresh, truth = off_centre(2000, 9)
    errors: dict[str, list[float]] = {"plain": [], "pilot": []}
    for seed in range(5):
        terms = study("0.2", delta="5e-7")
        pilot = PrivateRidge(study=terms, random_state=seed).fit(X, y).release_
        for name, agreed in (("plain", study(1)), ("pilot", narrowed(terms, [pilot], epsilon="0.8"))):
            model = PrivateRidge(study=agreed, random_state=100 + seed).fit(X, y)
            errors[name].append(float(np.mean((model.predict(fresh) - truth) ** 2) / np.var(truth)))
    assert np.median(errors["pilot"]) < 0.6 * np.median(errors["plain"])
