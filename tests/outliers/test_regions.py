from __future__ import annotations

import contextlib
import itertools
import math
import pickle
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from outliers import brute
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.outliers import RegionCount
from sabun.outliers.sensitivity import measure_regions
from sabun.records import Column, Schema

HALVES = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}


def table() -> np.ndarray:
    return np.vstack([np.zeros((200, 2)), [[-9.0, 0.0], [-20.0, 0.0], [9.0, 0.0]]])


def test_a_large_epsilon_gives_the_exact_counts() -> None:
    made = RegionCount(regions=HALVES, k=5, radius=1, epsilon=50_000).fit(table())
    assert made.counts_ == {"left": 2, "right": 1}
    assert made.intervals_ == {"left": (2, 2), "right": (1, 1)}


def test_outliers_outside_all_regions_are_not_counted() -> None:
    made = RegionCount(regions={"far left": {"x0": (None, -15)}}, k=5, radius=1, epsilon=50_000).fit(table())
    assert made.counts_ == {"far left": 1}


def test_labels_of_a_category_make_a_region() -> None:
    schema = Schema(columns=[Column.number("a", lower=0, upper=100), Column.category("ward", ["A", "B", "C"])])
    rows = [[1.0, "A"]] * 50 + [[50.0, "B"], [99.0, "B"], [30.0, "C"]]
    regions = {"B": {"ward": "B"}, "rest": {"ward": ["A", "C"]}}
    made = RegionCount(regions=regions, k=5, radius=0.1, epsilon=50_000, schema=schema, columns=["a"]).fit(rows)
    assert made.counts_ == {"B": 2, "rest": 1}


def test_one_charge_pays_for_all_regions(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "book", name="book", epsilon=2)
    made = RegionCount(regions=HALVES, k=5, radius=1, epsilon=1, ledger=ledger).fit(table())
    assert ledger.remaining.epsilon == 1
    assert made.guarantee_.epsilon == 1
    assert all(0 <= count <= 203 for count in made.counts_.values())


def test_without_an_error_bar_there_are_no_intervals() -> None:
    made = RegionCount(regions=HALVES, k=5, radius=1, epsilon=1, error_bar=0).fit(table())
    assert made.intervals_ is None
    assert set(made.release_.value) == {"counts"}


BAD = [
    ({}, "regions must be a mapping from names to regions"),
    ({"a": {}}, "must be a mapping from columns to ranges or labels"),
    ({"a": {"x0": 3}}, "must be a pair"),
    ({"a": {"x0": (2, 1)}}, "must be a pair"),
    ({"a": {"x0": (0, 2)}, "b": {"x0": (1, 3)}}, "regions must not overlap; 'a' and 'b'"),
    ({"a": {"x0": (0, 2)}, "b": {"x1": (1, 3)}}, "regions must not overlap"),
]


@pytest.mark.parametrize(("regions", "message"), BAD)
def test_bad_regions_are_refused(regions: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        RegionCount(regions=regions, radius=1, epsilon=1)  # type: ignore[arg-type]


def test_unknown_labels_and_columns_are_refused() -> None:
    schema = Schema(columns=[Column.category("ward", ["A", "B"])])
    with pytest.raises(ParameterError, match="labels must be labels of column 'ward'"):
        RegionCount(regions={"a": {"ward": "Z"}}, radius=1, epsilon=1, schema=schema)
    with pytest.raises(DataError, match="has no column 'x9'"):
        RegionCount(regions={"a": {"x9": (0, 1)}}, radius=1, epsilon=1).fit(table())
    with pytest.raises(DataError, match="at least one row"):
        RegionCount(regions=HALVES, radius=1, epsilon=1).fit(np.zeros((0, 2)))


def test_the_estimator_protocol_holds() -> None:
    estimator = RegionCount(regions=HALVES, radius=1, epsilon=1)
    assert clone(estimator).get_params() == estimator.get_params()
    assert pickle.loads(pickle.dumps(estimator.fit(table()))).counts_ == estimator.counts_
    with pytest.raises(ParameterError):
        estimator.set_params(error_bar=2).fit(np.zeros((40, 1)))


@pytest.mark.parametrize("cover", ["degeneracy", "link-core", "exact"])
@pytest.mark.parametrize("k", [1, 2])
def test_the_bound_by_region_holds_and_is_smooth_on_every_small_table(cover: str, k: int) -> None:
    """By definition: S bounds what one replacement moves in regions as fine as can be, and changes by at most e^beta."""
    beta, domain = Fraction(1, 5), brute.line(4)
    found: dict[brute.Database, tuple[np.ndarray, Fraction]] = {}
    for database in brute.databases(domain, 6):
        points = np.array(database)
        out, bound = measure_regions(points, k=k, radius=1.0, beta=beta, cover=cover)
        assert out.tolist() == brute.is_outlier(database, k, 1.0)
        found[database] = np.bincount(points[out, 0].astype(int), minlength=len(domain)), bound
    for database, (counts, bound) in found.items():
        for other in brute.replaced(database, domain):
            there, its = found[other]
            assert abs(counts - there).sum() <= bound
            assert float(bound) <= math.exp(beta) * float(its) * (1 + 1e-9)


def test_regions_overlap_exactly_where_a_record_can_be_in_both() -> None:
    """All pairs of sets of labels, and of ranges that touch, on one column and on two."""
    schema = Schema(columns=[Column.number("a", lower=0, upper=9), Column.category("ward", ["A", "B", "C"])])
    labels = [set(some) for size in (1, 2, 3) for some in itertools.combinations("ABC", size)]
    ranges = [(low, high) for low, high in itertools.combinations(range(4), 2)]
    for one, other in itertools.product(itertools.product(labels[::2], ranges[::2]), itertools.product(labels, ranges)):
        meet = bool(one[0] & other[0]) and one[1][0] < other[1][1] and other[1][0] < one[1][1]
        regions = {str(place): {"ward": sorted(some), "a": ends} for place, (some, ends) in enumerate((one, other))}
        with pytest.raises(ParameterError, match="regions must not overlap") if meet else contextlib.nullcontext():
            RegionCount(regions=regions, radius=1, epsilon=1, schema=schema)
