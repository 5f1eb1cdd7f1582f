from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.density.basis import BoundedBasis
from sabun.errors import ParameterError


def of(function: object, bounds: tuple[float, float] = (0.0, 1.0)) -> BoundedBasis:
    return BoundedBasis.of(function, bounds, example=np.array([0.5, 0.5]))


def nasty(x: np.ndarray) -> object:
    if x[0] > 100:
        raise RuntimeError(f"a message with the private value {x[0]}")
    return {1: [np.nan, 1.0], 2: [1e308 * 10, -np.inf], 3: [1.0], 4: "text", 5: [[1.0, 2.0]], 6: None}.get(
        int(x[0]), [x[0], x[1]]
    )


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (-3.0, 0.5), (2.0, 5.0)])
@settings(deadline=None)
@given(rows=st.lists(st.tuples(st.floats(-10, 200), st.floats(-1e9, 1e9)), min_size=1, max_size=5))
def test_whatever_the_function_does_the_sums_move_by_at_most_the_span(
    bounds: tuple[float, float], rows: list[tuple[float, float]]
) -> None:
    basis = of(nasty, bounds)
    points = np.array(rows)
    assert ((basis.values(points) >= bounds[0]) & (basis.values(points) <= bounds[1])).all()
    changed = points.copy()
    changed[0] = [7.0, -7.0]
    difference = basis.sums(points) - basis.sums(changed)
    assert max(abs(int(value)) for value in difference) <= basis.span


@pytest.mark.parametrize("problem", [SystemExit, GeneratorExit, MemoryError, StopIteration, RecursionError])
def test_no_exception_of_the_function_gets_out(problem: type[BaseException]) -> None:
    def leaving(x: np.ndarray) -> list[float]:
        if x[0] > 1:
            raise problem(x[0])
        return [0.25]

    assert list(of(leaving).values(np.array([[2.0, 0.0], [0.0, 0.0]])).ravel()) == [0.0, 0.25]


def test_the_person_at_the_keyboard_can_still_stop_it() -> None:
    def stopped(x: np.ndarray) -> list[float]:
        if x[0] > 1:
            raise KeyboardInterrupt
        return [0.25]

    with pytest.raises(KeyboardInterrupt):
        of(stopped).values(np.array([[2.0, 0.0]]))


def test_no_warning_of_the_function_gets_out() -> None:
    def warning(x: np.ndarray) -> list[float]:
        if x[0] > 1:
            warnings.warn(f"private value {x[0]}", stacklevel=1)
        return [0.25]

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert list(of(warning).values(np.array([[2.0, 0.0]])).ravel()) == [0.25]
    assert heard == []


def test_bounds_that_floats_cannot_tell_apart_are_refused() -> None:
    for bounds in ((1.0, 1.0 + 1e-12), (-1e9 - 1e-6, -1e9)):
        with pytest.raises(ParameterError, match=r"basis_bounds must be a pair .lower, upper. further apart than"):
            of(lambda x: x, bounds)
    for bounds in ((0.0, 1e-320), (-1e308, 1e308)):
        with pytest.raises(ParameterError, match=r"basis_bounds must be between 1e-100 and 1e[+]100"):
            of(lambda x: x, bounds)


def test_each_record_is_handed_over_by_itself_as_a_copy() -> None:
    seen = []

    def spoiling(x: np.ndarray) -> list[float]:
        seen.append(x.shape)
        x[:] = -1
        return [1.0]

    points = np.ones((3, 2))
    of(spoiling).sums(points)
    assert set(seen) == {(2,)}
    assert (points == 1).all()


def test_the_span_of_a_signed_basis_is_twice_its_bound() -> None:
    assert of(lambda x: x, (0.0, 1.0)).span == 1 << 30
    assert of(lambda x: x, (-1.0, 1.0)).span == 2 << 30


def test_no_rows_give_zero_sums() -> None:
    assert list(of(lambda x: x).sums(np.empty((0, 2)))) == [0, 0]


def test_bad_functions_are_refused_on_public_records() -> None:
    with pytest.raises(ParameterError, match=r"basis must accept one record \(a 1-D array\); it raised"):
        of(lambda x: x["a"])
    with pytest.raises(ParameterError, match="basis must be a function that returns a flat list of numbers"):
        of(lambda x: 1.0)
    with pytest.raises(ParameterError, match="basis must be a function of one record; got 3"):
        of(3)
    for bounds in ((1.0, 1.0), (0.0,), (0.0, np.inf), "ab", None):
        with pytest.raises(ParameterError, match="basis_bounds must be a pair"):
            of(lambda x: x, bounds)
