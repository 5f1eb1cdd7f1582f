"""`sabun datasets`: the data that comes with the package, as files to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sabun import checks
from sabun.datasets import Dataset, load_adult, load_ionosphere, load_wdbc
from sabun.errors import ParameterError
from sabun.telling.terminal.output import Json, new_file, print_json, print_line
from sabun.telling.words import count as counted

__all__ = ["app"]

app = typer.Typer(
    help="Write the data sets that come with Sabun as CSV files.\n\nExample:\n\n    sabun datasets save ionosphere radar.csv",
    no_args_is_help=True,
)

_LOADERS = {"adult": load_adult, "ionosphere": load_ionosphere, "wdbc": load_wdbc}


@app.command("list")
def show(json: Json = False) -> None:
    """List the data sets.

    Example:

        sabun datasets list
    """
    rows = [(name, _LOADERS[name]()) for name in sorted(_LOADERS)]
    if json:
        print_json(
            {
                "datasets": [
                    {"name": name, "rows": len(data.data), "columns": data.data.shape[1]} | _origin(data) for name, data in rows
                ]
            }
        )
        return
    for name, data in rows:
        print_line(f"{name:<11} {len(data.data):>6} rows  {data.data.shape[1]:>3} columns  {data.licence}")


@app.command()
def save(
    name: Annotated[str, typer.Argument(help="adult, ionosphere or wdbc")],
    out: Annotated[Path, typer.Argument(help="the CSV file to write")],
    schema: Annotated[Path | None, typer.Option(help="also write the public schema to this JSON file")] = None,
    rows: Annotated[str | None, typer.Option(help="only rows START to STOP, such as 0:300 for the first 300")] = None,
    json: Json = False,
) -> None:
    """Write a data set as CSV, label included.

    Example:

        sabun datasets save ionosphere radar.csv --schema radar.schema.json
    """
    checks.one_of(sorted(_LOADERS), name=name)
    _slice(rows)
    for option, file in (("out", out), ("schema", schema)):
        if file is not None:
            new_file(file, name=option)
    data = _LOADERS[name]()
    frame = data.data.assign(**{data.label.name: data.target}).iloc[_slice(rows)]
    frame.to_csv(out, index=False)
    if schema is not None:
        data.schema.save(schema)
    if json:
        told = {"out": str(out), "schema": None if schema is None else str(schema), "rows": len(frame)} | _origin(data)
        print_json(told | {"path": str(out)})  # its older name
        return
    print_line(f"{out}: {counted(len(frame), 'row')}, {counted(frame.shape[1], 'column')} (label: {data.label.name}).")
    if schema is not None:
        print_line(f"{schema}: public bounds and categories of its {len(data.schema.columns)} columns.")
    print_line(f"Source: {data.source} Licence: {data.licence}")


def _slice(rows: str | None) -> slice:
    if rows is None:
        return slice(None)
    start, colon, stop = rows.partition(":")
    if not (colon and start.isdecimal() and stop.isdecimal() and int(start) < int(stop)):
        raise ParameterError(f"rows must look like START:STOP, such as 0:300; got {rows!r:.60}.")
    return slice(int(start), int(stop))


def _origin(data: Dataset) -> dict[str, str]:
    return {"licence": data.licence, "source": data.source}
