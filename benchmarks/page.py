"""Writes docs/benchmarks.md, and the figures in other texts, from the JSON files of benchmark runs.

python -m benchmarks.page [FILE ...] [--out docs/benchmarks.md]
python -m benchmarks.page --check       fails when a figure is older than the code it measures
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.__main__ import ROOMS
from benchmarks.figures import RUNS, filled, short, texts
from benchmarks.freshness import changed
from benchmarks.measure import ROOT, Figure

PAGE = ROOT / "docs" / "benchmarks.md"

_HEAD = """# Benchmarks

Every figure is a ratio: ours and the peer's were measured in the same run on the same machine, so only the ratio is
worth reading. Above 1, ours is better. "Stated" is the ratio we hold ourselves to; `python -m benchmarks` fails when one
falls below half of it.

A figure with the mark † is older than the code it measures: a module of its room has changed since the run. No package is
built while there is one (`python -m benchmarks.page --check` names the modules). Run them again with
`python -m benchmarks --json docs/results/benchmarks`, then write this page with `python -m benchmarks.page`.
"""
_OLD = "†"


def kept() -> list[Path]:
    """The runs that the project publishes."""
    return sorted(RUNS.glob("*.json"))


def stale(files: list[Path]) -> dict[str, list[str]]:
    """What changed since the run, for each run that is older than its code and each room without one."""
    found = {file.stem: changed(json.loads(file.read_text(encoding="utf-8")), file.stem) for file in sorted(files)}
    found |= {room: ["no run is kept"] for room in ROOMS if room not in found}
    return {room: names for room, names in found.items() if names}


def page(files: list[Path]) -> str:
    """The page as Markdown: one section for each file, whatever room and machine it is from, in the order of their names."""
    sections = [_section(json.loads(file.read_text(encoding="utf-8")), file.stem) for file in sorted(files)]
    return "\n".join([_HEAD, *sections])


def _section(record: dict[str, Any], name: str) -> str:
    figures = [Figure(**figure) for figure in record["figures"]]
    place = dict(record["machine"])
    date, python = place.pop("date"), place.pop("python")
    size = " Smaller sizes, for a first look." if record.get("quick") else ""
    old = bool(changed(record, name))
    lines = [
        f"## {name.replace('_', ' ')}",
        "",
        f"{', '.join([date, f'Python {python}', *place.values()])}.{size}{f' {_OLD} Older than the code.' if old else ''}",
        "",
        "| figure | ours | peer | ratio | stated |",
        "|---|---|---|---|---|",
        *(_row(figure, old=old) for figure in figures),
        "",
    ]
    notes = dict.fromkeys(f"- {figure.name}: {figure.note}" for figure in figures if figure.note)
    return "\n".join([*lines, *notes, ""] if notes else lines)


def _row(figure: Figure, *, old: bool) -> str:
    peer = "–" if figure.peer is None else f"{short(figure.peer)} {figure.unit} ({figure.peer_name})"
    ratio = "–" if figure.ratio is None else f"**{short(figure.ratio)}**"
    stated = "–" if figure.target is None else f"{short(figure.target)}{'' if figure.holds else ' (missed)'}"
    mark = f" {_OLD}" if old else ""
    return f"| {_cell(figure.name)}{mark} | {short(figure.ours)} {figure.unit} | {_cell(peer)} | {ratio} | {stated} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Writes the page of benchmarks, and the figures in other texts, from kept runs."
    )
    parser.add_argument(
        "files", nargs="*", type=Path, help="files that `python -m benchmarks --json FOLDER` wrote; the kept ones"
    )
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a figure is older than its code")
    options = parser.parse_args()
    files = options.files or kept()
    if options.check:
        problems = stale(files)
        for room, names in problems.items():
            print(f"{room}: older than the code it measures ({', '.join(names)})", file=sys.stderr)
        if problems:
            print(
                "Run `python -m benchmarks --json docs/results/benchmarks`, then `python -m benchmarks.page`.", file=sys.stderr
            )
        return 1 if problems else 0
    options.out.write_text(page(files), encoding="utf-8")
    try:
        _fill_texts()
    except LookupError as problem:
        parser.exit(1, f"{problem.args[0]} The names are in benchmarks/figures.py.\n")
    return 0


def _fill_texts() -> None:
    for text in texts():
        before = text.read_text(encoding="utf-8")
        if (after := filled(before)) != before:
            text.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
