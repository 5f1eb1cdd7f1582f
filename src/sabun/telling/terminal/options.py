"""The options of the command line, each defined once: the same idea has the same name and the same help in every verb.

The first name of an option is its name; the others are older spellings, which work and are not shown. What an option takes
stands in its metavar, in the same words everywhere, for people and for the desk, which draws its forms from them:

    COLUMN, COLUMN,COLUMN    a column's name, several     TABLE       a table (the first one of a command is the private one)
    COLUMN OF LABELS         one that groups              COLUMN OF NUMBERS    one that can be added up
    one|another              one of these                 FILE.csv, FOLDER    what is written
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from sabun.telling.terminal.charging import Again, Label, LedgerFile, Purpose
from sabun.telling.terminal.output import Json
from sabun.telling.terminal.written import PrivateTable, as_written

__all__ = [
    "LABEL_COLUMN",
    "NUMBER_COLUMN",
    "Again",
    "Bounds",
    "Columns",
    "Confidence",
    "EngineName",
    "Epsilon",
    "Json",
    "Label",
    "Lang",
    "LedgerFile",
    "NRecords",
    "Out",
    "Overwrite",
    "PrivateTable",
    "Purpose",
    "Relation",
    "RetryKey",
    "SchemaFile",
    "SigningKey",
    "TrustedKeys",
    "Yes",
    "as_written",
    "followed_by",
]

LABEL_COLUMN, NUMBER_COLUMN = "COLUMN OF LABELS", "COLUMN OF NUMBERS"

Epsilon: TypeAlias = Annotated[str, typer.Option(help="Privacy loss of the release, exactly as written: 1, 0.1 or 1/3.")]
SchemaFile: TypeAlias = Annotated[
    Path | None, typer.Option("--schema", help="Public bounds and categories of the columns (JSON).")
]
Bounds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--bounds", help="Public bounds of a column, name=low:high, beside or instead of a schema; repeat it."),
]
Columns: TypeAlias = Annotated[
    str | None, typer.Option("--columns", metavar="COLUMN,COLUMN", help="Names of columns, separated by commas.")
]
Relation: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--relation",
        metavar="replace-one|add-remove",
        help="replace-one, or add-remove (hides the number of rows too); the ledger's when left out.",
    ),
]
RetryKey: TypeAlias = Annotated[
    str | None, typer.Option("--retry-key", "--key", help="A name for this release: a retry with it costs nothing.")
]
SigningKey: TypeAlias = Annotated[
    Path, typer.Option("--signing-key", "--key", help="Your private key (PEM); `sabun release keygen NAME` makes one.")
]
TrustedKeys: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--trusted-key", "--key", help="A public key you trust (PEM); repeat it. Refuses what none of them signed."),
]
EngineName: TypeAlias = Annotated[
    str | None,
    typer.Option("--engine", help="Count in pieces: serial, processes:4, dask, dask://host:port, spark, spark://host:port."),
]
Out: TypeAlias = Annotated[Path | None, typer.Option("--out", help="Where to save the release (JSON).")]
Overwrite: TypeAlias = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Release even if nothing but noise is expected.")]
Confidence: TypeAlias = Annotated[
    float, typer.Option("--confidence", "--level", help="How often an interval holds the exact answer.")
]
NRecords: TypeAlias = Annotated[
    int, typer.Option("--n-records", "--records", "--rows", help="About how many records there are; a public number.")
]

Lang: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--lang", "--language", metavar="en|ja", help="Language of pages and pictures; that of the locale when left out."
    ),
]


def followed_by(shared: Callable[..., None]) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Makes a command of a function that reads only the options that are its own.

    Args:
        shared: What commands of this kind do; it takes what the function returns, and the options all of them have.
    """
    more = list(inspect.signature(shared, eval_str=True).parameters.values())[1:]

    def made(own: Callable[..., Any]) -> Callable[..., None]:
        mine = inspect.signature(own, eval_str=True).parameters

        @wraps(own)
        def command(**given: Any) -> None:
            shared(own(**{name: given.pop(name) for name in mine}), **given)

        taken = sorted((*more[:1], *mine.values(), *more[1:]), key=lambda option: option.default is not option.empty)
        listed = [option.replace(kind=option.KEYWORD_ONLY) for option in taken]
        command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]  # what typer reads
        command.__annotations__ = {option.name: option.annotation for option in listed}
        return command

    return made
