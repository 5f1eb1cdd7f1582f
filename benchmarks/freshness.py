"""Which code the figures of a room measure, and whether it has changed since they were measured.

A benchmark measures the package of its own name. One that measures something else says so at its top, from the root of the
project:

    MEASURES = ("src/sabun/privacy/noise",)

Its own file always counts; a package's doors (commands, what is typed, pages, evidence, demo), which no benchmark goes through,
do not. A run keeps a digest of each module; docstrings and comments do not change one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))
from sabun.audit.digests import digest  # noqa: E402

__all__ = ["ROOT", "changed", "modules"]

_DOORS = {"demo.py", "evidence.py", "room.py", "story.py", "typed.py"}


def modules(room: str) -> dict[str, str]:
    """The modules that a room's benchmark measures, with their digests as they are now."""
    benchmark = ROOT / "benchmarks" / f"{room}.py"
    files = {benchmark}
    for place in _measures(benchmark):
        found = [ROOT / place] if place.endswith(".py") else [file for file in (ROOT / place).rglob("*.py") if not _door(file)]
        if not all(file.is_file() for file in found) or not found:
            raise ValueError(f"what {benchmark.name} measures must be there; got {place!r}. Name it in MEASURES.")
        files |= set(found)
    return {file.relative_to(ROOT).as_posix(): digest(file) for file in sorted(files)}


def changed(record: Mapping[str, Any], room: str) -> list[str]:
    """What has changed, come or gone among the modules since the run that a record is of."""
    if "modules" not in record:
        return ["the run kept no digests"]
    before, now = record["modules"], modules(room)
    counted = now.keys() | {name for name in before if not _door(Path(name))}
    return sorted(name for name in counted if before.get(name) != now.get(name))


def _door(file: Path) -> bool:
    return file.name in _DOORS or file.name.endswith("verbs.py") or file.name.startswith("whole_")


def _measures(benchmark: Path) -> tuple[str, ...]:
    """Read without importing: what a benchmark needs may not be installed."""
    for node in ast.parse(benchmark.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [target.id for target in node.targets if isinstance(target, ast.Name)] == [
            "MEASURES"
        ]:
            return tuple(ast.literal_eval(node.value))
    return (f"src/sabun/{benchmark.stem}",)
