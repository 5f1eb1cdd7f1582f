from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from outliers import brute
from sabun.outliers import outlier_degrees, products, tree

SHAPES = [(1, 2), (2, 1), (33, 2), (500, 1), (700, 2), (600, 5), (900, 8), (300, 34), (400, 13), (2500, 3), (2300, 20)]


def check(points: np.ndarray, radius: float, limit: int, listed: int | None = None) -> None:
    near = brute.within(points, radius)
    graph = tree.neighbours_within(points, radius * radius, limit, listed=listed)
    assert (graph.counts == np.minimum(near.sum(axis=1), limit)).all()
    assert ((graph.starts >= 0) == (graph.counts < limit) & (graph.counts <= (limit if listed is None else listed))).all()
    found = np.empty(len(points), dtype=np.int32)
    for i in range(len(points)):
        number = tree.neighbours_of(graph, i, found)
        assert sorted(found[:number].tolist()) == np.flatnonzero(near[i]).tolist()


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("limit", [1, 7, 40, 10_000])
def test_degrees_and_lists_equal_the_plain_definition(n: int, d: int, limit: int) -> None:
    points = np.random.default_rng(n + d).normal(size=(n, d))
    check(points, 0.15 * np.sqrt(d) + 0.1 * d, limit)


@pytest.mark.parametrize(("n", "d"), SHAPES)
@pytest.mark.parametrize("listed", [0, 1, 30])
def test_neighbours_that_are_not_listed_are_found_again(n: int, d: int, listed: int) -> None:
    points = np.random.default_rng(n + d).normal(size=(n, d))
    check(points, 0.15 * np.sqrt(d) + 0.1 * d, 100, listed)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 9])
def test_pairs_exactly_at_the_radius_are_decided_by_the_canonical_rule(d: int) -> None:
    rng = np.random.default_rng(d)
    grid = rng.integers(0, 4, size=(400, d)) / 10
    for radius in (0.1, 0.2, 0.3, 0.1 * np.sqrt(2), 0.1 * np.sqrt(3)):
        check(grid, float(radius), 500)


@pytest.mark.parametrize(("d", "offset", "radius"), [(16, 0.0, 3.0), (34, 1e6, 5.0), (20, -3e8, 1.0), (16, 0.0, 1e-3)])
@pytest.mark.parametrize("limit", [1, 9, 2000])
def test_products_rule_out_only_what_the_canonical_rule_rules_out(d: int, offset: float, radius: float, limit: int) -> None:
    points = np.round(np.random.default_rng(d).normal(size=(700, d)) * 2) / 2 + offset
    points[:20] = points[20:40]
    near = brute.within(points, radius)
    counts, starts = np.zeros(700, dtype=np.int32), np.full(700, -1, dtype=np.int64)
    asking = np.arange(700, dtype=np.int32)[::-1].copy()
    assert products.can_sift(points, radius * radius)
    lists = products.sifted(points, asking, radius * radius, limit, 700, counts, starts, 0)
    assert (counts == np.minimum(near.sum(axis=1), limit)).all()
    for i in range(700):
        found = lists[starts[i] : starts[i] + counts[i]].tolist() if counts[i] < limit else None
        assert found is None or set(found) == set(np.flatnonzero(near[i]).tolist())


def test_products_are_not_used_where_single_precision_cannot_hold_the_table() -> None:
    wide = np.zeros((3, 16))
    wide[0] = 1e9
    assert not products.can_sift(wide, 1.0)
    assert outlier_degrees(wide, radius=1).tolist() == [0, 1, 1]


def test_many_copies_of_one_record_are_neighbours_of_each_other() -> None:
    assert outlier_degrees(np.zeros((1000, 4)), radius=1e-150).tolist() == [999] * 1000


def test_extreme_scales_do_not_overflow() -> None:
    assert outlier_degrees([[1e150, -1e150], [-1e150, 1e150], [1e150, -1e150]], radius=1e150).tolist() == [1, 0, 1]
    assert outlier_degrees([[0.0], [1e-150], [3e-150]], radius=1e-150).tolist() == [1, 1, 0]


@settings(max_examples=60, deadline=None)
@given(
    arrays(
        np.float64, st.tuples(st.integers(1, 70), st.integers(1, 3)), elements=st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3, 1.0])
    ),
    st.sampled_from([0.1, 0.2, 0.30000000000000004, 1.0]),
    st.integers(1, 80),
)
def test_any_table_of_ties_equals_the_plain_definition(points: np.ndarray, radius: float, limit: int) -> None:
    check(points, radius, limit)


def test_the_order_of_the_rows_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    points = rng.normal(size=(3000, 4))
    order = rng.permutation(3000)
    assert (outlier_degrees(points, radius=0.7)[order] == outlier_degrees(points[order], radius=0.7)).all()


def test_a_cap_stops_the_counting() -> None:
    assert outlier_degrees(np.zeros((50, 1)), radius=1, cap=3).tolist() == [3] * 50


def test_a_machine_without_a_folder_for_machine_code_compiles_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core import caching

    from sabun.compiled import compiled

    class Nowhere(caching._CacheLocator):  # type: ignore[misc]
        @classmethod
        def from_function(cls, function: object, path: object) -> None:
            return None

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [Nowhere])
    assert compiled(lambda x: x + 1)(1) == 2
