"""`sabun desk`: the same questions in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sabun import checks
from sabun.cli._frame import run, whole
from sabun.errors import MissingExtra
from sabun.telling.language import LANGUAGES
from sabun.telling.terminal.output import Json, print_json, print_line

__all__ = ["command"]


def command(
    folder: Annotated[Path, typer.Option(help="The folder whose tables, schemas and ledgers the desk works with.")] = Path(),
    port: Annotated[int, typer.Option(help="The port on this machine; any that is free when 0.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the browser; say which file to open.")] = False,
    lang: Annotated[
        str | None,
        typer.Option("--lang", "--language", metavar="en|ja", help="Language of the pages; that of the browser when left out."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Make everything ready, say so, and stop.")] = False,
    json: Json = False,
) -> None:
    """Ask questions in the browser: choose a table, declare its columns, see the plan, ask, read the report.

    The desk answers on this machine alone (127.0.0.1), and to whoever can read a file that only you can read.

    Example:

        sabun datasets save adult people.csv --schema people.schema.json

        sabun desk --folder . --check
    """
    if lang is not None:
        checks.one_of(LANGUAGES, lang=lang)
    try:
        from sabun.desk.server import DeskServer
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "jinja2", "markupsafe"):
            raise
        raise MissingExtra(job="the desk", package=str(error.name), extra="service") from None
    server = DeskServer(folder, run=run, command=whole, port=port, language=lang)
    if check:
        server.close()
        told: dict[str, Any] = {"folder": str(folder), "address": server.address}
        if json:
            print_json(told)
        else:
            print_line(f"Ready to work with {str(folder)!r}.", style="bold")
        return
    file = server.entrance.renew()
    if json:
        print_json({"folder": str(folder), "address": server.address, "open": file.as_uri()})
    else:
        print_line(f"The desk is at {server.address} and stops with Ctrl-C.", style="bold")
        print_line(f"Open this file in your browser within a minute: {file.as_uri()}")
    sys.stdout.flush()
    if not no_open:
        server.show()
    server.run()
