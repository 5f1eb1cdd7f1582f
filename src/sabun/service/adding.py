"""Adding reports within a transaction: the first under an id counts, the same again is a duplicate, another is refused."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import final

from sabun.errors import ParameterError
from sabun.keyvalue import Study
from sabun.service.arrivals import answers_of
from sabun.service.round_keys import RoundKeys, check_of
from sabun.service.served import Batch, Receipt, Round, Served, rounds_in, rule_in
from sabun.service.session import Session, StoreUnavailable

__all__ = ["Adder", "KeyLost", "checked_key"]

_ADD = (
    "INSERT INTO outcome (round, hour, what, shard, n) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (round, hour, what, shard) DO UPDATE SET n = outcome.n + excluded.n"
)


@final
class KeyLost(StoreUnavailable):
    """A round's key is not here; nothing can be added to it."""


def checked_key(keys: RoundKeys, served: Served, number: int, check: bytes) -> bytes:
    """The key of a round, if it is the one with which the round was opened, and the study's seed is there too.

    Raises:
        ParameterError: It is not, or there is none; or the seed is lost, without which answers would go to other keys.
    """
    key = keys.of_round(served.task, number)
    try:
        served.study.checked_seed(served.seed)
    except ParameterError:
        raise ParameterError(
            "the folder of keys must hold the seed that the study committed to; it does not. Serve the study again with "
            "--index-seed: without it answers would count for other keys."
        ) from None
    if key is None or check_of(key) != check:
        raise ParameterError(
            f"the folder of keys must be the one with which round {number} was opened; it is not. Every process that "
            "works on a store needs the same folder; an id would count twice otherwise."
        )
    return key


@final
class Adder:
    """Adds reports for one process.

    Args:
        keys: The folder of secrets.
        shard: Which process this is.
        clock: Seconds since 1970.
    """

    def __init__(self, keys: RoundKeys, shard: int, clock: Callable[[], float]) -> None:
        self._keys, self._shard, self._clock = keys, shard, clock
        self._rounds: dict[tuple[int, int], int] = {}

    def add(self, session: Session, batches: Sequence[Batch]) -> list[Receipt]:
        """Adds the reports of some requests to one round; says what became of each request.

        Raises:
            KeyLost: The round's key is not here; nothing was written.
        """
        served, number = batches[0].served, batches[0].number
        opened = self._held(session, served, number)
        refusal = _refusal(served.study, opened, self._date())
        if opened is None:  # counted under the round that is to be closed first
            receipts = [_refused(batch, "early") for batch in batches]
            for last in rounds_in(session, served)[-1:]:
                self._note(session, last.round, receipts)
            return receipts
        if refusal is None:
            receipts = self._added(session, opened, batches)
        else:
            if opened.state != "open":
                self._keys.forget_round(served.task, number)
            receipts = [_refused(batch, refusal) for batch in batches]
        self._note(session, opened.round, receipts)
        return receipts

    def _held(self, session: Session, served: Served, number: int) -> Round | None:
        """The round, kept from closing until the end of the transaction."""
        place = served.number, number
        if place not in self._rounds:
            found = rounds_in(session, served, number)
            if not found:
                return None
            self._rounds[place] = found[0].round
        session.hold(self._rounds[place], alone=False)
        return rounds_in(session, served, number)[0]

    def _added(self, session: Session, opened: Round, batches: Sequence[Batch]) -> list[Receipt]:
        served = batches[0].served
        key = self._key_or_wait(served, opened)
        issued = None
        if rule_in(session, served) == "tickets":
            issued = session.enrolled(served.number, {id for batch in batches for id in batch.arrival.ids})
        scramble = hashlib.blake2b
        scrambled = [[scramble(id, key=key, digest_size=16).digest() for id in batch.arrival.ids] for batch in batches]
        ids = [id for some in scrambled for id in some]
        answers = [answer for batch in batches for answer in batch.arrival.answers]
        if issued is not None:
            raw = [id for batch in batches for id in batch.arrival.ids]
            kept = [place for place, id in enumerate(raw) if id in issued]
            ids, answers = [ids[place] for place in kept], [answers[place] for place in kept]
        first = dict(zip(reversed(ids), reversed(answers), strict=True))  # of several under one id, the first
        known = session.keep_reports(opened.round, first)
        fresh = {id: answer for id, answer in first.items() if id not in known} if known else first
        self._count(session, served, opened, fresh)
        if not known and issued is None and len(first) == len(ids):
            return [_all_accepted(batch) for batch in batches]
        stored, fresh = first | known, dict(fresh)
        return [_receipt(batch, some, issued, fresh, stored) for batch, some in zip(batches, scrambled, strict=True)]

    def _key_or_wait(self, served: Served, opened: Round) -> bytes:
        try:
            return checked_key(self._keys, served, opened.number, opened.key_check)
        except ParameterError as error:  # the operator's to mend; devices are to try again later
            raise KeyLost(str(error)) from None

    def _count(self, session: Session, served: Served, opened: Round, fresh: Mapping[bytes, bytes]) -> None:
        """Adds the reports that were really inserted to this process's counters."""
        if not fresh:
            return
        recipe = served.recipe
        insert = "INSERT INTO counter VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        session.rows(insert, opened.round, self._shard, recipe.pack(recipe.zero()))
        # Locked as it is read, in case another process calls itself by the same number.
        select = f"SELECT state FROM counter WHERE round = ? AND shard = ?{session.to_change}"
        [(packed,)] = session.rows(select, opened.round, self._shard)
        block = answers_of(served.study, b"".join(fresh.values()), part=served.part(opened.number))
        state = recipe.add(recipe.unpack(packed), block)
        update = "UPDATE counter SET state = ? WHERE round = ? AND shard = ?"
        session.rows(update, recipe.pack(state), opened.round, self._shard)

    def _note(self, session: Session, round: int, receipts: Sequence[Receipt]) -> None:
        found: Counter[str] = Counter()
        for receipt in receipts:
            found["accepted"] += receipt.accepted
            found["duplicate"] += receipt.duplicate
            found.update(reason for _, reason in receipt.rejected)
        hour = int(self._clock() // 3600)
        for what, n in sorted(found.items()):
            if n:
                session.rows(_ADD, round, hour, what, self._shard, n)

    def _date(self) -> date:
        return datetime.fromtimestamp(self._clock(), UTC).date()


def _refusal(study: Study, opened: Round | None, today: date) -> str | None:
    first, last = study.terms.not_before, study.terms.not_after
    if opened is None or (opened.state == "open" and first is not None and today < first):
        return "early"
    return "late" if opened.state != "open" or (last is not None and today > last) else None


def _refused(batch: Batch, reason: str) -> Receipt:
    late = [(place, reason) for place in batch.arrival.positions]
    return Receipt(accepted=0, duplicate=0, rejected=sorted([*batch.arrival.rejected, *late]))


def _all_accepted(batch: Batch) -> Receipt:
    return Receipt(accepted=len(batch.arrival.ids), duplicate=0, rejected=batch.arrival.rejected)


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
