"""What there is to check: found through the rooms' cards, so that a new room is audited on the day it is installed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import final

from sabun.asking.directory import Room, rooms
from sabun.asking.evidence import Check, Checklist, Finding
from sabun.audit import (
    admissions,
    books,
    commands,
    composing,
    entering,
    keeping,
    leaving,
    proofs,
    questions,
    resting,
    samplers,
)
from sabun.privacy import noise

__all__ = ["Listed", "catalogue", "gaps"]

HALL: dict[str, tuple[Checklist, ...]] = {
    "privacy": (samplers.CHECKS, composing.CHECKS),
    "release": (leaving.CHECKS,),
    "ledger": (books.CHECKS, admissions.CHECKS, keeping.CHECKS),
    "records": (entering.CHECKS,),
}
"""What is checked for a part of the house beyond what the rooms show themselves."""


@final
@dataclass(frozen=True, kw_only=True)
class Listed:
    """A check with the room, or the part of the hall, that it belongs to."""

    room: str
    check: Check


@cache
def catalogue() -> tuple[Listed, ...]:
    """Every check there is, in the order of the house."""
    found = [Listed(room=part, check=check) for part, lists in HALL.items() for checks in lists for check in checks]
    found += [Listed(room=part, check=check) for part in HALL for check in _resting(part)]
    for room in rooms():
        found += [Listed(room=room.name, check=check) for check in _shown_by(room)]
    found += [Listed(room=part, check=check) for part, checks in proofs.checks().items() for check in checks]
    order = {name: place for place, name in enumerate(_order())}
    return tuple(sorted(found, key=lambda one: order.get(one.room, len(order))))


def gaps() -> tuple[Finding, ...]:
    """What has no evidence, each as a finding that failed."""
    missing = [_gap("privacy", name, "no law of this sampler is checked") for name in samplers.untried(noise)]
    for room in rooms():
        missing += [_gap(room.name, name, why) for name, why in _missing(room)]
    return tuple(missing)


def _order() -> list[str]:
    return ["privacy", "release", "ledger", *(room.name for room in rooms()), "records"]


def _resting(part: str) -> Iterable[Check]:
    """On which proofs a part of the hall rests; a sampler on that of its module."""
    names = [name for checks in HALL[part] for check in checks for name in check.mechanisms]

    def home(name: str) -> str:
        module = getattr(getattr(noise, name, None), "__module__", "")
        return module.removeprefix("sabun.").replace(".", "/") + proofs.ENDING

    return resting.of_part(part, names, home)


def _shown_by(room: Room) -> Iterable[Check]:
    """Its own checks, then those that every public class has to pass."""
    try:
        part = room.part("evidence")
    except Exception:  # a room that cannot be loaded is among the gaps
        return
    yield from getattr(part, "CHECKS", ())
    yield from resting.of_runs(getattr(part, "RUNS", {}))
    yield from resting.of_fits(getattr(part, "VARIANTS", ()))
    yield from questions.checks_of(getattr(part, "SPECIMENS", ()), getattr(part, "VARIANTS", ()))
    yield from commands.checks_of(room)


def _missing(room: Room) -> Iterable[tuple[str, str]]:
    try:
        part = room.part("evidence")
    except Exception as error:
        yield room.name, f"its evidence cannot be loaded: {type(error).__name__}: {error}"
        return
    if not getattr(part, "PROMISING", ()):
        yield room.name, f"{room.package}.evidence lists no mechanism in PROMISING"
    tried = {name for check in getattr(part, "CHECKS", ()) for name in check.mechanisms}
    yield from ((name, "no check names this mechanism") for name in getattr(part, "PROMISING", ()) if name not in tried)
    shown = {specimen.question for specimen in getattr(part, "SPECIMENS", ())}
    yield from ((name, "no specimen of this class is shown") for name in room.questions if name not in shown)
    ways = {name for specimen in getattr(part, "VARIANTS", ()) for name in specimen.mechanisms} | {*getattr(part, "RUNS", ())}
    missing = "no class is shown with it in VARIANTS" if room.questions else "no run of it is shown in RUNS"
    yield from ((name, missing) for name in getattr(part, "PROMISING", ()) if name not in ways)


def _gap(room: str, mechanism: str, why: str) -> Finding:
    return Finding(
        room=room,
        mechanism=mechanism,
        claim="has evidence",
        shown="checked",
        evidence=f"NO EVIDENCE: {why}",
        seconds=0,
        passed=False,
    )
