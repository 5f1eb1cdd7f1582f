"""Tables on disk or behind a URL, read in pieces of bounded size.

What is wrong with a whole file is told to its owner by file and column name. The messages of the reading library are never
passed on, because they quote cells; neither is a file's first line, because in a file without a header that is a record.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

from sabun.errors import DataError
from sabun.records.csv_files import csv_chunks, csv_names, is_csv
from sabun.records.forms import PLAIN, FileFormat
from sabun.records.places import Place, guarded, is_here, place_of, readable
from sabun.records.workbooks import is_workbook, sheet_chunks, sheet_names

__all__ = ["FilePart", "check_file", "file_column", "file_names", "objects_of", "row_groups", "same_file", "table_files"]

_KINDS = ".csv, .tsv, .txt (also .gz or .zst), .parquet or a workbook such as .xlsx"


@final
@dataclass(frozen=True, kw_only=True)
class FilePart(os.PathLike[str]):
    """A file, or some row groups of a Parquet file, as a table of its own.

    Args:
        path: The file, or a folder of .parquet files (read in the order of their names).
        groups: Numbers of the row groups; None for the whole file.
        form: How its text is written; None for as the schema says.
    """

    path: Place
    groups: tuple[int, ...] | None = None
    form: FileFormat | None = None

    @classmethod
    def of(cls, name: str | os.PathLike[str]) -> Self:
        """The file of a name or URL, whole; a part of one as it is."""
        return name if isinstance(name, cls) else cls(path=place_of(name))

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        """The file's own name, for messages."""
        return self.path.name

    def written(self, form: FileFormat) -> Self:
        """The same, read in that form but for what it says itself."""
        return replace(self, form=form if self.form is None else self.form.over(form))

    def names(self) -> tuple[str, ...]:
        """The column names it (or the first file of a folder) declares.

        Raises:
            DataError: The file is absent, of another kind, damaged, empty, or names a column twice.
        """
        return _names(table_files(self.path)[0], self.form or PLAIN)

    def check(self, names: Sequence[str]) -> None:
        """Refuses a file, or a folder with a file, that lacks one of the named columns.

        Raises:
            DataError: As `names`, or a column is absent.
        """
        for file in table_files(self.path):
            _check(file, names, self.form or PLAIN)

    def chunks(self, names: Sequence[str], *, rows: int) -> Iterator[Any]:
        """Yields the named columns as tables.

        Args:
            names: The columns wanted.
            rows: About how many rows at a time; cannot change any result.

        Raises:
            DataError: As `check`; also in the middle of the iteration where a file is not what its beginning says.
        """
        form = self.form or PLAIN
        for file in table_files(self.path):
            _check(file, names, form)
            if is_csv(file):
                yield from csv_chunks(file, names, form)
            elif is_workbook(file):
                yield from sheet_chunks(file, names, form, rows=rows)
            else:
                yield from _parquet_chunks(file, names, rows, self.groups)


def row_groups(path: Place) -> tuple[int, ...] | None:
    """How many rows each row group of a Parquet file has (PRIVATE); None for a file of another kind.

    Raises:
        DataError: It cannot be read.
    """
    from pyarrow import parquet

    if is_csv(path) or is_workbook(path):
        return None
    _parquet_names(path)
    found = parquet.read_metadata(readable(path))
    return tuple(found.row_group(number).num_rows for number in range(found.num_row_groups))


def file_names(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """The column names of a file; see `FilePart.names`."""
    return FilePart.of(path).names()


def check_file(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    """Refuses a file that lacks one of the named columns; see `FilePart.check`."""
    FilePart.of(path).check(names)


def file_column(path: str | os.PathLike[str], name: str) -> list[Any]:
    """One column of a file as Python objects, for its owner; a cell that Python cannot hold (text that is none) is None.

    Raises:
        DataError: As `FilePart.chunks`.
    """
    return [cell for chunk in FilePart.of(path).chunks([name], rows=1 << 16) for cell in objects_of(chunk.column(name))]


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


def table_files(path: Place) -> list[Place]:
    """The files of a table: itself, or the .parquet files of a folder in the order of their names.

    Raises:
        DataError: There is none, or it is of another kind.
    """
    try:
        return _files(path)
    except (PermissionError, ConnectionError, TimeoutError):
        pass
    raise DataError(f"{path.name} must be readable; it cannot be reached. Check its name and who may read it.")


def _files(path: Place) -> list[Place]:
    if path.is_dir():
        files = sorted(file for file in path.rglob("*.parquet") if file.is_file())
        if not files:
            raise DataError(f"folder {path.name} must hold .parquet files; got none.")
        if len({same_file(file) for file in files}) < len(files):
            raise DataError(
                f"folder {path.name} must hold each file once; a link names one again, and its rows would count twice."
            )
        return files
    if not path.is_file():
        raise DataError(f"{str(path)!r} must be a file or folder; there is none of that name.")
    if not (is_csv(path) or is_workbook(path) or path.suffix == ".parquet"):
        raise DataError(f"{path.name} must end in {_KINDS} (or be a folder of .parquet files).")
    return [path]


def same_file(path: Place) -> object:
    """What two names of one file share."""
    if not is_here(path):
        return str(path)
    status = path.stat()
    return (status.st_dev, status.st_ino)


def _names(file: Place, form: FileFormat) -> tuple[str, ...]:
    names = csv_names(file, form) if is_csv(file) else sheet_names(file, form) if is_workbook(file) else _parquet_names(file)
    if any(times > 1 for times in Counter(names).values()):
        raise DataError(f"{file.name} must have distinct column names; at least one stands twice. Rename or drop it.")
    return names


def _check(file: Place, names: Sequence[str], form: FileFormat) -> None:
    found = _names(file, form)
    absent = [name for name in names if name not in found]
    if absent:
        raise DataError(f"{file.name} has no column {absent[0]!r}. {_header_advice(file, form)}")


def _header_advice(file: Place, form: FileFormat) -> str:
    if is_csv(file):
        parted = {",": "commas", ";": "semicolons", "\t": "tabs"}.get(form.separator, repr(form.separator))
        return f"Its first line must hold the column names, separated by {parted} (say so if they are not: separator)."
    if is_workbook(file):
        return "The first line of its sheet must hold the column names: remove what stands above them, or name another sheet."
    return "Its columns must include every name in the schema."


def _parquet_names(path: Place) -> tuple[str, ...]:
    import pyarrow as pa
    from pyarrow import parquet

    names: tuple[str, ...] | None = None
    try:
        names = tuple(parquet.read_schema(readable(path)).names)
    except (pa.ArrowException, OSError):
        names = None
    if names is None:
        raise DataError(f"{path.name} must be a Parquet file; it cannot be read as one.")
    return names


def _parquet_chunks(path: Place, names: Sequence[str], rows: int, groups: Sequence[int] | None) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    def opened() -> Any:
        # A file may ask for dictionaries with small indices, where the number of labels would decide whether it can be read.
        coded = [field.name for field in parquet.read_schema(readable(path)) if pa.types.is_dictionary(field.type)]
        file = parquet.ParquetFile(readable(path), read_dictionary=coded)
        return file.iter_batches(batch_size=rows, row_groups=groups, columns=list(names))

    yield from guarded(opened, f"{path.name} must be a whole Parquet file; it is damaged.")
