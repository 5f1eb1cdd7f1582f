"""What a look and a whole reading find of forged prices, shares and standings."""

from __future__ import annotations

import pytest

from ledger.by_shares import create, gaussian, rewritten
from sabun.errors import LedgerError
from sabun.ledger import Ledger


def test_a_forged_price_is_found_by_verify(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def cheaper(record):
        if "tau" in record["body"]:
            record["body"]["tau"] = "1/1000"
        if record["sequence"]:
            record["standing"]["used"]["tau"] = "1/1000"

    rewritten(place, edit, cheaper)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee and its price cost"):
        Ledger.open(place).verify()


def test_a_delta_below_that_of_the_guarantee_is_found_by_verify(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def lower(record):
        if record["kind"] == "reserve":
            record["body"]["delta"] = "0/1"
        if record["sequence"]:
            record["spent"]["delta"] = "0/1"

    rewritten(place, edit, lower)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee and its price cost"):
        Ledger.open(place).verify()


def test_a_row_by_sums_that_keeps_a_price_is_found_on_every_look(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def by_sums(record):
        if record["kind"] == "reserve":
            record["body"]["rule"] = "sums"
        if record["sequence"]:
            record["standing"]["rule"] = "sums"

    rewritten(place, edit, by_sums)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_a_row_by_shares_without_a_price_is_found_on_every_look(book, place, promise, edit):
    book.charge(promise(1), purpose="p")

    def bare(record):
        for name in ("tau", "loose", "extra", "form"):
            record["body"].pop(name, None)
        if record["sequence"]:
            record["standing"]["used"]["tau"] = "1/1"

    rewritten(place, edit, bare)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_a_price_in_a_ledger_without_an_order_is_found_on_every_look(place, promise, edit):
    create(place, accounting="sums", accounts={"heart": "1/2"}).charge(promise(1), purpose="p")

    def priced(record):
        if record["kind"] == "reserve":
            record["body"] |= {"tau": "1/1", "loose": "0/1", "extra": "0/1", "form": "stated"}

    rewritten(place, edit, priced)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_a_simulated_guarantee_in_a_row_is_found_by_verify(book, place, promise, edit):
    book.charge(promise(1), purpose="p")

    def simulated(record):
        if record["kind"] == "reserve":
            record["body"]["guarantee"]["simulated"] = True

    rewritten(place, edit, simulated)
    with pytest.raises(LedgerError, match="row 1 must book what its guarantee and its price cost"):
        Ledger.open(place).verify()


def test_a_dearer_price_of_another_version_is_accepted(book, place, promise, edit):
    book.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))

    def dearer(record):
        if "tau" in record["body"]:
            record["body"]["tau"] = "1/1"
        if record["sequence"]:
            record["standing"]["used"]["tau"] = "1/1"

    rewritten(place, edit, dearer)
    assert Ledger.open(place).verify().entries == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda standing: standing["used"].update(tau="0/1"), "must stand where the rows before it lead"),
        (lambda standing: standing.update(limit="9/1"), "must stand where the rows before it lead"),
        (lambda standing: standing["shares"].update(tail="1/2"), "must stand where the rows before it lead"),
    ],
)
def test_a_forged_standing_is_found_on_every_look(book, place, promise, edit, change, message):
    book.charge(promise(1), purpose="p")

    def forge(record):
        if record["sequence"] == 2:
            change(record["standing"])

    rewritten(place, edit, forge)
    with pytest.raises(LedgerError, match=message):
        Ledger.open(place)


def test_shares_beyond_delta_are_no_beginning(book, place, edit):
    rewritten(place, edit, lambda record: record["standing"]["shares"].update(tail="1/2"))
    with pytest.raises(LedgerError, match="row 0 must open the book with limits within its budget"):
        Ledger.open(place)
