"""A table as people type it, with how its text is written: the same options for every verb that reads one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from sabun.errors import SabunError
from sabun.records import DatabaseTable, FileFormat, FilePart, Schema
from sabun.records.databases import is_database
from sabun.records.files import same_file
from sabun.records.forms import PLAIN
from sabun.telling.terminal.output import remark

__all__ = [
    "Decimal",
    "Encoding",
    "PrivateTable",
    "Separator",
    "Sheet",
    "Thousands",
    "as_written",
    "form_of",
    "same_table",
    "typed_table",
    "widened",
]

_KINDS = ".csv, .tsv, .xlsx, .parquet, a folder of .parquet files, a URL, or a database's table (postgresql://…::table)"


def typed_table(text: str) -> FilePart:
    """The table of a name, a URL, or a database's table."""
    if isinstance(text, FilePart | DatabaseTable):
        return text  # typer hands a default over as it is
    try:
        return DatabaseTable.of(text) if is_database(text) else FilePart.of(text)  # type: ignore[return-value]
    except SabunError as error:
        raise typer.BadParameter(str(error)) from None


def same_table(one: object, other: object) -> bool:
    """Whether two names stand for one table, through links too."""
    if not (isinstance(one, FilePart) and isinstance(other, FilePart)):
        return one == other
    return one.path.exists() and other.path.exists() and same_file(one.path) == same_file(other.path)


PrivateTable: TypeAlias = Annotated[
    FilePart, typer.Argument(parser=typed_table, metavar="TABLE", help=f"The private table: {_KINDS}.")
]

Encoding: TypeAlias = Annotated[
    str | None, typer.Option("--encoding", help="How a text file is encoded: cp932 (Shift-JIS), utf-16, …")
]
Separator: TypeAlias = Annotated[
    str | None, typer.Option("--separator", help="What stands between the cells of a line: ';' or tab.")
]
Decimal: TypeAlias = Annotated[str | None, typer.Option("--decimal", help="The decimal sign in numbers: ',' for 3,14.")]
Thousands: TypeAlias = Annotated[
    str | None, typer.Option("--thousands", help="What groups digits by three: ',' for 1,234,567.")
]
Sheet: TypeAlias = Annotated[
    str | None, typer.Option("--sheet", help="The sheet of a workbook; the schema's, else its first one, when left out.")
]
_OPTIONS = {"encoding": Encoding, "separator": Separator, "decimal": Decimal, "thousands": Thousands, "sheet": Sheet}


def form_of(**said: str | None) -> FileFormat | None:
    """How a table is written, of what was said; None where nothing was."""
    told = {name: value for name, value in said.items() if value is not None}
    return FileFormat(**told, said=frozenset(told)) if told else None


def as_written(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a command the options that say how its tables are written; each goes before what a schema says of that."""

    def told(given: dict[str, Any]) -> dict[str, Any]:
        form = form_of(**{name: given.pop(name, None) for name in _OPTIONS})
        if form is not None and given.get("study") is None:
            form = _beside(form, given.get("schema"))
        return {
            name: replace(value, form=form) if form is not None and isinstance(value, FilePart) else value
            for name, value in given.items()
        }

    return widened(command, _OPTIONS, told)


def _beside(form: FileFormat, schema: Path | None) -> FileFormat:
    """What was said, less what goes without saying; says aloud where it goes before what the schema says."""
    declared = PLAIN if schema is None else Schema.load(schema).file
    form.over(declared)  # signs that do not go together are refused here
    for name in sorted(form.said or ()):
        own, other = form.parts[name], declared.parts[name]
        if own != other and other != PLAIN.parts[name]:
            remark(f"--{name} goes before the schema: the table is read with {name} {own!r}, not {other!r}.")
    return replace(form, said=frozenset(name for name in form.said or () if form.parts[name] != declared.parts[name]))


def widened(
    command: Callable[..., Any], options: dict[str, Any], told: Callable[[dict[str, Any]], dict[str, Any]], *, instead: str = ""
) -> Callable[..., Any]:
    """Gives a command more options, none of which need be said.

    Args:
        command: The command.
        options: Their names and kinds.
        told: What the command is called with, of all that was given.
        instead: The parameter in whose place they stand; before `json` when left out.
    """
    own = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=None, annotation=option) for name, option in options.items()]

    @wraps(command)
    def reading(*first: Any, **given: Any) -> Any:
        return command(*first, **told(given))

    listed = [option.replace(kind=kind) for option in own.parameters.values()]
    last = next((place for place, option in enumerate(listed) if option.name == (instead or "json")), len(listed))
    taken = [*listed[:last], *more, *listed[last + bool(instead) :]]
    reading.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]  # what typer reads
    reading.__annotations__ = {option.name: option.annotation for option in taken}
    return reading
