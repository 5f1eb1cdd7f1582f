"""What a page shows of a study: read from the store at one look, frozen, with nothing below the study's minimum batch.

Estimates of an open round cost nobody anything: every report was private before it left its device. Numbers of reports are
shown from `min_batch` on, by the hour; before that, "fewer than".
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import final

from sabun.keyvalue import Estimates, index_uniformity_test
from sabun.privacy import Guarantee
from sabun.service.report_store import Round, Served, Store

__all__ = [
    "EPOCH",
    "Arrived",
    "KeyRow",
    "RoundPicture",
    "ServerPicture",
    "Spent",
    "StudyPicture",
    "Uniformity",
    "server_picture",
    "study_picture",
]

EPOCH = date(1970, 1, 1)


@final
@dataclass(frozen=True, kw_only=True)
class KeyRow:
    """One key: frequency and mean with intervals; None where there is no number worth showing, with the reason."""

    key: str
    reports: int
    frequency: float | None
    frequency_low: float | None
    frequency_high: float | None
    mean: float | None = None
    mean_low: float | None = None
    mean_high: float | None = None
    mean_reason: str | None = None
    flags: tuple[str, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Arrived:
    """What became of reports: counted; sent twice and counted once; refused, by reason (`arrivals.REASONS`)."""

    accepted: int = 0
    duplicate: int = 0
    rejected: Mapping[str, int]

    @property
    def refused(self) -> int:
        """How many were refused, whatever the reason."""
        return sum(self.rejected.values())


@final
@dataclass(frozen=True, kw_only=True)
class Uniformity:
    """Whether accepted reports are spread over the keys as honest devices spread them."""

    suspicious: bool
    p_value: float
    largest_z: float
    reports_by_key: tuple[int, ...]


@final
@dataclass(frozen=True, kw_only=True)
class RoundPicture:
    """One round.

    Args:
        number: Which.
        state: waiting, open, closed, frozen or purged.
        reports: How many count; None below `least`.
        least: The study's minimum batch.
        arrived: What became of everything that was sent; None below `least`.
        by_hour: Accepted reports by hour (UTC); empty below `least`.
        rows: The keys; empty below `least`.
        confidence: Of their intervals.
        method: The estimator.
        valued: Whether there are means.
        uniformity: The alarm; None below `least` and where each report is about all keys.
        released: Whether there is a signed release.
        frozen: The day on which it was signed.
        purged_on: The day on which its reports are (or were) deleted.
    """

    number: int
    state: str
    least: int
    reports: int | None = None
    arrived: Arrived | None = None
    by_hour: tuple[tuple[datetime, int], ...] = ()
    rows: tuple[KeyRow, ...] = ()
    confidence: float = 0.95
    method: str = ""
    valued: bool = True
    uniformity: Uniformity | None = None
    released: bool = False
    frozen: date | None = None
    purged_on: date | None = None


@final
@dataclass(frozen=True, kw_only=True)
class Spent:
    """What one person has spent who answered up to a round."""

    round: int
    epsilon: Fraction
    total: Fraction


@final
@dataclass(frozen=True, kw_only=True)
class StudyPicture:
    """One study.

    Args:
        task: Its public name.
        task_id: All of its task id.
        keys: Its keys, as texts.
        protocol: Its protocol.
        guarantee: What one participation is promised.
        enrolment: `tickets` or `open`.
        tickets: How many were issued; None where there are none.
        enrolled: How many credentials were issued; None likewise.
        value_range: Smallest and largest value.
        not_before: First day.
        not_after: Last day.
        rounds: Every round of the study that has been opened, and the next one.
        rounds_in_all: How many it has.
        spent: What one person has spent after each of them, at most.
        retention_days: How long reports stay after a round is frozen.
    """

    task: str
    task_id: str
    keys: tuple[str, ...]
    protocol: str
    guarantee: Guarantee
    enrolment: str
    tickets: int | None
    enrolled: int | None
    value_range: tuple[float, float]
    not_before: date | None
    not_after: date | None
    rounds: tuple[RoundPicture, ...]
    rounds_in_all: int
    spent: tuple[Spent, ...]
    retention_days: int

    @property
    def current(self) -> RoundPicture:
        """The round that is open, or else the last one that was."""
        begun = [one for one in self.rounds if one.state != "waiting"]
        return next((one for one in begun if one.state == "open"), begun[-1])


@final
@dataclass(frozen=True, kw_only=True)
class ServerPicture:
    """Every study of a server, and whether the store answers."""

    studies: tuple[StudyPicture, ...]
    database: str


def server_picture(store: Store, *, retention_days: int, allowed: Sequence[str] | None = None) -> ServerPicture:
    """The studies of a server, all or those whose public names are allowed; without estimates."""
    found = [served for served in store.all_served() if allowed is None or served.task in allowed]
    pictures = tuple(study_picture(store, served, retention_days=retention_days, estimates=False) for served in found)
    return ServerPicture(studies=pictures, database=store.database.name)


def study_picture(
    store: Store, served: Served, *, retention_days: int, estimates: bool = True, confidence: float = 0.95
) -> StudyPicture:
    """One study as it is now.

    Args:
        store: The store.
        served: The study.
        retention_days: How long reports stay after a round is frozen.
        estimates: Whether to estimate, which takes a moment.
        confidence: Of the intervals.
    """
    terms, opened = served.study.terms, store.rounds(served)
    outcomes: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    for number, hour, what, n in store.outcomes(served):
        outcomes[number].append((hour, what, n))
    rounds = [_round(store, served, one, outcomes[one.number], retention_days, estimates, confidence) for one in opened]
    if len(opened) < terms.rounds:
        rounds.append(RoundPicture(number=len(opened), state="waiting", least=terms.min_batch))
    tickets, enrolled = _enrolled(store, served) if served.tickets else (None, None)
    low, high = terms.value_range
    return StudyPicture(
        task=served.task,
        task_id=terms.task_id,
        keys=tuple(map(str, terms.keys)),
        protocol=terms.protocol,
        guarantee=served.study.guarantee,
        enrolment="tickets" if served.tickets else "open",
        tickets=tickets,
        enrolled=enrolled,
        value_range=(float(low), float(high)),
        not_before=terms.not_before,
        not_after=terms.not_after,
        rounds=tuple(rounds),
        rounds_in_all=terms.rounds,
        spent=_spent(served, len(opened)),
        retention_days=retention_days,
    )


def _round(
    store: Store,
    served: Served,
    opened: Round,
    outcomes: Sequence[tuple[int, str, int]],
    retention_days: int,
    estimates: bool,
    confidence: float,
) -> RoundPicture:
    terms = served.study.terms
    frozen = None if opened.frozen_day is None else EPOCH + timedelta(days=opened.frozen_day)
    tally = store.tally(served, opened.number)
    counts = tally.counts(served.part(opened.number) if served.together else None)
    arrived, by_hour = Counter[str](), Counter[int]()
    for hour, what, n in outcomes:
        arrived[what] += n
        by_hour[hour] += n if what == "accepted" else 0
    reports = arrived["accepted"]
    bare = RoundPicture(
        number=opened.number,
        state=opened.state,
        least=terms.min_batch,
        released=opened.release is not None,
        frozen=frozen,
        purged_on=None if frozen is None else frozen + timedelta(days=retention_days),
    )
    if reports < terms.min_batch:
        return bare
    found = tally.estimate(confidence=confidence) if estimates else None
    spread = tuple(int(n) for n in counts.total) if terms.sampled and len(terms.keys) > 1 else ()
    return RoundPicture(
        number=bare.number,
        state=bare.state,
        least=bare.least,
        released=bare.released,
        frozen=bare.frozen,
        purged_on=bare.purged_on,
        reports=reports,
        arrived=Arrived(
            accepted=reports,
            duplicate=arrived["duplicate"],
            rejected={what: n for what, n in sorted(arrived.items()) if what not in ("accepted", "duplicate")},
        ),
        by_hour=tuple((datetime.fromtimestamp(3600 * hour, UTC), n) for hour, n in sorted(by_hour.items()) if n),
        rows=() if found is None else _rows(found),
        confidence=confidence,
        method="" if found is None else found.method,
        valued=not terms.valueless,
        uniformity=_uniformity(spread) if sum(spread) else None,
    )


def _rows(found: Estimates) -> tuple[KeyRow, ...]:
    return tuple(
        KeyRow(
            key=str(key),
            reports=int(found.reports[place]),
            frequency=_number(found.frequency[place]),
            frequency_low=_number(found.frequency_interval[place, 0]),
            frequency_high=_number(found.frequency_interval[place, 1]),
            mean=_number(found.shown_mean[place]),
            mean_low=_number(found.mean_interval[place, 0]),
            mean_high=_number(found.mean_interval[place, 1]),
            mean_reason=found.mean_reason[place],
            flags=found.flags[place],
        )
        for place, key in enumerate(found.keys)
    )


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _uniformity(spread: tuple[int, ...]) -> Uniformity:
    test = index_uniformity_test(spread)
    return Uniformity(suspicious=test.suspicious, p_value=test.p_value, largest_z=test.largest_z, reports_by_key=spread)


def _enrolled(store: Store, served: Served) -> tuple[int, int]:
    with store.database.look() as session:
        [(tickets,)] = session.rows("SELECT count(*) FROM ticket WHERE study = ?", served.number)
        [(enrolled,)] = session.rows("SELECT count(*) FROM credential WHERE study = ?", served.number)
    return int(tickets), int(enrolled)


def _spent(served: Served, opened: int) -> tuple[Spent, ...]:
    """As diaries book it: each round anew, but for PrivKVM, whose rounds are parts of one participation."""
    each = served.study.terms.certified
    if served.together:
        return tuple(Spent(round=number, epsilon=each if number == 0 else Fraction(0), total=each) for number in range(opened))
    return tuple(Spent(round=number, epsilon=each, total=each * (number + 1)) for number in range(opened))
