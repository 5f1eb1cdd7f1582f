"""Exact sums of lengths and of residuals: whatever the order, the pieces, the cells."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sabun.asking import state_of
from sabun.errors import DataError
from sabun.records import Column, Schema, chunks
from sabun.regression.design import UNIT, Design
from sabun.regression.sensitivity import length_reach, residual_l2_squared, residual_weights
from sabun.regression.stages import (
    LARGEST_START,
    LEVELS,
    RADII,
    SHARE,
    START_BITS,
    Lengths,
    Residuals,
    Tally,
    enough,
    level_of,
    radius_of,
    staged_design,
)
from sabun.regression.statistic import Labelled

WILD = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, 1.0, -1.0, 1e308, -1e308, np.nan, np.inf, -np.inf, 5e-324]),
)
STARTS = [(0, 0, 0), (40_000, -20_000, 7), (LARGEST_START, -LARGEST_START, LARGEST_START)]


def design(*, intercept: bool = True, radius: float = 1.0) -> Design:
    plain = Design(
        features=Schema.of_bounds([(-3.0, 5.0), (0.0, 1.0)]),
        target=Column.number("y", lower=-2, upper=7),
        intercept=intercept,
        radius=None,
    )
    return staged_design(plain, radius)


def statistics(radius: float = 1.0, *, intercept: bool = True) -> list[Any]:
    d = design(radius=radius, intercept=intercept)
    starts = [start[: d.width] for start in STARTS]
    return [Lengths(design=d), *(Residuals(design=d, start=start, level=level) for start in starts for level in LEVELS[::11])]


def table(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.uniform(-4, 6, (rows, 2)), rng.uniform(-3, 8, rows)


def test_residual_sums_are_those_of_python_integers() -> None:
    d, (X, y) = design(radius=0.9), table(300)
    start, level = (30_000, -50_000, 4_000), -3
    state = state_of(Residuals(design=d, start=start, level=level), Labelled(X, y))
    body = np.empty(X.shape)
    constant, weights = d.whole_rows(X, body)
    moments, square, weight = [0, 0, 0], 0, 0
    for row, last, w, target in zip(body, constant, weights, d.whole_targets(y, weights), strict=True):
        z = [int(cell) for cell in (*row, last)]
        off = int(target) * 2**START_BITS - sum(a * b for a, b in zip(z, start, strict=True))
        t = int(np.rint(np.clip(off / (2.0**START_BITS * level_of(level)), -UNIT, UNIT)))
        moments = [m + a * t for m, a in zip(moments, z, strict=True)]
        square, weight = square + t * t, weight + int(np.rint(w * w * UNIT))
    assert state == Tally(rows=300, sums=(*moments, square, weight))


def test_lengths_are_shares_of_each_radius() -> None:
    d, (X, y) = design(), table(500)
    state = state_of(Lengths(design=d), Labelled(X, y))
    low, high = np.array([-3, 0]), np.array([5, 1])
    scaled = 2 * (np.clip(X, low, high) - low) / (high - low) - 1
    squares = (scaled**2).sum(axis=1) + 1
    for step in range(RADII):
        wanted = np.minimum(squares / radius_of(d, step) ** 2, 1).sum() - 0.75 * 500
        assert state.sums[step] / SHARE == pytest.approx(wanted, abs=1e-2)
    assert list(state.sums) == sorted(state.sums), "a smaller radius is filled more"
    assert state.sums[0] <= 0.25 * SHARE * 500


@given(hnp.arrays(float, (2,), elements=st.floats(0, 1e6)), st.booleans())
def test_what_a_row_says_of_a_radius_stays_within_what_is_declared(filled: np.ndarray, intercept: bool) -> None:
    one, other = enough(filled, intercept=intercept)
    assert abs(one - other) <= 1 + 1e-12  # the reach of a replaced row; those of one that comes or goes are below
    assert -0.75 <= one <= 0.75
    assert enough(np.array([0.0]), intercept=False) == 0, "without a constant a row of zeros asks for nothing"


@pytest.mark.parametrize("place", range(6))
def test_pieces_and_order_change_no_bit(place: int) -> None:
    statistic, (X, y) = statistics(0.7)[place], table(9000)
    whole = statistic.pack(state_of(statistic, Labelled(X, y)))
    parts = [state_of(statistic, Labelled(X[s], y[s])) for s in (slice(0, 5), slice(5, 4111), slice(4111, None))]
    assert statistic.pack(statistic.merge(statistic.merge(parts[2], parts[0]), parts[1])) == whole
    order = np.random.default_rng(1).permutation(len(X))
    assert statistic.pack(state_of(statistic, Labelled(X[order], y[order]))) == whole
    together = np.column_stack([X, y])
    assert statistic.pack(state_of(statistic, chunks([together[:100], together[100:]]))) == whole
    assert statistic.unpack(whole) == state_of(statistic, Labelled(X, y))
    for wrong in (whole[:-1], b"\xff" * len(whole)):
        with pytest.raises(DataError, match="packed"):
            statistic.unpack(wrong)


def test_a_missing_cell_changes_no_other_row() -> None:
    X, y = table(50)
    holed = X.copy()
    holed[7, 1] = np.nan
    for statistic in statistics():
        rest = np.arange(50) != 7
        whole, others = state_of(statistic, Labelled(holed, y)), state_of(statistic, Labelled(X[rest], y[rest]))
        filled = state_of(statistic, Labelled(np.array([[X[7, 0], 0.5]]), y[7:8]))
        assert whole == others.plus(filled)


def moved(statistic: Any, first: np.ndarray, second: np.ndarray | None) -> Fraction:
    """What the noise must cover, over what is declared: the squared change between two records, or of one that comes."""
    relation = "replace-one" if second is not None else "add-remove"
    one = state_of(statistic, Labelled(first[None, :2], first[2:])).sums
    two = (0,) * len(one) if second is None else state_of(statistic, Labelled(second[None, :2], second[2:])).sums
    change = [a - b for a, b in zip(one, two, strict=True)]
    if isinstance(statistic, Lengths):
        return Fraction(max(map(abs, change))) / (length_reach(relation) * SHARE)
    square, weight = residual_weights(relation)
    total = sum(c * c for c in change[:-2]) + square * change[-2] ** 2 + weight * UNIT**2 * change[-1] ** 2
    return total / (residual_l2_squared(relation) * UNIT**4)


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(float, (2, 3), elements=WILD), st.sampled_from([0.1, 0.7, 1.0, 1.7]), st.booleans())
def test_no_pair_of_records_moves_the_sums_further_than_declared(pair: np.ndarray, radius: float, intercept: bool) -> None:
    for statistic in statistics(radius, intercept=intercept):
        assert moved(statistic, pair[0], pair[1]) <= 1
        assert moved(statistic, pair[0], None) <= 1


def test_the_declared_distance_is_nearly_reached() -> None:
    """A test of the test: rows at the bounds with opposite targets, at a level that cuts them."""
    d = design(radius=1.0)
    far = [
        moved(Residuals(design=d, start=(0, 0, 0), level=-8), np.array([5.0, 1.0, y]), np.array([5.0, 1.0, -2.0]))
        for y in (7.0,)
    ]
    assert far[0] > 0.95
    assert moved(Lengths(design=d), np.array([5.0, 1.0, 0.0]), np.array([1.0, 0.5, 0.0])) > Fraction(6, 10)
    origin, corner = np.array([0.0, 0.0, 0.0]), np.array([5.0, 1.0, 0.0])
    bent = Lengths(design=design(intercept=False))
    assert moved(bent, corner, np.array([2.5, 0.5, 0.0])) > Fraction(9_999, 10_000)  # it fills a quarter of a radius
    assert moved(bent, origin, None) == 0
