"""The laws of the store: an id counts once in a round, counters are what a recount would give, all of it in one transaction."""

from __future__ import annotations

import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from itertools import islice
from typing import final

from sabun.errors import DataError, ParameterError
from sabun.keyvalue import Study, Tally
from sabun.keyvalue.statistic import Counters, SymbolCounts
from sabun.service.arrivals import Arrival, answers_of
from sabun.service.migrations import migrate
from sabun.service.round_keys import RoundKeys, check_of
from sabun.service.session import Database, Session, StoreUnavailable

__all__ = ["Batch", "Receipt", "Round", "Served", "Store", "TooFew", "require_equal"]

_COLUMNS = "round, number, state, key_check, feedback, frozen_day, release"
_ADD = (
    "INSERT INTO outcome (round, hour, what, shard, n) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (round, hour, what, shard) DO UPDATE SET n = outcome.n + excluded.n"
)
_RECOUNTED_AT_ONCE = 100_000
_EVERYBODY = -2
"""The number under which those who add studies or rounds wait for each other."""


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
    """A round that has been opened: open, closed (being frozen), frozen (signed) or purged (its reports deleted)."""

    round: int
    number: int
    state: str
    key_check: bytes
    feedback: str | None = None
    frozen_day: int | None = None
    release: bytes | None = None


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


@final
class Store:
    """Studies, rounds, reports and counters in a database.

    Args:
        database: Where.
        keys: The folder of secrets; the same one for every process that works on the database.
        shard: Which process this is; each adds to counters of its own.
        clock: Seconds since 1970; only hours and days of it are kept.

    Raises:
        DataError: A newer Sabun made the tables.
        StoreUnavailable: The database cannot be used.
    """

    def __init__(self, database: Database, keys: RoundKeys, *, shard: int = 0, clock: Callable[[], float] = time.time) -> None:
        self.database, self.keys, self.shard, self.clock = database, keys, shard, clock
        self._served: dict[str, Served] = {}
        self._rounds: dict[tuple[int, int], int] = {}
        migrate(database)

    @property
    def today(self) -> int:
        """The day (UTC), counted from 1970."""
        return int(self.clock() // 86_400)

    # Studies

    def register(self, study: Study, *, tickets: bool = False, seed: bytes = b"") -> Served:
        """Serves a study from now on, with its first round open; the same study again changes nothing.

        Raises:
            ParameterError: It has reports under another rule of enrolment, the seed is not the one it committed to, or the
                folder of keys is not the one with which its rounds were opened.
        """
        study.checked_seed(seed)
        task, rule = study.terms.short_id.hex(), "tickets" if tickets else "open"
        self.keys.keep_seed(task, seed)
        with self.database.change() as session:
            session.hold(_EVERYBODY, alone=True)
            if not session.rows("SELECT study FROM study WHERE task = ?", task):
                [(number,)] = session.rows("SELECT coalesce(max(study), 0) + 1 FROM study")
                session.rows("INSERT INTO study VALUES (?, ?, ?, ?)", number, task, study.to_json(), rule)
            unused = (
                "NOT EXISTS (SELECT 1 FROM counter JOIN round ON round.round = counter.round WHERE round.study = study.study)"
            )
            session.rows(f"UPDATE study SET enrolment = ? WHERE task = ? AND {unused}", rule, task)
        self._served.pop(task, None)
        served = self.served(task)
        if served is None or served.study.task_id != study.task_id or served.tickets != tickets:
            raise ParameterError("enrolment must be as it was when the study was first served here; it is another.")
        self.open_round(served, 0)
        self._check_keys(served)
        return served

    def _check_keys(self, served: Served) -> None:
        for opened in self.rounds(served):
            if opened.state == "open":
                self._key(served, opened.number, opened.key_check)

    def known(self, task: str) -> Served | None:
        """The study of that name, if this process has looked it up before."""
        found = self._served.get(task[:32])
        return found if found is not None and task in (found.task, found.study.task_id) else None

    def served(self, task: str) -> Served | None:
        """The study of that name: 32 hexadecimal digits as on the wire, or all 64 of its task id."""
        short = task[:32]
        if short not in self._served:
            with self.database.look() as session:
                rows = session.rows("SELECT study, terms, enrolment FROM study WHERE task = ?", short)
            for number, terms, rule in rows:
                study = Study.from_json(terms)
                self._served[short] = Served(number=number, study=study, tickets=rule == "tickets", seed=self.keys.seed(short))
        return self.known(task)

    def all_served(self) -> list[Served]:
        """Every study, in the order in which they came."""
        with self.database.look() as session:
            tasks = [task for (task,) in session.rows("SELECT task FROM study ORDER BY study")]
        return [served for task in tasks if (served := self.served(task)) is not None]

    # Rounds

    def rounds(self, served: Served) -> list[Round]:
        """The rounds that have been opened."""
        with self.database.look() as session:
            return _rounds(session, served)

    def round(self, served: Served, number: int) -> Round | None:
        """One of them; None while it waits for the one before."""
        return next((one for one in self.rounds(served) if one.number == number), None)

    def open_round(self, served: Served, number: int, feedback: str | None = None) -> None:
        """Opens a round, unless it was opened before."""
        if self.round(served, number) is not None:
            return
        check = check_of(self.keys.make_round(served.task, number))
        with self.database.change() as session:
            session.hold(_EVERYBODY, alone=True)
            if session.rows("SELECT round FROM round WHERE study = ? AND number = ?", served.number, number):
                return
            [(round,)] = session.rows("SELECT coalesce(max(round), 0) + 1 FROM round")
            session.make_place(round)
            session.rows(
                "INSERT INTO round (round, study, number, state, key_check, feedback) VALUES (?, ?, ?, 'open', ?, ?)",
                *(round, served.number, number, check, feedback),
            )

    def _key(self, served: Served, number: int, check: bytes) -> bytes:
        key = self.keys.of_round(served.task, number)
        if key is None or check_of(key) != check:
            raise ParameterError(
                f"the folder of keys must be the one with which round {number} was opened; it is not. Every process that "
                "works on a store needs the same folder; an id would count twice otherwise."
            )
        return key

    # Reports

    def commit(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Adds what is new, in one transaction; when this returns, all of it is on disk.

        Raises:
            StoreUnavailable: Nothing was added, or nobody knows: the same reports may come again.
        """
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, batch in enumerate(batches):
            groups[batch.served.number, batch.number].append(place)
        receipts: dict[int, Receipt] = {}
        with self.database.change() as session:
            for _, places in sorted(groups.items()):  # always in one order: two processes never wait for each other in a ring
                found = self._add(session, [batches[place] for place in places])
                receipts.update(zip(places, found, strict=True))
        return [receipts[place] for place in range(len(batches))]

    def _add(self, session: Session, batches: Sequence[Batch]) -> list[Receipt]:
        served, number = batches[0].served, batches[0].number
        opened = self._held(session, served, number)
        refusal = _refusal(served.study, opened, self._date())
        if opened is None:  # nothing to count outcomes under
            return [_refused(batch, "early") for batch in batches]
        if refusal is None:
            receipts = self._added(session, opened, batches)
        else:
            if opened.state != "open":
                self.keys.forget_round(served.task, number)
            receipts = [_refused(batch, refusal) for batch in batches]
        self._note(session, opened.round, receipts)
        return receipts

    def _held(self, session: Session, served: Served, number: int) -> Round | None:
        """The round, kept from closing until the end of the transaction."""
        place = served.number, number
        if place not in self._rounds:
            found = _rounds(session, served, number)
            if not found:
                return None
            self._rounds[place] = found[0].round
        session.hold(self._rounds[place], alone=False)
        return _rounds(session, served, number)[0]

    def _added(self, session: Session, opened: Round, batches: Sequence[Batch]) -> list[Receipt]:
        served = batches[0].served
        key = self._key_or_wait(served, opened)
        issued = None
        if served.tickets:
            issued = session.enrolled(served.number, {id for batch in batches for id in batch.arrival.ids})
        scramble = hashlib.blake2b
        scrambled = [[scramble(id, key=key, digest_size=16).digest() for id in batch.arrival.ids] for batch in batches]
        first: dict[bytes, bytes] = {}
        for batch, ids in zip(batches, scrambled, strict=True):
            for raw, id, answer in zip(batch.arrival.ids, ids, batch.arrival.answers, strict=True):
                if issued is None or raw in issued:
                    first.setdefault(id, answer)
        known = session.keep_reports(opened.round, first)
        fresh = {id: answer for id, answer in first.items() if id not in known} if known else dict(first)
        self._count(session, served, opened, fresh)
        stored = first | known
        return [_receipt(batch, ids, issued, fresh, stored) for batch, ids in zip(batches, scrambled, strict=True)]

    def _key_or_wait(self, served: Served, opened: Round) -> bytes:
        try:
            return self._key(served, opened.number, opened.key_check)
        except ParameterError as error:  # the operator's to mend; devices are to try again later
            raise StoreUnavailable(str(error)) from None

    def _count(self, session: Session, served: Served, opened: Round, fresh: Mapping[bytes, bytes]) -> None:
        """Adds the reports that were really inserted to this process's counters."""
        if not fresh:
            return
        recipe = served.recipe
        insert = "INSERT INTO counter VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        session.rows(insert, opened.round, self.shard, recipe.pack(recipe.zero()))
        # Locked as it is read, in case another process calls itself by the same number.
        select = f"SELECT state FROM counter WHERE round = ? AND shard = ?{session.to_change}"
        [(packed,)] = session.rows(select, opened.round, self.shard)
        block = answers_of(served.study, b"".join(fresh.values()), part=served.part(opened.number))
        state = recipe.add(recipe.unpack(packed), block)
        update = "UPDATE counter SET state = ? WHERE round = ? AND shard = ?"
        session.rows(update, recipe.pack(state), opened.round, self.shard)

    def _note(self, session: Session, round: int, receipts: Sequence[Receipt]) -> None:
        found: Counter[str] = Counter()
        for receipt in receipts:
            found["accepted"] += receipt.accepted
            found["duplicate"] += receipt.duplicate
            found.update(reason for _, reason in receipt.rejected)
        hour = int(self.clock() // 3600)
        for what, n in sorted(found.items()):
            if n:
                session.rows(_ADD, round, hour, what, self.shard, n)

    def _date(self) -> date:
        return datetime.fromtimestamp(self.clock(), UTC).date()

    # Counters

    def counters(self, served: Served, *numbers: int) -> Counters:
        """What the counters of some rounds say, all processes together."""
        with self.database.look() as session:
            return self.counters_in(session, served, *numbers)

    def counters_in(self, session: Session, served: Served, *numbers: int) -> Counters:
        """The same, within a transaction."""
        recipe = served.recipe
        found = recipe.zero()
        for number in numbers:
            for opened in _rounds(session, served, number):
                for (packed,) in session.rows("SELECT state FROM counter WHERE round = ?", opened.round):
                    found = recipe.merge(found, recipe.unpack(packed))
        return found

    def recount(self, served: Served, number: int) -> Counters:
        """The same from the reports themselves, of one round alone."""
        recipe = served.recipe
        found = recipe.zero()
        with self.database.look() as session:
            for opened in _rounds(session, served, number):
                rows = session.stream("SELECT answer FROM report WHERE round = ?", opened.round)
                while some := b"".join(answer for (answer,) in islice(rows, _RECOUNTED_AT_ONCE)):
                    found = recipe.add(found, answers_of(served.study, some, part=served.part(number)))
        return found

    def tally(self, served: Served, number: int) -> Tally:
        """The tally of a round, as if its reports had come in files; of PrivKVM with the rounds before."""
        if served.together:
            return Tally.of_counters(served.study, self.counters(served, *range(number + 1)))
        return Tally.of_counters(served.study, self.counters(served, number), round=number)

    def shown(self, served: Served, number: int) -> Tally:
        """The tally of a round that has as many reports as its study wants before anything is shown.

        Raises:
            TooFew: It has fewer.
        """
        tally = self.tally(served, number)
        self.require_batch(served, number, tally.counters)
        return tally

    def require_batch(self, served: Served, number: int, counters: Counters) -> None:
        """Stops where a round has too few reports.

        Raises:
            TooFew: It has fewer than the study's `min_batch`.
        """
        least = served.study.terms.min_batch
        if int(served.recipe.reports(counters)[served.part(number)]) < least:
            raise TooFew(f"a round must have at least {least} reports; it has fewer.")

    def outcomes(self, served: Served) -> Iterator[tuple[int, int, str, int]]:
        """Round, hour, what became of reports, and of how many."""
        statement = (
            "SELECT round.number, hour, what, sum(n) FROM outcome JOIN round ON round.round = outcome.round "
            "WHERE round.study = ? GROUP BY round.number, hour, what ORDER BY round.number, hour, what"
        )
        with self.database.look() as session:
            rows = session.rows(statement, served.number)
        yield from ((int(number), int(hour), what, int(n)) for number, hour, what, n in rows)


def _rounds(session: Session, served: Served, number: int | None = None) -> list[Round]:
    one = "" if number is None else f" AND number = {int(number)}"
    rows = session.rows(f"SELECT {_COLUMNS} FROM round WHERE study = ?{one} ORDER BY number", served.number)
    return [Round(**dict(zip(_COLUMNS.split(", "), row, strict=True))) for row in rows]


def _refusal(study: Study, opened: Round | None, today: date) -> str | None:
    first, last = study.terms.not_before, study.terms.not_after
    if opened is None or (opened.state == "open" and first is not None and today < first):
        return "early"
    return "late" if opened.state != "open" or (last is not None and today > last) else None


def _refused(batch: Batch, reason: str) -> Receipt:
    late = [(place, reason) for place in batch.arrival.positions]
    return Receipt(accepted=0, duplicate=0, rejected=sorted([*batch.arrival.rejected, *late]))


def _receipt(
    batch: Batch, ids: Sequence[bytes], issued: set[bytes] | None, fresh: dict[bytes, bytes], stored: Mapping[bytes, bytes]
) -> Receipt:
    """What became of one request; the first of several under one new id takes it out of `fresh`."""
    accepted, duplicate, rejected = 0, 0, list(batch.arrival.rejected)
    arrival = batch.arrival
    for place, raw, id, answer in zip(arrival.positions, arrival.ids, ids, arrival.answers, strict=True):
        if issued is not None and raw not in issued:
            rejected.append((place, "enrolment"))
        elif fresh.pop(id, None) is not None:
            accepted += 1
        elif stored[id] == answer:
            duplicate += 1
        else:
            rejected.append((place, "conflict"))
    if len(rejected) > len(arrival.rejected):
        rejected.sort()
    return Receipt(accepted=accepted, duplicate=duplicate, rejected=rejected)


def require_equal(left: Counters, right: Counters) -> None:
    """Stops where a recount is not what the counters say.

    Raises:
        DataError: They differ; nothing may be released from either.
    """
    if left.n != right.n or not (left.cells == right.cells).all():
        raise DataError("the counters must equal a recount of the reports; they do not. Nothing was released from them.")
