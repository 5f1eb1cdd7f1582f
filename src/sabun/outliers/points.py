"""What a table of points must be before a record is counted.

Edge cases:

    | input                                   | outcome                                                  |
    |-----------------------------------------|----------------------------------------------------------|
    | array, list of rows, frame of numbers   | float64 matrix                                           |
    | with a schema: any cell at all          | inside its public bounds, then mapped onto [0, 1]        |
    | not 2-D, no row, no column              | DataError                                                |
    | whole numbers beyond 64 bits            | rounded to float64 like any other                        |
    | text, bool, complex, other cells; masks | DataError                                                |
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
from sabun.engine.by_person import here
from sabun.errors import DataError
from sabun.records import Schema, open_source, open_unbounded
from sabun.records.cells import Floats
from sabun.records.tables import as_table

__all__ = [
    "LARGEST",
    "SMALLEST",
    "Own",
    "as_points",
    "check_columns",
    "check_confidence",
    "check_k",
    "check_radius",
    "columns_named",
    "places_of",
    "read_table",
    "read_views",
]

SMALLEST, LARGEST = 1e-150, 1e150
"""Coordinates and radii stay inside this scale, so that no square overflows or vanishes."""

_LARGEST_K = 1 << 31
"""More neighbours than any table has records."""

_NUMBERS = frozenset(map(id, (int, float, *(np.dtype(code).type for code in "bhilqBHILQefdg"))))
"""The types of cells that hold numbers, by identity: a cell of any other type is never asked anything."""

_RADIUS_ADVICE = (
    "A radius taken from the private table would be a second, unpaid look at it: fix it from public knowledge, "
    "or from a public reference table (suggest_radius; on the command line: sabun outliers radius)."
)


def check_k(k: object) -> int:
    """The number of neighbours an inlier needs."""
    checks.whole(minimum=1, k=k)
    assert isinstance(k, int | np.integer)
    checks.require(int(k) <= _LARGEST_K, f"at most {_LARGEST_K}", k=k)
    return int(k)


def check_confidence(confidence: object) -> float:
    """How often an interval shall hold; as a float, for widths are computed in floats."""
    good = checks.is_number(confidence) and 0 < confidence < 1 and 0 < float(confidence) < 1
    checks.require(good, "above 0 and below 1", confidence=confidence)
    assert checks.is_number(confidence)
    return float(confidence)


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


def columns_named(schema: Schema | None, columns: object) -> tuple[str, ...]:
    """The public names of the columns that distances are measured in; none where nobody named them."""
    return tuple(map(str, check_columns(columns) or (() if schema is None else schema.names)))


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
    """A table in its own units, then as coordinates.

    Args:
        table: A 2-D array, a list of rows, a pandas, polars or pyarrow frame, the name of a CSV or Parquet file, or (with a
            schema) `persons` with several rows each.
        schema: Public bounds. With them every cell has a place: numbers are clipped to their bounds and mapped onto [0, 1],
            labels become one 0/1 column each. Without them the numbers are taken as they are.
        columns: Which columns are coordinates, by number or by name.

    Raises:
        DataError: The table is no such table.
    """
    own, [points] = read_views(table, schema=schema, choices=[columns])
    return own, points


def read_views(
    table: object, *, schema: Schema | None, choices: Sequence[tuple[int | str, ...] | None]
) -> tuple[Own, list[Floats]]:
    """A table in its own units, then as coordinates in each of some choices of columns; it is read once.

    Raises:
        DataError: The table is no such table, or lacks a chosen column.
    """
    if schema is None:
        names, values = _numbers(table)
        places = [places_of(columns, names, declared=False) for columns in choices]
        return Own(names, values), [np.ascontiguousarray(values[:, chosen]) for chosen in places]
    own, views = open_source(here(table, schema=schema), schema=schema, by_person=True).matrix(), []
    for columns in choices:
        chosen = places_of(columns, schema.names, declared=True)
        selected = schema.select([schema.names[place] for place in chosen])
        views.append(np.ascontiguousarray(selected.design(own[:, chosen], to=(0.0, 1.0))))
    return Own(schema.names, own), views


def _numbers(table: object) -> tuple[tuple[str, ...], Floats]:
    if isinstance(table, np.ndarray | list | tuple):
        values = _array(table)
        return tuple(f"x{place}" for place in range(values.shape[1])), _finite(values)
    source = open_unbounded(table)
    return source.names, _finite(source.matrix())


def _array(table: NDArray[Any] | Sequence[Any]) -> NDArray[Any]:
    if isinstance(table, np.ma.MaskedArray):
        raise DataError(
            "a table without a schema must have no mask; it has one. Declare a schema: it has a place for such cells."
        )
    if not isinstance(table, np.ndarray) and len({len(row) for row in table if issubclass(type(row), list | tuple)}) > 1:
        raise DataError("a table must be a 2-D array of numbers; rows of different lengths are none.")
    # A list is read cell by cell: what numpy makes of it would depend on all of its cells together.
    values = np.asarray(as_table(table))
    if not values.shape[1]:
        raise DataError("a table must have at least one column; got none.")
    return values


def places_of(columns: Sequence[int | str] | None, names: Sequence[str], *, declared: bool) -> list[int]:
    """Where the chosen columns stand among the names; all of them where none is chosen.

    Raises:
        DataError: One is not there.
    """
    return [_place(column, names, declared=declared) for column in (names if columns is None else columns)]


def _place(column: int | str, names: Sequence[str], *, declared: bool) -> int:
    if isinstance(column, str):
        if column not in names:
            raise DataError(
                f"columns must be among those that are declared; got {column!r}, which is not. Declare it too."
                if declared
                else f"the table has no column {column!r}. Its columns must include every chosen name."
            )
        return list(names).index(column)
    if not 0 <= column < len(names):
        raise DataError(f"the table has no column number {column}; it has {len(names)}.")
    return column


@np.errstate(all="ignore")  # a caller may have asked numpy to raise on rounding: that error would speak of a private cell
def _finite(values: NDArray[Any]) -> Floats:
    if values.dtype.kind == "O":
        values = _unboxed(values)
    if values.dtype.kind not in "iuf":
        # The name of the kind only: the width of a text type is the length of somebody's cell.
        kind = values.dtype.type.__name__
        raise DataError(f"a table must hold numbers; got cells of type {kind}. Declare a schema for anything else.")
    floats = np.ascontiguousarray(values, dtype=np.float64)
    if not (np.abs(floats) <= LARGEST).all():
        raise DataError(
            f"a table without a schema must hold finite numbers of at most {LARGEST:g} in size; at least one is not "
            "(NaN, inf or larger). Declare a schema: it has a place for every cell."
        )
    return floats


def _unboxed(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers as floats: whether an array keeps them as objects depends on how large they are."""
    cells = values.ravel().tolist()
    if not all(id(type(cell)) in _NUMBERS for cell in cells):
        return values
    return np.array([_as_float(cell) for cell in cells], dtype=np.float64).reshape(values.shape)


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return np.inf
