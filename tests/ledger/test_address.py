"""An address may hold a password: it is never shown, and where it cannot be told apart nothing is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sabun.errors import MissingExtra, ParameterError
from sabun.ledger import Ledger
from sabun.ledger.address import Address, is_address, shown, with_account

SECRET = "hush"


@pytest.mark.parametrize(
    ("typed", "seen", "ledger", "secrets"),
    [
        ("postgresql://h/db", "postgresql://h/db?ledger=sabun", "sabun", {}),
        ("postgres://me@h/db", "postgresql://me@h/db?ledger=sabun", "sabun", {}),
        ("postgresql://me:hush@h:5433/db?ledger=a_1", "postgresql://me@h:5433/db?ledger=a_1", "a_1", {"password": "hush"}),
        ("postgresql://me:hush%2F%40@h/db", "postgresql://me@h/db?ledger=sabun", "sabun", {"password": "hush/@"}),
        ("postgresql://:hush@h/db", "postgresql://@h/db?ledger=sabun", "sabun", {"password": "hush"}),
        (
            "postgresql://h1:1,h2:2/db?target_session_attrs=read-write&password=hush",
            "postgresql://h1:1,h2:2/db?target_session_attrs=read-write&ledger=sabun",
            "sabun",
            {"password": "hush"},
        ),
        (
            "postgresql://[::1]:5432/db?sslpassword=hush",
            "postgresql://[::1]:5432/db?ledger=sabun",
            "sabun",
            {"sslpassword": "hush"},
        ),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=%2Frun%2Fpg&ledger=sabun", "sabun", {}),
    ],
)
def test_an_address_is_shown_without_its_secrets(typed, seen, ledger, secrets):
    found = Address.read(typed)
    assert (found.shown, found.ledger, dict(found.secrets)) == (seen, ledger, secrets)
    assert shown(typed) == seen
    assert SECRET not in repr(found) + found.server
    assert Address.read(found.shown).shown == found.shown


@pytest.mark.parametrize(
    "typed",
    [
        "postgresql://me:hu/sh@h/db",
        "postgresql://me:hu#sh@h/db",
        "postgresql://me:hu?sh@h/db",
        "postgresql://me:hu@sh@h/db",
        "postgresql://me:hush/db",
        "postgresql://h/db?hush",
        "postgresql://h/db#hush",
        "postgresql://h/db?a=hush&a=b",
        "postgresql://h/db?=hush",
        "postgresql://me:hush\n@h/db",
        "postgresql://me:hush@h/d\0b",
    ],
)
def test_an_address_that_cannot_be_told_apart_is_not_repeated(typed):
    for attempt in (Address.read, shown, Ledger.open):
        with pytest.raises(ParameterError, match=r"a ledger's address must have the form postgresql://USER@HOST") as caught:
            attempt(typed)
        assert "hu" not in str(caught.value)


def test_an_address_made_a_path_is_refused_without_repeating_it():
    with pytest.raises(ParameterError, match=r"must be a text such as .*; got a path\. Pass it as text") as caught:
        Ledger.open(Path("postgresql://me:hush@h/db"))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("name", ["", "Clinic", "1a", "a-b", "a b", "pg_x", "public", "information_schema", 'a"b', "a" * 64])
def test_a_ledgers_name_on_a_server_is_a_plain_word(name):
    with pytest.raises(ParameterError, match="ledger must be small letters, digits and _"):
        Address.read(f"postgresql://h/db?ledger={name}")


@pytest.mark.parametrize("place", ["clinic.ledger", "postgres", "postgresql.ledger", Path("x"), b"postgresql://h/db", 3, None])
def test_everything_else_is_a_path(place):
    assert not is_address(place)


def test_options_that_libpq_does_not_know_are_refused_without_repeating_them():
    pytest.importorskip("psycopg")
    with pytest.raises(ParameterError, match=r"must be one that libpq can read; got another\. Check the names") as caught:
        Ledger.open("postgresql://h/db?pasword=hush")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_without_the_extra_the_way_to_install_it_is_said(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sabun.ledger.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        MissingExtra, match=r"a ledger on PostgreSQL needs psycopg\. Install it with: pip install 'sabun\[postgres\]'"
    ):
        Ledger.open("postgresql://h/db")


@pytest.mark.parametrize(
    ("typed", "where", "account"),
    [
        ("postgresql://h/db?ledger=a_1::heart", "postgresql://h/db?ledger=a_1", "heart"),
        (
            "postgresql://[::1]/db?hostaddr=::1&ledger=a::north wing",
            "postgresql://[::1]/db?hostaddr=::1&ledger=a",
            "north wing",
        ),
        ("postgresql://[::1]/db?ledger=a&hostaddr=::1", "postgresql://[::1]/db?ledger=a&hostaddr=::1", ""),
        ("postgresql://h/db?ledger=a", "postgresql://h/db?ledger=a", ""),
        ("postgresql://h/db?ledger=a::heart&password=hush", "postgresql://h/db?ledger=a::heart&password=hush", ""),
        ("no such file::heart", "no such file::heart", ""),
    ],
)
def test_an_account_is_named_after_the_ledger(typed, where, account):
    assert with_account(typed) == (where, account)


def test_a_file_of_that_name_is_the_ledger_itself(tmp_path):
    book = tmp_path / "clinic.ledger"
    book.touch()
    assert with_account(f"{book}::heart") == (str(book), "heart")
    (tmp_path / "clinic.ledger::heart").touch()
    assert with_account(f"{book}::heart") == (f"{book}::heart", "")


def test_an_account_that_cannot_be_told_apart_repeats_no_secret():
    with pytest.raises(ParameterError) as refused:
        Ledger.open(with_account("postgresql://h/db?ledger=a::heart&password=hush")[0])
    assert SECRET not in str(refused.value)
