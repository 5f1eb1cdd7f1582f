"""A collection as it goes on: reports in, one estimate per key out; two tallies of one study merge into the whole.

A tally puts together what can also be had apart: the checks of a `Collector`, the counters of `SymbolCounts`, estimators. It
is of one round, in which a person counts once: answers of one person in several rounds are not independent, so adding them
up would make intervals too short. Only PrivKVM, whose rounds are parts of one estimate, has all of them in one tally, each
with counters of its own. A tally knows nothing of who reported before: seeing each report once is the collector's job
(`Register`), also where tallies are merged.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sabun import checks
from sabun.asking.names import renamed
from sabun.errors import DataError, ParameterError
from sabun.keyvalue.channel import Counts
from sabun.keyvalue.collector import Collector, Outcome, Register
from sabun.keyvalue.em import Iteration
from sabun.keyvalue.estimates import INTERVALS, METHODS, Estimates, estimates_of, point_estimates
from sabun.keyvalue.padding import cut_bound
from sabun.keyvalue.ranking import Ranking, ranking_of
from sabun.keyvalue.shrinkage import average_intervals, posterior_of
from sabun.keyvalue.statistic import Answer, Answers, Counters, SymbolCounts
from sabun.release.files import write_whole

if TYPE_CHECKING:
    from sabun.keyvalue.study import Study

__all__ = ["Outcome", "Tally"]

_MAGIC = b"sabun-tally-2\n"
_FEWEST_ON_AVERAGE = 5
"""With fewer keys the flat prior decides: intervals of keys that everybody or nobody holds held 42 % where 95 % was said."""


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
        self._collector = Collector(study, round=round, seed=seed, enrolled=enrolled)
        self._statistic = SymbolCounts.of(study.terms)
        self._state = self._statistic.zero()

    @classmethod
    def of_counters(cls, study: Study, counters: Counters, *, round: int = 0) -> Tally:
        """The tally of reports that somebody else took in and counted, by the study's own `SymbolCounts`.

        Raises:
            DataError: No reports can be counted so.
        """
        tally = cls(study, round=round, seed=None)
        tally._state = tally._statistic.unpack(tally._statistic.pack(counters))
        return tally

    @property
    def round(self) -> int:
        """Which round is counted; 0 for PrivKVM, which counts all of its own."""
        return self._collector.round

    @property
    def n(self) -> int:
        """Reports counted so far; of PrivKVM's rounds, those of the fullest one."""
        return int(self._statistic.reports(self._state).max())

    @property
    def counters(self) -> Counters:
        """What is counted, with PrivKVM's rounds apart."""
        return self._state

    @property
    def nbytes(self) -> int:
        """Size of the counters."""
        return self._state.cells.nbytes

    def counts(self, round: int | None = None) -> Counts:
        """How often each symbol was reported about each key; of PrivKVM's rounds, the first unless another is named.

        Raises:
            DataError: The round is not counted here.
        """
        return self._statistic.counts(self._state, self._part(round))

    def add(self, report: bytes) -> None:
        """Counts one report.

        Raises:
            DataError: It is no report of this study; nothing was counted.
        """
        self._count([self._collector.answer(report)])

    def add_reports(self, reports: Iterable[bytes], *, register: Register | None = None) -> Outcome:
        """Counts many reports; a bad one is left out and named, the others are counted.

        Args:
            reports: The reports.
            register: What became of the reports before these, for collections in which an id counts once.
        """
        noted = Register() if register is None else register
        self._count(self._collector.answers(reports, noted))
        return noted.outcome

    def add_files(
        self,
        files: Iterable[str | os.PathLike[str]],
        *,
        engine: Any = "serial",
        progress: Callable[[int, int], None] | None = None,
    ) -> Register:
        """Counts the reports of files of any size, each id once per round; returns what became of them.

        The same bytes again are a harmless repetition; others under the same id are refused: across the files of one call, in
        their order, and whoever counts. A call knows nothing of those before it: a file added again counts again. Memory stays
        bounded: reports meet by their id in temporary files (`TMPDIR`) only their owner can read, or by a cluster's shuffle.

        Args:
            files: Files of reports, binary or one JSON report per line, or folders of them; also behind URLs.
            engine: As in `sabun.engine.spread`; every worker must be able to read the files.
            progress: Called with how much is done, and of how much.

        Raises:
            DataError: There is no such file, one ends within a report, or changed while it was read; nothing was counted.
            ParameterError: There is no such engine.
        """
        from sabun.keyvalue.once import counted_files

        found = counted_files(self._collector, files, engine=engine, progress=progress)
        self._state = self._statistic.merge(self._state, found.counters)
        seen, rejected = sum(found.sizes), found.positions()
        return Register(seen=seen, accepted=found.accepted, repeated=found.repeated, rejected=rejected)

    def _count(self, answers: Iterable[Answer]) -> None:
        for block in self._statistic.blocks(answers):
            self._state = self._statistic.add(self._state, block)

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
        if self._collector.enrolled is not None:
            raise DataError("reports must come whole where only enrolled ids count; arrays name no ids. Use add_reports.")
        block = Answers(symbols=symbols, indices=indices, part=self._part(round))
        self._state = self._statistic.add(self._state, block)

    def absorb(self, counts: NDArray[np.int64], n: int) -> None:
        """Adds counters of the tally's own shape, as a simulation draws them; a simulated tally only.

        Raises:
            ParameterError: The tally is a real one, the shape is another, a counter is negative, or they are not of n reports.
        """
        if not self.simulated:
            raise ParameterError("counters must be absorbed by a simulated tally only; this one counts real reports. Use add.")
        shape = self._state.cells.shape
        if counts.shape != shape or counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
            raise ParameterError(f"counts must be whole numbers >= 0 of shape {shape}; got {counts.shape}.")
        drawn = Counters(cells=counts.astype(np.int64), n=n)
        if not self._statistic.possible(drawn):
            raise ParameterError(f"counts must be those of {n} reports; they are not.")
        self._state = self._statistic.merge(self._state, drawn)

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
        self._state = self._statistic.merge(self._state, other._state)
        return self

    @renamed(level="confidence")
    def estimate(
        self,
        method: str | None = None,
        *,
        confidence: float = 0.95,
        simultaneous: bool = False,
        iteration: Iteration | None = None,
        interval: str = "each",
    ) -> Estimates:
        """Frequencies and means with intervals.

        Args:
            method: `shrunk` (default), `mle`, `unbiased`, `ye`, `em`, `em3` or `posterior` (the first three and the last where
                no values are asked). PrivKVM's own estimator is `ye`
                (its default): the frequency of its first round, the mean of the last one that was answered; any other method
                uses its first round.
            confidence: Of each interval.
            simultaneous: Whether all intervals of a kind are to hold together (Bonferroni over exact ones).
            iteration: For `em` and `em3`: start, number of iterations, threshold (`sabun.keyvalue.Iteration`).
            interval: `each`: a confidence interval of every key by itself. `average`, with `shrunk` only: shorter ones, which
                hold with that confidence on average over the keys as far as was measured, less often for frequent keys; for
                studies of five keys or more.

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: A round that is used has fewer reports than the study's `min_batch`.
        """
        terms = self.study.terms
        named = ("ye" if terms.protocol == "privkvm" else "shrunk") if method is None else method
        checks.one_of(METHODS, method=named)
        checks.one_of(INTERVALS, interval=interval)
        if interval == "average" and (simultaneous or named != "shrunk"):
            raise ParameterError("interval must be 'each' with simultaneous or another method than 'shrunk'; got 'average'.")
        enough = interval == "each" or len(terms.keys) >= _FEWEST_ON_AVERAGE
        checks.require(enough, f"'each' in a study of fewer than {_FEWEST_ON_AVERAGE} keys", "Leave it out.", interval=interval)
        checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)
        checks.boolean(simultaneous=simultaneous)
        last = self._last() if named == "ye" else 0
        self._require_batch(0, last)
        channel, counts = self.study.channel, self.counts()
        found = point_estimates(named, channel, counts, iteration)
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
            cut=cut_bound(terms),
            keys=terms.keys,
            guarantee=self.study.guarantee.as_simulated() if self.simulated else self.study.guarantee,
            parameters=self.study.facts
            | {"reports": self.n}
            | ({"round": self.round} if terms.rounds > 1 else {})
            | ({} if iteration is None else iteration.to_dict()),
            average=average_intervals(posterior_of(channel, counts), confidence) if interval == "average" else None,
        )

    def published_means(self) -> dict[str | int, float]:
        """What PrivKVM publishes before its next round: a mean of every key, in the range (its middle where there is none).

        It is computed from reports, so it costs nothing.

        Raises:
            ParameterError: The protocol is another, or its last round is answered.
            DataError: A round that is used has fewer reports than the study's `min_batch`.
        """
        terms = self.study.terms
        checks.require(
            terms.protocol == "privkvm", "'privkvm', whose rounds need the means of the last", protocol=terms.protocol
        )
        rule = f"one of rounds 0 to {terms.rounds - 2}; no round comes after the last"
        checks.require(self._last() < terms.rounds - 1, rule, **{"last round answered": self._last()})
        low, high = (float(end) for end in terms.value_range)
        means = np.clip(np.nan_to_num(self.estimate().mean, nan=(low + high) / 2), low, high)
        return dict(zip(terms.keys, means.tolist(), strict=True))

    def top(self, k: int) -> Ranking:
        """The k keys that most probably are among the k most frequent, each with that probability where it can be told.

        Raises:
            ParameterError: k is no whole number from 1 to the number of keys.
            DataError: There are fewer reports than the study's `min_batch`.
        """
        keys = self.study.terms.keys
        checks.require(type(k) is int and 1 <= k <= len(keys), f"a whole number from 1 to {len(keys)}", k=k)
        self._require_batch(0)
        return ranking_of(self.study.channel, self.counts(), keys, k)

    def _require_batch(self, *parts: int) -> None:
        sizes, least = self._statistic.reports(self._state), self.study.terms.min_batch
        if min(sizes[part] for part in parts) < least:
            raise DataError(f"a batch must have at least {least} reports; it has fewer. Collect more before estimating.")

    def _part(self, round: int | None) -> int:
        """Where a round's counters stand."""
        if self._collector.together:
            limit = self.study.terms.rounds
            if not (round is None or (type(round) is int and 0 <= round < limit)):
                raise DataError(f"round must be a whole number below {limit}; got {round!r:.40}.")
            return round or 0
        if not (round is None or (type(round) is int and round == self.round)):
            raise DataError(f"round must be {self.round}, which this tally counts; got {round!r:.40}.")
        return 0

    def _last(self) -> int:
        """The last round that was answered."""
        answered = np.flatnonzero(self._statistic.reports(self._state))
        return int(answered[-1]) if answered.size else 0

    def to_bytes(self) -> bytes:
        """The tally with its study's id and a checksum, which tells accidents, not forgeries."""
        head = _MAGIC + bytes.fromhex(self.study.task_id) + bytes([self.simulated]) + self.round.to_bytes(4, "little")
        body = head + self._statistic.pack(self._state)
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
        round_number, limit = int.from_bytes(rest[1:5], "little"), 1 if study.protocol == "privkvm" else study.terms.rounds
        if len(rest) < 5 or rest[0] > 1 or round_number >= limit:
            raise DataError("a tally must have the shape of its study; it has another.")
        tally = cls(study, round=round_number, seed=seed, enrolled=enrolled, simulated=bool(rest[0]))
        tally._state = tally._statistic.unpack(rest[5:])
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
