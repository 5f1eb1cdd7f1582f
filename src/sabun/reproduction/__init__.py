"""The papers' tables and figures, regenerated beside what the papers print.

A room with a paper has `reproduction.reproduce(quick, progress)`; `sabun reproduce` runs them and writes CSV, SVG and one page.
Its `ITEMS`, in `reproduction.items` or `reproduction` itself, say for each thing the paper describes where Sabun has it.
"""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

from sabun.asking.directory import room_named, rooms
from sabun.errors import InternalError
from sabun.telling.reproduction import MADE, Claim, Figure, Item, Reproduction, Table, drawn

__all__ = ["Claim", "Figure", "Item", "Reproduction", "Table", "drawn", "items", "paper_module", "papers", "unmade"]


def papers() -> list[str]:
    """The rooms whose paper can be run again, in order."""
    return [room.name for room in rooms() if room.has("reproduction")]


def items(room: str) -> tuple[Item, ...]:
    """What the paper of a room describes, thing by thing, in the paper's order; empty while nobody has written it down."""
    module = paper_module(room)
    if hasattr(module, "__path__") and importlib.util.find_spec(f"{module.__name__}.items") is not None:
        module = importlib.import_module(f"{module.__name__}.items")
    return tuple(getattr(module, "ITEMS", ()))


def unmade(made: Reproduction) -> list[str]:
    """Places of the paper's items that are a table or figure of the reproduction, and that a run did not make."""
    names = {table.name for table in made.tables} | {figure.name for figure in made.figures}
    places = [place for item in items(made.room) for place in item.places]
    return [place for place in places if place.startswith(MADE) and place.removeprefix(MADE) not in names]


def paper_module(room: str) -> ModuleType:
    """The module that runs a paper again; it has `reproduce(quick, progress)`."""
    found = room_named(room)
    module = None if found is None else found.part("reproduction")
    if module is None or not callable(getattr(module, "reproduce", None)):
        raise InternalError(f"the room {room!r} has no function reproduction.reproduce.")
    return module
