"""`sabun report`: a release as a page to read, print or send."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.telling.terminal.output import Json, print_json, print_line
from sabun.telling.terminal.releases import load_release, public_key

__all__ = ["command"]


def command(
    file: Annotated[Path, typer.Argument(help="A released file (JSON).")],
    out: Annotated[Path | None, typer.Option(help="The HTML file to write; beside the release by default.")] = None,
    key: Annotated[
        list[Path] | None, typer.Option(help="A public key you trust (PEM); refuses what none of them signed.")
    ] = None,
    public: Annotated[
        Path | None, typer.Option(help="For density weights: the public table (.csv or .parquet), to draw its columns.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an HTML file of that name.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in the web browser.")] = False,
    json: Json = False,
) -> None:
    """Turn a released file into one page of HTML.

    The page stands alone: it loads nothing, runs nothing, and is made without any private data.

    Example:

        sabun demo --job count --folder demo

        sabun report demo/count.json --out count.html
    """
    from sabun.reports import report, save_page

    release = load_release(file)
    target = _beside(file) if out is None else out
    if target.resolve() == file.resolve():
        raise ParameterError(f"out must be another file than the release; got {str(target)!r}.")
    trusted = None if not key else [public_key(path) for path in key]
    save_page(report(release, trusted=trusted, public=public), target, overwrite=overwrite)
    if json:
        signed = None if release.signature is None else release.verify(trusted).fingerprint
        print_json({"file": str(file), "page": str(target), "kind": release.provenance.kind, "signed_by": signed})
    else:
        print_line(f"The report is {str(target)!r}.")
    if open_page:
        webbrowser.open(target.resolve().as_uri())


def _beside(file: Path) -> Path:
    """Where the page goes by default: never into a model's folder, which must hold the files on its list and no other."""
    folder = file.resolve().parent
    return folder.with_name(f"{folder.name}.html") if (folder / "card.json").exists() else file.with_suffix(".html")
