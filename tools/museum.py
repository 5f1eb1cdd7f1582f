"""Gathers the museum of faults, and searches it.

    python tools/museum.py --gather      writes src/sabun/audit/exhibits.json from tests/*/mutants*.py and tests/museum.toml
    python tools/museum.py --search      tries every check of the audit on every exhibit (an hour), then gathers
    python tools/museum.py --page        writes docs/museum.md from what is kept

The search keeps what it found in docs/results/museum.json as it goes along; exhibits that are there already and unchanged are
left alone unless `--anew` is said.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import threading
import tomllib
from fnmatch import fnmatch
from functools import cache
from typing import Any

from mutants import MUTANTS, ROOT, TESTS

from sabun.audit.museum import Exhibit, Sight, tour
from sabun.audit.tour import asked

AUDIT = ROOT / "docs" / "results" / "audit.json"
KEPT = ROOT / "docs" / "results" / "museum.json"
DATA = ROOT / "src" / "sabun" / "audit" / "exhibits.json"
UNKNOWN = "Not searched yet."
PAGE = ROOT / "docs" / "museum.md"
WORDS = ROOT / "tests" / "museum.toml"


def listed() -> list[Exhibit]:
    """Every mutant of the tests as an exhibit, with its history and what the last search found."""
    words, kept = tomllib.loads(WORDS.read_text(encoding="utf-8")), found()
    return [_exhibit(mutant, words, kept) for mutant in MUTANTS]


def _exhibit(mutant: Any, words: dict[str, Any], kept: dict[str, Any]) -> Exhibit:
    name, file = f"{mutant.room}: {mutant.name}", mutant.file.removeprefix("src/sabun/")
    edits = [list(pair) for pair in mutant.edits]
    sight = kept.get(name, {})
    sight = sight if sight.get("edits") == edits and sight.get("file") == file else {}
    told: dict[str, Any] = {"room": mutant.room, "name": mutant.name, "file": file, "edits": edits}
    told["history"] = words["history"].get(name, "")
    told["caught"] = sight.get("caught")
    if not sight:
        told["reason"] = UNKNOWN
    elif told["caught"] is None:
        told["reason"] = next((why for pattern, why in words["reason"].items() if fnmatch(name, pattern)), "")
    if told["caught"] is None:
        told["test"] = words["test"].get(name, "") or _tests(mutant.room)
    return Exhibit.of(told)


def _tests(room: str) -> str:
    return "tests/" + (TESTS[room][0] if len(TESTS[room]) == 1 else room if room != "torch" else "learning").split(" ")[0]


@cache
def found() -> dict[str, Any]:
    """What the last search found, by the names of the exhibits; one that a check caught that is gone is open again."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))["exhibits"] if KEPT.exists() else {}
    there = set(asked())
    return {
        name: one
        for name, one in kept.items()
        if one["caught"] is None or tuple(one["caught"][part] for part in ("room", "mechanism", "claim")) in there
    }


def keep(sights: dict[str, Any]) -> None:
    """Writes down what was found."""
    order = [f"{mutant.room}: {mutant.name}" for mutant in MUTANTS]
    sights = {name: sights[name] for name in order if name in sights}
    told = {"total": len(sights), "caught": sum(one["caught"] is not None for one in sights.values()), "exhibits": sights}
    KEPT.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def search(rooms: list[str], *, workers: int, anew: bool) -> None:
    """Tries every check that may concern an exhibit, and keeps what was found after each."""
    sights, lock = dict(found()), threading.Lock()
    known = {name: (one["edits"], one["file"]) for name, one in sights.items()}
    shown = [
        one
        for one in listed()
        if (not rooms or one.room in rooms)
        and (anew or known.get(f"{one.room}: {one.name}") != ([list(pair) for pair in one.edits], one.file))
    ]

    def seen(sight: Sight) -> None:
        one = sight.exhibit
        caught = None if sight.caught is None else dataclasses.asdict(sight.caught)
        with lock:
            sights[f"{one.room}: {one.name}"] = {
                "file": one.file,
                "line": one.line(),
                "edits": [list(pair) for pair in one.edits],
                "caught": caught,
                "evidence": sight.evidence,
                "checks_tried": sight.tried,
            }
            keep(sights)
        print(f"{one.room}: {one.name}: {'SURVIVES' if caught is None else caught['claim']} ({sight.tried} checks)", flush=True)

    findings = json.loads(AUDIT.read_text(encoding="utf-8"))["findings"]
    cost = {(one["room"], one["mechanism"], one["claim"]): one["seconds"] for one in findings}
    tour(shown, search=True, cost=cost, workers=workers, seen=seen)
    found.cache_clear()


def gather() -> None:
    """Writes the data that comes with the package."""
    DATA.write_text(json.dumps([one.to_dict() for one in listed()], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


HEAD = """# The museum of faults

Every way in which we break the package on purpose: what is wrong, where, which published fault it is kin to, and which check of
`sabun audit` notices. See it on your machine, with nothing but the installed package:

```text
sabun audit --museum                 each fault, planted in a temporary copy: the check named here must notice it again
sabun audit --museum summaries       those of one room
sabun audit --museum --thorough      every check of the room is tried, whatever is said here
```

In the source tree it is `make museum`. Digests of proofs do not count: they trip over any change at all. A fault that the audit
does not notice is for the tests of the source tree (`python tools/mutants.py ROOM` breaks the tree and asks them); the supposed
reason stands beside it. Seconds are processor time of the check that noticed.
"""


def page() -> str:
    """The page, from what the last search found."""
    shown = listed()
    rooms = list(dict.fromkeys(one.room for one in shown))
    lines = [HEAD, "| room | faults | caught by the audit | not searched yet |", "|---|---|---|---|"]
    for room in rooms:
        own = [one for one in shown if one.room == room]
        lines.append(f"| {room} | {_counts(own)} |")
    lines += [f"| **all** | {_counts(shown)} |", "", "## Published faults among them", ""]
    lines += ["| fault | kin to | caught by |", "|---|---|---|"]
    lines += [f"| {one.room}: {one.name} | {one.history} | {_by(one)} |" for one in shown if one.history]
    lines += ["", "## Not noticed by the audit", "", "| fault | where | why | its tests |", "|---|---|---|---|"]
    lines += [f"| {one.room}: {one.name} | {_place(one)} | {one.reason} | `{one.test}` |" for one in shown if not one.caught]
    for room in rooms:
        own = [one for one in shown if one.room == room and one.caught]
        if own:
            lines += ["", f"## {room}", "", "| fault | where | caught by | s |", "|---|---|---|---|"]
            lines += [f"| {one.name} | {_place(one)} | {_by(one)} | {one.caught.seconds:.1f} |" for one in own if one.caught]
    return "\n".join(lines) + "\n"


def _counts(shown: list[Exhibit]) -> str:
    return f"{len(shown)} | {sum(bool(one.caught) for one in shown)} | {sum(one.reason == UNKNOWN for one in shown)}"


def _place(one: Exhibit) -> str:
    """Where it was when the museum was searched."""
    line = found().get(f"{one.room}: {one.name}", {}).get("line")
    return f"`{one.file}:{line}`" if line else f"`{one.file}`"


def _by(one: Exhibit) -> str:
    return f"{one.caught.mechanism}: {one.caught.claim}" if one.caught else "not by the audit"


def main() -> int:
    """Does what is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="room")
    for option in ("gather", "search", "anew", "page"):
        parser.add_argument(f"--{option}", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    said = parser.parse_args()
    if said.search:
        search(said.rooms, workers=said.workers, anew=said.anew)
    if said.search or said.gather:
        gather()
    if said.search or said.page:
        PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
