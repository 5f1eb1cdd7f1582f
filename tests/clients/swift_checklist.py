"""Writes the checklist of the Swift client, which no compiler here can try: what it must give, from the golden vectors.

python tests/clients/swift_checklist.py > clients/swift/CHECKLIST.md
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[2] / "src/sabun/keyvalue/wire-vectors.json"
PROTOCOLS = ("pckv-ue", "pckv-grr", "set")


def checklist() -> str:
    vectors = json.loads(VECTORS.read_text(encoding="ascii"))
    lines = [
        "# Checklist of the Swift client",
        "",
        "Generated from `wire-vectors.json` by `tests/clients/swift_checklist.py`; `VectorTests.swift` asks for all of it.",
        "",
        *[f"- [ ] {line}" for line in [*_studies(vectors), *_tables(vectors), *_numbers(vectors), *_unary(vectors)]],
    ]
    return "\n".join(lines) + "\n"


def _studies(vectors: dict[str, Any]) -> Iterator[str]:
    for study in vectors["studies"]:
        if study["name"] in PROTOCOLS:
            name = study["name"]
            yield f"`Terms` of the study `{name}`: taskId `{study['task_id']}`"
            yield f"`reportId` of `{name}` for the credential 00 01 … 0f: `{study['report_id']}`"
            first, *others = (report["bytes"] for report in study["reports"])
            yield f"`{name}`: {len(study['symbols'])} symbols, {len(others) + 1} reports such as `{first}`"


def _tables(vectors: dict[str, Any]) -> Iterator[str]:
    for facts in vectors["tables"]:
        if facts["protocol"] in PROTOCOLS:
            asked = (
                f"{facts['protocol']}, ε {facts['epsilon']}, {facts['keys']} keys, ℓ {facts['padding']}, {facts['bits']} bits"
            )
            if facts["table"] is None:
                yield f"{asked}: refused"
            elif facts["protocol"] == "set":
                yield f"{asked}: accept {facts['accept']}, width {facts['width']}"
            else:
                yield f"{asked}: {' '.join(facts['table'])}"


def _numbers(vectors: dict[str, Any]) -> Iterator[str]:
    yield f"`Ratio(text:).double` of {len(vectors['doubles'])} rationals, halves and hairs beside them among them"
    for given in vectors["thresholds"]:
        low, high = given["range"]
        ends, cases = " ".join(given["ends"]), len(given["cases"])
        yield f"range [{low:.20}, {high:.20}]: ends {ends}, {cases} thresholds, plain and clipped"


def _unary(vectors: dict[str, Any]) -> Iterator[str]:
    for given in vectors["unary"]:
        symbols = "".join(map(str, given["symbols"]))
        yield f"`unarySymbols`, {given['keys']} keys, {given['bits']} bits, picked {given['picked']}: {symbols}"


if __name__ == "__main__":
    print(checklist(), end="")
