"""Writes docs/benchmarks.md from the JSON files of benchmark runs.

python -m benchmarks.page docs/results/benchmarks/*.json [--out docs/benchmarks.md]
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from benchmarks.measure import Figure

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

_HEAD = """# Benchmarks

Every figure is a ratio: ours and the peer's were measured in the same run on the same machine, so only the ratio is
worth reading. Above 1, ours is better. "Stated" is the ratio we hold ourselves to; `python -m benchmarks` fails when one
falls below half of it.

Run it again with `python -m benchmarks --json FOLDER`, then write this page with `python -m benchmarks.page FOLDER/*.json`.
"""


def page(files: list[Path]) -> str:
    """The page as Markdown: one section for each file, whatever room and machine it is from, in the order of their names."""
    sections = [_section(json.loads(file.read_text(encoding="utf-8")), file.stem) for file in sorted(files)]
    return "\n".join([_HEAD, *sections])


def _section(record: dict[str, Any], name: str) -> str:
    figures = [Figure(**figure) for figure in record["figures"]]
    place = dict(record["machine"])
    date, python = place.pop("date"), place.pop("python")
    size = " Smaller sizes, for a first look." if record.get("quick") else ""
    lines = [
        f"## {name.replace('_', ' ')}",
        "",
        f"{', '.join([date, f'Python {python}', *place.values()])}.{size}",
        "",
        "| figure | ours | peer | ratio | stated |",
        "|---|---|---|---|---|",
        *(_row(figure) for figure in figures),
        "",
    ]
    notes = dict.fromkeys(f"- {figure.name}: {figure.note}" for figure in figures if figure.note)
    return "\n".join([*lines, *notes, ""] if notes else lines)


def _row(figure: Figure) -> str:
    peer = "–" if figure.peer is None else f"{_short(figure.peer)} {figure.unit} ({figure.peer_name})"
    ratio = "–" if figure.ratio is None else f"**{_short(figure.ratio)}**"
    stated = "–" if figure.target is None else f"{_short(figure.target)}{'' if figure.holds else ' (missed)'}"
    return f"| {_cell(figure.name)} | {_short(figure.ours)} {figure.unit} | {_cell(peer)} | {ratio} | {stated} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _short(value: float) -> str:
    """Three significant digits, with thousands separated."""
    if not math.isfinite(value) or value == 0:
        return str(value)
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    if digits > 6:
        return f"{value:.2e}"
    rounded = round(value, 2 - math.floor(math.log10(abs(value))))
    return f"{rounded:,.{digits}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the page of benchmarks from the JSON files of runs.")
    parser.add_argument("files", nargs="+", type=Path, help="files that `python -m benchmarks --json FOLDER` wrote")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page to write")
    options = parser.parse_args()
    options.out.write_text(page(options.files), encoding="utf-8")


if __name__ == "__main__":
    main()
