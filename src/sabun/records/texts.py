"""Cells of workbooks and databases as text, the form in which every file's cells are judged: one rule for all of them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from typing import Any

from sabun.records.cells import text_of
from sabun.records.forms import FileFormat

__all__ = ["text_table"]


def text_table(names: Sequence[str], columns: Iterable[Iterable[object]], form: FileFormat) -> Any:
    """A pyarrow table of text; numbers are written as the file's texts write them, days in ISO form, anything else is null."""
    import pyarrow as pa

    made = [pa.array([_written(cell, form) for cell in cells], type=pa.large_string()) for cells in columns]
    return pa.table(made, names=list(names))


def _written(cell: object, form: FileFormat) -> str | None:
    if isinstance(cell, str):
        return str(cell).encode("utf-8", "replace").decode()
    if isinstance(cell, datetime.date):  # a date with a time is one too
        return cell.isoformat()
    if isinstance(cell, float) and math.isinf(cell):
        return "inf" if cell > 0 else "-inf"
    text = text_of(cell)
    return text if text is None or form.decimal == "." else text.replace(".", form.decimal)
