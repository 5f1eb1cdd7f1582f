"""Text files of records, one in each line, read in blocks of bounded size.

All columns are read, for a quotation mark that is never closed may stand in one that is not wanted; where there is no mark at
all, only those that are wanted.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from sabun.errors import DataError
from sabun.records.forms import FileFormat
from sabun.records.places import Place, guarded, is_here, raw_bytes

__all__ = ["csv_chunks", "csv_names", "is_csv"]

_UNPACKED = (".csv", ".tsv", ".txt")
_ENDINGS = tuple(f"{kind}{packed}" for kind in _UNPACKED for packed in ("", ".gz", ".zst", ".bz2"))
_BROKEN = (b"\n", b"\r")
_BLOCK_BYTES = 1 << 24
"""Bytes of text parsed at a time; one line must be shorter. Cannot change any result."""

_LONGEST_LINE = 1 << 24
"""Letters that the line of column names may have."""

_LOOK_BYTES = 1 << 20
"""Bytes looked through at a time."""

_ROWS = 1 << 16
"""Rows handed on at a time: few enough to stay in a processor's cache while they become numbers."""


def is_csv(path: Place) -> bool:
    """Whether a file is text, by its name."""
    return path.name.lower().endswith(_ENDINGS)


def csv_names(path: Place, form: FileFormat) -> tuple[str, ...]:
    """The column names in the first line.

    Raises:
        DataError: The file cannot be read, is empty, or its first line is broken.
    """
    return _start(path, form)[0]


def csv_chunks(path: Place, names: Sequence[str], form: FileFormat) -> Iterator[Any]:
    """Yields the named columns as pyarrow tables of text.

    Raises:
        DataError: A line has too few or too many fields, is not in the encoding, or opens a quotation mark that it does not
            close.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    found, more = _start(path, form)
    if not more:
        return
    bare = _is_bare(path, form)
    read = [name for name in found if name in names] if bare else list(found)

    def opened() -> Any:
        return arrow_csv.open_csv(
            raw_bytes(path),
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK_BYTES, encoding=form.encoding),
            # In a file of one column an empty line is a record whose cell is missing; elsewhere it is no record.
            parse_options=arrow_csv.ParseOptions(
                delimiter=_separator(path, form), newlines_in_values=True, ignore_empty_lines=len(found) > 1
            ),
            # Everything is read as text: whether a cell is a number is decided cell by cell, by the public rule.
            convert_options=arrow_csv.ConvertOptions(
                include_columns=read, column_types={name: pa.large_string() for name in found}, strings_can_be_null=False
            ),
        )

    rule = f"be {_called(form)} text with as many fields in each line as in the first; at least one line is not"
    for table in guarded(opened, f"{path.name} must {rule}. Mend the file, then read it again."):
        if not bare and _holds_line_break(table):
            raise DataError(
                f"{path.name} must hold one record in each line; at least one cell runs over a line break, or a quotation mark "
                "is never closed. Mend the file, or keep such text in a Parquet file."
            )
        found_here = table.select(list(names))
        for start in range(0, len(table), _ROWS):
            yield found_here[start : start + _ROWS]


def _start(path: Place, form: FileFormat) -> tuple[tuple[str, ...], bool]:
    """The column names, with whether anything follows them."""
    names: list[str] | None = None
    more = False
    encoding = "utf-8-sig" if form.encoding == "utf-8" else form.encoding
    try:
        with raw_bytes(path) as raw, io.TextIOWrapper(raw, encoding=encoding, newline="") as text:
            lines = iter(lambda: _line(text), "")
            names = next((line for line in csv.reader(lines, delimiter=_separator(path, form)) if line), [])
            more = text.read(1) != ""
    except (OSError, EOFError, ValueError, csv.Error):
        names = None
    if names is None:
        raise DataError(
            f"{path.name} must be a table in {_called(form)} text; it cannot be read as one. Save it again as UTF-8, or say "
            "how it is written: encoding, such as cp932 (Shift-JIS), and separator."
        )
    if not names:
        raise DataError(f"{path.name} must begin with a line of column names; the file is empty.")
    if any(mark in name.encode("utf-8", "replace") for name in names for mark in _BROKEN):
        raise DataError(f"{path.name} must hold all column names in its first line; a quotation mark there is never closed.")
    return tuple(names), more


def _line(text: io.TextIOBase) -> str:
    """One line, of a length that a block can hold: a packed file may unpack to one without end."""
    found = text.readline(_LONGEST_LINE)
    if len(found) >= _LONGEST_LINE:
        raise ValueError("a line must be shorter")
    return found


def _is_bare(path: Place, form: FileFormat) -> bool:
    """Whether a file of this machine has no quotation mark after its first line, and no byte there that may not be text.

    Then no cell can run over a line break. Looking is far faster than making texts of columns that nobody wants.
    """
    if form.encoding != "utf-8" or not is_here(path) or not path.name.lower().endswith(_UNPACKED):
        return False
    with suppress(OSError), path.open("rb", buffering=0) as raw:
        head, *rest = re.split(rb"[\r\n]", raw.read(_LOOK_BYTES), maxsplit=1)
        blocks = chain(rest or [head], iter(lambda: raw.read(_LOOK_BYTES), b""))
        return all(block.isascii() and b'"' not in block for block in blocks)
    return False


def _called(form: FileFormat) -> str:
    return form.encoding.upper() if form.encoding == "utf-8" else form.encoding


def _separator(path: Place, form: FileFormat) -> str:
    """What parts the cells; a name that ends in .tsv says so."""
    return "\t" if ".tsv" in path.name.lower()[-8:] and form.separator == "," else form.separator


def _holds_line_break(table: Any) -> bool:
    """Whether two lines were read as one record: the break then stands in a cell.

    A quotation mark at the start of a cell opens quoted text that ends at the next one, wherever that is. Were cells with line
    breaks taken, one record with a stray mark would silently swallow the records after it.
    """
    texts = (chunk.buffers()[2] for column in table.columns for chunk in column.chunks)
    return any(mark in text for text in (bytes(found or b"") for found in texts) for mark in _BROKEN)
