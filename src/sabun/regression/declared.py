"""Bounds and tables as `PrivateRidge` takes them: a schema of what was declared, shapes that are looked at before cells."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from sabun import checks
from sabun.errors import BoundsError, DataError
from sabun.records import Column, NumberColumn, Schema
from sabun.records.tables import as_table, names_in
from sabun.regression.study import Study

__all__ = ["is_pair", "names_of", "study_of", "width_of"]

_SIMPLE = (int, float, str, bool, Fraction, type(None))


def width_of(bounds: object) -> int | None:
    """How many columns the bounds alone speak of."""
    if isinstance(bounds, Schema):
        return len(bounds.columns)
    return len(bounds) if isinstance(bounds, Sequence | Mapping) and not is_pair(bounds) else None


def names_of(table: object, bounds: object) -> Sequence[str] | int | None:
    """Column names of a table that is in memory, where bounds go by position; names and number of columns are public."""
    if isinstance(bounds, Mapping | Schema) or isinstance(table, str):
        return None
    shape = getattr(table, "shape", None)
    if isinstance(table, np.ndarray) and shape is not None and len(shape) == 2:
        return int(shape[1])
    try:
        return names_in(as_table(table))
    except DataError:
        return width_of(bounds)


def study_of(bounds: Any, target: Any, columns: int | Sequence[str] | None, **terms: Any) -> Study:
    """The terms of a fit outside a study; those made of plain numbers are remembered, with all that follows from them.

    Raises:
        ParameterError: A term breaks its rule.
    """
    pairs, ends, names = _plain(bounds), _plain(target), tuple(columns) if isinstance(columns, list) else columns
    if pairs is None or ends is None or not all(type(term) in _SIMPLE for term in terms.values()):
        return _made(bounds, target, columns, **terms)
    return _remembered(pairs, ends, names, **terms)


def _made(bounds: Any, target: Any, columns: int | Sequence[str] | None, **terms: Any) -> Study:
    return Study(features=_schema(bounds, columns), target=_target(target), **terms)


_remembered = functools.lru_cache(maxsize=128, typed=True)(_made)


def _plain(bounds: object) -> tuple[Any, ...] | None:
    """Numbers, or pairs of them, as what a dictionary can look up; None for anything else."""
    if not isinstance(bounds, list | tuple):
        return None
    found = tuple(end if type(end) in (int, float) else _plain(end) for end in bounds)
    return None if None in found else found


def _schema(bounds: Any, columns: int | Sequence[str] | None) -> Schema:
    if isinstance(bounds, Schema):
        return bounds
    if isinstance(bounds, Mapping):
        return Schema.of_bounds(bounds)
    if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str):
        raise BoundsError(f"x_bounds must be pairs (lower, upper), by position or by name; got {bounds!r:.60}.")
    pairs = list(bounds)
    if is_pair(bounds):
        pairs = [tuple(bounds)] * (columns if isinstance(columns, int) else len(columns or [""]))
    if isinstance(columns, Sequence) and len(columns) == len(pairs):
        return Schema.of_bounds(dict(zip(columns, pairs, strict=True)))
    return Schema.of_bounds(pairs)


def is_pair(bounds: object) -> bool:
    """Whether bounds are one pair, for all columns."""
    return isinstance(bounds, Sequence | np.ndarray) and len(bounds) == 2 and all(checks.is_number(end) for end in bounds)


def _target(bounds: Any) -> NumberColumn:
    if isinstance(bounds, NumberColumn):
        return bounds
    if isinstance(bounds, Mapping):
        checks.require(len(bounds) == 1, "one name with its pair", y_bounds=dict(bounds))
        [(name, pair)] = bounds.items()
        return Column.number(name, bounds=pair)
    return Column.number("y", bounds=bounds)
