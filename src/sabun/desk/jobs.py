"""What can be asked: every command of a room that charges a ledger, found among the rooms' verbs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from sabun.asking.directory import Room, rooms
from sabun.desk.fields import Field, fields_of

__all__ = ["Job", "jobs"]


@final
@dataclass(frozen=True)
class Job:
    """A question that a form can ask.

    Args:
        room: Whose question it is.
        verb: Its command.
        command: The command, as the command line knows it.
    """

    room: Room
    verb: str
    command: Any

    @property
    def words(self) -> list[str]:
        """How its command line begins."""
        return [self.room.name, self.verb]

    @property
    def about(self) -> str:
        """What it does: the first line of its help."""
        return str(self.command.help or "").strip().splitlines()[0]

    @cached_property
    def fields(self) -> list[Field]:
        """What there is to fill in."""
        return fields_of(self.command)


def jobs(command: Callable[[], Any]) -> dict[Room, list[Job]]:
    """The questions of each room, in the order of the house; a room without one has an empty list."""
    verbs = command().commands
    return {
        room: [Job(room, verb, one) for verb, one in getattr(verbs.get(room.name), "commands", {}).items() if _asks(one)]
        for room in rooms()
    }


def _asks(command: Any) -> bool:
    """Whether a command charges a ledger for an answer about a table."""
    names = {option.name for option in command.params}
    return {"ledger", "again", "json"} <= names and any(option.metavar == "TABLE" for option in command.params)
