"""The page of reproduced results, written from the list that `sabun reproduce` leaves in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from site_map import DOCS

__all__ = ["reproductions", "results_page"]

_HEAD = """# Results

The papers' tables and figures, run again with our code. Each paper has a page that shows ours beside theirs and says
what holds and what does not; the tables are CSV files. Run them yourself with `sabun reproduce`; what we found wrong on
the way is in the [errata](../errata.md).
"""


def reproductions() -> list[Path]:
    """The lists of all reproductions that are in the repository."""
    return sorted((DOCS / "results").rglob("reproduction.json"))


def results_page(lists: list[Path], *, home: Path) -> str:
    """The page, to stand in the folder `home`: one section for each paper."""
    parts = [_HEAD]
    for file in lists:
        papers = json.loads(file.read_text(encoding="utf-8"))["papers"]
        place = file.parent.relative_to(home).as_posix()
        parts += [_section(papers[room], "" if place == "." else f"{place}/") for room in sorted(papers)]
    return "\n".join(parts)


def _section(paper: dict[str, Any], place: str) -> str:
    tables = [name for name in paper["files"] if name.endswith(".csv")]
    size = ", with fewer trials" if paper["quick"] else ""
    pictures = [name for name in paper["files"] if name.endswith(".svg")]
    lines = [
        f"## {paper['room']}",
        "",
        f"*{paper['paper']}*",
        "",
        paper["summary"],
        "",
        f"[The whole page]({place}{paper['page']}). Run at {paper['time'][:10]}{size}.",
        "",
        "Tables: " + (", ".join(f"[{Path(name).stem}]({place}{name})" for name in tables) or "none") + ".",
        "",
        *(f"![{Path(name).stem}]({place}{name})\n" for name in pictures[:2]),
    ]
    return "\n".join(lines)
