"""Counters that add up: reports in, one estimate per key out; two tallies of one study merge into the whole.

State: 24 bytes per key (+, -, nothing) for sampled protocols, 16 bytes per key (+, -) for padded ones, plus the number of
reports. A tally is of one round, in which a person counts once: answers of one person in several rounds are not independent, so
adding them up would make intervals too short. Only PrivKVM, whose rounds are parts of one estimate, has all of them in one
tally, each with counters of its own. A tally knows nothing of who reported: seeing each report once is the collector's job,
also where tallies are merged.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sabun import checks
from sabun.errors import DataError, ParameterError
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.client import ClientError, assigned_index, unpack
from sabun.keyvalue.client.tables import JOINT
from sabun.keyvalue.client.terms import Terms
from sabun.keyvalue.estimates import METHODS, Estimates, estimates_of, point_estimates
from sabun.keyvalue.symbols import cells_of, checked
from sabun.release.files import write_whole

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["Outcome", "Tally"]

_MAGIC = b"sabun-tally-2\n"
_MOST = 2**53
"""Sums and shares of larger counts would be rounded."""


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
class Tally:
    """The counters of one study; made by `Study.tally()`.

    Args:
        study: The study whose reports are counted; others are refused.
        round: Which round is counted; reports of others are refused. PrivKVM counts all of its rounds and takes 0 only.
        seed: The server's seed, for a study with a commitment; None for counters that never read assigned reports.
        enrolled: The report ids of issued credentials (see `sabun.keyvalue.client.report_id`); others are refused. None counts
            every id, and then a faker can make up credentials until an assigned key is the wanted one. An id is a name, no
            proof: whoever has seen it can report under it, so reports must travel where nobody reads them.
        simulated: Whether the reports came from a simulation.

    Raises:
        ParameterError: The seed is not the committed one, or the round is none of the study's.

    Example:
        >>> from sabun.keyvalue import Study
        >>> study = Study(keys=["YouTube", "LINE"], epsilon=2.0)
        >>> tally = study.tally()
        >>> tally.add(study.client().report({"YouTube": 0.5}))
        >>> tally.n
        1
    """

    def __init__(
        self,
        study: Study,
        *,
        round: int = 0,
        seed: bytes | None = b"",
        enrolled: Collection[bytes] | None = None,
        simulated: bool = False,
    ) -> None:
        self.study = study
        self.simulated = simulated
        self._seed = None if seed is None else study.checked_seed(seed)
        self._enrolled = None if enrolled is None else frozenset(enrolled)
        terms = study.terms
        rounds, limit = (terms.rounds, 1) if terms.protocol == "privkvm" else (1, terms.rounds)
        good = type(round) is int and 0 <= round < limit
        checks.require(good, f"a whole number below {limit}", round=round)
        self.round = round
        self._counts = np.zeros((rounds, len(terms.keys), 3 if terms.sampled else 2), dtype=np.int64)
        self._n = 0

    @property
    def n(self) -> int:
        """Reports counted so far; of PrivKVM's rounds, those of the fullest one."""
        return int(self._counts.sum(axis=(1, 2)).max()) if self.study.terms.sampled else self._n

    @property
    def nbytes(self) -> int:
        """Size of the counters."""
        return self._counts.nbytes

    def counts(self, round: int | None = None) -> Counts:
        """How often each symbol was reported about each key; of PrivKVM's rounds, the first unless another is named.

        Raises:
            DataError: The round is not counted here.
        """
        cells = self._counts[self._part(round)]
        total = cells.sum(axis=1) if self.study.terms.sampled else np.full(len(cells), self._n, dtype=np.int64)
        return Counts(plus=cells[:, 0], minus=cells[:, 1], total=total)

    def add(self, report: bytes) -> None:
        """Counts one report.

        Raises:
            DataError: It is no report of this study; nothing was counted.
        """
        terms = self.study.terms
        if not isinstance(report, bytes | bytearray | memoryview):
            raise DataError(f"a report must be bytes; got {type(report).__name__}.")
        try:
            read = unpack(terms, bytes(report))
        except ClientError as error:
            raise DataError(str(error)) from None
        if len(self._counts) == 1 and read.round != self.round:
            raise DataError(f"a report must answer round {self.round}, which this tally counts; it answers round {read.round}.")
        if self._enrolled is not None and read.report_id not in self._enrolled:
            raise DataError("a report must come from an enrolled id; this one does not.")
        place = read.round if terms.protocol == "privkvm" else 0
        if terms.sampled:
            index = self._assigned(read.report_id) if read.index is None else read.index
            assert isinstance(read.symbol, int)
            self._counts[place, index, _column(read.symbol)] += 1
        elif isinstance(read.symbol, tuple):
            symbols = np.array(read.symbol)
            self._counts[0] += np.column_stack([symbols == 1, symbols == 2])
        elif read.symbol:
            self._counts[0, (read.symbol - 1) // 2, (read.symbol - 1) % 2] += 1
        self._n += 1

    def _assigned(self, identity: bytes) -> int:
        if self._seed is None:
            raise DataError("this tally cannot tell which key was assigned. Make one with the study's seed.")
        return assigned_index(self.study.terms, identity, self._seed)

    def add_reports(self, reports: Iterable[bytes]) -> Outcome:
        """Counts many reports; a bad one is left out and named, the others are counted."""
        accepted, rejected = 0, []
        for position, report in enumerate(reports):
            try:
                self.add(report)
                accepted += 1
            except DataError as error:
                rejected.append((position, str(error)))
        return Outcome(accepted=accepted, rejected=tuple(rejected))

    def add_many(self, symbols: ArrayLike, indices: ArrayLike | None = None, *, round: int | None = None) -> None:
        """Counts many symbols at once, as arrays.

        Args:
            symbols: Sampled protocols: 0, 1, 2 per report. Joint ones: 0 .. 2d per report. Unary encoding: a table of 0, 1, 2
                with one row per report.
            indices: The key of each report, for sampled protocols only.
            round: The round of PrivKVM, None for its first; for other protocols the tally's own.

        Raises:
            DataError: A symbol or an index is not one of this study, or only enrolled ids count, which arrays do not name;
                nothing was counted.
        """
        terms, keys = self.study.terms, len(self.study.terms.keys)
        if self._enrolled is not None:
            raise DataError("reports must come whole where only enrolled ids count; arrays name no ids. Use add_reports.")
        part = self._part(round)
        if (indices is not None) != terms.sampled:
            raise DataError(f"indices must be {'given' if terms.sampled else 'left out'} for protocol {terms.protocol!r}.")
        if terms.protocol == "pckv-ue":
            table = checked("symbols", symbols, 3, ndim=2)
            if table.shape[1] != keys:
                raise DataError(f"symbols must have one column per key ({keys}); got {table.shape[1]}.")
            new, size = np.column_stack([(table == 1).sum(axis=0), (table == 2).sum(axis=0)]), len(table)
        elif terms.protocol in JOINT:
            row = checked("symbols", symbols, 2 * keys + 1)
            new, size = np.bincount(row, minlength=2 * keys + 1)[1:].reshape(keys, 2), len(row)
        else:
            new, size = cells_of(symbols, indices, keys)
        self._counts[part] += new
        self._n += size

    def absorb(self, counts: NDArray[np.int64], n: int) -> None:
        """Adds counters of the tally's own shape, as a simulation draws them; a simulated tally only.

        Raises:
            ParameterError: The tally is a real one, the shape is another, a counter is negative, or they are not of n reports.
        """
        if not self.simulated:
            raise ParameterError("counters must be absorbed by a simulated tally only; this one counts real reports. Use add.")
        shaped = counts.shape == self._counts.shape and counts.dtype.kind in "iu"
        if not shaped or (counts.size and counts.min() < 0):
            raise ParameterError(f"counts must be whole numbers >= 0 of shape {self._counts.shape}; got {counts.shape}.")
        if not _possible(self.study.terms, counts, n):
            raise ParameterError(f"counts must be those of {n} reports; they are not.")
        self._counts += counts
        self._n += n

    def merge(self, other: Tally) -> Tally:
        """Adds another tally's counts to this one; returns this one.

        Raises:
            ParameterError: The other tally is of another study or round, or a simulated one meets a real one.
            DataError: Together they count more reports than any collection has.
        """
        if not isinstance(other, Tally):
            raise ParameterError(f"other must be a Tally; got {type(other).__name__}.")
        if other.study.task_id != self.study.task_id:
            raise ParameterError("tallies must be of the same study to merge; got two task ids.")
        if other.round != self.round:
            raise ParameterError(f"tallies must be of the same round to merge; got rounds {self.round} and {other.round}.")
        if other.simulated != self.simulated:
            raise ParameterError("a simulated tally must not be merged with a real one; got one of each.")
        if self._n + other._n > _MOST:
            raise DataError("merged tallies must count at most 2**53 reports; these count more.")
        self._counts += other._counts
        self._n += other._n
        return self

    def estimate(self, method: str | None = None, *, confidence: float = 0.95, simultaneous: bool = False) -> Estimates:
        """Frequencies and means with intervals.

        Args:
            method: `mle` (default), `unbiased`, `ye`, `em`, `em3` or `posterior`. PrivKVM's own estimator is `ye` (its
                default): the frequency of its first round, the mean of the last one that was answered; any other method uses
                its first round.
            confidence: Of each interval.
            simultaneous: Whether all intervals of a kind are to hold together (Bonferroni over exact ones).

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: A round that is used has fewer reports than the study's `min_batch`.
        """
        terms = self.study.terms
        named = ("ye" if terms.protocol == "privkvm" else "mle") if method is None else method
        checks.one_of(METHODS, method=named)
        checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
        checks.boolean(simultaneous=simultaneous)
        last = self._last() if named == "ye" else 0
        if min(self._reports(0), self._reports(last)) < terms.min_batch:
            raise DataError(
                f"a batch must have at least {terms.min_batch} reports; it has fewer. Collect more before estimating."
            )
        channel, counts = self.study.channel, self.counts()
        found = point_estimates(named, channel, counts)
        if last:
            found = found[0], point_estimates("ye", channel, self.counts(last))[1]
        return estimates_of(
            channel=channel,
            counts=counts,
            found=found,
            method=named,
            confidence=float(confidence),
            comparisons=len(terms.keys) if simultaneous else 1,
            mean_known=not last,
            scale=(float(terms.value_range[0]), float(terms.value_range[1])),
            cut=_cut(terms),
            keys=terms.keys,
            guarantee=self.study.guarantee.as_simulated() if self.simulated else self.study.guarantee,
            parameters=self.study.facts | {"reports": self.n} | ({"round": self.round} if terms.rounds > 1 else {}),
        )

    def _part(self, round: int | None) -> int:
        """Where a round's counters stand."""
        if round is None or (len(self._counts) == 1 and type(round) is int and round == self.round):
            return 0
        if len(self._counts) == 1:
            raise DataError(f"round must be {self.round}, which this tally counts; got {round!r:.40}.")
        if not (type(round) is int and 0 <= round < len(self._counts)):
            raise DataError(f"round must be a whole number below {len(self._counts)}; got {round!r:.40}.")
        return round

    def _reports(self, part: int) -> int:
        """Reports of one round: a person is one of them at most once."""
        return int(self._counts[part].sum()) if self.study.terms.sampled else self._n

    def _last(self) -> int:
        """The last round that was answered."""
        answered = np.flatnonzero(self._counts.any(axis=(1, 2)))
        return int(answered[-1]) if answered.size else 0

    def to_bytes(self) -> bytes:
        """The tally with its study's id and a checksum, which tells accidents, not forgeries."""
        facts = bytes([self.simulated]) + self.round.to_bytes(4, "little") + self._n.to_bytes(8, "little")
        head = _MAGIC + bytes.fromhex(self.study.task_id) + facts
        body = head + self._counts.astype("<i8").tobytes()
        return body + hashlib.sha256(body).digest()

    @classmethod
    def from_bytes(
        cls, content: bytes, *, study: Study, seed: bytes | None = b"", enrolled: Collection[bytes] | None = None
    ) -> Tally:
        """Reads what `to_bytes` wrote; `seed` and `enrolled` are for reports still to come.

        Raises:
            DataError: The bytes are damaged, of another study, or count what no reports can.
        """
        body, check = content[:-32], content[-32:]
        if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != check:
            raise DataError("a tally must be whole, as it was saved; it is not. Reports must be counted into a tally first.")
        if body[len(_MAGIC) : len(_MAGIC) + 32] != bytes.fromhex(study.task_id):
            raise DataError("the tally must belong to this study; it is of another.")
        rest = body[len(_MAGIC) + 32 :]
        tally = cls(study, seed=seed, enrolled=enrolled)
        round_number, n = int.from_bytes(rest[1:5], "little"), int.from_bytes(rest[5:13], "little")
        sized = len(rest) == 13 + tally._counts.nbytes and rest[0] in (0, 1)
        if not sized or round_number >= (study.terms.rounds if len(tally._counts) == 1 else 1):
            raise DataError("a tally must have the shape of its study; it has another.")
        counts = np.frombuffer(rest[13:], dtype="<i8").astype(np.int64).reshape(tally._counts.shape)
        if not _possible(study.terms, counts, n):
            raise DataError("a tally must count what its number of reports can say; it does not.")
        tally.simulated, tally.round, tally._counts, tally._n = bool(rest[0]), round_number, counts, n
        return tally

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the tally to a file that is complete or not there at all."""
        write_whole(path, self.to_bytes(), overwrite=True)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        study: Study,
        seed: bytes | None = b"",
        enrolled: Collection[bytes] | None = None,
    ) -> Tally:
        """Reads what `save` wrote; the ids that may still report are to be given again.

        Raises:
            DataError: The file is damaged or of another study.
        """
        with open(path, "rb") as file:
            return cls.from_bytes(file.read(), study=study, seed=seed, enrolled=enrolled)

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Tally) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        warning = "NOT PRIVATE, " if self.simulated else ""
        return f"<Tally {warning}{self.n} reports, study {self.study.task_id[:12]}>"


def _possible(terms: Terms, counts: NDArray[np.int64], n: int) -> bool:
    """Whether counters can be those of n reports (of all rounds together, for PrivKVM)."""
    if not 0 <= n <= _MOST or (counts.size and (counts.min() < 0 or counts.max() > n)):
        return False
    # In floats first: counters of a crafted file could wrap around when they are added.
    total = float(counts.sum(dtype=np.float64))
    if terms.sampled:
        return total <= 2.0 * _MOST and int(counts.sum()) == n
    if terms.protocol in JOINT:
        return total <= 2.0 * _MOST and int(counts.sum()) <= n
    return bool((counts.sum(axis=-1) <= n).all())


def _cut(terms: Terms) -> float:
    """How many times too small a frequency may be on average, because people hold more keys than the padding length."""
    if terms.sampled or terms.padding_length == len(terms.keys):
        return 1.0
    return math.nan if terms.keys_per_user is None else max(1.0, terms.keys_per_user / terms.padding_length)


def _column(symbol: int) -> int:
    """Where a symbol is counted: plus, minus, nothing."""
    return (2, 0, 1)[symbol]
