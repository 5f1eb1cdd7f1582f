"""What the jobs of `sabun demo` work with, and what they hand over; each room has its own in `demo.JOBS`.

Because the data are public or made up, a job may say how far its private answer is from the exact one. On private data nobody
can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sabun.ledger import Ledger
from sabun.release import Release

if TYPE_CHECKING:
    from sabun.privacy.amounts import AmountLike
    from sabun.telling.story import Answer, Chart

__all__ = ["Bench", "Job", "Outcome"]

_QUICK = 8000


def _told_nobody(sentence: str) -> None:
    """For jobs that nobody reads."""


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The place a job works in.

    Args:
        folder: Where files go.
        quick: Whether to use less data.
        progress: Called with the share of this job that is done and what is being done.
        books: The ledgers so far.
        tell: Called with a sentence that a person should read at once.
        watched: Whether a person sits in front of it, for whom something may be kept open for a moment.
    """

    folder: Path
    quick: bool
    progress: Callable[[float, str], None]
    books: dict[str, Ledger] = field(default_factory=dict)
    tell: Callable[[str], None] = _told_nobody
    watched: bool = False

    def ledger(
        self, name: str, *, unit: str, epsilon: AmountLike, delta: AmountLike = 0, relation: str = "replace-one"
    ) -> Ledger:
        """The ledger of a group of people; made the first time it is asked for."""
        if name not in self.books:
            file = self.folder / f"{name}.ledger"
            self.books[name] = Ledger.create(file, name=name, unit=unit, relation=relation, epsilon=epsilon, delta=delta)
        return self.books[name]

    def census(self) -> Ledger:
        """The one budget of the people in the census, whom several jobs ask about."""
        return self.ledger("census", unit="person", epsilon=4, delta="1e-5")

    def rows(self, table: Sized) -> int:
        """How many rows of a table to use."""
        return min(_QUICK, len(table)) if self.quick else len(table)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a job found.

    Args:
        release: What was released.
        answer: The answer to the question, where the release says less; None leaves it to the release.
        remarks: Sentences about it, for the terminal and the page.
        payer: Who was charged, where it was not the ledger in the release.
        charts: Pictures for the page beyond those every release of its kind has.
        others: Further releases that were made on the way, by name.
    """

    release: Release
    answer: Answer | None = None
    remarks: tuple[str, ...] = ()
    payer: str = ""
    charts: tuple[Chart, ...] = ()
    others: Mapping[str, Release] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One question of the demo; its release is saved as `<name>.json`."""

    name: str
    question: str
    run: Callable[[Bench], Outcome]
