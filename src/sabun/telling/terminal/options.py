"""The options of the command line, each defined once: the same idea has the same name and the same help in every verb."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from sabun.telling.terminal.charging import LedgerFile, Purpose
from sabun.telling.terminal.output import Json

__all__ = [
    "Bounds",
    "Columns",
    "Confidence",
    "Epsilon",
    "Json",
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
]

PrivateTable: TypeAlias = Annotated[
    Path, typer.Argument(help="The private table: .csv, .csv.gz or .parquet, or a folder of .parquet files.")
]
Epsilon: TypeAlias = Annotated[str, typer.Option(help="Privacy loss of the release, exactly as written: 1, 0.1 or 1/3.")]
SchemaFile: TypeAlias = Annotated[
    Path | None, typer.Option("--schema", help="Public bounds and categories of the columns (JSON).")
]
Bounds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--bounds", help="Public bounds of a column, name=low:high, beside or instead of a schema; repeat it."),
]
Columns: TypeAlias = Annotated[str | None, typer.Option("--columns", help="Names of columns, separated by commas.")]
Relation: TypeAlias = Annotated[
    str | None,
    typer.Option("--relation", help="replace-one, or add-remove (hides the number of rows too); the ledger's when left out."),
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
Out: TypeAlias = Annotated[Path | None, typer.Option("--out", help="Where to save the release (JSON).")]
Overwrite: TypeAlias = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", help="Release even if nothing but noise is expected.")]
Confidence: TypeAlias = Annotated[
    float, typer.Option("--confidence", "--level", help="How often an interval holds the exact answer.")
]
NRecords: TypeAlias = Annotated[
    int, typer.Option("--n-records", "--records", "--rows", help="About how many records there are; a public number.")
]
