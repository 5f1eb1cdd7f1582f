"""Conditions, bins and shares as people type them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from sabun import checks
from sabun.errors import ParameterError
from sabun.records import CategoryColumn, Column, NumberColumn, Schema
from sabun.records.dates import days_of
from sabun.telling.rounding import day
from sabun.telling.terminal.columns import parted
from sabun.telling.terminal.interview import read_labels

__all__ = ["typed_bins", "typed_shares", "typed_where"]


def typed_where(texts: Sequence[str] | None, known: Schema) -> dict[str, Any] | None:
    """Conditions such as `age=65:` (from 65), `age=18:65` (below 65), `day=2026-01-01:` and `sex=F,M`; None for none.

    Raises:
        ParameterError: One looks otherwise, or is about a column that is not declared.

    Example:
        >>> typed_where(["age=65:"], Schema.of_bounds({"age": (0, 120)}))
        {'age': (65.0, None)}
        >>> typed_where(["in=2025/4/1:"], Schema(columns=[Column.date("in", lower="2025-01-01", upper="2025-12-31")]))
        {'in': ('2025-04-01', None)}
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        name, equals, wanted = (part.strip() for part in text.partition("="))
        if not (equals and wanted) or name in found or (name[-1:] in "<>!" and name not in known.names):
            raise ParameterError(f"where must look like age=18:65, age=65: or sex=F,M, once for a column; got {text!r:.60}.")
        if name not in known.names:
            advice = checks.meant(name, known.names) or f"Add --bounds '{name}=low:high'."
            raise ParameterError(f"where must be about declared columns; got {name!r}. {advice}")
        labels = isinstance(known[name], CategoryColumn)
        found[name] = read_labels(wanted) if labels else _range(text, wanted, known[name])
    return found or None


def typed_bins(text: str | None) -> int | list[float] | None:
    """A number of bins, or edges separated by commas (、 and ， are too)."""
    if text is None:
        return None
    try:
        edges = parted(text)
        return int(text) if len(edges) == 1 else [_edge(edge) for edge in edges]
    except ValueError:
        raise ParameterError(
            f"bins must be a whole number, or edges such as 0,18,65,120 or 2026-01-01,2026-04-01; got {text!r:.60}."
        ) from None


def _edge(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        if math.isnan(day := days_of(text)):
            raise
        return day


def typed_shares(text: str) -> list[str]:
    """Shares separated by commas, exactly as written."""
    return parted(text)


def _range(text: str, wanted: str, column: Column) -> tuple[float | None, float | None] | tuple[str | None, str | None]:
    low, colon, high = (part.strip() for part in wanted.partition(":"))
    if isinstance(column, NumberColumn) and column.dates:
        ends = [days_of(end) if end else None for end in (low, high)]
        if not colon or any(end is not None and math.isnan(end) for end in ends):
            raise ParameterError(
                f"where must look like day=2026-01-01:2026-04-01 or day=2026-01-01: for dates; got {text!r:.60}."
            )
        first, last = (None if end is None else day(end) for end in ends)
        return first, last  # as a person would write them, for whoever is shown the same question elsewhere
    try:
        if not colon:
            raise ValueError
        return (float(low) if low else None), (float(high) if high else None)
    except ValueError:
        raise ParameterError(f"where must look like age=18:65, age=65: or age=:18 for numbers; got {text!r:.60}.") from None
