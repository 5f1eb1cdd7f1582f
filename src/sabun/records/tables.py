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
from sabun.records.rows import is_list_of_dicts, rows_as_array

__all__ = ["Table", "as_table", "cells_of", "check_columns", "is_relation", "names_in"]

Table: TypeAlias = "NDArray[Any] | nw.DataFrame[Any]"
"""A two-dimensional array, or a narwhals view of a pandas, polars or pyarrow frame. Both have a length and slices of rows."""

_FIXED = frozenset({"StringDtype", "ArrowDtype", "BooleanDtype", "DatetimeTZDtype", "PeriodDtype", "IntervalDtype"}) | {
    f"{kind}{bits}Dtype" for kind in ("Int", "UInt", "Float") for bits in (8, 16, 32, 64)
}
"""The pandas extension types whose arrow type follows from the column's type and never from its cells."""

_SERIES = "x0"
"""What a series is called as a frame of one column; its own name is nobody's business."""

_LAZY = {("polars", "LazyFrame"), ("duckdb", "DuckDBPyRelation"), ("_duckdb", "DuckDBPyRelation")}

_KINDS = "a 2-D array, a list of rows, a pandas, polars or pyarrow frame"


def as_table(thing: object, *, width: int | None = None, names: Sequence[str] | None = None) -> Table:
    """Wraps a table in memory; arrays and frames are not copied.

    Args:
        thing: An array, a list of rows or of dicts, a frame (also a lazy one of polars or DuckDB), or (for a single column) a
            series, one-dimensional array or list of cells.
        width: How many columns are wanted, when that is known.
        names: Their names, when those are known; a list of dicts is read by them.

    Raises:
        DataError: It is no table, or has another shape.
    """
    if isinstance(thing, np.ndarray):
        return _array(thing, width)
    if hasattr(type(thing), "toarray"):
        raise DataError("a table must be dense; got a sparse one, and sparse input is not supported. Use X.toarray().")
    if isinstance(thing, list | tuple):
        return rows_as_array(thing, width) if names is None or not is_list_of_dicts(thing) else _of_dicts(thing, names)
    found = _native(thing)
    if isinstance(found, nw.Series):
        return _only_one(found.alias(_SERIES).to_frame(), width)
    if found is None and hasattr(type(thing), "__array__"):
        return _array(np.asarray(thing), width)
    if found is None:
        raise DataError(f"a table must be {_KINDS}; got {type(thing).__name__}.")
    return _with_names(found)


def _of_dicts(rows: Sequence[Any], names: Sequence[str]) -> nw.DataFrame[Any]:
    """Each name's cells; a row without it, or a row that is no dict, has none there."""
    import pandas as pd

    cells = {name: [dict.get(row, name) if type(row) is dict else None for row in rows] for name in names}
    made = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in cells.items()}, index=range(len(rows)))
    wrapped: nw.DataFrame[Any] = nw.from_native(made, eager_only=True)
    return wrapped


def _with_names(table: nw.DataFrame[Any]) -> nw.DataFrame[Any]:
    """A frame whose columns are only numbered (`pandas.DataFrame(array)`) is an array in a frame: x0, x1, …"""
    labels: list[Any] = list(table.columns)
    numbered = len(labels) > 0 and labels == list(range(len(labels)))
    if not numbered:
        return table
    named = table.to_native().set_axis([f"x{index}" for index in labels], axis=1)
    wrapped: nw.DataFrame[Any] = nw.from_native(named, eager_only=True)
    return wrapped


def names_in(table: Table) -> tuple[str, ...]:
    """The column names of a frame, or x0, x1, … for an array."""
    if isinstance(table, np.ndarray):
        return tuple(f"x{index}" for index in range(table.shape[1]))
    return tuple(str(name) for name in table.columns)


def check_columns(table: Table, names: Sequence[str]) -> None:
    """Refuses a frame without all the named columns; a series or list of cells, for a single column, goes by any name.

    Raises:
        DataError: One of them is absent.
    """
    if isinstance(table, np.ndarray) or _is_series(table, names):
        return
    absent = [name for name in names if name not in table.columns]
    if absent:
        raise DataError(f"the table has no column {absent[0]!r}. Its columns must include every name in the schema.")


def cells_of(table: Table, names: Sequence[str]) -> list[Cells]:
    """The named columns of a frame, or all columns of an array in its order."""
    check_columns(table, names)
    if isinstance(table, np.ndarray):
        return [table[:, index] for index in range(table.shape[1])]
    if _is_series(table, names):
        return [_cells(table[_SERIES])]
    return [_cells(table[name]) for name in names]


def _is_series(table: nw.DataFrame[Any], names: Sequence[str]) -> bool:
    return len(names) == 1 and list(table.columns) == [_SERIES]


def _native(thing: object) -> nw.DataFrame[Any] | nw.Series[Any] | None:
    thing = _collected(_table_of_batch(thing))
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


def _collected(thing: object) -> object:
    """What a lazy frame of polars or a relation of DuckDB holds; anything else as it is."""
    home = type(thing).__module__.partition(".")[0]
    if (home, type(thing).__name__) not in _LAZY:
        return thing
    found: Any = None
    try:
        found = nw.from_native(thing).collect("pyarrow").to_native()  # type: ignore[call-overload]
    except Exception:  # its own words may quote cells
        found = None
    if found is None:
        raise DataError(f"a {home} query must give a table; it fails when it is run. Try it by itself first.")
    return found


def is_relation(thing: object) -> bool:
    """Whether something is a relation of DuckDB: a query, whose rows come as the database likes."""
    return (type(thing).__module__.partition(".")[0], type(thing).__name__) in _LAZY and type(thing).__name__ != "LazyFrame"


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
        advice = "Reshape your data, with X.reshape(-1, 1) where it is a single column."
        raise DataError(f"an array must have 2 dimensions (rows, columns); got {array.ndim}. {advice}")
    if array.dtype.kind == "c":
        raise DataError("an array must hold real numbers: Complex data not supported. Use X.real, or a column for each part.")
    if width is not None and array.shape[1] != width:
        raise DataError(f"an array must have {width} columns, in the order of the schema; got {array.shape[1]}.")
    return _unmasked(array) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def _unmasked(array: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """The array with NaN or None where it is masked; what the mask hides is never looked at."""
    hidden, data = np.ma.getmaskarray(array), np.asarray(np.ma.getdata(array))
    if data.dtype.kind == "f":
        with np.errstate(all="ignore"):  # a long double beyond float64 would warn
            return np.where(hidden, np.nan, data.astype(np.float64))
    if data.dtype.kind not in "biuOUT":  # a type that is refused, masked or not
        return data
    cells = data.astype(object)
    cells[hidden] = None
    return cells


def _only_one(frame: nw.DataFrame[Any], width: int | None) -> nw.DataFrame[Any]:
    if width not in (None, 1):
        raise DataError(f"a table must have {width} columns; got a single series.")
    return frame


def _cells(series: nw.Series[Any]) -> Cells:
    """The cells of one column of a frame; how they are read follows from the column's own declared type alone.

    What a library makes of a column of Python objects depends on some of its cells, even whether it can make anything of it:
    those are read one by one.
    """
    if series.implementation.is_pandas_like():
        return _pandas_cells(series)
    if series.implementation.is_pyarrow():
        return series.to_native()
    return series.to_list() if series.dtype in (nw.Object, nw.Categorical, nw.Enum) else _arrow_or_list(series)


def _pandas_cells(series: nw.Series[Any]) -> Cells:
    native = series.to_native()
    if isinstance(native.dtype, np.dtype):
        return series.to_list() if native.dtype.kind == "O" else native.to_numpy()
    # Other extension types (categories, sparse cells, types of other packages) have no fixed counterpart in arrow.
    fixed = type(native.dtype).__name__ in _FIXED and type(native.dtype).__module__.partition(".")[0] == "pandas"
    return _arrow_or_list(series) if fixed else _objects(native)


def _objects(native: Any) -> list[Any]:
    """The cells of an extension type as Python objects; one that its own code cannot hand out is missing."""
    try:
        return list(native.to_list())
    except Exception:
        return [_object(native.array, place) for place in range(len(native))]


def _object(array: Any, place: int) -> Any:
    try:
        return array[place]
    except Exception:
        return None


def _arrow_or_list(series: nw.Series[Any]) -> Cells:
    try:
        return series.to_arrow()
    except Exception:  # text that is no valid unicode, 128-bit numbers: the slower way reads the same values
        return series.to_list()
