"""A ledger on PostgreSQL when things go wrong: lost connections, killed servers, restored backups, races, rights."""

from __future__ import annotations

import dataclasses
import os
import pickle
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction

import pytest

from cli.terminal import exit_code
from ledger.behind import on_server
from sabun.errors import BudgetExceeded, LedgerError
from sabun.ledger import Ledger
from sabun.ledger.reservation import LARGEST_PAYLOAD
from sabun.ledger.store import Unavailable
from sabun.privacy import Guarantee
from sabun.telling.terminal.charging import Payment

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


def ledger_row(view, guarantee):
    from sabun.ledger.row import next_row, seal_of
    from sabun.ledger.statement import Budget

    last, amount = view.last(), Budget(*map(Fraction, guarantee.cost))
    words = {"purpose": "first", "guarantee": guarantee.to_dict(), "note": "", "software": "a test", "void_seal": seal_of(b"")}
    return next_row(last, kind="reserve", entry=last.entries + 1, body=words | amount.to_dict(), amount=amount)


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


# --- rights


@pytest.fixture
def users(running):
    """An owner, an analyst, a reader and a stranger whom the server knows."""
    names = {role: f"{role}_{next(_NUMBERS)}" for role in ("owner", "analyst", "reader", "stranger")}
    for name in names.values():
        running.execute(f"CREATE ROLE {name} LOGIN")
    running.execute(f"GRANT CREATE ON DATABASE postgres TO {names['owner']}")
    return names


_NUMBERS = iter(range(1000))


@pytest.fixture
def shared(running, users):
    """The addresses of one ledger for each of them."""
    name = running.place().rpartition("=")[2]
    places = {role: running.address(user, ledger=name) for role, user in users.items()}
    Ledger.create(places["owner"], name="shared", unit="patient", epsilon=2)
    owner = PostgresStore(places["owner"])
    owner.allow(users["analyst"], "analyst")
    owner.allow(users["reader"], "reader")
    return places


def test_an_analyst_charges_a_reader_reads_a_stranger_does_neither(shared, promise):
    analyst = Ledger.open(shared["analyst"])
    held = analyst.reserve(promise(), purpose="a", key="k")
    held.commit(b"result")
    analyst.reserve(promise(), purpose="b").void()
    reader = Ledger.open(shared["reader"])
    assert reader.verify().entries == 2
    assert reader.kept(1) == b"result"
    with pytest.raises(Unavailable, match=r"this user has no right to do that\. Ask the owner.* Nothing was charged"):
        reader.charge(promise(), purpose="c")
    with pytest.raises(LedgerError, match="this user has no right to do that"):
        Ledger.open(shared["stranger"])
    assert Ledger.open(shared["owner"]).spent.epsilon == Fraction(1, 2)


@pytest.mark.parametrize("role", ["analyst", "reader"])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE book SET key = 'x'",
        "DELETE FROM book",
        "TRUNCATE book",
        "DELETE FROM payloads",
        "UPDATE payloads SET entry = 7",
        "INSERT INTO turn DEFAULT VALUES",
        "DROP TRIGGER book_keeps ON book",
        "ALTER TABLE book DISABLE TRIGGER book_keeps",
        "DROP TABLE book",
        "CREATE TABLE more (x int)",
        "SET session_replication_role = replica",
    ],
)
def test_rows_can_only_be_appended_by_those_who_may_charge(shared, role, change):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        on_server(shared[role], change)


@pytest.mark.parametrize(
    "change", ["UPDATE book SET key = 'x'", "DELETE FROM book", "TRUNCATE book", "DELETE FROM payloads", "TRUNCATE payloads"]
)
def test_the_guards_hold_the_owner_back_too(shared, change):
    with pytest.raises(psycopg.errors.RaiseException, match="rows are never changed or deleted"):
        on_server(shared["owner"], change)


def insert(place, row):
    key = "NULL" if row.key is None else f"'{row.key}'"
    on_server(place, f"INSERT INTO book VALUES ({row.sequence}, {row.entry}, {key}, '{row.record}', '{row.hash}')")


def test_an_analyst_may_append_no_row_that_changes_the_terms(shared, promise):
    """Whatever the kind of such a row is called: only charges and their ends are open to all who may charge."""
    with PostgresStore(shared["owner"]).reading() as view:
        row = dataclasses.replace(ledger_row(view, promise()), kind="raise")
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="only the owner of the ledger may change its terms"):
        insert(shared["analyst"], row)
    insert(shared["owner"], row)


@pytest.mark.parametrize(
    "change",
    [
        lambda ledger: ledger.raise_to(2, reason="more"),
        lambda ledger: ledger.open_account("heart", "1/2", reason="new"),
        lambda ledger: ledger.convert(reason="many small questions"),
    ],
)
def test_only_the_owner_raises_opens_accounts_and_converts(running, users, promise, change):
    name = running.place().rpartition("=")[2]
    owner, analyst = (running.address(users[role], ledger=name) for role in ("owner", "analyst"))
    Ledger.create(owner, name="shared", unit="patient", epsilon=1, delta="1e-6", ceiling=2, accounting="sums")
    PostgresStore(owner).allow(users["analyst"], "analyst")
    held = Ledger.open(analyst)
    with pytest.raises(LedgerError, match="this user has no right to do that"):
        change(held)
    change(Ledger.open(owner))
    held.charge(promise(), purpose="p")
    assert held.verify().entries == 1


def test_the_server_takes_no_row_that_does_not_follow(shared, promise):
    with PostgresStore(shared["owner"]).reading() as view:
        row = ledger_row(view, promise())
    for changes in ({"sequence": 2}, {"previous": "0" * 64}):
        with pytest.raises(psycopg.errors.RaiseException, match="a row must follow the one before it"):
            insert(shared["analyst"], dataclasses.replace(row, **changes))
    for column, value in (("entry", "7"), ("key", "'x'"), ("hash", f"'{'0' * 64}'"), ("sequence", "2")):
        columns = {"sequence": "1", "entry": "1", "key": "NULL", "record": f"'{row.record}'", "hash": f"'{row.hash}'"}
        values = ", ".join((columns | {column: value}).values())
        with pytest.raises(psycopg.errors.RaiseException, match="a row must follow the one before it"):
            on_server(shared["analyst"], f"INSERT INTO book VALUES ({values})")
    with pytest.raises(psycopg.errors.RaiseException, match="a payload must be the one its row speaks of"):
        on_server(shared["analyst"], "INSERT INTO payloads VALUES (1, '')")
    insert(shared["analyst"], row)
    assert Ledger.open(shared["reader"]).verify().entries == 1


def test_a_payload_on_the_server_is_bounded_too(shared):
    query = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conrelid = 'payloads'::regclass"
    assert on_server(shared["owner"], query) == [(f"CHECK ((octet_length(payload) <= {LARGEST_PAYLOAD}))",)]


def test_only_the_owner_lets_others_in(shared, users, promise):
    with pytest.raises(LedgerError, match="must be changed by its owner; you are not"):
        PostgresStore(shared["analyst"]).allow(users["stranger"], "analyst")
    with pytest.raises(LedgerError, match="user must be known to the server; 'nobody at all' is not"):
        PostgresStore(shared["owner"]).allow("nobody at all", "reader")
    PostgresStore(shared["owner"]).allow(users["analyst"], "reader")
    with pytest.raises(LedgerError, match="this user has no right"):
        Ledger.open(shared["analyst"]).charge(promise(), purpose="p")


# --- places


def test_a_schema_that_holds_something_else_is_left_alone(running, place):
    name = place.rpartition("=")[2]
    running.execute(f"CREATE SCHEMA {name}", f"CREATE TABLE {name}.patients (x int)")
    with pytest.raises(LedgerError, match="a new ledger needs a free place"):
        Ledger.create(place, name="x", epsilon=1)
    with pytest.raises(LedgerError, match="there is no Sabun ledger, but something else"):
        Ledger.open(place)


def test_an_empty_schema_that_an_administrator_made_is_used(running, place):
    running.execute(f"CREATE SCHEMA {place.rpartition('=')[2]}")
    assert Ledger.create(place, name="x", epsilon=1).verify().entries == 0


def test_two_ledgers_in_one_database_do_not_touch(running, promise):
    one, two = (Ledger.create(running.place(), name=name, unit="patient", epsilon=1) for name in ("one", "two"))
    one.charge(promise(), purpose="p")
    assert (one.remaining.epsilon, two.remaining.epsilon) == (Fraction(1, 2), 1)


def test_a_pickled_handle_charges_the_same_ledger_and_carries_no_password(running, place, promise):
    secret = place.replace("postgres@", "postgres:hush-hush@")
    ledger = Ledger.create(secret, name="x", unit="patient", epsilon=1)
    content = pickle.dumps(ledger)
    assert b"hush" not in content
    pickle.loads(content).charge(promise(), purpose="p")
    assert ledger.spent.epsilon == Fraction(1, 2)
    assert "hush" not in repr(ledger) + repr(ledger._store) + str(vars(ledger._store))


def test_a_server_that_is_not_there_is_said_without_its_password(tmp_path):
    with pytest.raises(Unavailable, match="cannot be reached") as caught:
        Ledger.open(f"postgresql://me:hush-hush@/db?host={tmp_path}")
    error = caught.value
    while error is not None:
        assert "hush" not in str(error) + repr(vars(error))
        error = error.__cause__ or error.__context__


def test_a_database_that_is_not_there_is_said(running):
    with pytest.raises(LedgerError, match="there is no such database"):
        Ledger.open(running.address().replace("/postgres?", "/nowhere?"))


def test_a_ledger_on_a_server_is_copied_by_the_server(ledger, tmp_path):
    with pytest.raises(LedgerError, match="must be kept in a file to be copied"):
        ledger.backup(tmp_path / "copy")


@pytest.mark.parametrize("table", ["book", "payloads"])
def test_what_did_not_arrive_as_it_was_meant_is_not_committed(ledger, place, promise, monkeypatch, table):
    execute, held = psycopg.Connection.execute, ledger.reserve(promise(), purpose="p")

    def losing(connection, statement, *values, **how):
        if "INSERT INTO" in str(statement) and f".{table} " in str(statement):
            return execute(connection, "SELECT 1")
        return execute(connection, statement, *values, **how)

    with monkeypatch.context() as patched:
        patched.setattr(psycopg.Connection, "execute", losing)
        with pytest.raises(LedgerError, match=r"must hold every row as it was written, and does not.* Nothing was written"):
            ledger.reserve(promise(), purpose="q") if table == "book" else held.commit(b"result")
    assert [entry.state for entry in Ledger.open(place).entries()] == ["reserved"]
    held.commit(b"result")
    ledger.verify()


@pytest.mark.parametrize("index", ["book_by_entry", "book_by_key"])
def test_an_index_that_lost_a_row_is_damage(ledger, place, promise, index):
    """While the server thinks that an index is not ready, it puts no row into it."""
    ledger.charge(promise(0.1), purpose="p", key="k")
    with ledger._store.reading() as view:
        row = dataclasses.replace(ledger_row(view, promise(0.1)), key="l")
    ready = "UPDATE pg_index SET indisready = {} WHERE indexrelid = '{}'::regclass"
    on_server(place, ready.format("false", index))
    insert(place, row)
    with pytest.raises(LedgerError, match="the tables of the ledger were changed"):
        ledger.verify()
    on_server(place, ready.format("true", index))
    with pytest.raises(LedgerError, match="is damaged: its indexes do not fit its rows"):
        Ledger.open(place).verify()
    on_server(place, f"REINDEX INDEX {index}")
    assert ledger.verify().entries == 2


# --- the command line


def test_every_verb_that_takes_a_ledger_takes_an_address_and_never_shows_its_password(
    running, place, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    secret = place.replace("postgres@", "postgres:hush-hush@")
    running.execute("DROP ROLE IF EXISTS anna", "CREATE ROLE anna LOGIN")
    count = f"summaries count t.csv --schema t.json --ledger {secret} --epsilon"
    for code, words in (
        (0, "datasets save wdbc t.csv --schema t.json"),
        (0, f"ledger create {secret} --name clinic --epsilon 9 --relation add-remove"),
        (0, f"{count} 1 --purpose report --out count.json"),
        (2, f"{count} 1 --out count.json"),
        (3, f"{count} 99"),
        (0, f"ledger show {secret}"),
        (0, f"ledger show {secret} --json"),
        (0, f"ledger verify {secret} --json"),
        (0, f"ledger recover {secret} 1 --out again.json --json"),
        (0, f"release verify count.json --ledger {secret}"),
        (0, f"ledger statement {secret} --out stated.json --html stated.html --json"),
        (0, f"ledger allow {secret} anna --as reader"),
        (4, f"ledger create {secret} --name clinic --epsilon 9"),
        (4, f"ledger show {secret.replace('/postgres?', '/nowhere?')}"),
    ):
        assert exit_code(*words.split()) == code, (words, capsys.readouterr())
        said = capsys.readouterr()
        assert "hush" not in said.out + said.err, words
    assert "hush" not in "".join(file.read_text("utf-8") for file in tmp_path.iterdir())
    assert "hush" not in str(on_server(place, "SELECT record FROM book"))
    assert Ledger.open(place).spent.epsilon == 1
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "count.json").read_bytes()


def test_a_result_that_cannot_be_written_is_pointed_to_without_the_password(place):
    Ledger.create(place, name="x", unit="patient", epsilon=1)
    payment = Payment.of(place.replace("postgres@", "postgres:hush-hush@"), None)
    payment.book.reserve(Guarantee(epsilon="1/2", unit="patient"), purpose="p").commit(b"x")
    assert "Get it with: sabun ledger recover 'postgresql://postgres@/postgres?host=" in payment.stands()
    assert "hush" not in payment.stands()
