from __future__ import annotations

import copy
import pickle
import sqlite3
import threading
from contextlib import contextmanager, suppress
from fractions import Fraction

import pytest

from sabun.errors import LedgerError, ParameterError
from sabun.ledger import Ledger
from sabun.ledger import reservation as module
from sabun.ledger.sqlite_store import SqliteStore
from sabun.ledger.store import Unavailable


def test_a_reservation_is_spent_before_it_returns(ledger, place, promise):
    ledger.reserve(promise(), purpose="p")
    assert Ledger.open(place).spent.epsilon == Fraction(1, 2)
    assert [entry.state for entry in ledger.entries()] == ["reserved"]


def test_a_commit_keeps_the_bytes_without_charging_again(ledger, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    reservation.touch()
    receipt = reservation.commit(b"result")
    assert receipt == reservation.receipt
    assert ledger.spent.epsilon == Fraction(1, 2)
    [entry] = ledger.entries()
    assert (entry.state, entry.payload_size, entry.entry_hash) == ("committed", 6, receipt.entry_hash)


def test_a_void_before_touch_gives_the_charge_back(ledger, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    assert not reservation.touched
    reservation.void()
    assert ledger.remaining == ledger.budget
    assert [entry.state for entry in ledger.entries()] == ["voided"]


def test_a_void_after_touch_is_refused(ledger, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    reservation.touch()
    assert reservation.touched
    with pytest.raises(LedgerError, match=r"entry 1 must be voided before touch\(\); data was already touched"):
        reservation.void()
    assert ledger.spent.epsilon == Fraction(1, 2)
    reservation.commit(b"")


@pytest.mark.parametrize("ending", ["committed", "voided"])
def test_a_closed_reservation_stays_closed(ledger, promise, ending):
    reservation = ledger.reserve(promise(), purpose="p")
    if ending == "committed":
        reservation.commit(b"")
    else:
        reservation.void()
    before = ledger.to_dict()
    for attempt in (reservation.touch, reservation.void, lambda: reservation.commit(b"again")):
        with pytest.raises(LedgerError, match=f"entry 1 must be open; it is already {ending}"):
            attempt()
    assert ledger.to_dict() == before


def test_a_void_that_fails_half_way_forbids_the_release(ledger, path, promise, monkeypatch):
    reservation = ledger.reserve(promise(), purpose="p")
    monkeypatch.setattr(reservation._store, "_path", path.with_name("gone"))
    with pytest.raises(LedgerError, match="there is no ledger"):
        reservation.void()
    with pytest.raises(LedgerError, match="already voided"):
        reservation.touch()


def test_a_commit_that_could_not_be_written_can_be_tried_again(ledger, path, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    path.rename(path.with_name("away"))
    with pytest.raises(LedgerError, match="there is no ledger"):
        reservation.commit(b"result")
    path.with_name("away").rename(path)
    reservation.commit(b"result")
    assert ledger.entries()[0].state == "committed"


def test_a_commit_that_arrived_although_the_disk_said_no_is_not_made_twice(ledger, path, promise, monkeypatch):
    reservation = ledger.reserve(promise(), purpose="p")
    writing = SqliteStore.writing

    @contextmanager
    def uncertain(self):
        with writing(self) as book:
            yield book
        raise Unavailable("the disk said no.", "Look at it.", written=True)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "writing", uncertain)
        with pytest.raises(
            Unavailable, match=r"the disk said no\. Entry 1 stays charged; its result is not kept yet\. Look at it"
        ):
            reservation.commit(b"result")
    with pytest.raises(LedgerError, match="entry 1 must be open; it is closed"):
        reservation.commit(b"another result")
    assert reservation.commit(b"result") == reservation.receipt
    assert ledger.kept(1) == b"result"
    assert ledger.verify().entries == 1


def test_a_payload_is_bytes_of_bounded_size(ledger, promise, monkeypatch):
    reservation = ledger.reserve(promise(), purpose="p")
    with pytest.raises(ParameterError, match="payload must be bytes; got 'str'"):
        reservation.commit("text")
    monkeypatch.setattr(module, "LARGEST_PAYLOAD", 10)
    with pytest.raises(ParameterError, match="payload must be at most 10 bytes; got 11"):
        reservation.commit(b"x" * 11)
    reservation.commit(b"x" * 10)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_reservation_cannot_be_copied(ledger, promise, duplicate):
    reservation = ledger.reserve(promise(), purpose="p")
    with pytest.raises(LedgerError, match="must stay in the process that made it; it cannot be copied or pickled"):
        duplicate(reservation)


@pytest.mark.parametrize("touched", [True, False])
def test_a_reservation_made_by_hand_cannot_give_a_charge_back(ledger, promise, touched):
    real = ledger.reserve(promise(), purpose="p")
    if touched:
        real.touch()
    forged = module.Reservation(real._store, real._row, real.receipt, token=b"\0" * 32, terms=real._terms)
    with pytest.raises(
        LedgerError, match=r"entry 1 must be voided by the object that Ledger\.reserve returned; this is another"
    ):
        forged.void()
    assert ledger.spent.epsilon == Fraction(1, 2)
    real.commit(b"")
    ledger.verify()


def test_touch_forgets_the_token_that_voids(ledger, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    reservation.touch()
    reservation._touched = False
    with pytest.raises(LedgerError, match=r"must be voided by the object that Ledger\.reserve returned"):
        reservation.void()


def test_only_one_of_many_threads_closes_a_reservation(ledger, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    outcomes = []

    def close(action):
        try:
            action()
            outcomes.append("done")
        except LedgerError:
            outcomes.append("refused")

    actions = [reservation.void, lambda: reservation.commit(b"a"), reservation.void, lambda: reservation.commit(b"b")]
    threads = [threading.Thread(target=close, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["done", "refused", "refused", "refused"]
    ledger.verify()


def test_a_reservation_of_a_replaced_ledger_cannot_be_closed(ledger, path, promise):
    reservation = ledger.reserve(promise(), purpose="p")
    path.unlink()
    Ledger.create(path, name="other", unit="patient", epsilon=5).reserve(promise(), purpose="q")
    with pytest.raises(LedgerError, match="entry 1 must be open; it is closed, or the ledger was replaced"):
        reservation.commit(b"")


def interrupted(monkeypatch, *, after):
    """Ctrl-C reaches the ledger while its change goes to disk: before it is there, or after, when Python raises it."""

    def wrapped(execute):
        def run(connection, sql, *values, **how):
            if sql == "COMMIT" and not after:
                raise KeyboardInterrupt
            done = execute(connection, sql, *values, **how)
            if sql == "COMMIT":
                raise KeyboardInterrupt
            return done

        return run

    connect, factory = (
        sqlite3.connect,
        type("Interrupting", (sqlite3.Connection,), {"execute": wrapped(sqlite3.Connection.execute)}),
    )
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named, factory=factory))
    with suppress(ImportError):
        import psycopg

        monkeypatch.setattr(psycopg.Connection, "execute", wrapped(psycopg.Connection.execute))


def test_a_charge_that_was_interrupted_on_its_way_to_disk_is_among_the_receipts(ledger, promise, monkeypatch):
    with monkeypatch.context() as patched:
        interrupted(patched, after=True)
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve(promise(0.5), purpose="stopped")
    assert [(made.entry, made.entry_hash) for made in ledger.receipts] == [(1, ledger.entry(1).entry_hash)]


def test_a_charge_that_the_disk_refused_is_not_among_the_receipts(ledger, promise, monkeypatch):
    with monkeypatch.context() as patched:
        interrupted(patched, after=False)
        with pytest.raises(KeyboardInterrupt):
            ledger.reserve(promise(0.5), purpose="stopped")
    assert ledger.receipts == ()
    ledger.charge(promise(0.5), purpose="another, with the same number")
    assert [made.entry_hash for made in ledger.receipts] == [ledger.entry(1).entry_hash]
