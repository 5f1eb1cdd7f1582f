"""`sabun report`: a release as a page to read, print or send."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabun import checks
from sabun.errors import ParameterError
from sabun.telling.terminal.options import Json, Lang, Overwrite, TrustedKeys
from sabun.telling.terminal.output import new_file, print_json, print_line
from sabun.telling.terminal.releases import load_release, public_key

if TYPE_CHECKING:
    from sabun.release import Release

__all__ = ["command"]


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="A released file (JSON); several are put side by side.")],
    out: Annotated[
        Path | None, typer.Option(help="The HTML file to write; beside the release by default, needed for several.")
    ] = None,
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

    The page stands alone: it loads nothing, runs nothing, and is made without any private data. Several releases become one
    page, with the same figures side by side.

    Example:

        sabun demo --job count --folder demo

        sabun report demo/count.json --out count.html

        sabun demo --job count --folder again

        sabun report demo/count.json again/count.json --out both.html
    """
    from sabun.reports import comparison, report, save_page

    releases = {file: load_release(file) for file in files}
    if len(releases) > 1 and (out is None or public is not None):
        rule = "out must be given for several releases; got none. Pass --out PAGE.html."
        raise ParameterError(rule if out is None else "public must be left out for several releases, which share no table.")
    target = _beside(files[0]) if out is None else out
    for file in files:
        if target.resolve() == file.resolve():
            raise ParameterError(f"out must be another file than the release; got {str(target)!r}.")
    new_file(target, overwrite=overwrite)
    page_like = target.suffix.lower() in (".html", ".htm")
    checks.require(page_like, "a name that ends in .html", "A browser prints the page, also as PDF.", out=str(target))
    trusted = None if not trusted_key else [public_key(path) for path in trusted_key]
    first = releases[files[0]]
    if len(releases) > 1:
        page = comparison(dict(zip(_labels(list(releases)), releases.values(), strict=True)), trusted_key=trusted, lang=lang)
    else:
        page = report(first, trusted_key=trusted, public=public, lang=lang)
    save_page(page, target, overwrite=overwrite)
    if json:
        print_json(_record(files[0], first, target, trusted) | {"files": [str(file) for file in releases]})
    else:
        print_line(f"The report is {str(target)!r}.")
    if open_page:
        webbrowser.open(target.resolve().as_uri())


def _record(file: Path, release: Release, target: Path, trusted: Any) -> dict[str, Any]:
    signed = None if release.signature is None else release.verify(trusted).fingerprint
    told = {"file": str(file), "out": str(target), "kind": release.provenance.kind, "signed_by": signed}
    return told | {"page": str(target)}  # its older name


def _labels(files: list[Path]) -> list[str]:
    """Names to tell files by: the last part of each, with the folder where two are called the same."""
    names = [file.stem for file in files]
    return [name if names.count(name) == 1 else str(file.with_suffix("")) for name, file in zip(names, files, strict=True)]


def _beside(file: Path) -> Path:
    """Where the page goes by default: never into a model's folder, which must hold the files on its list and no other."""
    folder = file.resolve().parent
    return folder.with_name(f"{folder.name}.html") if (folder / "card.json").exists() else file.with_suffix(".html")
