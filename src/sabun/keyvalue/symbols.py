"""Arrays of symbols, checked and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sabun.errors import DataError
from sabun.keyvalue.kernels import count_kernel

__all__ = ["cells_of", "checked"]

_MANY = 50_000
"""From this many reports on, compiling the loop pays."""


def cells_of(symbols: ArrayLike, indices: ArrayLike | None, keys: int) -> tuple[NDArray[np.int64], int]:
    """Counters by key (plus, minus, nothing) with the number of reports, for sampled protocols."""
    many = _cells_of_many(np.asarray(symbols), np.asarray(indices), keys)
    if many is not None:
        return many, len(np.asarray(symbols))
    row, places = checked("symbols", symbols, 3), checked("indices", indices, keys)
    if row.shape != places.shape:
        raise DataError("symbols and indices must have one length; they do not.")
    cells = np.bincount(places * np.int64(3) + row, minlength=3 * keys).reshape(keys, 3)
    return cells[:, (1, 2, 0)], len(row)


def _cells_of_many(row: NDArray[Any], places: NDArray[Any], keys: int) -> NDArray[np.int64] | None:
    """The same in one compiled pass; None where the arrays are few or not what they should be, for numpy to say why."""
    # Bytes in the order of the wire are for numpy: compiled code reads the machine's own order only.
    whole = all(array.dtype.kind in "iu" and array.dtype.isnative for array in (row, places))
    if not whole or row.ndim != 1 or row.shape != places.shape or len(row) < _MANY:
        return None
    cells = np.zeros((keys, 3), dtype=np.int64)
    return cells[:, (1, 2, 0)] if count_kernel()(row, places, keys, cells) else None


def checked(name: str, values: Any, limit: int, ndim: int = 1) -> NDArray[Any]:
    """Whole numbers in 0 .. limit - 1, or an error; never moved into range."""
    array = np.asarray(values)
    good = array.ndim == ndim and array.dtype.kind in "iu"
    if array.size == 0:
        return array.astype(np.int64).reshape(array.shape if array.ndim == ndim else (0,) * ndim)
    if not good or array.min() < 0 or array.max() >= limit:
        raise DataError(f"{name} must be whole numbers from 0 to {limit - 1}; they are not.")
    return array
