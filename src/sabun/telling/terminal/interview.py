"""A schema by question and answer: what is publicly known of each column, asked until it can be written down."""

from __future__ import annotations

import csv
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import typer

from sabun.errors import ParameterError, SabunError
from sabun.foreign import one_line
from sabun.records import Column, FileFormat, FilePart, NumberColumn
from sabun.records.cells import numbers
from sabun.records.files import file_column
from sabun.records.workbooks import is_workbook, sheets_of
from sabun.telling.terminal.output import remark

__all__ = ["ADVICE", "KINDS", "NOT_PRIVATE", "asked_columns", "column_of", "looked_at", "read_labels", "typed_labels"]

_Answer = TypeVar("_Answer")

ADVICE = """For each column say what everybody knows without the table: from the form, the code book, the law.
Never take bounds from the rows: the largest age in a table is one person's age."""
NOT_PRIVATE = "NOT PRIVATE: what is said about cells below was read off the private rows. Do not publish it."
KINDS = {"n": "number", "c": "category", "d": "date", "i": "id", "s": "skip"}
"""What a column may be, by the letter that answers."""
_MOST = 1000
_PARTED = re.compile(r"[;；|｜/／・\s]")
"""What people part labels by where commas are meant."""
_WIDE_COMMA = re.compile(r'"(?:[^"]|"")*"|[、，]')


def asked_columns(table: Path | None, *, known: set[str], form: FileFormat | None, look: bool = False) -> list[Column]:
    """Asks on the terminal.

    Args:
        table: A table whose column names are asked about; without one the names are asked for too.
        known: Names of columns that are declared already.
        form: How the table's text is written.
        look: Whether the rows may be read, to tell the owner what kind of cells a column has. What is shown is NOT PRIVATE.

    Raises:
        ParameterError: The answers end before the last question.
    """
    if look and table is None:
        raise ParameterError("--look must come with --names-of, the table to look at.")
    remark(ADVICE)
    part = None if table is None else FilePart.of(table).written(form or FileFormat())
    if table is not None and is_workbook(table) and not (form and form.sheet) and len(sheets := sheets_of(table)) > 1:
        named = ", ".join(f"{sheet!r:.60}" for sheet in sheets)
        remark(f"{table.name} has the sheets {named}; the columns are those of the first. For another: --sheet.")
    if look:
        remark(NOT_PRIVATE)
    found = list[Column]()
    for name in _typed_names(known) if part is None else [name for name in part.names() if name not in known]:
        if look and part is not None:
            remark(f"{one_line(name)}: {looked_at(file_column(part, name), form or FileFormat())}")
        column = _asked_column(name)
        if column is not None:
            found.append(column)
    return found


def _typed_names(known: set[str]) -> Iterator[str]:
    seen = set(known)
    while name := _prompt("Name of the next column (empty to end)", "").strip():
        if name in seen:
            remark(f"{one_line(name)} is declared already.")
            continue
        seen.add(name)
        yield name


def _asked_column(name: str) -> Column | None:
    shown = one_line(name)
    kind = _until(lambda: _kind(_prompt(f"{shown}: number (n), category (c), date (d), id of a person (i) or skip (s)", "s")))
    if kind == "id":
        remark(
            f"{shown} stays out of the schema. Where a person may have several rows, ask with --id {shlex.quote(shown)}; "
            f"to see whether some have: sabun schema check TABLE --schema FILE --id {shlex.quote(shown)}."
        )
    if kind in ("id", "skip"):
        return None
    if kind == "category":
        column = _until(lambda: column_of(name, kind, labels=_prompt(f"{shown}: its labels, between commas")))
        return _until(
            lambda: _filled(column, _prompt(f"{shown}: the label that stands for any other (empty: none of these)", ""))
        )
    if kind == "date":
        column = _until(lambda: column_of(name, kind, low=_end(shown, "first day (2020-01-31)"), high=_end(shown, "last day")))
    else:
        low, high = ("lowest value that is possible", "highest value that is possible")
        column = _until(lambda: column_of(name, kind, low=_numeric(_end(shown, low)), high=_numeric(_end(shown, high))))
    column = _until(lambda: _filled(column, _prompt(f"{shown}: what stands for an unreadable cell (empty: the middle)", "")))
    return _measured(column, shown) if isinstance(column, NumberColumn) and not column.dates else column


def _filled(column: Column | None, missing: str) -> Column:
    """The column with what stands for cells that cannot be read."""
    assert column is not None
    told = column.to_dict()
    if missing.strip():
        told["missing"] = _number(missing) if told["kind"] == "number" else missing.strip()
    return Column.from_dict(told)


def _measured(column: NumberColumn, shown: str) -> Column:
    """The column with its unit, and on a log scale where it has few large values and many small ones."""
    column = _until(lambda: replace(column, unit=_prompt(f"{shown}: its unit, such as kg or 円 (empty: none)", "")))
    if column.lower < 0:
        return column
    question = f"{shown}: a few values far above all others, as with incomes: yes (y) or no (n)"
    return _until(lambda: replace(column, log1p=_yes(_prompt(question, "n"))))


def _yes(answer: str) -> bool:
    if (word := answer.strip().lower()) not in ("y", "yes", "n", "no"):
        raise ParameterError(f"the answer must be y or n; got {one_line(answer)!r:.40}.")
    return word.startswith("y")


def column_of(
    name: str, kind: str, *, low: str = "", high: str = "", labels: str = "", missing: str = "", unit: str = ""
) -> Column | None:
    """The column that answers declare, as they were typed; None for one that is skipped or tells persons apart.

    Raises:
        SabunError: They declare none.
    """
    kind = _kind(kind)
    if kind in ("id", "skip"):
        return None
    if kind == "category":
        return Column.category(name, _between_commas(labels), missing=missing.strip() or None)
    if kind == "date":
        return Column.date(name, lower=low.strip(), upper=high.strip(), missing=missing.strip() or None)
    return Column.number(name, lower=_number(low), upper=_number(high), missing=_optional(missing), unit=unit.strip())


def typed_labels(labels: Iterable[str]) -> str:
    """Labels as one would type them, between commas (、 and ， are too); one with a comma in quotation marks.

    Example:
        >>> typed_labels(["F", "Doe, Jane"])
        'F, "Doe, Jane"'
    """
    known = list(labels)
    return ", ".join(
        '"{}"'.format(one.replace('"', '""')) if set(",、，") & set(one) or one[:1] == '"' or _alone(known) else one
        for one in known
    )


def _alone(labels: Sequence[str]) -> bool:
    """Whether there is one label that looks like several."""
    return len(labels) == 1 and _PARTED.search(labels[0]) is not None


def _between_commas(typed: str) -> list[str]:
    """Labels as a person types them, refused where they are not parted as they must be."""
    labels = read_labels(typed)
    if not any(labels):
        raise ParameterError("the labels must be named, between commas; got none.")
    if _alone(labels) and not typed.strip().startswith('"'):
        raise ParameterError(
            f"the labels must stand between commas; got one, {one_line(labels[0])!r:.60}. "
            "If it is one, put it in quotation marks."
        )
    return labels


def read_labels(typed: str) -> list[str]:
    """Labels as `typed_labels` writes them.

    Raises:
        ParameterError: They stand in more than one line.

    Example:
        >>> read_labels('中央、東部, "Doe, Jane"')
        ['中央', '東部', 'Doe, Jane']
    """
    try:
        plain = _WIDE_COMMA.sub(lambda found: "," if found[0] in "、，" else found[0], typed)
        return [label.strip() for label in next(csv.reader([plain], skipinitialspace=True), [""])]
    except csv.Error:
        raise ParameterError("the labels must stand in one line, between commas; they do not.") from None


def _kind(answer: str) -> str:
    for letter, word in KINDS.items():
        if answer.strip().lower() in (letter, word):
            return word
    raise ParameterError(f"the answer must be one of {', '.join(KINDS)}; got {one_line(answer)!r:.40}.")


def _end(shown: str, which: str) -> str:
    return _prompt(f"{shown}: {which}").strip()


def _number(answer: str) -> float:
    try:
        return float(answer)
    except ValueError:
        raise ParameterError(
            f"the answer must be a number such as 1500 or 0.5, without signs between thousands; got {one_line(answer)!r:.40}."
        ) from None


def _numeric(answer: str) -> str:
    """The answer, refused at once where it is no number: the next question is not asked in vain."""
    _number(answer)
    return answer


def _optional(answer: str) -> float | None:
    return _number(answer) if answer.strip() else None


def _until(answer: Callable[[], _Answer]) -> _Answer:
    """Asks again until the answers can be taken."""
    for _ in range(_MOST):
        try:
            return answer()
        except SabunError as error:
            if isinstance(error, _Ended):
                raise
            remark(str(error))
    raise _Ended("the answers must come to an end; they do not.")


class _Ended(ParameterError):
    """Nobody answers any more."""


def _prompt(question: str, default: str | None = None) -> str:
    """One answer; asked on the error stream, so that the standard one holds the result alone."""
    while True:
        typer.echo(f"{question}{f' [{default}]' if default else ''}: ", err=True, nl=False)
        line = sys.stdin.readline()
        if not line:
            raise _Ended("the questions must be answered to the end; they were not. Nothing was written.")
        if line.strip() or default is not None:
            return line.strip() or str(default)


def looked_at(cells: list[Any], form: FileFormat) -> str:
    """How the cells of a column look, without one of them: numbers are those that a question would read."""
    filled = [cell for cell in cells if cell is not None and str(cell).strip()]
    read = ~np.isnan(numbers(filled, name="", form=form))
    found = sum(known and str(cell).strip().lower() not in ("true", "false") for known, cell in zip(read, filled, strict=True))
    kinds = len({str(cell).strip() for cell in filled})
    share = f"{found / len(filled):.0%} of the cells are numbers, {kinds} different ones" if filled else "no cell is filled"
    return f"{len(cells) - len(filled)} of {len(cells)} cells are empty; {share}."
