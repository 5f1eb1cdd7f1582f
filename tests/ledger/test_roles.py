"""Who may do what with a ledger on PostgreSQL."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from ledger.behind import on_server
from ledger.by_hand import insert, ledger_row
from sabun.errors import LedgerError
from sabun.ledger import Ledger
from sabun.ledger.chain import WINDOW
from sabun.ledger.reservation import LARGEST_PAYLOAD
from sabun.ledger.row import next_row
from sabun.ledger.shares import NOTHING
from sabun.ledger.standing import Account
from sabun.ledger.statement import Budget
from sabun.ledger.store import Unavailable

psycopg = pytest.importorskip("psycopg")
postgres_store = pytest.importorskip("sabun.ledger.postgres_store")
postgres_tables = pytest.importorskip("sabun.ledger.postgres_tables")
PostgresStore = postgres_store.PostgresStore


_NUMBERS = iter(range(1000))


@pytest.fixture
def place(running):
    return running.place()


@pytest.fixture
def users(running):
    """An owner, an analyst, a reader and a stranger whom the server knows."""
    names = {role: f"{role}_{next(_NUMBERS)}" for role in ("owner", "analyst", "reader", "stranger")}
    for name in names.values():
        running.execute(f"CREATE ROLE {name} LOGIN")
    running.execute(f"GRANT CREATE ON DATABASE postgres TO {names['owner']}")
    return names


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


# --- rows that an analyst writes by hand


@pytest.fixture
def by_shares(running, users):
    """A ledger with accounts that counts by shares; the addresses of its owner and of an analyst."""
    name = running.place().rpartition("=")[2]
    owner, analyst = (running.address(users[role], ledger=name) for role in ("owner", "analyst"))
    terms = {"epsilon": 3, "delta": "1e-6", "ceiling": 4, "accounts": {"heart": "1/2"}}
    Ledger.create(owner, name="shared", unit="patient", **terms)
    PostgresStore(owner).allow(users["analyst"], "analyst")
    return owner, analyst


def _free_rows(place, count, edit):
    """So many rows that reserve nothing, made as an analyst can make them; the first one is edited."""
    rows = []
    with PostgresStore(place).reading() as view:
        last, opening = view.last(), next(row for row in view.rows() if row.kind == "reserve")
    nothing = dict.fromkeys(("epsilon", "delta", "loose", "extra", "tau"), "0/1")
    body = {name: part for name, part in opening.body.items() if name != "rule"} | nothing
    for number in range(count):
        row = next_row(last, kind="reserve", entry=last.entries + 1, body=body, amount=Budget(Fraction(0), Fraction(0)))
        last = row if number else dataclasses.replace(row, standing=edit(row.standing))
        rows.append(last)
    return rows


def _inserted(place, rows):
    values = ", ".join(f"({row.sequence}, {row.entry}, NULL, '{row.record}', '{row.hash}')" for row in rows)
    on_server(place, f"INSERT INTO book VALUES {values}")


def _raised(standing):
    return dataclasses.replace(standing, limit=Fraction(1000))


def _forgotten(standing):
    return dataclasses.replace(standing, used=NOTHING._replace(epsilon=Fraction(1, 1000), tau=Fraction(1, 10**6)))


_TERMS = {
    "limit": _raised,
    "delta": lambda standing: dataclasses.replace(standing, delta=Fraction(1, 2)),
    "shares": lambda standing: dataclasses.replace(
        standing, shares=dataclasses.replace(standing.shares, stated=2 * standing.shares.stated)
    ),
    "account": lambda standing: dataclasses.replace(standing, accounts={"heart": Account(part=Fraction(1))}),
    "new account": lambda standing: dataclasses.replace(
        standing, accounts={**standing.accounts, "lung": Account(part=Fraction(1))}
    ),
}


@pytest.mark.parametrize("change", _TERMS)
def test_a_charge_by_hand_leaves_the_terms_as_they_are(by_shares, promise, change):
    owner, analyst = by_shares
    Ledger.open(analyst).charge(promise("0.1"), purpose="honest, with \0 in its purpose")
    forged = _free_rows(analyst, 2, _TERMS[change])
    for user in (analyst, owner):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="must leave the terms of the ledger as they are"):
            _inserted(user, forged)
    _inserted(analyst, _free_rows(analyst, 1, lambda standing: standing))
    Ledger.open(owner).raise_to(4, reason="by its owner")
    Ledger.open(analyst).charge(promise("0.1"), purpose="after")
    assert Ledger.open(owner).spent.epsilon == Fraction(1, 5)


def _as_made_earlier(owner):
    """The guards of a ledger as earlier versions made them."""
    schema = owner.rpartition("=")[2]
    body = postgres_tables._EARLIER["follow"].format(f'"{schema}"')
    head = f'CREATE OR REPLACE FUNCTION "{schema}".follow() RETURNS trigger LANGUAGE plpgsql'
    on_server(owner, f"{head} SET search_path = pg_catalog, pg_temp AS $${body}$$")


def test_a_ledger_with_the_guards_of_earlier_versions_opens_and_no_row_in_it_raises_the_promise(by_shares, promise):
    owner, analyst = by_shares
    _as_made_earlier(owner)
    live = Ledger.open(analyst)
    live.charge(promise("0.1"), purpose="honest")
    _inserted(analyst, _free_rows(analyst, WINDOW + 2, lambda standing: _raised(_forgotten(standing))))
    with pytest.raises(LedgerError, match="must be there and stand within what the ledger promises"):
        Ledger.open(owner)
    with pytest.raises(LedgerError, match="row 3 must stand where the rows before it lead"):
        live.charge(promise(500), purpose="overspent")


def test_a_live_handle_checks_every_row_since_it_last_looked(by_shares, promise):
    """What a new handle takes on trust, the totals before its window, an old one knows."""
    owner, analyst = by_shares
    live = Ledger.open(analyst)
    for _ in range(5):
        live.charge(promise("0.5"), purpose="honest")
    _inserted(analyst, _free_rows(analyst, WINDOW + 2, _forgotten))
    for look in (lambda: live.remaining, lambda: live.charge(promise("2"), purpose="overspent"), Ledger.open(owner).verify):
        with pytest.raises(LedgerError, match="row 11 must stand where the rows before it lead"):
            look()
