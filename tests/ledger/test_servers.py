"""Where a ledger on PostgreSQL may be, how it is called, what its tables hold; and the command line."""

from __future__ import annotations

import dataclasses
import pickle
import re
import shlex
from fractions import Fraction
from pathlib import Path

import pytest

from cli.terminal import exit_code
from ledger.behind import on_server
from ledger.by_hand import insert, ledger_row
from sabun.errors import LedgerError
from sabun.ledger import Ledger
from sabun.ledger.store import Unavailable
from sabun.privacy import Guarantee
from sabun.telling.terminal.charging import Payment

psycopg = pytest.importorskip("psycopg")
postgres_store = pytest.importorskip("sabun.ledger.postgres_store")
PostgresStore = postgres_store.PostgresStore


@pytest.fixture
def place(running):
    return running.place()


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


def walked(page, heading):
    """The commands of a section of the documentation: lines that are set in, with those they go on with."""
    section = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    return lines.replace("\\\n", " ").splitlines()


def test_the_way_of_the_documentation_to_a_ledger_on_a_database(running, tmp_path, monkeypatch, capsys):
    commands = walked((Path(__file__).parents[2] / "docs" / "budget.md").read_text("utf-8"), "On your database")
    monkeypatch.chdir(tmp_path)
    names = {name: f"{name}_of_the_walk" for name in ("budget_owner", "anna", "auditor")}
    where = f"@/postgres?host={running.folder}&ledger="
    for command in commands:
        for name, own in names.items():
            command = re.sub(rf"\b{name}\b", own, command)
        command = command.replace("DATABASE privacy", "DATABASE postgres").replace("@db.example.org/privacy?ledger=", where)
        if not command.startswith("sabun "):
            running.execute(command.partition(";")[0])
            continue
        if "raise" in command:
            assert exit_code(*shlex.split(command.replace(names["budget_owner"], names["anna"]))[1:]) == 4
        assert exit_code(*shlex.split(command)[1:]) == 0, (command, capsys.readouterr())
    assert len(commands) == 14
    ledger = Ledger.open(f"postgresql://{names['auditor']}{where}clinic_2026")
    assert (ledger.budget.epsilon, ledger.verify().entries, *ledger.uses("account")) == (4, 1, "cardiology")
    assert "of the budget is used" in (tmp_path / "clinic.html").read_text("utf-8")
