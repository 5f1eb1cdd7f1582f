"""`sabun report`: a release as a page to read, print or send."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from sabun.errors import ParameterError
from sabun.telling.terminal.options import Json, Lang, Overwrite, TrustedKeys
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.releases import load_release, public_key

__all__ = ["command"]


def command(
    file: Annotated[Path, typer.Argument(help="A released file (JSON).")],
    out: Annotated[Path | None, typer.Option(help="The HTML file to write; beside the release by default.")] = None,
    trusted_key: TrustedKeys = None,
    public: Annotated[
        Path | None, typer.Option(help="For density weights: the public table (.csv or .parquet), to draw its columns.")
    ] = None,
    overwrite: Overwrite = False,
    lang: Lang = None,
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
    new_file(target, overwrite=overwrite)
    trusted = None if not trusted_key else [public_key(path) for path in trusted_key]
    save_page(report(release, trusted_key=trusted, public=public, lang=lang), target, overwrite=overwrite)
    if json:
        signed = None if release.signature is None else release.verify(trusted).fingerprint
        told = {"file": str(file), "out": str(target), "kind": release.provenance.kind, "signed_by": signed}
        print_json(told | {"page": str(target)})  # its older name
    else:
        print_line(f"The report is {str(target)!r}.")
    if open_page:
        webbrowser.open(target.resolve().as_uri())


def _beside(file: Path) -> Path:
    """Where the page goes by default: never into a model's folder, which must hold the files on its list and no other."""
    folder = file.resolve().parent
    return folder.with_name(f"{folder.name}.html") if (folder / "card.json").exists() else file.with_suffix(".html")
