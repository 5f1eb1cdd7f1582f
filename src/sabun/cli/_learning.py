"""Reading what `sabun learning` is given: tables, labels, settings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sabun.errors import BoundsError, ParameterError
from sabun.records import CategoryColumn, Schema
from sabun.records.files import file_chunks, file_names

__all__ = ["Declared", "cells", "declared", "layers", "numbers"]


@final
@dataclass(frozen=True, kw_only=True)
class Declared:
    """What the caller says about a table beforehand."""

    schema: Schema
    classes: tuple[str, ...] | None


def declared(schema: Path | None, bounds: list[str] | None, target: str, classes: str | None) -> Declared:
    """The schema of the inputs with the classes of the target.

    Raises:
        BoundsError: There is neither a schema nor bounds.
    """
    if schema is None and not bounds:
        raise BoundsError(
            "the columns must be declared. Bounds must not come from the data: pass --schema or --bounds name=low:high."
        )
    if schema is not None and bounds:
        raise ParameterError("bounds must be left out when there is a schema; got both --schema and --bounds.")
    whole = Schema.of_bounds(_pairs(bounds or [])) if schema is None else Schema.load(schema)
    listed = None if classes is None else tuple(part.strip() for part in classes.split(","))
    if target in whole.names:
        column = whole[target]
        if listed is None and isinstance(column, CategoryColumn):
            listed = column.categories
        whole = whole.select([name for name in whole.names if name != target])
    return Declared(schema=whole, classes=listed)


def _pairs(bounds: list[str]) -> dict[str, tuple[float, float]]:
    pairs = {}
    for text in bounds:
        name, _, ends = text.rpartition("=")
        low, _, high = ends.partition(":")
        try:
            pairs[name] = (float(low), float(high))
        except ValueError:
            raise ParameterError(f"bounds must be name=low:high; got {text!r}.") from None
    return pairs


def cells(data: Path, column: str) -> list[Any]:
    """One column of a file as text; only for the owner of the data."""
    if column not in file_names(data):
        raise ParameterError(f"target must be a column of {data.name}; got {column!r}.")
    return [cell for chunk in file_chunks(data, [column], rows=1 << 16) for cell in chunk.column(column).to_pylist()]


def layers(text: str) -> tuple[int, ...] | str:
    """Hidden layers such as "64,64", "" for none, "auto"."""
    if text == "auto":
        return text
    return tuple(numbers(text, "hidden"))


def numbers(text: str, name: str) -> list[int]:
    """Whole numbers separated by commas."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ParameterError(f"{name} must be whole numbers separated by commas; got {text!r}.") from None
