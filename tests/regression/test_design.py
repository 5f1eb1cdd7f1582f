from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sabun.records import Column, Schema
from sabun.regression.design import UNIT, Design

ANY = st.one_of(
    st.floats(allow_nan=False, allow_infinity=True), st.sampled_from([0.0, -0.0, 1.0, -1.0, 3.0, 1e308, -1e308, 5e-324, 0.5])
)


def design(width: int, *, intercept: bool, radius: float | None) -> Design:
    bounds = [(-3.0, 5.0), (0.0, 1.0), (-1.0, 1.0), (100.0, 1e6)][:width]
    return Design(
        features=Schema.of_bounds(bounds), target=Column.number("y", lower=-2, upper=7), intercept=intercept, radius=radius
    )


def rows_of(d: Design, values: np.ndarray) -> np.ndarray:
    body = np.empty(values.shape)
    constant = np.broadcast_to(d.whole_rows(values, body)[0], (len(body),))
    return np.column_stack([body, constant]) if d.intercept else body


@settings(max_examples=60, deadline=None)
@given(st.data(), st.booleans(), st.sampled_from([None, 0.25, 1.0, 1.7, 50.0]), st.integers(1, 4))
def test_a_row_is_whole_and_never_leaves_the_ball(data, intercept: bool, radius: float | None, width: int) -> None:
    values = data.draw(hnp.arrays(float, (5, width), elements=ANY))
    rows = rows_of(design(width, intercept=intercept, radius=radius), values)
    assert np.array_equal(rows, np.rint(rows))
    assert max(sum(int(entry) ** 2 for entry in row) for row in rows) <= UNIT**2


@settings(max_examples=40, deadline=None)
@given(hnp.arrays(float, (6, 3), elements=ANY), st.booleans(), st.sampled_from([None, 1.0]), st.permutations(range(6)))
def test_a_row_does_not_depend_on_other_rows(values, intercept: bool, radius: float | None, order: list[int]) -> None:
    d = design(3, intercept=intercept, radius=radius)
    together = rows_of(d, values)
    assert np.array_equal(rows_of(d, values[order]), together[order])
    for place in range(6):
        assert np.array_equal(rows_of(d, values[place : place + 1]), together[place : place + 1])


@given(st.lists(ANY, min_size=1, max_size=6))
def test_a_target_is_whole_and_inside(values: list[float]) -> None:
    found = design(1, intercept=True, radius=None).whole_targets(np.array(values))
    assert np.array_equal(found, np.rint(found))
    assert np.abs(found).max() <= UNIT


def test_the_longest_row_comes_close_to_the_ball() -> None:
    """A test of the test: shrinking much more than needed would lose accuracy."""
    d = design(2, intercept=True, radius=None)
    rows = rows_of(d, np.array([[5.0, 1.0]]))
    assert np.sum(rows**2) > 0.998 * UNIT**2


def test_coefficients_return_to_original_units() -> None:
    d = design(2, intercept=True, radius=None)
    values = np.array([[1.0, 0.2], [4.0, 0.9], [-2.0, 0.4]])
    beta = np.array([0.3, -0.2, 0.1])
    scaled = rows_of(d, values) / (UNIT * d.shrink)
    matrix, shift = d.original_units
    original = matrix @ beta + shift
    middle, half = d.target_range
    assert values @ original[:2] + original[2] == pytest.approx(middle + half * (scaled @ beta), abs=5e-3)


def test_without_an_intercept_nothing_is_centred() -> None:
    d = Design(features=Schema.of_bounds([(0, 10)]), target=Column.number("y", lower=0, upper=4), intercept=False, radius=None)
    assert rows_of(d, np.array([[0.0]])).tolist() == [[0.0]]
    assert d.original_units[1].tolist() == [0.0, 0.0]


def test_labels_and_log_columns_become_features() -> None:
    schema = Schema(columns=(Column.number("pay", lower=0, upper=99, log1p=True), Column.category("sex", ["F", "M"])))
    d = Design(features=schema, target=Column.number("y", lower=0, upper=1), intercept=True, radius=None)
    values = d.feature_values(schema.encode([[99, "M"], [0, "?"]]))
    assert values == pytest.approx(np.array([[np.log(100), 1], [0, 0]]))
    assert d.names == ("pay", "sex=M"), "beside an intercept the first label is the reference"
    assert d.width == 3
    bare = Design(features=schema, target=Column.number("y", lower=0, upper=1), intercept=False, radius=None)
    assert bare.names == ("pay", "sex=F", "sex=M")
    assert bare.feature_values(schema.encode([[99, "M"]])) == pytest.approx(np.array([[np.log(100), 0, 1]]))
