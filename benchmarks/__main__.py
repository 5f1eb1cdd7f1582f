"""Runs every benchmark, or the named ones, and fails when a stated ratio is missed by a wide margin.

python -m benchmarks [--quick] [--json FOLDER] [ROOM ...]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.measure import Figure, keep

# Found by what they hold, not imported: what one room needs is no condition for the others.
ROOMS = tuple(sorted(file.stem for file in Path(__file__).parent.glob("*.py") if "\ndef run(" in file.read_text("utf-8")))
_MARGIN = 0.5


def missed(figures: list[Figure]) -> list[Figure]:
    """Figures whose ratio fell below half of what is stated."""
    return [figure for figure in figures if figure.target is not None and (figure.ratio or 0.0) < _MARGIN * figure.target]


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed and accuracy beside other libraries, every figure a ratio in one run.")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"one or more of: {', '.join(ROOMS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a first look")
    parser.add_argument("--json", type=Path, metavar="FOLDER", help="also write one JSON file for each room to this folder")
    options = parser.parse_args()
    for room in options.rooms:
        if room not in ROOMS:
            parser.error(f"ROOM must be one of {', '.join(ROOMS)}; got {room!r}.")
    failed: list[Figure] = []
    for room in options.rooms or ROOMS:
        figures = importlib.import_module(f"benchmarks.{room}").run(options.quick)
        for figure in figures:
            print(figure, flush=True)
        failed += missed(figures)
        if options.json:
            options.json.mkdir(parents=True, exist_ok=True)
            keep(options.json / f"{room}.json", figures, room=room, quick=options.quick)
    for figure in failed:
        print(f"BELOW HALF OF WHAT IS STATED: {figure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
