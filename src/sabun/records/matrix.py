"""From cells to the float64 matrix that statistics are computed on; public facts only, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError
from sabun.records.cells import Floats, numbers
from sabun.records.columns import Column, NumberColumn
from sabun.records.forms import PLAIN, FileFormat
from sabun.records.tables import as_table, cells_of

__all__ = ["encoded", "one_hot", "scaled", "unbounded"]

_QUIET = np.errstate(all="ignore")
"""A caller may have asked numpy to raise on rounding: that error would speak of a private cell."""

_BLOCK = 8192
"""Rows clipped at a time so that they stay in the processor's cache; cannot change any result."""


@_QUIET
def encoded(columns: Sequence[Column], chunk: object, *, keep_missing: bool = False, form: FileFormat = PLAIN) -> Floats:
    """One column for each declared one: numbers inside their bounds, labels as codes."""
    table = as_table(chunk, width=len(columns))
    if (
        isinstance(table, np.ndarray)
        and table.dtype.kind in "biuf"
        and all(isinstance(column, NumberColumn) and not column.dates for column in columns)
    ):
        return _clipped_array([column for column in columns if isinstance(column, NumberColumn)], table, keep_missing)
    cells = cells_of(table, [column.name for column in columns])
    result = np.empty((len(table), len(columns)))
    for index, (column, values) in enumerate(zip(columns, cells, strict=True)):
        result[:, index] = column.encode(values, keep_missing=keep_missing, form=form)
    return result


@_QUIET
def unbounded(names: Sequence[str], chunk: object, *, form: FileFormat = PLAIN) -> Floats:
    """One column of plain numbers for each name, NaN where a cell holds none."""
    table = as_table(chunk, width=len(names))
    cells = cells_of(table, names)
    result = np.empty((len(table), len(names)))
    for index, (name, values) in enumerate(zip(names, cells, strict=True)):
        result[:, index] = numbers(values, name=name, form=form)
    return result


@_QUIET
def scaled(columns: Sequence[Column], matrix: Floats, *, to: tuple[float, float]) -> Floats:
    """Number columns mapped from their bounds onto `to`; label codes as they are."""
    good = len(to) == 2 and all(checks.is_number(end) and np.isfinite(end) for end in to) and to[0] < to[1]
    checks.require(good, "a pair (low, high) of finite numbers with low < high", to=to)
    result = _checked(columns, matrix).copy()
    places = [index for index, column in enumerate(columns) if isinstance(column, NumberColumn)]
    declared = [column for column in columns if isinstance(column, NumberColumn)]
    for start in range(0, len(result), _BLOCK):
        block = result[start : start + _BLOCK]
        block[:, places] = _onto(declared, block[:, places], float(to[0]) + 0.0, float(to[1]) + 0.0)
    return result


@_QUIET
def one_hot(columns: Sequence[Column], matrix: Floats) -> Floats:
    """Label codes spread over one 0/1 column for each label; number columns as they are."""
    matrix = _checked(columns, matrix)
    result = np.zeros((len(matrix), sum(len(column.features) for column in columns)))
    start = 0
    for index, column in enumerate(columns):
        end = start + len(column.features)
        if isinstance(column, NumberColumn):
            result[:, start] = matrix[:, index]
        else:
            _spread(matrix[:, index], result[:, start:end])
        start = end
    return result


def _spread(codes: Floats, block: Floats) -> None:
    rows = np.flatnonzero((codes >= 0) & (codes < block.shape[1]))
    block[rows, codes[rows].astype(np.int64)] = 1.0
    block[np.isnan(codes)] = np.nan


def _checked(columns: Sequence[Column], matrix: Floats) -> Floats:
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[1] != len(columns):
        raise DataError(f"an encoded matrix must have {len(columns)} columns; got shape {('n', *matrix.shape[1:])!r}.")
    return matrix


def _clipped_array(columns: Sequence[NumberColumn], table: NDArray[Any], keep_missing: bool) -> Floats:
    lower, upper, missing = _rows_of(columns, "lower", "upper", "missing")
    result = np.array(table, dtype=np.float64, order="C")
    for start in range(0, len(result), _BLOCK):
        block = result[start : start + _BLOCK]
        if not keep_missing:
            np.copyto(block, missing, where=np.isnan(block))
        np.clip(block, lower, upper, out=block)
        block += 0.0  # -0.0 and 0.0 are one value
    return result


def _onto(columns: Sequence[NumberColumn], block: Floats, low: float, high: float) -> Floats:
    """Numbers mapped from their columns' bounds onto [low, high], worked out in place."""
    lower, upper = _rows_of(columns, "lower", "upper")
    logs = np.array([column.log1p for column in columns], dtype=bool)
    np.clip(block, lower, upper, out=block)
    if logs.any():
        block[:, logs] = np.log1p(np.ascontiguousarray(block[:, logs]))
        lower[logs], upper[logs] = np.log1p(lower[logs]), np.log1p(upper[logs])
    block -= lower
    block /= upper - lower
    np.clip(block, 0.0, 1.0, out=block)
    block *= high - low
    block += low
    np.clip(block, low, high, out=block)  # rounding may step over an end by one unit in the last place
    return block


def _rows_of(columns: Sequence[NumberColumn], *keys: str) -> list[Floats]:
    return [np.array([getattr(column, key) for column in columns], dtype=np.float64) for key in keys]
