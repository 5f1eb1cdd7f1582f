from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sabun.density.kernel import UNIT_BITS, VALUE_ERROR, WHOLE_ERROR, GaussianKernel
from sabun.errors import ParameterError

ANY = st.floats(allow_nan=True, allow_infinity=True, width=64)


def true_values(kernel: GaussianKernel, points: np.ndarray) -> np.ndarray:
    """The kernel of the scaled floats in 50 digits."""
    result = np.empty((len(points), kernel.size), dtype=object)
    with mpmath.workdps(50):
        for i, point in enumerate(points * kernel.factor):
            for j in range(kernel.size):
                result[i, j] = mpmath.exp(
                    -64 * sum((mpmath.mpf(a) - mpmath.mpf(c)) ** 2 for a, c in zip(point, kernel.centres[:, j], strict=True))
                )
    return result


@pytest.mark.parametrize(("columns", "bandwidth"), [(1, 0.3), (3, 2.0), (12, 1e-3), (2, 1e6)])
def test_values_are_within_their_stated_error(columns: int, bandwidth: float) -> None:
    rng = np.random.default_rng(columns)
    centres = rng.normal(size=(6, columns)) * bandwidth * 2
    kernel = GaussianKernel.of(centres, bandwidth=bandwidth)
    points = np.vstack(
        [centres, centres + bandwidth * rng.normal(size=centres.shape) * 3, centres + 5.36 * bandwidth / columns**0.5]
    )
    true = true_values(kernel, points)
    assert max(abs(kernel.values(points) - true).ravel()) <= float(VALUE_ERROR)
    assert max(abs(kernel.whole(points).astype(object) - true * 2**UNIT_BITS).ravel()) <= float(WHOLE_ERROR)
    assert kernel.whole(points).max() <= 1 << UNIT_BITS


def test_points_at_the_cut_off_are_within_the_error() -> None:
    kernel = GaussianKernel.of(np.zeros((1, 1)), bandwidth=1.0)
    points = (8 * np.sqrt(2) * np.sqrt(0.45) * (1 + np.linspace(-1e-12, 1e-12, 21))).reshape(-1, 1)
    assert max(abs(kernel.values(points) - true_values(kernel, points)).ravel()) <= float(VALUE_ERROR)


@settings(max_examples=60, deadline=None)
@given(rows=arrays(np.float64, (5, 2), elements=ANY), order=st.permutations(range(5)))
def test_a_row_depends_on_nothing_but_itself(rows: np.ndarray, order: list[int]) -> None:
    kernel = GaussianKernel.of(np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 3.0]]), bandwidth=1.3)
    whole = kernel.whole(rows)
    assert np.array_equal(kernel.whole(rows[order]), whole[order])
    assert all(np.array_equal(kernel.whole(rows[i : i + 1])[0], whole[i]) for i in range(5))
    assert list(kernel.sums(rows)) == [int(v) for v in whole.astype(object).sum(axis=0)]
    assert ((whole >= 0) & (whole <= 1 << UNIT_BITS)).all()


@pytest.mark.parametrize("cell", [np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200])
def test_rows_that_are_not_finite_or_far_count_nothing(cell: float) -> None:
    kernel = GaussianKernel.of(np.array([[0.0, 0.0], [1.0, 1.0]]), bandwidth=1e-3)
    assert not kernel.whole(np.array([[0.0, cell]])).any()
    assert not kernel.values(np.array([[cell, 0.0]])).any()


def test_sums_of_many_rows_are_python_integers() -> None:
    kernel = GaussianKernel.of(np.zeros((2, 1)), bandwidth=1.0)
    total = kernel.sums(np.zeros((3000, 1)))
    assert list(total) == [3000 << 30] * 2
    assert type(total[0]) is int
    assert list(kernel.sums(np.empty((0, 1)))) == [0, 0]


@pytest.mark.parametrize("bandwidth", [0, -1.0, np.nan, np.inf, 1e-320])
def test_impossible_bandwidths_are_refused(bandwidth: float) -> None:
    with pytest.raises(ParameterError, match="bandwidth must be"):
        GaussianKernel.of(np.ones((2, 1)), bandwidth=bandwidth)


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(ParameterError, match="columns must be at most 4096; got 4097"):
        GaussianKernel.of(np.ones((1, 4097)), bandwidth=1.0)
