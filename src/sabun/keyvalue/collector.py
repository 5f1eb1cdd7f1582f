"""Which reports count: whole ones, of one study and round, from enrolled ids, each id once; nothing is counted here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError
from sabun.keyvalue.client import ClientError, assigned_index, unpack
from sabun.keyvalue.statistic import Answer

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["CONFLICT", "ID", "Collector", "Outcome", "Register"]

ID = slice(17, 37)
"""Where the round and the report id stand in a report."""

CONFLICT = "a person must report once per round; this id came before with another answer."


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a batch.

    Attributes:
        accepted: Reports that were counted.
        rejected: Position and reason of each that was not; the others were counted all the same.
    """

    accepted: int
    rejected: tuple[tuple[int, str], ...]


@final
@dataclass(kw_only=True)
class Register:
    """What became of the reports a collector has seen so far.

    Args:
        ids: The reports that were accepted, by round and id; whatever keeps them may lie on a disk. None where something else
            sees to it that nobody counts twice.

    Attributes:
        seen: Reports looked at.
        accepted: Those that count.
        repeated: Those that came again, letter for letter: harmless, and not counted twice.
        rejected: Position and reason of the others.
    """

    ids: MutableMapping[bytes, bytes] | None = None
    seen: int = 0
    accepted: int = 0
    repeated: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)

    @property
    def refused(self) -> int:
        """How many were refused; where there are many, `rejected` names the first ones."""
        return self.seen - self.accepted - self.repeated

    @property
    def outcome(self) -> Outcome:
        """Who counted, and who did not."""
        return Outcome(accepted=self.accepted, rejected=tuple(self.rejected))


@final
class Collector:
    """The checks of one round of one study.

    Args:
        study: The study whose reports count; others are refused.
        round: The round that counts. PrivKVM's rounds count together, and 0 is the only number it takes.
        seed: The server's seed, for a study with a commitment; None where no assigned report is ever read.
        enrolled: The report ids of issued credentials (see `sabun.keyvalue.client.report_id`); others are refused. None lets
            every id pass.

    Raises:
        ParameterError: The seed is not the committed one, or the round is none of the study's.

    Example:
        >>> from sabun.keyvalue import Study
        >>> study = Study(keys=["YouTube"], epsilon=2)
        >>> Collector(study).answer(study.client().report({"YouTube": 1})).place
        0
    """

    def __init__(
        self, study: Study, *, round: int = 0, seed: bytes | None = b"", enrolled: Collection[bytes] | None = None
    ) -> None:
        self.terms = study.terms
        self.together = self.terms.protocol == "privkvm"
        """Whether all rounds count: they are parts of one estimate."""
        limit = 1 if self.together else self.terms.rounds
        checks.require(type(round) is int and 0 <= round < limit, f"a whole number below {limit}", round=round)
        self.round = round
        self.seed = None if seed is None else study.checked_seed(seed)
        self.enrolled = None if enrolled is None else frozenset(enrolled)

    @cached_property
    def enrolled_ids(self) -> NDArray[np.bytes_]:
        """The enrolled ids as one array; those of another length can be nobody's."""
        return np.array(sorted(each for each in self.enrolled or () if len(each) == 16), dtype="S16")

    @property
    def assigns(self) -> bool:
        """Whether it can tell which key a report is about."""
        return self.seed is not None or not self.terms.sampled or self.terms.index_mode == "chosen"

    def answer(self, report: bytes) -> Answer:
        """What a report says.

        Raises:
            DataError: It does not count, and why.
        """
        if not isinstance(report, bytes | bytearray | memoryview):
            raise DataError(f"a report must be bytes; got {type(report).__name__}.")
        try:
            read = unpack(self.terms, bytes(report))
        except ClientError as error:
            raise DataError(str(error)) from None
        if not self.together and read.round != self.round:
            raise DataError(f"a report must answer round {self.round}, which this tally counts; it answers round {read.round}.")
        if self.enrolled is not None and read.report_id not in self.enrolled:
            raise DataError("a report must come from an enrolled id; this one does not.")
        place = self._assigned(read.report_id) if self.terms.sampled and read.index is None else read.index
        return Answer(read.round if self.together else 0, place, read.symbol)

    def answers(self, reports: Iterable[bytes], register: Register) -> Iterator[Answer]:
        """What those reports say that count; what became of each is noted as they are gone through."""
        for report in reports:
            position, register.seen = register.seen, register.seen + 1
            try:
                answer = self._first(report, register)
            except DataError as error:
                register.rejected.append((position, str(error)))
                continue
            if answer is None:
                register.repeated += 1
            else:
                register.accepted += 1
                yield answer

    def _first(self, report: bytes, register: Register) -> Answer | None:
        """What a report says that no other said before; None for the same one again."""
        if register.ids is None or not isinstance(report, bytes | bytearray | memoryview):
            return self.answer(report)
        report = bytes(report)  # what is kept must not change with a buffer that is used again
        known = register.ids.get(report[ID])
        if known == report:
            return None
        if known is not None:
            raise DataError(CONFLICT)
        answer = self.answer(report)
        register.ids[report[ID]] = report
        return answer

    def _assigned(self, identity: bytes) -> int:
        if self.seed is None:
            raise DataError("this tally cannot tell which key was assigned. Make one with the study's seed.")
        return assigned_index(self.terms, identity, self.seed)
