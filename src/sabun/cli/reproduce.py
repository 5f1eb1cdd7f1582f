"""`sabun reproduce`: the papers' tables and figures, ours beside theirs."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from sabun import checks
from sabun.telling.terminal.output import Json, print_json, print_line
from sabun.telling.terminal.progress import progress_bar

__all__ = ["command"]


def command(
    paper: Annotated[str, typer.Argument(help="A room's name, such as outliers, or all.")] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer trials and smaller tables.")] = False,
    out: Annotated[Path, typer.Option(help="A new folder, or one of an earlier run.")] = Path("reproduction"),
    show: Annotated[bool, typer.Option("--list", help="Only list the papers.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Show the page in the web browser.")] = False,
    json: Json = False,
) -> None:
    """Run the papers' experiments again.

    Writes a CSV file for each table, an SVG file for each figure and a page of HTML for each paper.

    Example:

        sabun reproduce --list

        sabun reproduce outliers --quick --out papers
    """
    from sabun.cli._papers import Shelf
    from sabun.reproduction import papers

    known = papers()
    if show:
        if json:
            print_json({"papers": known})
        else:
            print_line("\n".join(known))
        return
    checks.one_of((*known, "all"), paper=paper)
    shelf = Shelf(out)
    done = [_run(room, shelf, quick=quick, json=json) for room in (known if paper == "all" else [paper])]
    page = shelf.write_index() if paper == "all" else shelf.folder / f"{paper}.html"
    if json:
        print_json({"out": str(shelf.folder), "folder": str(shelf.folder), "page": str(page), "papers": done})
    else:
        print_line(f"The page to read is {str(page)!r}.", style="bold")
    if open_page:
        webbrowser.open(page.resolve().as_uri())


def _run(room: str, shelf: Any, *, quick: bool, json: bool) -> dict[str, Any]:
    from sabun.release.provenance import now
    from sabun.reproduction import paper_module
    from sabun.telling.harness import Run, timed
    from sabun.telling.words import count

    begun = now()
    with progress_bar(room, quiet=json) as step:
        found, seconds = timed(lambda: paper_module(room).reproduce(quick=quick, progress=step))
    run = Run(time=begun, seconds=seconds, quick=quick)
    files = shelf.put(found, run)
    if not json:
        print_line(f"{room}: {found.paper}", style="bold cyan")
        print_line(found.summary)
        sizes = f"{count(len(found.tables), 'table')}, {count(len(found.figures), 'figure')}"
        print_line(f"{sizes}, {run.seconds:.1f} seconds.\n", style="green")
    return {"room": room, "paper": found.paper, "seconds": round(run.seconds, 3), "files": [str(file) for file in files]}
