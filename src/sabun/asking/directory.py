"""Where the rooms are: every folder of the package with a `room.py`, and every package that says it is one.

A room's `room.py` holds one constant, `ROOM`. All else is found by fixed module names inside the room, when somebody asks:

    verbs         `app`, a typer.Typer: the commands `sabun <room> ...`
    story         `story(release)`: how its releases are told
    reproduction  `reproduce(quick, progress)`: its paper, run again
    demo          `JOBS`: what `sabun demo` shows of it
    evidence      `SPECIMENS`, `COMMANDS`, `PROMISING`: what it shows to whoever checks all rooms

A package elsewhere becomes a room by an entry point in the group `sabun.rooms` whose value is the package's name.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, final

import sabun
from sabun.errors import InternalError

__all__ = ["GROUP", "Room", "room_named", "rooms"]

GROUP = "sabun.rooms"


@final
@dataclass(frozen=True, kw_only=True)
class Room:
    """What a room says of itself.

    Args:
        name: The word for its commands, and the first word of the kinds of its releases.
        job: What it does for a user, in a few words.
        order: Where it stands in lists; smaller first.
        questions: Names of its public classes that charge a ledger, in the package of the room.
        title: How a page calls it; the name with a capital letter when left out.
        package: Where it lives; `sabun.<name>` when left out.
    """

    name: str
    job: str
    order: int
    questions: Sequence[str] = ()
    title: str = ""
    package: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name.capitalize())
        object.__setattr__(self, "package", self.package or f"sabun.{self.name}")

    @property
    def folder(self) -> Path:
        """Where its files are."""
        found = importlib.util.find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            raise InternalError(f"room {self.name!r} is not a package: {self.package}.")
        return Path(next(iter(found.submodule_search_locations)))

    def has(self, name: str) -> bool:
        """Whether it has a module of that fixed name; nothing is imported."""
        return importlib.util.find_spec(f"{self.package}.{name}") is not None

    def part(self, name: str) -> ModuleType | None:
        """One of its modules by its fixed name, or None where the room has no such part."""
        return importlib.import_module(f"{self.package}.{name}") if self.has(name) else None

    def classes(self) -> tuple[type[Any], ...]:
        """Its public classes that charge a ledger."""
        package = importlib.import_module(self.package)
        return tuple(getattr(package, name) for name in self.questions)


def rooms() -> tuple[Room, ...]:
    """Every room that is installed, in order."""
    found = [*_own(), *(_read(point.value) for point in entry_points(group=GROUP))]
    names = [room.name for room in found]
    if len(set(names)) != len(names):
        raise InternalError(f"two rooms have one name: {sorted(names)}. Uninstall one of them.")
    return tuple(sorted(found, key=lambda room: (room.order, room.name)))


def room_named(name: str) -> Room | None:
    """The room of that name; the package's own are looked up first, which is quick."""
    own = {room.name: room for room in _own()}
    return own.get(name) or next((room for room in rooms() if room.name == name), None)


@cache
def _own() -> tuple[Room, ...]:
    folders = sorted(file.parent.name for place in sabun.__path__ for file in Path(place).glob("*/room.py"))
    return tuple(_read(f"sabun.{name}") for name in folders)


def _read(package: str) -> Room:
    room = getattr(importlib.import_module(f"{package}.room"), "ROOM", None)
    if not isinstance(room, Room) or room.package != package:
        raise InternalError(f"{package}.room must hold ROOM, a Room of that package.")
    return room
