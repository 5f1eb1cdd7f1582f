"""What the store knows of studies and rounds, and what goes in and out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import final

from sabun.errors import DataError
from sabun.keyvalue import Study
from sabun.keyvalue.statistic import Counters, SymbolCounts
from sabun.service.arrivals import Arrival
from sabun.service.session import Session

__all__ = ["Batch", "Receipt", "Round", "Served", "TooFew", "require_equal", "rounds_in", "rule_in"]

_COLUMNS = "round, number, state, key_check, feedback, frozen_day, release"


@final
class TooFew(DataError):
    """A round has fewer reports than its study shows."""


@final
@dataclass(frozen=True, kw_only=True)
class Served:
    """A study that this server collects for.

    Args:
        number: Its number in the store.
        study: The study.
        tickets: Whether only ids count that were issued for a ticket.
        seed: The seed, where the study committed to one.
    """

    number: int
    study: Study
    tickets: bool
    seed: bytes = field(default=b"", repr=False)

    @property
    def task(self) -> str:
        """Its public name: the 16 bytes that travel with each report, in hex."""
        return self.study.terms.short_id.hex()

    @property
    def recipe(self) -> SymbolCounts:
        """Its counters."""
        return SymbolCounts.of(self.study.terms)

    @property
    def together(self) -> bool:
        """Whether its rounds are parts of one estimate."""
        return self.study.protocol == "privkvm"

    def part(self, number: int) -> int:
        """Whose counters a round's reports go to."""
        return number if self.together else 0


@final
@dataclass(frozen=True, kw_only=True)
class Round:
    """A round that has been opened: open, closed (being frozen, or abandoned), frozen (signed) or purged (reports deleted)."""

    round: int
    number: int
    state: str
    key_check: bytes
    feedback: str | None = None
    frozen_day: int | None = None
    release: bytes | None = None
    abandoned: bool = False


@final
@dataclass(frozen=True, kw_only=True)
class Batch:
    """One request's reports, for one round."""

    served: Served
    number: int
    arrival: Arrival


@final
@dataclass(frozen=True, kw_only=True)
class Receipt:
    """What became of one request's reports: those that count, those that came before, position and reason of the others."""

    accepted: int
    duplicate: int
    rejected: Sequence[tuple[int, str]]


def rounds_in(session: Session, served: Served, number: int | None = None) -> list[Round]:
    """The rounds of a study that have been opened; the one with a number, or none."""
    one = "" if number is None else f" AND number = {int(number)}"
    rows = session.rows(f"SELECT {_COLUMNS} FROM round WHERE study = ?{one} ORDER BY number", served.number)
    found = [Round(**dict(zip(_COLUMNS.split(", "), row, strict=True))) for row in rows]
    return [replace(one, state="closed", abandoned=True) if one.state == "abandoned" else one for one in found]


def rule_in(session: Session, served: Served) -> str:
    """How a study enrols now: "open" or "tickets". What a process remembers may be older."""
    [(rule,)] = session.rows("SELECT enrolment FROM study WHERE study = ?", served.number)
    return str(rule)


def require_equal(left: Counters, right: Counters) -> None:
    """Stops where a recount is not what the counters say.

    Raises:
        DataError: They differ; nothing may be released from either.
    """
    if left.n != right.n or not (left.cells == right.cells).all():
        raise DataError("the counters must equal a recount of the reports; they do not. Nothing was released from them.")
