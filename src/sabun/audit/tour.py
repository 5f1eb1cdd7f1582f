"""Looks at one broken copy of the package, led there by `guide`.

It is told which checks to run, in which order, and whether to stop at the first that fails; what each of them found goes to the
file that is named. The digests of proofs are never asked: they trip over any change at all.
"""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import sabun
from sabun.asking.evidence import installed
from sabun.audit.catalogue import Listed, catalogue
from sabun.audit.resting import RESTING
from sabun.errors import InternalError

__all__ = ["Key", "asked", "key_of"]

Key = tuple[str, str, str]
"""A check: its room, what it is about, its claim."""
DIGESTS = "proofs"


def key_of(one: Listed) -> Key:
    """The name of a check."""
    return one.room, one.check.name, one.check.claim


@cache
def asked() -> dict[Key, Listed]:
    """Every check that an exhibit may be caught by."""
    here = {needs: installed(needs) for needs in {one.check.needs for one in catalogue()}}
    ours = (one for one in catalogue() if one.check.name != DIGESTS and one.check.claim != RESTING and not one.check.thorough)
    return {key_of(one): one for one in ours if here[one.check.needs]}


def visit(keys: list[Key], *, stop: bool) -> list[dict[str, Any]]:
    """Runs those checks until one fails, or all of them."""
    there, found = asked(), []
    for key in keys:
        if key not in there:  # the fault took the check away: the audit would call that a gap
            found.append({"key": list(key), "passed": False, "evidence": "the check is gone", "seconds": 0.0})
        else:
            began = time.process_time()
            finding = there[key].check.run(key[0])
            seconds = round(time.process_time() - began, 3)
            found.append({"key": list(key), "passed": finding.passed, "evidence": finding.evidence, "seconds": seconds})
        if stop and found[-1]["passed"] is False:
            break
    return found


def main(wanted: dict[str, Any]) -> None:
    """One visit."""
    if not Path(sabun.__file__).is_relative_to(wanted["copy"]):
        raise InternalError("the copy must come first on the path.")
    keys = [(room, name, claim) for room, name, claim in wanted["keys"]]
    Path(wanted["out"]).write_text(json.dumps(visit(keys, stop=wanted["stop"])), encoding="utf-8")
