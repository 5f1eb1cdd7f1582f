"""The papers' tables and figures, regenerated beside what the papers print.

A room with a paper has `reproduction.reproduce(quick, progress)`; `sabun reproduce` runs them and writes CSV, SVG and one page.
"""

from __future__ import annotations

from types import ModuleType

from sabun.asking.directory import room_named, rooms
from sabun.errors import InternalError
from sabun.telling.reproduction import Claim, Figure, Item, Reproduction, Table, drawn

__all__ = ["Claim", "Figure", "Item", "Reproduction", "Table", "drawn", "paper_module", "papers"]


def papers() -> list[str]:
    """The rooms whose paper can be run again, in order."""
    return [room.name for room in rooms() if room.has("reproduction")]


def paper_module(room: str) -> ModuleType:
    """The module that runs a paper again; it has `reproduce(quick, progress)`."""
    found = room_named(room)
    module = None if found is None else found.part("reproduction")
    if module is None or not callable(getattr(module, "reproduce", None)):
        raise InternalError(f"the room {room!r} has no function reproduction.reproduce.")
    return module
