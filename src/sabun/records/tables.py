"""A table in memory, of whichever kind, as columns of cells.

Refusals here speak of the table's kind, shape and column names only; those are public, its cells are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.cells import Cells

__all__ = ["Table", "as_table", "cells_of", "check_columns", "names_in"]

Table: TypeAlias = "NDArray[Any] | nw.DataFrame[Any]"
"""A two-dimensional array, or a narwhals view of a pandas, polars or pyarrow frame. Both have a length and slices of rows."""

_KINDS = "a 2-D array, a list of rows, a pandas, polars or pyarrow frame"


def as_table(thing: object, *, width: int | None = None) -> Table:
    """Wraps a table in memory without copying it.

    Args:
        thing: An array, a list of rows, a frame, or (for a single column) a series or one-dimensional array.
        width: How many columns are wanted, when that is known.

    Raises:
        DataError: It is no table, or has another shape.
    """
    if isinstance(thing, np.ndarray):
        return _array(thing, width)
    if isinstance(thing, list | tuple):
        return _array(_array_of_rows(thing), width)
    found = _native(thing)
    if isinstance(found, nw.Series):
        return _only_one(found.to_frame(), width)
    if found is None:
        raise DataError(f"a table must be {_KINDS}; got {type(thing).__name__}.")
    return found


def names_in(table: Table) -> tuple[str, ...]:
    """The column names of a frame, or x0, x1, … for an array."""
    if isinstance(table, np.ndarray):
        return tuple(f"x{index}" for index in range(table.shape[1]))
    return tuple(str(name) for name in table.columns)


def check_columns(table: Table, names: Sequence[str]) -> None:
    """Refuses a frame without all the named columns; a single column goes by any name.

    Raises:
        DataError: One of them is absent.
    """
    if isinstance(table, np.ndarray) or len(names) == len(table.columns) == 1:
        return
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise DataError(f"the table has no column {absent[0]!r}. Its columns must include every name in the schema.")


def cells_of(table: Table, names: Sequence[str]) -> list[Cells]:
    """The named columns of a frame, or all columns of an array in its order."""
    check_columns(table, names)
    if isinstance(table, np.ndarray):
        return [table[:, index] for index in range(table.shape[1])]
    if len(names) == len(table.columns) == 1:
        return [_cells(table[table.columns[0]])]
    return [_cells(table[name]) for name in names]


def _native(thing: object) -> nw.DataFrame[Any] | nw.Series[Any] | None:
    thing = _table_of_batch(thing)
    duplicated = False
    found: nw.DataFrame[Any] | nw.Series[Any] | None = None
    try:
        wrapped: Any = nw.from_native(thing, eager_only=True, allow_series=True, pass_through=True)
        found = wrapped if isinstance(wrapped, nw.DataFrame | nw.Series) else None
    except DuplicateError:
        duplicated = True
    if duplicated:
        raise DataError("the table must have distinct column names; at least one stands twice. Rename or drop it.")
    return found


def _table_of_batch(thing: object) -> object:
    """A pyarrow record batch as a pyarrow table, anything else as it is."""
    if type(thing).__name__ != "RecordBatch":
        return thing
    import pyarrow as pa

    return pa.Table.from_batches([thing]) if isinstance(thing, pa.RecordBatch) else thing


def _array(array: NDArray[Any], width: int | None) -> NDArray[Any]:
    if array.ndim == 1 and width == 1 and array.dtype.names is None:
        array = array.reshape(-1, 1)
    if array.ndim != 2:
        raise DataError(f"an array must have 2 dimensions (rows, columns); got {array.ndim}.")
    if width is not None and array.shape[1] != width:
        raise DataError(f"an array must have {width} columns, in the order of the schema; got {array.shape[1]}.")
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if array.dtype.kind in "biuf":
        return np.asarray(np.ma.filled(array.astype(np.float64), np.nan))
    return np.asarray(np.ma.filled(array.astype(object), None))


def _array_of_rows(rows: Sequence[Any]) -> NDArray[Any]:
    """An object array of a list of rows, which never guesses a type from the cells."""
    if not rows or not isinstance(rows[0], list | tuple | np.ndarray):
        if rows and _native(rows[0]) is not None:
            raise DataError("a list of tables must be wrapped: sabun.records.chunks([...]).")
        flat = np.empty(len(rows), dtype=object)
        flat[:] = [*rows]
        return flat
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) and np.ndim(row) else -1 for row in rows}
    if len(lengths) != 1:
        raise DataError("a list of rows must hold rows of one length.")
    result = np.empty((len(rows), lengths.pop()), dtype=object)
    for index, row in enumerate(rows):
        for place, cell in enumerate(row):
            result[index, place] = cell
    return result


def _only_one(frame: nw.DataFrame[Any], width: int | None) -> nw.DataFrame[Any]:
    if width not in (None, 1):
        raise DataError(f"a table must have {width} columns; got a single series.")
    return frame


def _cells(series: nw.Series[Any]) -> Cells:
    # What arrow makes of a column of objects depends on its cells, even whether it can: those are read one by one.
    if series.dtype in (nw.Object, nw.Categorical, nw.Enum):
        return series.to_list()
    try:
        return series.to_arrow()
    except Exception:  # text that is no valid unicode, 128-bit numbers: the slower way reads the same values
        return series.to_list()
