"""What a table of points must be before a record is counted.

Edge cases:

    | input                                   | outcome                                                  |
    |-----------------------------------------|----------------------------------------------------------|
    | array, list of rows, frame of numbers   | float64 matrix                                           |
    | with a schema: any cell at all          | inside its public bounds, then mapped onto [0, 1]        |
    | not 2-D, no row, no column              | DataError                                                |
    | whole numbers beyond 64 bits            | rounded to float64 like any other                        |
    | text, bool, complex, other cells        | DataError                                                |
    | NaN, infinity, beyond 1e150 in size     | DataError that does not say where or how many            |

A refusal because of a cell is an output that depends on private data. The public domain of a table without a schema is
therefore "finite numbers of at most 1e150 in size": a caller who cannot promise it declares a schema, which has a place for
every cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError
from sabun.records import Schema, open_source, open_unbounded
from sabun.records.cells import Floats

__all__ = ["LARGEST", "SMALLEST", "Own", "as_points", "check_columns", "check_k", "check_radius", "read_table"]

SMALLEST, LARGEST = 1e-150, 1e150
"""Coordinates and radii stay inside this scale, so that no square overflows or vanishes."""

_RADIUS_ADVICE = (
    "A radius taken from the private table would be a second, unpaid look at it: fix it from public knowledge, "
    "or from a public reference table with sabun.outliers.suggest_radius."
)


def check_k(k: object) -> int:
    """The number of neighbours an inlier needs."""
    checks.whole(minimum=1, k=k)
    assert isinstance(k, int | np.integer)
    return int(k)


def check_radius(radius: object) -> float:
    """A public distance."""
    good = checks.is_number(radius) and SMALLEST <= radius <= LARGEST
    checks.require(
        good, f"a number from {SMALLEST:g} to {LARGEST:g} that was fixed before the data", _RADIUS_ADVICE, radius=radius
    )
    assert checks.is_number(radius)
    return float(radius)


def check_columns(columns: object) -> tuple[int | str, ...] | None:
    """A public choice of columns, by number or by name."""
    if columns is None:
        return None
    listed = list(columns) if isinstance(columns, Sequence) and not isinstance(columns, str) else []
    good = all(isinstance(c, int | np.integer | str) and not isinstance(c, bool) for c in listed)
    checks.require(good and len(listed) > 0, "a list of column numbers or names", columns=columns)
    assert isinstance(columns, Sequence)
    return tuple(c if isinstance(c, str) else int(c) for c in columns)


def as_points(table: object, *, schema: Schema | None = None, columns: tuple[int | str, ...] | None = None) -> Floats:
    """Reads a table as a matrix of coordinates; see `read_table`.

    Raises:
        DataError: The table is no such table, or has no row.
    """
    _, points = read_table(table, schema=schema, columns=columns)
    if not len(points):
        raise DataError("a table must have at least one row; got none.")
    return points


class Own(NamedTuple):
    """A table in its own units."""

    names: tuple[str, ...]
    values: Floats


def read_table(
    table: object, *, schema: Schema | None = None, columns: tuple[int | str, ...] | None = None
) -> tuple[Own, Floats]:
    """Reads a table twice: in its own units, then as coordinates.

    Args:
        table: A 2-D array, a list of rows, a pandas, polars or pyarrow frame, or the name of a CSV or Parquet file.
        schema: Public bounds. With them every cell has a place: numbers are clipped to their bounds and mapped onto [0, 1],
            labels become one 0/1 column each. Without them the numbers are taken as they are.
        columns: Which columns are coordinates, by number or by name.

    Raises:
        DataError: The table is no such table.
    """
    if schema is not None:
        own = open_source(table, schema=schema).matrix()
        places = [_place(column, schema.names) for column in columns or schema.names]
        chosen = schema.select([schema.names[place] for place in places])
        design = chosen.design(own[:, places], to=(0.0, 1.0))
        return Own(schema.names, own), np.ascontiguousarray(design)
    names, values = _numbers(table)
    points = values if columns is None else values[:, [_place(column, names) for column in columns]]
    return Own(names, values), np.ascontiguousarray(points)


def _numbers(table: object) -> tuple[tuple[str, ...], Floats]:
    if isinstance(table, np.ndarray | list | tuple):
        values = _array(table)
        return tuple(f"x{place}" for place in range(values.shape[1])), _finite(values)
    source = open_unbounded(table)
    return source.names, _finite(source.matrix())


def _array(table: object) -> NDArray[Any]:
    try:
        values = np.asarray(table)
    except ValueError:
        raise DataError("a table must be a 2-D array of numbers; rows of different lengths are none.") from None
    if values.ndim != 2:
        raise DataError(f"a table must have 2 dimensions (rows, columns); got {values.ndim}.")
    if not values.shape[1]:
        raise DataError("a table must have at least one column; got none.")
    return values


def _place(column: int | str, names: Sequence[str]) -> int:
    if isinstance(column, str):
        if column not in names:
            raise DataError(f"the table has no column {column!r}. Its columns must include every chosen name.")
        return list(names).index(column)
    if not 0 <= column < len(names):
        raise DataError(f"the table has no column number {column}; it has {len(names)}.")
    return column


def _finite(values: NDArray[Any]) -> Floats:
    if values.dtype.kind == "O":
        values = _unboxed(values)
    if values.dtype.kind not in "iuf":
        # The name of the kind only: the width of a text type is the length of somebody's cell.
        kind = values.dtype.type.__name__
        raise DataError(f"a table must hold numbers; got cells of type {kind}. Declare a schema for anything else.")
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(values, dtype=np.float64)
    if not (np.abs(floats) <= LARGEST).all():
        raise DataError(
            f"a table without a schema must hold finite numbers of at most {LARGEST:g} in size; at least one is not. "
            "Declare a schema: it has a place for every cell."
        )
    return floats


def _unboxed(values: NDArray[Any]) -> NDArray[Any]:
    """Python's own numbers as floats: whether an array keeps them as objects depends on how large they are."""
    cells = values.ravel().tolist()
    if not all(isinstance(cell, int | float | np.integer | np.floating) and not isinstance(cell, bool) for cell in cells):
        return values
    return np.array([_as_float(cell) for cell in cells], dtype=np.float64).reshape(values.shape)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf
