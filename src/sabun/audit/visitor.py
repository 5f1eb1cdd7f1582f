"""Looks at one broken copy of the package: `python -m sabun.audit.visitor`, started by `museum` with the copy on its path.

Read from standard input: which checks to run, in which order, and whether to stop at the first that fails. Written to the file
named there: what each of them found. The digests of proofs are never asked: they trip over any change at all.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import sabun
from sabun.asking.evidence import installed
from sabun.audit.catalogue import Listed, catalogue

__all__ = ["Key", "asked", "key_of"]

Key = tuple[str, str, str]
"""A check: its room, what it is about, its claim."""
DIGESTS = "proofs"


def key_of(one: Listed) -> Key:
    """The name of a check."""
    return one.room, one.check.name, one.check.claim


def asked() -> dict[Key, Listed]:
    """Every check that an exhibit may be caught by."""
    return {
        key_of(one): one
        for one in catalogue()
        if one.check.name != DIGESTS and not one.check.thorough and installed(one.check.needs)
    }


def visit(keys: list[Key] | None, *, stop: bool) -> list[dict[str, Any]]:
    """Runs those checks (all, when none are named) until one fails, or all of them."""
    there, found = asked(), []
    for key in there if keys is None else keys:
        if key not in there:  # the fault took the check away: the audit would call that a gap
            found.append({"key": list(key), "passed": False, "evidence": "the check is gone", "seconds": 0.0})
        else:
            began = time.process_time()
            finding = there[key].check.run(key[0])
            seconds = round(time.process_time() - began, 3)
            found.append({"key": list(key), "passed": finding.passed, "evidence": finding.evidence, "seconds": seconds})
        if stop and not found[-1]["passed"]:
            break
    return found


def main() -> None:
    """One visit."""
    wanted = json.load(sys.stdin)
    if not Path(sabun.__file__).is_relative_to(wanted["copy"]):
        raise SystemExit("the copy must come first on the path")
    keys = None if wanted["keys"] is None else [(room, name, claim) for room, name, claim in wanted["keys"]]
    Path(wanted["out"]).write_text(json.dumps(visit(keys, stop=wanted["stop"])), encoding="utf-8")


if __name__ == "__main__":
    main()
