"""What a worker does with one piece, and what it hands back: public settings in, exact sums out."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self, final

from sabun.engine.pieces import Piece
from sabun.engine.statistic import Statistic, probe, state_of

__all__ = ["Counting", "Numbered", "Report", "Task"]


class Report(NamedTuple):
    """The sums of one piece, as they travel; PRIVATE.

    Attributes:
        plan: Which plan the piece belongs to.
        number: Which piece it is.
        probe: What this machine's arithmetic made of a public sample.
        state: The packed sums.
    """

    plan: str
    number: int
    probe: str
    state: bytes

    def __repr__(self) -> str:
        return f"<Report of piece {self.number}>"  # plan and sums are private


class Numbered(Protocol):
    """A piece, or a bucket: what an engine is given to count."""

    @property
    def number(self) -> int:
        """Its place in the plan, from 0."""
        ...


class Counting(Protocol):
    """What an engine does with each; it travels to the workers."""

    def counted(self, piece: Any) -> Report:
        """The report of one."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class Task:
    """A recipe on its way to workers: the statistic, pickled once, and the plan it is for."""

    recipe: bytes = field(repr=False)
    plan: str = field(repr=False)

    @classmethod
    def of(cls, statistic: Statistic[Any], plan: str) -> Self:
        """The task to count the pieces of a plan."""
        return cls(recipe=pickle.dumps(statistic), plan=plan)

    def counted(self, piece: Piece) -> Report:
        """Counts a piece whose file was cut before.

        Raises:
            DataError: The file does not fit the schema, or is not the one that was cut.
        """
        piece.must_be_unchanged()
        report = self.counted_rows(piece.number, piece.part)
        piece.must_be_unchanged()  # what was read in between may be of either file
        return report

    def counted_rows(self, number: int, source: Any) -> Report:
        """Counts a piece that somebody else has cut: a partition of a frame on a cluster."""
        statistic: Statistic[Any] = pickle.loads(self.recipe)  # our own bytes, made by the owner's process
        state = statistic.pack(state_of(statistic, source))
        return Report(self.plan, number, probe(statistic), state)
