"""Writes the table of docs/evidence.md from what an audit found.

sabun audit --json > docs/results/audit.json     run the audit
python tools/docs/evidence.py                    write the table
python tools/docs/evidence.py --check            only say whether it is up to date, and about every check there is
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from wrap import wrapped

from sabun.audit.catalogue import catalogue

__all__ = ["KEPT", "PAGE", "main", "table"]

ROOT = Path(__file__).resolve().parents[2]
PAGE, KEPT = ROOT / "docs" / "evidence.md", ROOT / "docs" / "results" / "audit.json"
_PLACE = re.compile(r"(<!-- audit -->\n).*?(<!-- /audit -->)", re.DOTALL)
_SIGNS = {True: "", False: "**FAILED** ", None: ""}


def table(audit: Mapping[str, Any]) -> str:
    """What was found, a table for each part of the house."""
    verdict = "nothing failed" if audit["passed"] else "SOMETHING FAILED"
    place = ", ".join([audit["machine"]["machine"], *(f"{name} {version}" for name, version in audit["libraries"].items())])
    told = (
        f"{audit['checks']} checks of {audit['classes']} classes and {audit['mechanisms']} mechanisms in "
        f"{audit['processor_seconds']:.0f} seconds of processor time, {audit['left_out']} left out and "
        f"{audit['not_applicable']} not applicable, on {audit['machine']['date']} ({place}): {verdict}."
    )
    parts = [wrapped(told).rstrip()]
    for room, found in groupby(audit["findings"], key=lambda one: one["room"]):
        rows = [
            f"| {_cell(one['mechanism'])} | {_cell(one['claim'])} | {one['shown'] or one['absent']} "
            f"| {_SIGNS[one['passed']]}{_cell(one['evidence'])} |"
            for one in found
        ]
        parts += [f"**{room}**", "\n".join(["| mechanism | claim | shown | evidence |", "|---|---|---|---|", *rows])]
    return "\n\n".join(parts)


def stale(audit: Mapping[str, Any]) -> list[str]:
    """Checks that came or went since the audit that is kept."""
    kept = {(one["room"], one["mechanism"], one["claim"]) for one in audit["findings"]}
    now = {(one.room, one.check.name, one.check.claim) for one in catalogue() if not one.check.thorough}
    return sorted(": ".join(one) for one in kept ^ now)


def main(arguments: Sequence[str]) -> int:
    """Writes the table, or checks it; 1 where it is out of date."""
    audit = json.loads(KEPT.read_text(encoding="utf-8"))
    before = PAGE.read_text(encoding="utf-8")
    after = _PLACE.sub(lambda match: f"{match[1]}\n{table(audit)}\n\n{match[2]}", before)
    if "--check" not in arguments:
        PAGE.write_text(after, encoding="utf-8")
        return 0
    old = stale(audit) + (["the table"] if before != after else [])
    for one in old:
        print(f"out of date: {one}. Run: sabun audit --json > docs/results/audit.json, then python tools/docs/evidence.py")
    return 1 if old else 0


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
