from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sabun import Column, Schema
from sabun.density.features import Features, chosen_rows, median_distance


def test_numbers_are_standardised_by_the_public_table() -> None:
    public = np.random.default_rng(0).normal([5.0, -2.0], [3.0, 0.1], (200, 2))
    features, points = Features.of(public, schema=None, standardize=True)
    assert np.allclose(points.mean(axis=0), 0)
    assert np.allclose(points.std(axis=0), 1)
    assert np.array_equal(features.points(public), points)


def test_a_row_is_placed_by_itself() -> None:
    features, _ = Features.of(np.random.default_rng(0).normal(size=(50, 3)), schema=None, standardize=True)
    rows = np.random.default_rng(1).normal(size=(9, 3))
    assert np.array_equal(np.vstack([features.points(row[None]) for row in rows]), features.points(rows))


def test_two_public_records_are_as_far_apart_in_a_label_as_in_a_number() -> None:
    rng = np.random.default_rng(0)
    public = pd.DataFrame({"n": rng.normal(size=4000), "c": rng.choice(list("abcd"), 4000, p=[0.7, 0.1, 0.1, 0.1])})
    schema = Schema(columns=[Column.number("n", lower=-9, upper=9), Column.category("c", list("abcd"))])
    _, points = Features.of(public, schema=schema, standardize=True)
    squares = (points[:2000] - points[2000:]) ** 2
    assert squares[:, 0].mean() == pytest.approx(squares[:, 1:].sum(axis=1).mean(), rel=0.1)


def test_a_label_that_all_have_does_not_outweigh_the_rest() -> None:
    public = pd.DataFrame({"n": np.arange(100.0), "c": ["a"] * 100})
    schema = Schema(columns=[Column.number("n", lower=0, upper=100), Column.category("c", ["a", "b"])])
    features, _ = Features.of(public, schema=schema, standardize=True)
    assert features.scale[1:].max() < 5


def test_rows_are_chosen_by_a_public_rule_without_repetition() -> None:
    rows = chosen_rows(1000, 300)
    assert np.array_equal(rows, chosen_rows(1000, 300))
    assert len(set(rows.tolist())) == 300
    assert np.array_equal(chosen_rows(5, 300), np.arange(5))
    assert abs(rows.mean() - 499.5) < 60


def test_the_median_distance_is_that_of_the_pairs() -> None:
    points = np.random.default_rng(0).normal(size=(80, 2))
    pairs = [np.linalg.norm(points[i] - points[j]) for i in range(80) for j in range(i)]
    assert median_distance(points) == pytest.approx(np.median(pairs))


def test_a_table_of_equal_rows_has_a_distance_too() -> None:
    assert median_distance(np.ones((10, 2))) == 1.0
    assert median_distance(np.vstack([np.ones((9, 1)), [[5.0]]])) == pytest.approx(0.8)


def test_a_row_is_placed_by_itself_under_a_schema_too() -> None:
    """Logarithms and labels included: where a record stands must not change a bit of its point."""
    rng = np.random.default_rng(2)
    schema = Schema(columns=[Column.number("gain", lower=0, upper=1e5, log1p=True), Column.category("c", ["a", "b"])])
    table = pd.DataFrame({"gain": rng.lognormal(5, 2, 203), "c": rng.choice(["a", "b", "?"], 203)})
    features, points = Features.of(table, schema=schema, standardize=True)
    order = rng.permutation(203)
    assert np.array_equal(features.points(table.iloc[order]), points[order])
    assert np.array_equal(np.vstack([features.points(table.iloc[i : i + 1]) for i in range(0, 203, 9)]), points[::9])
    assert np.array_equal(np.vstack([features.points(table.iloc[:97]), features.points(table.iloc[97:])]), points)
