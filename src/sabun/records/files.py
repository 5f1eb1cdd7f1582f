"""Tables on disk, read in pieces of bounded size.

What is wrong with a whole file is told to its owner by file and column name. The messages of the reading library are never
passed on, because they quote cells; neither is a file's first line, because in a file without a header that is a record.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from sabun.errors import DataError

__all__ = ["FilePart", "check_file", "file_chunks", "file_column", "file_names", "objects_of", "row_groups", "table_files"]

_BROKEN = (b"\n", b"\r")
_BLOCK_BYTES = 1 << 24
"""Bytes of text parsed at a time; one line of a CSV file must be shorter. Cannot change any result."""


@final
@dataclass(frozen=True, kw_only=True)
class FilePart:
    """A file, or some row groups of a Parquet file, as a table of its own.

    Args:
        path: The file.
        groups: Numbers of the row groups; None for the whole file.
    """

    path: Path
    groups: tuple[int, ...] | None = None


def row_groups(path: Path) -> tuple[int, ...] | None:
    """How many rows each row group of a Parquet file has (PRIVATE); None for a file of another kind.

    Raises:
        DataError: As `file_names`.
    """
    from pyarrow import parquet

    if _is_csv(path):
        return None
    _parquet_names(path)
    found = parquet.read_metadata(path)
    return tuple(found.row_group(number).num_rows for number in range(found.num_row_groups))


def file_names(path: Path) -> tuple[str, ...]:
    """The column names a file (or the first file of a folder) declares.

    Raises:
        DataError: The file is absent, of another kind, damaged, empty, or names a column twice.
    """
    files = table_files(path)
    names = _csv_start(files[0])[0] if _is_csv(files[0]) else _parquet_names(files[0])
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise DataError(f"{path.name} must have distinct column names; at least one stands twice. Rename or drop it.")
    return names


def check_file(path: Path, names: Sequence[str]) -> None:
    """Refuses a file, or a folder with a file, that lacks one of the named columns.

    Raises:
        DataError: As `file_names`, or a column is absent.
    """
    for file in table_files(path):
        found = file_names(file)
        absent = [name for name in names if name not in found]
        if absent:
            raise DataError(f"{file.name} has no column {absent[0]!r}. {_header_advice(file)}")


def file_chunks(path: Path, names: Sequence[str], *, rows: int, groups: Sequence[int] | None = None) -> Iterator[Any]:
    """Yields the named columns of a file as pyarrow tables.

    Args:
        path: A .csv or .csv.gz file, a .parquet file, or a folder of .parquet files (read in the order of their names).
        names: The columns wanted.
        rows: About how many rows at a time; cannot change any result.
        groups: Numbers of the row groups wanted of a Parquet file; all of them when left out.

    Raises:
        DataError: As `file_names`; also in the middle of the iteration when a line has too few or too many fields, is no
            UTF-8, or opens a quotation mark that it does not close.
    """
    for file in table_files(path):
        check_file(file, names)
        if _is_csv(file):
            yield from _csv_chunks(file, names)
        else:
            yield from _parquet_chunks(file, names, rows, groups)


def file_column(path: Path, name: str) -> list[Any]:
    """One column of a file as Python objects, for its owner; a cell that Python cannot hold (text that is none) is None.

    Raises:
        DataError: As `file_chunks`.
    """
    return [cell for chunk in file_chunks(path, [name], rows=1 << 16) for cell in objects_of(chunk.column(name))]


def objects_of(column: Any) -> list[Any]:
    """The cells of a pyarrow column as Python objects; see `file_column`."""
    try:
        return list(column.to_pylist())
    except (ValueError, ArithmeticError):
        return [_object(cell) for cell in column]


def _object(cell: Any) -> Any:
    try:
        return cell.as_py()
    except (ValueError, ArithmeticError):  # no Unicode, or a date after the year 9999
        return None


def _header_advice(file: Path) -> str:
    if _is_csv(file):
        return "Its first line must hold the column names, separated by commas."
    return "Its columns must include every name in the schema."


def table_files(path: Path) -> list[Path]:
    """The files of a table: itself, or the .parquet files of a folder in the order of their names.

    Raises:
        DataError: There is none, or it is of another kind.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.parquet") if file.is_file())
        if not files:
            raise DataError(f"folder {path.name} must hold .parquet files; got none.")
        if len({(status.st_dev, status.st_ino) for status in map(os.stat, files)}) < len(files):
            raise DataError(
                f"folder {path.name} must hold each file once; a link names one again, and its rows would count twice."
            )
        return files
    if not path.is_file():
        raise DataError(f"{str(path)!r} must be a file or folder; there is none of that name.")
    if not (_is_csv(path) or path.suffix == ".parquet"):
        raise DataError(f"{path.name} must end in .csv, .csv.gz or .parquet (or be a folder of .parquet files).")
    return [path]


def _is_csv(path: Path) -> bool:
    return path.name.endswith((".csv", ".csv.gz"))


def _csv_start(path: Path) -> tuple[tuple[str, ...], bool]:
    """The column names of a CSV file, with whether anything follows them."""
    names: list[str] | None = None
    more = False
    opened = gzip.open if path.name.endswith(".gz") else open
    try:
        with opened(path, "rb") as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            names = next((line for line in csv.reader(text) if line), [])
            more = text.read(1) != ""
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error):
        names = None
    if names is None:
        raise DataError(f"{path.name} must be a CSV file in UTF-8; it cannot be read as one. Save it again as UTF-8.")
    if not names:
        raise DataError(f"{path.name} must begin with a line of column names; the file is empty.")
    if any(mark in name.encode() for name in names for mark in _BROKEN):
        raise DataError(f"{path.name} must hold all column names in its first line; a quotation mark there is never closed.")
    return tuple(names), more


def _csv_chunks(path: Path, names: Sequence[str]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    found, more = _csv_start(path)
    if not more:
        return

    def opened() -> Any:
        return arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK_BYTES),
            # In a file of one column an empty line is a record whose cell is missing; elsewhere it is no record.
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(found) > 1),
            # Everything is read as text: whether a cell is a number is decided cell by cell, by the public rule. All columns
            # are read, for a quotation mark that is never closed may stand in one that is not wanted.
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(found), column_types={name: pa.large_string() for name in found}, strings_can_be_null=False
            ),
        )

    rule = "be UTF-8 text with as many fields in each line as in the first; at least one line is not"
    for table in _guarded(opened, f"{path.name} must {rule}. Mend the file, then read it again."):
        if _holds_line_break(table):
            raise DataError(
                f"{path.name} must hold one record in each line; at least one cell runs over a line break, or a quotation mark "
                "is never closed. Mend the file, or keep such text in a Parquet file."
            )
        yield table.select(list(names))


def _holds_line_break(table: Any) -> bool:
    """Whether two lines were read as one record: the break then stands in a cell.

    A quotation mark at the start of a cell opens quoted text that ends at the next one, wherever that is. Were cells with line
    breaks taken, one record with a stray mark would silently swallow the records after it.
    """
    texts = (chunk.buffers()[2] for column in table.columns for chunk in column.chunks)
    return any(mark in text for text in (bytes(found or b"") for found in texts) for mark in _BROKEN)


def _parquet_names(path: Path) -> tuple[str, ...]:
    import pyarrow as pa
    from pyarrow import parquet

    names: tuple[str, ...] | None = None
    try:
        names = tuple(parquet.read_schema(path).names)
    except (pa.ArrowException, OSError):
        names = None
    if names is None:
        raise DataError(f"{path.name} must be a Parquet file; it cannot be read as one.")
    return names


def _parquet_chunks(path: Path, names: Sequence[str], rows: int, groups: Sequence[int] | None) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    def opened() -> Any:
        # A file may ask for dictionaries with small indices, where the number of labels would decide whether it can be read.
        coded = [field.name for field in parquet.read_schema(path) if pa.types.is_dictionary(field.type)]
        file = parquet.ParquetFile(path, read_dictionary=coded)
        return file.iter_batches(batch_size=rows, row_groups=groups, columns=list(names))

    yield from _guarded(opened, f"{path.name} must be a whole Parquet file; it is damaged.")


def _guarded(opened: Any, message: str) -> Iterator[Any]:
    """The batches of a reader as tables; its errors become ours, without a trace of their text."""
    import pyarrow as pa

    batches: Iterator[Any] = iter(())
    failed = False
    try:
        batches = iter(opened())
    except (pa.ArrowException, OSError):
        failed = True
    while not failed:
        batch = None
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError):
            failed = True
        if batch is not None:
            yield pa.Table.from_batches([batch])
        elif not failed:
            return
    raise DataError(message)
