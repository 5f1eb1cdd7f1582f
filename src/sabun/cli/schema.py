"""`sabun schema`: say what is publicly known about a table, look how well the table fits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sabun import checks
from sabun.errors import ParameterError
from sabun.foreign import one_line
from sabun.records import (
    CHUNK_ROWS,
    CategoryColumn,
    Column,
    FileFormat,
    FilePart,
    NumberColumn,
    Schema,
    TableFit,
    inspect_table,
)
from sabun.records.codebooks import read_code_book
from sabun.records.ids import id_texts
from sabun.release.files import write_whole
from sabun.telling.terminal.asked import Spelling
from sabun.telling.terminal.interview import asked_columns, read_labels
from sabun.telling.terminal.options import Json, Overwrite, PrivateTable, as_written
from sabun.telling.terminal.output import new_file, print_json, print_line, remark
from sabun.telling.terminal.written import Decimal, Encoding, Separator, Sheet, Thousands, form_of

__all__ = ["app"]

_HELP = """Say what is publicly known about a table: every job starts from it.

Example:

    sabun schema new people.schema.json --number age=0:120 --category smoker=no,yes
"""

app = typer.Typer(help=_HELP, no_args_is_help=True)

_MOST_SHOWN = 10


@app.command()
def new(
    out: Annotated[Path, typer.Argument(help="The JSON file to write.")],
    number: Annotated[list[str] | None, typer.Option(help="A column of numbers: name=low:high; repeat it.")] = None,
    date: Annotated[list[str] | None, typer.Option(help="A column of dates: name=2020-01-01:2024-12-31; repeat it.")] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of labels: name=label,label (、 parts them too; a label with a comma in double quotes); repeat it."
        ),
    ] = None,
    missing: Annotated[
        list[str] | None, typer.Option(help="What stands for a cell that cannot be read: name=value; repeat it.")
    ] = None,
    log1p: Annotated[list[str] | None, typer.Option(help="A heavy-tailed number column: its name; repeat it.")] = None,
    unit: Annotated[
        list[str] | None, typer.Option(help="What a column of numbers is measured in, such as weight=kg; repeat it.")
    ] = None,
    code_book: Annotated[
        Path | None,
        typer.Option("--code-book", help="A code book to begin with: CSV, frictionless, pandera (JSON, YAML) or DDI (XML)."),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Be asked, column by column; so too where nothing is declared.")] = False,
    names_of: Annotated[
        Path | None, typer.Option("--names-of", help="With --ask: a table whose column names are taken; its rows are not read.")
    ] = None,
    look: Annotated[
        bool,
        typer.Option("--look", help="With --names-of: read the rows too, to tell what kind of cells there are. NOT PRIVATE."),
    ] = False,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    sheet: Sheet = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Write a schema from bounds and labels that are publicly known, never taken from the data.

    Example:

        sabun schema new people.schema.json --number age=0:120 --number bmi=10:60 --category smoker=no,yes --missing age=40
    """
    new_file(out, overwrite=overwrite)
    form = form_of(encoding=encoding, separator=separator, decimal=decimal, thousands=thousands, sheet=sheet)
    constants = dict(_split(text, "missing") for text in missing or [])
    tailed, units = set(log1p or []), dict(_split(text, "unit") for text in unit or [])
    pairs = [_split(text, "number") for text in number or []]
    columns: list[Column] = [_number(name, ends, constants.pop(name, None), name in tailed) for name, ends in pairs]
    for name, labels in (_split(text, "category") for text in category or []):
        columns.append(Column.category(name, read_labels(labels), missing=constants.pop(name, None)))
    for name, ends in (_split(text, "date") for text in date or []):
        low, _, high = ends.partition(":")
        columns.append(Column.date(name, lower=low, upper=high, missing=constants.pop(name, None)))
    declared = {column.name for column in columns}
    if code_book is not None:
        book = read_code_book(code_book)
        columns = [*(column for column in book.columns if column.name not in declared), *columns]
        for name, why in book.short.items():
            if name not in declared:
                remark(f"{one_line(name)} is left out: the code book has {why}. Declare it by an option.")
    if names_of is not None and not ask:
        raise ParameterError("--names-of must come with --ask, which asks about each of the names.")
    if ask or (not columns and sys.stdin.isatty()):
        columns += asked_columns(names_of, known={column.name for column in columns}, form=form, look=look)
    columns = [_changed(column, constants, tailed, units) for column in columns]
    if constants:
        raise _unknown("missing", "a column", next(iter(constants)), columns)
    if strange := sorted(tailed - {column.name for column in columns if isinstance(column, NumberColumn) and column.log1p}):
        raise _unknown("log1p", "a column of numbers", strange[0], columns)
    if units:
        raise _unknown("unit", "a column of numbers", next(iter(units)), columns)
    if not columns:
        raise ParameterError(
            "columns must be declared. Pass --number name=low:high, --date name=first:last or --category name=label,label; or "
            "--code-book FILE; or --ask, to be asked."
        )
    schema = Schema(columns=tuple(columns), file=form or FileFormat())
    write_whole(out, schema.to_text().encode(), overwrite=overwrite)
    _tell(schema, out, json=json)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A schema file.")],
    json: Json = False,
) -> None:
    """Show what a schema declares.

    Example:

        sabun schema new people.schema.json --number age=0:120 --category smoker=no,yes

        sabun schema show people.schema.json
    """
    _tell(Schema.load(file), None, json=json)


@app.command()
@as_written
def check(
    data: PrivateTable,
    schema: Annotated[Path, typer.Option(help="The schema file.")],
    labels: Annotated[
        bool,
        typer.Option(help="Also print labels that are not in the lists, cells that cannot be read, ids that look alike."),
    ] = False,
    person: Annotated[str | None, typer.Option("--id", help="The column that says whose row it is.")] = None,
    spelling: Spelling = None,
    json: Json = False,
) -> None:
    """Count the cells of your own table that do not fit, before any budget is spent. NOT PRIVATE.

    Example:

        sabun datasets save wdbc cells.csv --schema cells.schema.json

        sabun schema check cells.csv --schema cells.schema.json
    """
    if person is None and spelling is not None:
        raise ParameterError("--spelling must come with --id, the column that tells persons apart.")
    declared = Schema.load(schema)
    data = data.written(declared.file)
    owners = None if person is None else _cells(data, person)
    found = inspect_table(data, schema=declared, ids=owners, spelling=spelling or "text")
    unused = [name for name in data.names() if name not in declared.names and name != person]
    if json:
        shown = {"labels": _strange(found), "ids": [list(ids) for ids in found.alike_ids[:_MOST_SHOWN]]} if labels else {}
        print_json(found.to_dict() | {"undeclared": unused} | shown)
        return
    print_line(str(found))
    if unused:
        print_line(f"Not declared, so no job can use them: {', '.join(map(one_line, unused))}.")
    if labels:
        for name, strange in _strange(found).items():
            why = "not in its list" if isinstance(declared[name], CategoryColumn) else "cannot be read"
            print_line(f"{one_line(name)}, {why}: " + ", ".join(f"{text!r:.60} ({times:,})" for text, times in strange.items()))
        for ids in found.alike_ids[:_MOST_SHOWN]:
            print_line("These ids look alike: " + ", ".join(f"{text!r:.60}" for text in ids[:_MOST_SHOWN]))
    elif found.alike_ids or any(fit.strange for fit in found.columns):
        print_line("To see labels that are not in the lists, cells that cannot be read, ids that look alike: --labels.")


def _cells(data: FilePart, column: str) -> list[object]:
    if column not in data.names():
        listed = ", ".join(f"{name!r:.60}" for name in data.names()[:_MOST_SHOWN])
        advice = checks.meant(column, data.names())
        raise ParameterError(f"id must be a column of {data.name}, such as {listed}; got {column!r:.60}. {advice}".rstrip())
    return [text for chunk in data.chunks([column], rows=CHUNK_ROWS) for text in id_texts(chunk.column(column), name=column)]


def _strange(found: TableFit) -> dict[str, dict[str, int]]:
    return {fit.name: dict(fit.strange.most_common(_MOST_SHOWN)) for fit in found.columns if fit.strange}


def _unknown(option: str, what: str, name: str, columns: list[Column]) -> ParameterError:
    advice = checks.meant(name, [column.name for column in columns if column.name != name])
    return ParameterError(f"{option} must name {what} that is declared; got {name!r:.60}. {advice}".rstrip())


def _split(text: str, option: str) -> tuple[str, str]:
    name, equals, rest = text.partition("=")
    if not (equals and name.strip() and rest.strip()):
        shapes = {"number": "low:high", "date": "first:last", "category": "label,label", "missing": "value", "unit": "kg"}
        shape = f"name={shapes[option]}"
        raise ParameterError(f"{option} must look like {shape}; got {text!r:.60}.")
    return name.strip(), rest.strip()


def _number(name: str, ends: str, missing: str | None, log1p: bool) -> Column:
    low, _, high = ends.partition(":")
    try:
        lower, upper, constant = float(low), float(high), None if missing is None else float(missing)
    except ValueError:
        too = "" if missing is None else f" with missing={missing!r:.20}"
        given = f"{name}={ends}"
        raise ParameterError(f"number must look like name=low:high, such as age=0:120; got {given!r:.60}{too}.") from None
    return Column.number(name, lower=lower, upper=upper, missing=constant, log1p=log1p)


def _changed(column: Column, constants: dict[str, str], tailed: set[str], units: dict[str, str]) -> Column:
    """A column, of a code book or of answers too, with what the options say besides; that is taken out of them."""
    told = column.to_dict()
    if (missing := constants.pop(column.name, None)) is not None:
        told["missing"] = missing if told["kind"] != "number" else _plain(missing, column.name)
    if column.name in tailed and told["kind"] == "number":
        told["log1p"] = True
    if told["kind"] == "number" and column.name in units:
        told["unit"] = units.pop(column.name)
    return Column.from_dict(told)


def _plain(missing: str, name: str) -> float:
    try:
        return float(missing)
    except ValueError:
        raise ParameterError(f"missing must be a number for {name!r:.60}; got {missing!r:.20}.") from None


def _tell(schema: Schema, out: Path | None, *, json: bool) -> None:
    if json:
        print_json(schema.to_dict() | ({} if out is None else {"out": str(out)}))
        return
    for column in schema.columns:
        print_line(str(column))
    if out is not None:
        print_line(f"Wrote {out}. Next: sabun schema check TABLE --schema {out}")
