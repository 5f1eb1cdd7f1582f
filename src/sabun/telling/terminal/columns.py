"""Public facts about columns as people type them: the one reader of --schema, --bounds and --columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from sabun import checks
from sabun.errors import BoundsError, ParameterError
from sabun.records import Column, NumberColumn, Schema
from sabun.records.forms import PLAIN

__all__ = ["date_column", "declared", "listed", "parted", "typed_bounds", "typed_ends"]

_DATE = re.compile(r"[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2}")
_PAIR = re.compile(r"=[^=:,]*:[^=:,]*(?:,|$)")
"""The end of one `name=low:high`, alone or before the next one after a comma."""


def declared(schema: Path | None, bounds: Sequence[str] | None) -> Schema:
    """The columns of a schema file, with what --bounds adds to them or says instead.

    Raises:
        BoundsError: Nothing was declared.
        ParameterError: Bounds look otherwise than name=low:high.
    """
    known = None if schema is None else Schema.load(schema)
    columns = {} if known is None else {column.name: column for column in known.columns}
    for text in bounds or ():
        name, ends = _split(text, "bounds")
        unit = getattr(columns.get(name), "unit", "")
        columns[name] = date_column(name, ends) or Column.number(name, bounds=typed_bounds(text)[1], unit=unit)
    if not columns:
        raise BoundsError(
            "columns must be declared: pass --schema or --bounds name=low:high. "
            "Bounds never come from the data: with them every cell has a place and every column a public scale."
        )
    return Schema(columns=tuple(columns.values()), file=PLAIN if known is None else known.file)


def parted(text: str) -> list[str]:
    """What stands between commas; 、 and ， are commas too.

    Example:
        >>> parted("中央、東部, north")
        ['中央', '東部', 'north']
    """
    return [part.strip() for part in re.split("[,、，]", text)]


def listed(columns: str | None, known: Schema, *, option: str = "columns") -> list[str] | None:
    """Names separated by commas, each of them declared; None for none given. A name may hold a 、 of its own.

    Raises:
        ParameterError: One of them is not declared.
    """
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    if columns is not None and not set(chosen or ()) <= set(known.names):
        chosen = parted(columns)
    for name in chosen or []:
        if name not in known.names:
            advice = checks.meant(name, known.names) or f"Add --bounds '{name}=low:high'."
            raise ParameterError(f"{option} must be declared; got {name!r}, which is not. {advice}")
    return chosen


def date_column(name: str, ends: str) -> NumberColumn | None:
    """A column of dates of ends such as ``2020-01-01:2024-12-31``; None where they are none."""
    low, _, high = ends.partition(":")
    dates = all(_DATE.fullmatch(end.strip()) for end in (low, high))
    return Column.date(name, lower=low.strip(), upper=high.strip()) if dates else None


def _split(text: str, option: str) -> tuple[str, str]:
    """The name with what stands behind its last equals sign."""
    if len(_PAIR.findall(text)) > 1:
        raise ParameterError(f"{option} must name one column; got {text!r:.60}. Give the option once for each column.")
    name, _, ends = text.rpartition("=")
    return name.strip(), ends


def typed_ends(text: str) -> tuple[str, tuple[float, float]]:
    """The name with two numbers, or with the numbers of two days.

    Raises:
        ParameterError: It looks otherwise.
        BoundsError: The ends are dates in the wrong order.

    Example:
        >>> typed_ends("visit=1970-01-02:1970-01-11")
        ('visit', (1.0, 10.0))
    """
    name, ends = _split(text, "bounds")
    column = date_column(name, ends) if name else None
    return (name, (column.lower, column.upper)) if column is not None else typed_bounds(text)


def typed_bounds(text: str, *, option: str = "bounds") -> tuple[str, tuple[float, float]]:
    """The name with the two ends of `name=low:high`.

    Raises:
        ParameterError: It looks otherwise.

    Example:
        >>> typed_bounds("age=0:120")
        ('age', (0.0, 120.0))
    """
    name, ends = _split(text, option)
    low, _, high = ends.partition(":")
    try:
        if not name:
            raise ValueError
        return name, (float(low), float(high))
    except ValueError:
        raise ParameterError(f"{option} must look like name=low:high, such as age=0:120; got {text!r:.60}.") from None
