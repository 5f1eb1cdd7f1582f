"""A ticket buys one throw, of which neither side alone decides the outcome."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from sabun.errors import ParameterError
from sabun.keyvalue.client import Diary, report_id
from sabun.service.enrolment import EnrolmentRefused, begin, finish, issue_tickets
from sabun.service.report_store import Receipt, Store
from service.devices import KV3, made_up
from service.test_report_store import batch

SECRET = bytes(range(32))
PROMISE = hashlib.sha256(SECRET).digest()


def test_only_devices_that_enrolled_count(store: Store) -> None:
    served = store.register(KV3, tickets=True)
    [ticket] = map(bytes.fromhex, issue_tickets(store, served, 1))
    begin(store, served, ticket, PROMISE)
    credential = finish(store, served, ticket, SECRET)
    mine = KV3.client(credential=credential, diary=Diary.in_memory()).report({"LINE": 1})
    [receipt] = store.commit([batch(served, [*made_up(KV3, 600, seed=1), mine, mine])])
    assert receipt == Receipt(accepted=1, duplicate=1, rejected=[(place, "enrolment") for place in range(600)])


def test_both_halves_can_be_repeated_and_neither_can_be_changed(store: Store) -> None:
    served = store.register(KV3, tickets=True)
    first, second = map(bytes.fromhex, issue_tickets(store, served, 2))
    nonce = begin(store, served, first, PROMISE)
    assert begin(store, served, first, PROMISE) == nonce
    assert begin(store, served, second, PROMISE) != nonce
    credential = finish(store, served, first, SECRET)
    assert finish(store, served, first, SECRET) == credential
    assert begin(store, served, first, PROMISE) == nonce
    assert credential == hashlib.sha256(b"sabun credential\0" + KV3.terms.short_id + SECRET + nonce).digest()
    for job, given in ((begin, hashlib.sha256(b"x").digest()), (finish, b"x" * 32)):
        with pytest.raises(EnrolmentRefused) as refusal:
            job(store, served, first, given)
        assert refusal.value.code == "other-promise"
    with store.database.look() as session:
        assert session.rows("SELECT id FROM credential") == [(report_id(KV3.terms, credential),)]


def test_a_ticket_that_was_never_issued_or_promised_nothing_yet_is_refused(store: Store) -> None:
    served = store.register(KV3, tickets=True)
    [ticket] = map(bytes.fromhex, issue_tickets(store, served, 1))
    for job in (begin, finish):
        with pytest.raises(EnrolmentRefused) as refusal:
            job(store, served, b"x" * 16, PROMISE)
        assert refusal.value.code == "unknown-ticket"
    with pytest.raises(EnrolmentRefused):
        finish(store, served, ticket, SECRET)


def test_a_ticket_of_one_study_is_none_of_another(store: Store) -> None:
    from sabun.keyvalue import Study

    served = store.register(KV3, tickets=True)
    other = store.register(Study(keys=["a", "b"], epsilon=1), tickets=True)
    [ticket] = map(bytes.fromhex, issue_tickets(store, served, 1))
    with pytest.raises(EnrolmentRefused):
        begin(store, other, ticket, PROMISE)


def test_neither_side_can_aim(store: Store) -> None:
    """Assigned keys of many enrolments with one and the same secret are spread evenly, as are those of one nonce's server."""
    from sabun.keyvalue import index_uniformity_test
    from sabun.keyvalue.client import assigned_index

    served = store.register(KV3, tickets=True)
    places = [0] * len(KV3.keys)
    for ticket in map(bytes.fromhex, issue_tickets(store, served, 40)):
        begin(store, served, ticket, PROMISE)
        places[assigned_index(KV3.terms, report_id(KV3.terms, finish(store, served, ticket, SECRET)))] += 1
    # The probability that honest throws look suspicious is 1 in a million at this significance.
    assert not index_uniformity_test(places, significance=1e-6).suspicious


def test_what_is_kept_holds_no_ticket_secret_nonce_or_credential(store: Store, place: str, tmp_path: Path) -> None:
    served = store.register(KV3, tickets=True)
    [ticket] = map(bytes.fromhex, issue_tickets(store, served, 1))
    nonce = begin(store, served, ticket, PROMISE)
    credential = finish(store, served, ticket, SECRET)
    with store.database.look() as session:
        kept = repr(session.rows("SELECT * FROM ticket")) + repr(session.rows("SELECT * FROM credential"))
    files = b"" if place.startswith("postgresql") else b"".join(file.read_bytes() for file in tmp_path.glob("study.reports*"))
    for secret in (ticket, SECRET, nonce, credential):
        assert repr(secret) not in kept
        assert secret not in files


def test_the_rule_of_enrolment_stays_once_tickets_are_issued(store: Store) -> None:
    store.register(KV3)
    served = store.register(KV3, tickets=True)
    issue_tickets(store, served, 1)
    with pytest.raises(ParameterError, match="enrolment"):
        store.register(KV3)
    assert store.register(KV3, tickets=True) == served


def test_reports_are_held_to_the_rule_in_the_store_not_in_memory(opened: Callable[..., Store]) -> None:
    one, other = opened(0), opened(1)
    served = one.register(KV3)
    other.register(KV3, tickets=True)
    [receipt] = one.commit([batch(served, made_up(KV3, 2, seed=1))])
    assert receipt == Receipt(accepted=0, duplicate=0, rejected=[(0, "enrolment"), (1, "enrolment")])
    other.register(KV3)
    with pytest.raises(EnrolmentRefused):
        issue_tickets(one, served, 1)


def test_a_process_hears_that_another_one_changed_the_rule(opened: Callable[..., Store]) -> None:
    one, other = opened(0), opened(1)
    assert not one.register(KV3).tickets
    other.register(KV3, tickets=True)
    assert [served.tickets for served in one.all_served()] == [True]
    known = one.known(KV3.terms.short_id.hex())
    assert known is not None
    assert known.tickets
