"""The page of a paper that was run again, with the page that lists several."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sabun.release.provenance import installed
from sabun.reports.page import render
from sabun.telling.harness import Run
from sabun.telling.reproduction import Figure, Reproduction, Table
from sabun.telling.words import number, shown

__all__ = ["Listed", "reproduction_index", "reproduction_page"]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A line of the index: a paper with the name of its page."""

    room: str
    paper: str
    summary: str
    page: str
    time: str
    quick: bool


def reproduction_page(reproduction: Reproduction, run: Run) -> str:
    """Tables, pictures and errata of one paper as a page that stands alone."""
    settings = tuple((name, _setting(value)) for name, value in reproduction.settings.items())
    return render(
        "reproduction.html",
        reproduction=reproduction,
        tables=[(table, _cells(table)) for table in reproduction.tables],
        figures=[(figure, _data_address(figure)) for figure in reproduction.figures],
        run=run.facts(),
        settings=settings,
        quick=run.quick,
        version=installed()["sabun"],
    )


def reproduction_index(papers: Sequence[Listed]) -> str:
    """The list of the papers, each with a link to its page."""
    return render("reproductions.html", papers=papers, version=installed()["sabun"])


def _setting(value: object) -> str:
    try:
        return shown(value)
    except (TypeError, ValueError):
        return str(value)


def _cells(table: Table) -> tuple[tuple[tuple[str, bool], ...], ...]:
    """Each cell as text, with whether it is a number."""
    return tuple(tuple(_cell(cell) for cell in row) for row in table.rows)


def _cell(cell: object) -> tuple[str, bool]:
    if cell is None:
        return "", False
    if isinstance(cell, bool):
        return ("yes" if cell else "no"), False
    if isinstance(cell, int | float):
        return number(cell) if isinstance(cell, int) or not math.isnan(cell) else "–", True
    try:
        return number(float(cell)) if hasattr(cell, "dtype") else str(cell), hasattr(cell, "dtype")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(cell), False


def _data_address(figure: Figure) -> str:
    """The picture inside the page; as an image it can run nothing and cannot touch the page around it. Base64: no markup."""
    return "data:image/svg+xml;base64," + base64.b64encode(figure.svg.encode("utf-8")).decode("ascii")
