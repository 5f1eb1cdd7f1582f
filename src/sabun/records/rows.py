"""A list of rows as an array of objects.

Only the containers decide the structure: a row is a list, a tuple or a one-dimensional array. The cells inside are carried over
without being looked at, so none can raise, whatever it is.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError

__all__ = ["is_list_of_dicts", "rows_as_array"]

_TABLES = {
    "pandas": ("DataFrame", "Series"),
    "polars": ("DataFrame", "LazyFrame", "Series"),
    "pyarrow": ("Table", "RecordBatch"),
}


def is_list_of_dicts(rows: Sequence[object]) -> bool:
    """Whether rows are dicts, as the first one tells."""
    return len(rows) > 0 and type(rows[0]) is dict


def rows_as_array(rows: Sequence[object], width: int | None) -> NDArray[Any]:
    """An object array of a list of rows; no type is ever guessed from the cells.

    When a single column is wanted, an element that is a row of one cell stands for that cell, and any other element is itself
    the cell, each judged alone. Only a list of nothing but longer or empty rows is refused there, as a table of another shape.

    Args:
        rows: The rows.
        width: How many cells each row must have; None for as many as the first.

    Raises:
        DataError: An element is no row, or a row of another length; with a single column, only when all are.
    """
    if rows and all(map(_is_table, rows)):
        raise DataError("a list of tables must be wrapped: sabun.records.chunks([...]).")
    read = [_cells_of(row) for row in rows]
    if width is None and read and read[0] is not None:
        width = len(read[0])
    good = [cells is not None and len(cells) == width for cells in read]
    if width == 1 and not (rows and all(cells is not None and len(cells) != 1 for cells in read)):
        return _filled(
            len(rows), 1, (cells[0] if cells and fits else row for row, cells, fits in zip(rows, read, good, strict=True))
        )
    if width is None or not all(good):
        rule = "one length" if width is None else f"{width} cells"
        raise DataError(f"a list of rows must hold lists, tuples or one-dimensional arrays of {rule}; at least one is not.")
    return _filled(len(rows), width, (cell for cells in read for cell in cells or ()))


def _filled(height: int, width: int, cells: Iterator[object]) -> NDArray[Any]:
    result = np.empty((height, width), dtype=object)
    flat = result.reshape(-1)
    for place, cell in enumerate(cells):
        flat[place] = cell  # one place at a time: assigning a whole list would ask each cell whether it is an array
    return result


def _cells_of(row: Any) -> Sequence[object] | None:
    """The cells of a row, read by Python's and numpy's own methods; None for what is no row."""
    kind = type(row)
    if issubclass(kind, list):
        return list(list.__iter__(row))
    if issubclass(kind, tuple):
        return list(tuple.__iter__(row))
    if not issubclass(kind, np.ndarray):
        return None
    array: NDArray[Any] = row if issubclass(kind, np.ma.MaskedArray) else np.ndarray.view(row, np.ndarray)
    return [array[place] for place in range(len(array))] if array.ndim == 1 else None


def _is_table(thing: object) -> bool:
    """Whether something is a frame of a library that is in use, told by its exact type."""
    for library, names in _TABLES.items():
        if any(type(thing) is getattr(sys.modules.get(library), name, None) for name in names):
            return True
    return False
