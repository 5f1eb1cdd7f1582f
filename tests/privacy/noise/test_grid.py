from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.privacy.noise import Grid

exponents = st.integers(-40, 40)


@given(st.floats(-1e6, 1e6), st.integers(-30, 30))
def test_index_is_the_nearest_grid_point(value: float, exponent: int) -> None:
    grid = Grid(exponent)
    assert grid.index(value) == round(Fraction(value) / grid.step)
    assert grid.index(np.array([value])).tolist() == [grid.index(value)]


@given(st.integers(-(1 << 53), 1 << 53), exponents)
def test_value_is_an_exact_multiple(index: int, exponent: int) -> None:
    grid = Grid(exponent)
    assert Fraction(grid.value(index)) == index * grid.step
    assert grid.value(np.array([index])).tolist() == [grid.value(index)]
    assert grid.index(grid.value(index)) == index


def test_ties_go_to_the_even_number() -> None:
    values = [-1.5, -0.5, 0.5, 1.5, 2.5]
    assert [Grid(0).index(v) for v in values] == [-2, 0, 0, 2, 2]
    assert Grid(0).index(np.array(values)).tolist() == [-2, 0, 0, 2, 2]
    assert Grid(0).index(np.array(np.nextafter(0.5, 1))) == 1


def test_extremes_of_floats_are_indexed_without_error() -> None:
    tiny = np.nextafter(0, 1)
    assert Grid(1000).index(np.array([tiny, -0.0, 1e300])).tolist() == [0, 0, 0]
    assert Grid(-1022).index(0.5) == 1 << 1021
    assert Grid(-1).index(np.array([[0.25, 0.75]])).tolist() == [[0, 2]]
    assert Grid(0).index(np.array([3], dtype=np.int32)).tolist() == [3]
    assert Grid(0).index(np.array([-(2.0**62)])).tolist() == [-(1 << 62)]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_non_finite_values_are_refused_without_being_shown(bad: float) -> None:
    for value in (bad, np.array([0.0, bad])):
        with pytest.raises(
            ParameterError, match=r"^value must be finite; got one that is not\. Replace missing values first\.$"
        ):
            Grid(0).index(value)


def test_an_index_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"value must be below 2\*\*63 grid steps in size; got one that is not"):
        Grid(-10).index(np.array([2.0**60]))
    with pytest.raises(ParameterError, match=r"below 2\*\*63"):
        Grid(-1000).index(np.array([1e300]))


@pytest.mark.parametrize(
    ("exponent", "index"), [(0, (1 << 53) + 1), (0, -(1 << 60) - 1), (1000, 1 << 62), (-1022, (1 << 63) - 1)]
)
def test_a_point_no_float_holds_is_refused(exponent: int, index: int) -> None:
    for value in (index, np.array([index]), np.array([index], dtype=object)):
        with pytest.raises(ParameterError, match=r"index must name a grid point that is exactly a float; got one that is not"):
            Grid(exponent).value(value)


def test_far_points_with_few_digits_are_exact() -> None:
    indices = [-(1 << 63), 1 << 62, -(3 << 60), 0, (1 << 53) + 2]
    for dtype in (np.int64, object):
        assert Grid(3).value(np.array(indices, dtype=dtype)).tolist() == [8.0 * i for i in indices]
    assert Grid(0).value(1 << 200) == 2.0**200
    with pytest.raises(ParameterError, match="exactly a float"):
        Grid(0).value(1 << 2000)


@pytest.mark.parametrize("bad", [0.5, True, "1", 1024, -1023, None])
def test_an_exponent_must_be_a_whole_number_in_range(bad: Any) -> None:
    with pytest.raises(ParameterError, match=r"exponent must be a whole number from -1022 to 1023; got "):
        Grid(bad)


def test_an_index_must_be_whole() -> None:
    with pytest.raises(ParameterError, match=r"index must be a whole number; got <class 'float'>\."):
        Grid(0).value(0.5)  # type: ignore[call-overload]
    with pytest.raises(TypeError):
        Grid(0).value(np.array([0.5]))


def test_whole_numbers_beyond_floats_are_indexed_exactly() -> None:
    values = np.array([2**62 + 257, -(2**62) - 1, 7])
    assert Grid(0).index(values).tolist() == values.tolist()
    assert Grid(1).index(np.array([3, 5, -3])).tolist() == [2, 2, -2]
    with pytest.raises(ParameterError, match="value must be below 2\\*\\*63 grid steps"):
        Grid(-2).index(np.array([2**62]))
