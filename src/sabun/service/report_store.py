"""The laws of the store: an id counts once in a round, counters are what a recount would give, all of it in one transaction."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import final

from sabun.errors import ParameterError
from sabun.keyvalue import Study, Tally
from sabun.keyvalue.client import report_size
from sabun.keyvalue.statistic import Counters
from sabun.service.adding import Adder, KeyLost, checked_key
from sabun.service.arrivals import answers_of
from sabun.service.log import say
from sabun.service.migrations import migrate
from sabun.service.round_keys import RoundKeys, check_of
from sabun.service.served import Batch, Receipt, Round, Served, TooFew, rounds_in
from sabun.service.session import Database, Session

__all__ = ["Batch", "Receipt", "Round", "Served", "Store", "TooFew"]

_UNUSED = (
    "NOT EXISTS (SELECT 1 FROM counter JOIN round ON round.round = counter.round WHERE round.study = study.study) "
    "AND NOT EXISTS (SELECT 1 FROM ticket WHERE ticket.study = study.study)"
)
_RECOUNTED_AT_ONCE = 4 << 20
"""Bytes of reports."""
_EVERYBODY = -2
"""The number under which those who add studies or rounds wait for each other."""


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
        self._adder = Adder(keys, shard, clock)
        migrate(database)

    @property
    def today(self) -> int:
        """The day (UTC), counted from 1970."""
        return int(self.clock() // 86_400)

    # Studies

    def register(self, study: Study, *, tickets: bool = False, seed: bytes = b"") -> Served:
        """Serves a study from now on, with its first round open; the same study again changes nothing.

        Raises:
            ParameterError: It has reports or tickets under another rule of enrolment, or the seed is not the one that it
                committed to.
        """
        study.checked_seed(seed)
        task, rule = study.terms.short_id.hex(), "tickets" if tickets else "open"
        self.keys.keep_seed(task, seed)
        with self.database.change() as session:
            session.hold(_EVERYBODY, alone=True)
            if not session.rows("SELECT study FROM study WHERE task = ?", task):
                [(number,)] = session.rows("SELECT coalesce(max(study), 0) + 1 FROM study")
                session.rows("INSERT INTO study VALUES (?, ?, ?, ?)", number, task, study.to_json(), rule)
            # Those who add reports or issue tickets have ended, or see the new rule.
            [(number,)] = session.rows(f"SELECT study FROM study WHERE task = ?{session.to_change}", task)
            for (round,) in session.rows("SELECT round FROM round WHERE study = ? ORDER BY round", number):
                session.hold(round, alone=True)
            update = f"UPDATE study SET enrolment = ? WHERE task = ? AND enrolment <> ? AND {_UNUSED}"
            session.rows(update, rule, task, rule)
        self._served.pop(task, None)
        served = self.served(task)
        if served is None or served.study.task_id != study.task_id or served.tickets != tickets:
            raise ParameterError(
                "enrolment must be as it was when the study's first reports came or tickets were issued; it is another."
            )
        self.open_round(served, 0)
        self._check_keys(served)
        return served

    def _check_keys(self, served: Served) -> None:
        """Says which rounds can take no report; they are served all the same, so that they can be abandoned."""
        for opened in self.rounds(served):
            if opened.state == "open":
                try:
                    checked_key(self.keys, served, opened.number, opened.key_check)
                except ParameterError as error:
                    say("error", f"round {opened.number} takes no reports: {error}", level=logging.ERROR)

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
            found = session.rows("SELECT task, enrolment FROM study ORDER BY study")
        for task, rule in found:  # which another process may have changed
            served = self.served(task)
            if served is not None and served.tickets != (rule == "tickets"):
                self._served[task] = replace(served, tickets=rule == "tickets")
        return [served for task, _ in found if (served := self.served(task)) is not None]

    # Rounds

    def rounds(self, served: Served) -> list[Round]:
        """The rounds that have been opened."""
        with self.database.look() as session:
            return rounds_in(session, served)

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

    # Reports

    def commit(self, batches: Sequence[Batch]) -> list[Receipt]:
        """Adds what is new, in one transaction; when this returns, all of it is on disk.

        Raises:
            StoreUnavailable: Something was not added, or nobody knows: the same reports may come again.
        """
        receipts: list[Receipt] = []
        for found in self.commit_each(batches):
            if isinstance(found, KeyLost):
                raise found
            receipts.append(found)
        return receipts

    def commit_each(self, batches: Sequence[Batch]) -> list[Receipt | KeyLost]:
        """The same; a round whose key is lost stops its own reports alone.

        Raises:
            StoreUnavailable: Nothing was added, or nobody knows: the same reports may come again.
        """
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for place, batch in enumerate(batches):
            groups[batch.served.number, batch.number].append(place)
        receipts: dict[int, Receipt | KeyLost] = {}
        with self.database.change() as session:
            for _, places in sorted(groups.items()):  # always in one order: two processes never wait for each other in a ring
                try:
                    found: Sequence[Receipt | KeyLost] = self._adder.add(session, [batches[place] for place in places])
                except KeyLost as error:  # before anything of the group was written
                    found = [error] * len(places)
                receipts.update(zip(places, found, strict=True))
        return [receipts[place] for place in range(len(batches))]

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
            for opened in rounds_in(session, served, number):
                for (packed,) in session.rows("SELECT state FROM counter WHERE round = ?", opened.round):
                    found = recipe.merge(found, recipe.unpack(packed))
        return found

    def recount(self, served: Served, number: int) -> Counters:
        """The same from the reports themselves, of one round alone."""
        recipe = served.recipe
        found = recipe.zero()
        with self.database.look() as session:
            for opened in rounds_in(session, served, number):
                at_once = max(1, _RECOUNTED_AT_ONCE // report_size(served.study.terms))
                rows = session.stream("SELECT answer FROM report WHERE round = ?", opened.round, at_once=at_once)
                while some := b"".join(answer for (answer,) in islice(rows, at_once)):
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
