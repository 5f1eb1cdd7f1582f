"""Sheets of a workbook: read whole, as Python objects, by a maintained reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sabun.errors import DataError, ParameterError
from sabun.records.forms import FileFormat
from sabun.records.places import Place
from sabun.records.texts import text_table

__all__ = ["is_workbook", "sheet_chunks", "sheet_names", "sheets_of"]

_ENDINGS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def is_workbook(path: Place) -> bool:
    """Whether a file is a workbook, by its name."""
    return path.name.lower().endswith(_ENDINGS)


def sheets_of(path: Place) -> tuple[str, ...]:
    """What the sheets of a workbook are called, in its order; none where it cannot be read."""
    try:
        from python_calamine import CalamineWorkbook

        with path.open("rb") as opened:
            return tuple(CalamineWorkbook.from_filelike(opened).sheet_names)
    except Exception:  # the reader's own errors have no common class
        return ()


def sheet_names(path: Place, form: FileFormat) -> tuple[str, ...]:
    """The column names in the first line of the sheet that is not empty.

    Raises:
        DataError: It cannot be read, there is no such sheet, or it is empty.
    """
    return _read(path, form)[0]


def sheet_chunks(path: Place, names: Sequence[str], form: FileFormat, *, rows: int) -> Iterator[Any]:
    """Yields the named columns as tables of text; a line without any cell is no record."""
    header, lines = _read(path, form)
    where = [header.index(name) for name in names]
    for start in range(0, len(lines), rows):
        some = lines[start : start + rows]
        yield text_table(names, ([line[place] for line in some] for place in where), form)


def _read(path: Place, form: FileFormat) -> tuple[tuple[str, ...], list[list[Any]]]:
    try:
        from python_calamine import CalamineWorkbook
    except ImportError:
        raise ParameterError(
            "a workbook needs the extra that reads them. Install it with: pip install 'sabun[excel]'"
        ) from None
    sheets: list[str] | None = None
    lines: list[list[Any] | None] | None = None
    try:
        with path.open("rb") as opened:
            book = CalamineWorkbook.from_filelike(opened)
            sheets = list(book.sheet_names)
            if not form.sheet or form.sheet in sheets:
                lines = list(_lines(book.get_sheet_by_name(form.sheet or sheets[0])))
    except Exception:  # the reader's own errors quote cells, and have no common class
        sheets = None
    if sheets is None:
        raise DataError(f"{path.name} must be a workbook; it cannot be read as one. Save it again, or as a CSV file.")
    if lines is None:
        known = ", ".join(map(repr, sheets[:8]))
        raise DataError(f"{path.name} must have the sheet that was asked for; got {form.sheet!r:.40}. It has {known}.")
    told = [line for line in lines if line is None or any(cell != "" for cell in line)]
    if not told or told[0] is None:
        raise DataError(f"the sheet of {path.name} must begin with a line of column names; it is empty.")
    names = [str(cell).strip() for cell in told[0]]
    while names and names[-1] == "":
        names.pop()
    empty: list[Any] = [None] * len(names)
    return tuple(names), [
        empty if line is None else [None if cell == "" else cell for cell in line[: len(names)]] for line in told[1:]
    ]


def _lines(sheet: Any) -> Iterator[list[Any] | None]:
    """The lines of a sheet, each by itself: one with a cell that Python cannot hold is a record without any, here None.

    The reader raises, or panics with what is no Exception, on a cell formatted as a day or a time that no calendar has.
    """
    lines = sheet.iter_rows()
    while True:
        line: list[Any] | None = None
        try:
            line = next(lines)
        except StopIteration:
            return
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException:  # whatever a cell makes of it must not decide about the other records
            line = None
        yield line
