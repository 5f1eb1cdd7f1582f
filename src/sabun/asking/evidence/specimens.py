"""Each public class with a table to try it on, each command that charges."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from importlib import metadata
from operator import attrgetter
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.asking.directory import Room, rooms
from sabun.errors import InternalError

__all__ = ["ROWS", "Command", "Specimen", "commands", "installed", "specimens"]

ROWS: NDArray[np.float64] = np.modf(np.outer(np.arange(1, 61), (0.7548776662466927, 0.5698402909980532)))[0]
"""Sixty made-up rows that fill the unit square evenly."""


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Specimen:
    """One public class with a table to try it on, in one of the ways it can be asked.

    Args:
        question: The name of the class, as `ROOM.questions` has it.
        make: Makes one; takes changes of parameters by keyword. Unless told otherwise it asks for epsilon 1/2.
        fit: Fits one to rows like `ROWS`: two columns of numbers from 0 to 1, as many as 40 of them or more.
        delta: What its ledger must hold.
        needs: The extra it needs, such as "learning".
        smooth: Laws of noise whose size depends on the records; their `draw` gives a number or a list of them.
        mechanisms: Which of the room's `PROMISING` run in it.
        setting: How it differs from the usual one, in words.
        secret_batches: Whether nobody knows who takes part in a step, so that less is lost than by taking part.
        released: What leaves the house of a fitted one.
        chooses: Whether a choice is all that it draws, so that no noise goes into any number.
        untraced: Why a replay cannot follow its noise to the released numbers, in words; empty where it must.
    """

    question: str
    make: Callable[..., Any]
    fit: Callable[[Any, NDArray[np.float64]], Any]
    delta: Fraction = Fraction(0)
    needs: str = ""
    smooth: tuple[type, ...] = ()
    mechanisms: tuple[str, ...] = ()
    setting: str = ""
    secret_batches: bool = False
    released: Callable[[Any], Any] = attrgetter("release_")
    chooses: bool = False
    untraced: str = ""

    def __repr__(self) -> str:
        return f"{self.question}{self.setting and f' ({self.setting})'}"

    def varied(self, *mechanisms: str, setting: str = "", untraced: str = "", **changes: Any) -> Specimen:
        """The same class asked in another way: the parameters that change are told unless words are given."""
        told = setting or ", ".join(f"{name}={_shown(value)}" for name, value in changes.items())
        return replace(
            self, make=partial(self.make, **changes), mechanisms=mechanisms, setting=told, untraced=untraced or self.untraced
        )


def _shown(value: object) -> str:
    return str(value) if isinstance(value, str | int | float | Fraction | tuple) or value is None else type(value).__name__


@final
@dataclass(frozen=True, kw_only=True)
class Command:
    """One command that charges a ledger, tried on `t.csv` (columns age, bmi, sick) and, where it wants one, `public.csv`.

    Args:
        verb: Its name below the room's.
        arguments: All it needs but --epsilon, --ledger and --out.
        out: What --out is called: a file, or a folder where the name has no ending.
    """

    verb: str
    arguments: tuple[str, ...]
    out: str = "out.json"


def specimens() -> list[tuple[Room, Specimen]]:
    """Every public class of every room.

    Raises:
        InternalError: A room shows less, or more, than it says it has.
    """
    found = []
    for room in rooms():
        part = room.part("evidence")
        shown = () if part is None else tuple(part.SPECIMENS)
        if {specimen.question for specimen in shown} != set(room.questions):
            raise InternalError(f"{room.package}.evidence must show every question of the room: {', '.join(room.questions)}.")
        found += [(room, specimen) for specimen in shown]
    return found


def commands() -> dict[str, Command]:
    """Every command that charges, by its full name."""
    parts = [(room.name, room.part("evidence")) for room in rooms()]
    return {f"{name} {command.verb}": command for name, part in parts if part is not None for command in part.COMMANDS}


@cache
def installed(extra: str) -> bool:
    """Whether every package of an extra of Sabun is there; nothing is missing where no extra is needed."""
    wanted = [line for line in metadata.requires("sabun") or [] if re.search(rf"""extra == ['"]{extra}['"]""", line)]
    there = {str(found.metadata["Name"]).lower() for found in metadata.distributions()}
    return {re.split(r"[^\w.-]", line)[0].lower() for line in wanted} <= there
