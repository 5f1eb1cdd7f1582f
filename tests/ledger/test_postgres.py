"""A ledger on PostgreSQL when things go wrong: lost connections, killed servers, restored backups, races, settings."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction

import pytest

from ledger.behind import on_server
from ledger.by_hand import ledger_row
from sabun.errors import BudgetExceeded, LedgerError
from sabun.ledger import Ledger
from sabun.ledger.store import Unavailable

psycopg = pytest.importorskip("psycopg")
postgres_store = pytest.importorskip("sabun.ledger.postgres_store")
PostgresStore = postgres_store.PostgresStore


@pytest.fixture
def place(running):
    return running.place()


def opened(place, patience=20.0):
    return Ledger.open(PostgresStore(place, patience=patience))


def cut(connection):
    """Breaks a connection as a network does: neither side hears a farewell."""
    with socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


@contextmanager
def suppressed(words):
    """Lets a block fail, for want of the server alone and with these words."""
    try:
        yield
    except Unavailable as error:
        if words not in str(error):
            raise


class Cutting:
    """Stands in front of psycopg and cuts the line at one statement, before it is sent or after it was."""

    def __init__(self, monkeypatch, number, *, after):
        self.number, self.after, self.seen, self.at = number, after, 0, None
        execute = psycopg.Connection.execute

        def faulty(connection, statement, *values, **how):
            self.seen += 1
            hit = self.seen == self.number
            if hit:
                self.at = str(statement)
            if hit and not self.after:
                cut(connection)
            answer = execute(connection, statement, *values, **how)
            if hit and self.after:
                cut(connection)
                raise psycopg.OperationalError("server closed the connection unexpectedly")
            return answer

        monkeypatch.setattr(psycopg.Connection, "execute", faulty)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("fresh", [True, False], ids=["new connection", "kept connection"])
def test_a_connection_lost_at_any_step_of_a_charge_charges_once_or_says_so(ledger, place, promise, monkeypatch, after, fresh):
    number, outcomes, entries = 0, {}, 0
    while True:
        number += 1
        handle = Ledger.open(place)
        if not fresh:
            assert handle.remaining.epsilon > 0
        with monkeypatch.context() as patched:
            cutting = Cutting(patched, number, after=after)
            receipt = None
            with suppressed("Nothing was charged"):
                receipt = handle.charge(promise("1/100"), purpose="p")
        if cutting.at is None:
            break
        outcomes[cutting.at] = receipt is not None
        entries += receipt is not None
        found = Ledger.open(place)
        assert found.spent.epsilon == Fraction(entries, 100), cutting.at
        assert handle.receipts == (() if receipt is None else (receipt,)), cutting.at
        assert found.verify().entries == entries
    assert number > 10
    assert outcomes["COMMIT"], "a change whose end was cut off is looked up, or made again"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("closing", ["commit", "void"])
def test_a_connection_lost_at_any_step_of_closing_leaves_the_charge_or_closes_it(
    ledger, place, promise, monkeypatch, after, closing
):
    number = 0
    while True:
        number += 1
        reservation = ledger.reserve(promise("1/100"), purpose="p")
        entry, before = reservation.receipt.entry, ledger.spent.epsilon
        close = reservation.void if closing == "void" else lambda held=reservation: held.commit(b"result")
        with monkeypatch.context() as patched:
            cutting = Cutting(patched, number, after=after)
            try:
                close()
                state = "voided" if closing == "void" else "committed"
            except Unavailable:
                state = "reserved"
        assert ledger.entry(entry).state == state, cutting.at
        assert ledger.spent.epsilon == before - (Fraction(1, 100) if state == "voided" else 0)
        if state == "reserved" and closing == "commit":
            reservation.commit(b"result")
            assert ledger.kept(entry) == b"result"
        if cutting.at is None:
            break
    assert number > 8
    ledger.verify()


@pytest.mark.parametrize("number", range(1, 8))
def test_a_connection_lost_while_reading_says_so_and_the_next_look_works(ledger, place, monkeypatch, number):
    handle = Ledger.open(place)
    with monkeypatch.context() as patched:
        cutting = Cutting(patched, number, after=False)
        with suppressed("cannot be reached, or the connection broke"):
            assert handle.spent.epsilon == 0
    assert handle.spent.epsilon == 0, cutting.at


def test_a_connection_lost_in_the_middle_of_making_a_ledger_leaves_none_or_a_whole_one(running, monkeypatch):
    number = 0
    while True:
        number += 1
        place = running.place()
        with monkeypatch.context() as patched:
            cutting = Cutting(patched, number, after=number % 2 == 1)
            try:
                Ledger.create(place, name="x", epsilon=1)
            except Unavailable:
                committed = cutting.at == "COMMIT"
                if not committed:
                    with pytest.raises(LedgerError, match="there is no ledger at"):
                        Ledger.open(place)
        if cutting.at is None:
            break
    assert number > 15
    assert Ledger.open(place).verify().entries == 0


def test_a_change_that_cannot_be_found_again_forbids_the_release(ledger, place, promise, monkeypatch, running):
    handle = opened(place, patience=0.2)
    execute = psycopg.Connection.execute

    def dying(connection, statement, *values, **how):
        if statement == "COMMIT" and connection.info.transaction_status:
            running.kill()
        return execute(connection, statement, *values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "execute", dying)
        with pytest.raises(Unavailable, match=r"cannot be found\. Nothing may be released for this charge\. Try again"):
            handle.charge(promise(), purpose="p")
    running.start()
    assert Ledger.open(place).spent.epsilon == 0
    assert handle.receipts == ()
    handle.charge(promise(), purpose="p")
    assert Ledger.open(place).verify().entries == 1


def test_a_server_killed_between_reserve_and_commit_has_lost_no_charge(ledger, place, promise, running):
    reservation = ledger.reserve(promise(), purpose="p", key="k")
    reservation.touch()
    running.kill()
    with pytest.raises(Unavailable, match=r"cannot be reached.* Entry 1 stays charged; its result is not kept yet"):
        reservation.commit(b"result")
    with pytest.raises(Unavailable, match=r"Nothing was charged\. Check the address"):
        ledger.charge(promise(), purpose="q")
    running.start()
    assert Ledger.open(place).spent.epsilon == Fraction(1, 2)
    reservation.commit(b"result")
    assert ledger.recall("k", guarantee=promise(), purpose="p")[1] == b"result"
    assert ledger.verify().entries == 1


def test_a_server_killed_at_the_commit_and_started_again_is_waited_for(ledger, place, promise, monkeypatch, running):
    handle, execute, killed = opened(place), psycopg.Connection.execute, []

    def dying(connection, statement, *values, **how):
        if statement == "COMMIT" and not killed:
            killed.append(statement)
            running.kill()
            running.start()
        return execute(connection, statement, *values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "execute", dying)
        receipt = handle.charge(promise(), purpose="p")
    assert killed
    assert Ledger.open(place).entry(1).entry_hash == receipt.entry_hash


@contextmanager
def without_its_standby(running):
    """The server waits for a standby that is not there; yields what lets it wait no longer."""
    running.set("synchronous_standby_names", "nobody_here")

    def go_on():
        with psycopg.connect(running.address(ledger=None), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
            connection.execute("SELECT pg_reload_conf()")

    try:
        yield go_on
    finally:
        go_on()


def waiting(running, *, but=()):
    """The server's process that waits for the standby, once there is one beside those named."""
    query = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    deadline = time.monotonic() + 30
    while not (found := [pid for (pid,) in running.execute(query) if pid not in but]):
        assert time.monotonic() < deadline, "nobody waits for the standby"
        time.sleep(0.02)
    return found[0]


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend", "kill"])
def test_a_charge_is_answered_only_when_the_standby_has_it(place, promise, running, end):
    """Whoever ends the wait for a synchronous standby: the charge is in the book, but a failover would lose it."""
    Ledger.create(place, name="x", unit="patient", epsilon=2)
    ledger = opened(place, patience=60)
    with ThreadPoolExecutor() as pool, without_its_standby(running) as go_on:
        answer = pool.submit(ledger.charge, promise(), purpose="p")
        first = waiting(running)
        if end == "kill":
            running.kill()
            (running.folder / "data/postmaster.pid").unlink(missing_ok=True)
            running.start()
        else:
            running.execute(f"SELECT {end}({first})")
        waiting(running, but=() if end == "pg_cancel_backend" else (first,))
        assert not answer.done()
        go_on()
        assert answer.result(timeout=60).entry == 1
    assert Ledger.open(place).verify().entries == 1


def test_a_restored_backup_is_noticed_by_a_live_handle_and_by_a_kept_head(ledger, place, promise, running):
    name = place.rpartition("=")[2]
    ledger.reserve(promise(0.25), purpose="a", key="k").commit(b"\0result\xff")
    early = ledger.verify().head_hash
    backup = running.run("pg_dump", "-h", str(running.folder), "-U", "postgres", "-n", name, "postgres")
    late = ledger.charge(promise(), purpose="after the backup").entry_hash
    running.execute(f"DROP SCHEMA {name} CASCADE")
    running.run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", str(running.folder), "-U", "postgres", "postgres", given=backup)
    for attempt in (lambda: ledger.remaining, lambda: ledger.charge(promise(), purpose="b"), ledger.verify):
        with pytest.raises(LedgerError, match="must still hold what this handle has seen; it was replaced by an older"):
            attempt()
    restored = Ledger.open(place)
    assert restored.verify(expect_head=early).entries == 1
    with pytest.raises(LedgerError, match="expect_head must be part of the chain; it is not"):
        restored.verify(expect_head=late)
    assert restored.kept(1) == b"\0result\xff"
    restored.charge(promise(), purpose="the guards were restored too")


def racing(place, number, gate, promise):
    """One client: four tries as soon as the gate opens; how many of them were paid for."""
    ledger, won = Ledger.open(place), 0
    os.read(gate, 1)
    for _ in range(4):
        try:
            ledger.reserve(promise("0.1"), purpose=str(number)).commit(str(number).encode())
            won += 1
        except BudgetExceeded:
            pass
    return won


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_sixteen_racing_clients_never_overspend(place, promise):
    Ledger.create(place, name="race", unit="patient", epsilon=2)
    gate, opening = os.pipe()
    clients = []
    for number in range(16):
        client = os.fork()
        if not client:
            try:
                os.close(opening)
                os._exit(racing(place, number, gate, promise))
            finally:
                os._exit(99)
        clients.append(client)
    os.close(opening)
    won = [os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]) for client in clients]
    os.close(gate)
    ledger = Ledger.open(place)
    assert sum(won) == 20, won
    assert ledger.remaining.epsilon == 0
    assert ledger.verify().entries == 20
    assert all(ledger.kept(entry.entry) == entry.purpose.encode() for entry in ledger.entries())


def test_the_turn_is_taken_before_the_rows_are_seen(ledger, place, promise):
    """Else two clients could read one balance, or one of them would fail where it need only wait."""
    with ThreadPoolExecutor(1) as pool, opened(place)._store.writing() as view:
        waiting = pool.submit(opened(place).charge, promise(1), purpose="second")
        wait_for = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'turn'::regclass"
        while not on_server(place, wait_for)[0][0]:
            assert not waiting.done()
        assert ledger.spent.epsilon == 0  # readers wait for nobody
        first = ledger_row(view, promise(1.5))
        view.append(first)
    with pytest.raises(BudgetExceeded):
        waiting.result()


def test_a_ledger_held_by_another_client_is_busy_for_writers_only(ledger, place, promise):
    impatient = opened(place, patience=0.2)
    with opened(place)._store.writing():
        with pytest.raises(Unavailable, match=r"was held by others for too long\. Nothing was charged\. Try again"):
            impatient.charge(promise(), purpose="p")
        assert impatient.remaining == ledger.budget
    impatient.charge(promise(), purpose="p")


def undone(monkeypatch, meanwhile):
    """The server takes the first change back at its end, as it does when serialisable transactions collide."""
    execute, done = psycopg.Connection.execute, []

    def colliding(connection, statement, *values, **how):
        if statement == "COMMIT" and not done:
            done.append(statement)
            execute(connection, "ROLLBACK")
            meanwhile()
            raise psycopg.errors.SerializationFailure
        return execute(connection, statement, *values, **how)

    monkeypatch.setattr(psycopg.Connection, "execute", colliding)


def test_a_change_that_the_server_took_back_is_made_again(ledger, place, promise, monkeypatch):
    with monkeypatch.context() as patched:
        undone(patched, lambda: None)
        ledger.charge(promise(), purpose="p")
    assert Ledger.open(place).verify().entries == 1


def test_a_change_that_the_server_took_back_is_not_made_on_other_rows(ledger, place, promise, monkeypatch):
    """What the block decided on the old rows, the budget among it, may not be true of the new ones."""
    quicker = Ledger.open(place)
    with monkeypatch.context() as patched:
        undone(patched, lambda: quicker.charge(promise(1.75), purpose="quicker"))
        with pytest.raises(Unavailable, match=r"others were quicker\. Nothing was charged\. Try again"):
            ledger.charge(promise(), purpose="p")
    assert Ledger.open(place).spent.epsilon == Fraction(7, 4)
    with pytest.raises(BudgetExceeded):
        ledger.charge(promise(), purpose="p")


def test_a_silent_rollback_is_no_commit(ledger, promise, monkeypatch):
    execute, done = psycopg.Connection.execute, []

    def failing(connection, statement, *values, **how):
        if statement == "COMMIT" and not done:
            done.append(statement)
            return execute(connection, "ROLLBACK")  # the answer to a COMMIT of a transaction in which anything failed
        return execute(connection, statement, *values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "execute", failing)
        ledger.charge(promise(), purpose="p")
    assert ledger.verify().entries == 1


@pytest.mark.parametrize("setting", ["off", "local", "remote_write"])
def test_a_server_that_answers_before_the_disk_is_refused(ledger, promise, running, place, setting):
    running.execute(f"ALTER ROLE postgres SET synchronous_commit = {setting}")
    try:
        with pytest.raises(
            LedgerError, match=f"synchronous_commit must be on or remote_apply on this server; it is '{setting}'"
        ):
            Ledger.open(place).charge(promise(), purpose="p")
        with pytest.raises(LedgerError, match="synchronous_commit must be on"):
            Ledger.create(running.place(), name="x", epsilon=1)
    finally:
        running.execute("ALTER ROLE postgres RESET synchronous_commit")
    assert Ledger.open(place).spent.epsilon == 0


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_write_to_disk_is_refused(ledger, promise, running, setting):
    running.set(setting, "off")
    try:
        with pytest.raises(LedgerError, match=f"{setting} must be on on this server; it is 'off'"):
            ledger.charge(promise(), purpose="p")
        assert ledger.remaining == ledger.budget
    finally:
        running.set(setting, "on")
    ledger.charge(promise(), purpose="p")


def test_an_idle_connection_that_the_server_ended_is_replaced(ledger, running, promise):
    ledger.charge(promise(0.1), purpose="p")
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sabun'"
    running.execute(others)
    ledger.charge(promise(0.1), purpose="p")
    running.execute(others)
    assert ledger.spent.epsilon == Fraction(1, 5)


def test_a_fork_leaves_its_parents_connection_alone(ledger, promise):
    ledger.charge(promise(0.1), purpose="parent")
    child = os.fork()
    if not child:
        try:
            ledger.charge(promise(0.1), purpose="child")
            del ledger._store._line
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    [(_, kept)] = ledger._store._line._idle
    assert kept.execute("SELECT 1").fetchone() == (1,)
    ledger.charge(promise(0.1), purpose="parent")
    assert ledger.verify().entries == 3
