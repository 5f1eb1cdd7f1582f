"""`sabun reproduce`: the papers' claims, tables and figures, ours beside theirs."""

from __future__ import annotations

import dataclasses
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from sabun import checks
from sabun.telling.language import retold, said, speaking
from sabun.telling.terminal.options import Lang
from sabun.telling.terminal.output import Json, print_json, print_line
from sabun.telling.terminal.progress import progress_bar

__all__ = ["command"]


def command(
    paper: Annotated[str, typer.Argument(help="A room's name, such as outliers, or all.")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials and smaller tables.")] = False,
    out: Annotated[Path, typer.Option(help="A new folder, or one of an earlier run.")] = Path("reproduction"),
    show: Annotated[bool, typer.Option("--list", help="Only list the papers.")] = False,
    show_items: Annotated[
        bool, typer.Option("--items", help="Only list what the papers describe, where Sabun has it, and the test that runs it.")
    ] = False,
    lang: Lang = None,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in the web browser.")] = False,
    json: Json = False,
) -> None:
    """Run the papers' experiments again.

    Says of each claim of a paper whether it holds. Writes a CSV file for each table, an SVG file for each figure and a page of
    HTML for each paper.

    Example:

        sabun reproduce --list

        sabun reproduce outliers --items

        sabun reproduce outliers --quick --out papers
    """
    from sabun.reproduction import papers

    known = papers()
    checks.one_of((*known, "all"), paper=paper)
    wanted = known if paper == "all" else [paper]
    with speaking(lang):
        if show:
            _list(known, json=json)
        elif show_items:
            _list_items(wanted, json=json)
        else:
            _run_all(wanted, out, index=paper == "all", quick=quick, open_page=open_page, json=json)


def _list(known: list[str], *, json: bool) -> None:
    if json:
        print_json({"papers": known})
    else:
        print_line("\n".join(known))


def _list_items(wanted: list[str], *, json: bool) -> None:
    from sabun.reproduction import items
    from sabun.telling.words import cited

    found = {room: items(room) for room in wanted}
    if json:
        print_json({"items": {room: [dataclasses.asdict(item) for item in listed] for room, listed in found.items()}})
        return
    for room, listed in found.items():
        print_line(room, style="bold cyan")
        for item in listed:
            print_line(cited(item.item), style="bold")
            for line in filter(None, (*item.places, *item.tests, item.reason and retold(item.reason))):
                print_line(f"    {line}")
        print_line("")


def _run_all(wanted: list[str], out: Path, *, index: bool, quick: bool, open_page: bool, json: bool) -> None:
    from sabun.cli._papers import Shelf

    shelf = Shelf(out)
    done = [_run(room, shelf, quick=quick, json=json) for room in wanted]
    page = shelf.write_index() if index else shelf.folder / f"{wanted[0]}.html"
    if json:
        print_json({"out": str(shelf.folder), "folder": str(shelf.folder), "page": str(page), "papers": done})
    else:
        print_line(said("The page to read is {page!r}.", page=str(page)), style="bold")
    if open_page:
        webbrowser.open(page.resolve().as_uri())


def _run(room: str, shelf: Any, *, quick: bool, json: bool) -> dict[str, Any]:
    from sabun.release.provenance import now
    from sabun.reproduction import paper_module
    from sabun.telling.harness import Run, timed

    begun = now()
    with progress_bar(room, quiet=json) as step:
        found, seconds = timed(lambda: paper_module(room).reproduce(quick=quick, progress=step))
    run = Run(time=begun, seconds=seconds, quick=quick)
    files = shelf.put(found, run)
    if not json:
        _tell(found, run)
    return {
        "room": room,
        "paper": found.paper,
        "seconds": round(run.seconds, 3),
        "claims": [dataclasses.asdict(claim) for claim in found.claims],
        "default": found.default,
        "files": [str(file) for file in files],
    }


def _tell(made: Any, run: Any) -> None:
    """A paper as a person reads it in a terminal: what it claims first."""
    from sabun.reports.reproductions import in_words, judged
    from sabun.telling.words import count

    found = in_words(made)
    print_line(f"{found.room}: {found.paper}", style="bold cyan")
    colours = {"holds": "green", "holds in part": "yellow", "does not hold": "red", "not judged": "dim"}
    for claim in found.claims:
        told = judged(claim.verdict)
        print_line(f"  {told.sign} {told.verdict}", style=f"bold {colours[claim.verdict]}")
        print_line(f"      {claim.text} ({claim.where})")
        print_line(f"      {said('Found:')} {claim.found}")
    print_line(found.summary)
    if found.default:
        print_line(f"{said('By default:')} {found.default}")
    tables, figures = count(len(found.tables), "table"), count(len(found.figures), "figure")
    line = said("{tables}, {figures}, {seconds:.1f} seconds.", tables=tables, figures=figures, seconds=run.seconds)
    print_line(f"{line}\n", style="green")
