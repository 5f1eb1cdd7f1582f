"""The names one may ask for: classes, mechanisms and other parts of each room, and what else a name asks for.

Whoever asks for a class asks for the noise it draws, too: the checks of its mechanisms, and the laws of the samplers that its
fits are heard to call.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Literal

from sabun.asking.directory import Room, rooms
from sabun.asking.evidence import ROWS, Bench, Specimen, installed
from sabun.asking.evidence.listening import room_modules
from sabun.audit.catalogue import Listed, catalogue, gaps
from sabun.privacy import noise

__all__ = ["KINDS", "Kind", "about", "grouped", "kind_of", "known"]

Kind = Literal["classes", "mechanisms", "other parts"]
KINDS: tuple[Kind, ...] = ("classes", "mechanisms", "other parts")


def known() -> list[str]:
    """Every name: parts of the house, and what there is in them."""
    return list(dict.fromkeys(name for room, names in _named().items() for name in (room, *names)))


def grouped() -> dict[str, dict[Kind, list[str]]]:
    """The names of each room by what they are."""
    return {
        room: {kind: found for kind in KINDS if (found := [name for name in names if kind_of(room, name) == kind])}
        for room, names in _named().items()
    }


def kind_of(room: str, name: str) -> Kind:
    """What is called so: a class, a mechanism that promises something (or a sampler), or another part of a room."""
    if room == "privacy":
        return "mechanisms" if isinstance(getattr(noise, name, None), FunctionType) else "other parts"
    home = next((one for one in rooms() if one.name == room), None)
    if home is None:
        return "other parts"
    return "classes" if name in home.questions else "mechanisms" if name in _shown(home, "PROMISING") else "other parts"


def about(name: str) -> Callable[[Listed], bool]:
    """Whether a check is about a room, a class or a mechanism of that name, or about the noise that it draws."""
    lower = name.lower()
    drawn = set(_drawn_with(lower))

    def concerns(one: Listed) -> bool:
        names = one.check.mechanisms
        if lower in (one.room.lower(), *map(str.lower, names)):
            return True
        # A check that names another class is about that one's noise.
        return any((one.room, each) in drawn for each in names) and "classes" not in {kind_of(one.room, each) for each in names}

    return concerns


def _named() -> dict[str, list[str]]:
    listed = [(one.room, name) for one in catalogue() for name in one.check.mechanisms]
    found: dict[str, dict[str, None]] = {}
    for room, name in (*listed, *((gap.room, gap.mechanism) for gap in gaps())):
        found.setdefault(room, {})[name] = None
    return {room: list(names) for room, names in found.items()}


def _drawn_with(name: str) -> Iterator[tuple[str, str]]:
    """Mechanisms of a class, and samplers of either, each with the part of the house it belongs to."""
    for room in rooms():
        ways: dict[tuple[str, ...], Specimen] = {}
        for one in _shown(room, "VARIANTS"):
            if name in (one.question.lower(), *map(str.lower, one.mechanisms)):
                ways.setdefault((one.question, *one.mechanisms), one)
        for one in ways.values():
            if name == one.question.lower():
                yield from ((room.name, mechanism) for mechanism in one.mechanisms)
            if installed(one.needs):
                yield from (("privacy", sampler) for sampler in _samplers_of(one))


def _samplers_of(specimen: Specimen) -> set[str]:
    """The samplers that a fit calls by name."""
    called: set[str] = set()
    samplers = [one for one in vars(noise).values() if isinstance(one, FunctionType)]

    def noting(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def listener(*given: Any, **how: Any) -> Any:
            called.add(name)
            return original(*given, **how)

        return listener

    with Bench() as bench, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        specimen.fit(specimen.make(random_state=1), ROWS)  # everything it loads on the way is there now, to be listened to
        for module in room_modules():
            for name, own in list(vars(module).items()):
                if isinstance(own, FunctionType) and own in samplers:
                    bench.replace(module, name, noting(name, own))
        specimen.fit(specimen.make(random_state=1), ROWS)
    return called


def _shown(room: Room, name: str) -> Any:
    """What a room's evidence shows under a name; nothing where it cannot be loaded, which is among the gaps."""
    try:
        return getattr(room.part("evidence"), name, ())
    except Exception:
        return ()
