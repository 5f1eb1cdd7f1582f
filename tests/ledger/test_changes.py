"""Changes of a ledger's terms: conversion, ceiling, accounts; and groups."""

from __future__ import annotations

import dataclasses
import threading
from fractions import Fraction

import pytest

from ledger.by_shares import ALL_FOR_THE_ORDER, MILLIONTH, charged, create, gaussian, rewritten, rows_of
from ledger.test_model import MemoryStore
from sabun.errors import BudgetExceeded, IncompatibleGuarantees, LedgerError, ParameterError
from sabun.ledger import Budget, Ledger
from sabun.ledger.address import with_account
from sabun.ledger.row import next_row
from sabun.ledger.together import together
from sabun.privacy.renyi import best_order, pure_cost

# --- conversion


def test_an_old_ledger_is_converted_and_old_charges_keep_their_epsilon(place, promise):
    ledger = create(place, accounting="sums")
    ledger.charge(promise("1/2", "1e-7"), purpose="before")
    waiting = ledger.reserve(promise("1/2"), purpose="still open")
    ledger.convert(reason="many small questions from now on")
    standing = ledger.to_dict()["standing"]
    assert standing["used"] == {"epsilon": "1/1", "loose": "1/10000000", "extra": "0/1", "tau": "1/1"}
    assert sum(Fraction(standing["shares"][name]) for name in ("sums", "stated", "tail")) == MILLIONTH
    before = Fraction(standing["used"]["tau"])
    ledger.charge(promise("0.05"), purpose="after")
    waiting.void()
    used = Fraction(ledger.to_dict()["standing"]["used"]["tau"])
    assert used == before - Fraction(1, 2) + pure_cost(Fraction(1, 20), order=standing["shares"]["order"])
    assert Ledger.open(place).verify().entries == 3
    with pytest.raises(ParameterError, match="must count by sums and have some delta left"):
        ledger.convert(reason="again")


def test_a_converted_ledger_goes_further(promise):
    ledger = create(MemoryStore(), accounting="sums")
    ledger.charge(promise("0.1"), purpose="before")
    ledger.convert(reason="more", shares=ALL_FOR_THE_ORDER)
    assert charged(ledger, promise("0.05"), 200) > 58


def test_a_ledger_without_delta_cannot_be_converted(place):
    with pytest.raises(ParameterError, match="must count by sums and have some delta left"):
        create(place, delta=0).convert(reason="more")


def test_a_conversion_that_an_account_could_not_keep_is_refused(place, promise):
    ledger = create(place, accounting="sums", accounts={"heart": "1/2"})
    Ledger.open(place, account="heart").charge(promise("0.1", "5e-7"), purpose="all of its delta")
    waiting = ledger.reserve(promise("0.1"), purpose="still open")
    for parts in (None, ALL_FOR_THE_ORDER, (0, "9/10", "1/10")):
        with pytest.raises(ParameterError, match=r"every account must have used at most its part of the delta .* got 'heart'"):
            ledger.convert(reason="more", shares=parts)
    ledger.charge(promise("0.1"), purpose="by sums as before")
    waiting.touch()
    waiting.commit(b"r")
    assert Ledger.open(place).verify().entries == 3


def test_a_conversion_is_made_with_shares_that_every_account_keeps(place, promise):
    ledger = create(place, accounting="sums", accounts={"heart": "1/2"})
    heart = Ledger.open(place, account="heart")
    heart.charge(promise("0.1", "4e-7"), purpose="before")
    with pytest.raises(ParameterError, match="got 'heart'"):
        ledger.convert(reason="more")
    ledger.convert(reason="more", shares=(0, "9/10", "1/10"))
    heart.charge(promise("0.1"), purpose="after")
    assert Ledger.open(place).verify().entries == 2


def test_a_forged_conversion_that_an_account_breaks_is_found(place, promise, edit):
    ledger = create(place, accounting="sums", accounts={"heart": "1/2"})
    Ledger.open(place, account="heart").charge(promise("0.1", "4e-7"), purpose="before")
    ledger.convert(reason="more", shares=(0, "9/10", "1/10"))

    def forge(record):
        if record["body"].get("change") == "convert":
            for shares in (record["body"]["shares"], record["standing"]["shares"]):
                shares["stated"] = "1/2000000"

    rewritten(place, edit, forge)
    with pytest.raises(LedgerError, match="row 3 must have the fields of its kind"):
        Ledger.open(place)


# --- a ledger that is undecided again, and then changed


def _nothing(ledger, promise):
    pass


def _both_voided(*amount):
    def before(ledger, promise):
        held = ledger.reserve(promise(*amount), purpose="a"), ledger.reserve(promise("0.1"), purpose="b")
        for reservation in held:
            reservation.void()

    return before


def _free_charge(ledger, promise):
    ledger.charge(promise(0), purpose="nothing of anybody's")


def _converted(ledger, promise):
    ledger.convert(reason="r")


_BEFORE = {
    "nothing": (_nothing, "shares"),
    "both voided": (_both_voided(1), "shares"),
    "both voided, by sums": (_both_voided(1, "9e-7"), "shares"),
    "a charge of nothing": (_free_charge, "shares"),
    "converted": (_converted, "sums"),
    "converted, both voided": (lambda *given: (_converted(*given), _both_voided(1)(*given)), "sums"),
}
_CHANGES = {
    "raised": lambda ledger: ledger.raise_to(4, reason="r"),
    "account": lambda ledger: ledger.open_account("heart", "1/2", reason="r"),
    "both": lambda ledger: (ledger.open_account("lung", "1/4", reason="r"), ledger.raise_to(4, reason="r")),
}


@pytest.mark.parametrize("before", _BEFORE)
@pytest.mark.parametrize("change", _CHANGES)
def test_a_changed_ledger_opens_whatever_was_given_back_before(place, promise, before, change):
    first, accounting = _BEFORE[before]
    ledger = create(place, ceiling=5, accounting=accounting)
    first(ledger, promise)
    _CHANGES[change](ledger)
    entries = Ledger.open(place).verify().entries
    ledger.charge(promise("0.1"), purpose="after")
    other = Ledger.open(place)
    other.charge(promise("0.1", "1e-7"), purpose="by another")
    assert ledger.verify().entries == other.verify().entries == entries + 2


def test_a_row_that_no_reader_would_accept_is_never_written(place, promise, monkeypatch):
    """Whatever goes wrong in the making of a row: who writes checks it as who reads will."""
    ledger = create(place)
    held = ledger.reserve(promise("0.1"), purpose="open")

    def wrong(last, **given):
        good = next_row(last, **given)
        return dataclasses.replace(good, entries=good.entries + 1)

    monkeypatch.setattr("sabun.ledger.ledger.next_row", wrong)
    monkeypatch.setattr("sabun.ledger.reservation.next_row", wrong)
    monkeypatch.setattr("sabun.ledger.changes.next_row", wrong)
    for write in (
        lambda: ledger.charge(promise("0.1"), purpose="p"),
        lambda: ledger.reserve(promise("0.1"), purpose="p"),
        lambda: ledger.open_account("heart", "1/2", reason="r"),
        lambda: held.commit(b"r"),
    ):
        with pytest.raises(LedgerError, match=r"row 2 must .*, and does not.* Nothing was written"):
            write()
    monkeypatch.undo()
    held.commit(b"r")
    assert Ledger.open(place).verify().entries == 1


# --- ceiling, accounts, groups


def test_a_budget_is_raised_to_its_ceiling_and_never_above(place, promise):
    ledger = create(place, epsilon=1, delta=0, ceiling=2)
    assert ledger.promised == Budget(Fraction(2), Fraction(0))
    assert charged(ledger, promise("1/2"), 3) == 2
    head = ledger.verify().head_hash
    ledger.raise_to("3/2", reason="the board agreed on 12 May")
    assert (ledger.budget.epsilon, ledger.remaining.epsilon) == (Fraction(3, 2), Fraction(1, 2))
    assert charged(Ledger.open(place), promise("1/2"), 3) == 1
    for wrong in (1, "3/2", 3):
        with pytest.raises(ParameterError, match="epsilon must be above 3/2 and at most the ceiling 2/1"):
            ledger.raise_to(wrong, reason="more")
    with pytest.raises(ParameterError, match="reason must be a non-empty string"):
        ledger.raise_to(2, reason=" ")
    assert ledger.verify(expect_head=head).entries == 3
    assert "ceiling   epsilon 2, which every promise is made for" in ledger.show()


def test_a_ledger_without_a_ceiling_never_grows(book):
    with pytest.raises(ParameterError, match="was created without a ceiling"):
        book.raise_to(4, reason="please")
    assert len(rows_of(book)) == 1


def test_a_forged_raise_is_found(place, edit):
    ledger = create(place, epsilon=1, ceiling=2)
    ledger.raise_to(2, reason="r")

    def forge(record):
        if record["sequence"] == 1:
            record["body"]["epsilon"] = record["standing"]["limit"] = "5/1"

    rewritten(place, edit, forge)
    with pytest.raises(LedgerError, match="row 1 must have the fields of its kind"):
        Ledger.open(place)


def test_an_account_keeps_its_limit_and_the_whole_its_own(place, promise):
    create(place, epsilon=2, delta=0, accounts={"heart": "1/2", "lung": "3/4"})
    heart, lung = Ledger.open(place, account="heart"), Ledger.open(place, account="lung")
    assert heart.remaining.epsilon == 1
    assert charged(heart, promise("1/2"), 3) == 2
    with pytest.raises(BudgetExceeded, match=r"'x', account 'heart', has epsilon 0 of 1 left; this release needs 0\.5"):
        heart.charge(promise("1/2"), purpose="p")
    assert lung.remaining.epsilon == 1  # of its 3/2, what the whole has left
    assert charged(lung, promise("1/2"), 9) == 2
    whole = Ledger.open(place)
    assert whole.remaining.epsilon == 0
    assert whole.accounts() == {"heart": 1, "lung": Fraction(2, 3)}
    assert [entry.account for entry in whole.entries()] == ["heart", "heart", "lung", "lung"]
    assert whole.verify().entries == 4


def test_an_account_counts_by_its_part_of_the_order_too(promise):
    store = MemoryStore()
    create(store, accounts={"heart": "1/2"})
    heart = Ledger.open(store, account="heart")
    assert charged(heart, promise("0.05"), 100) == 72
    assert heart.share_used > Fraction(95, 100)
    assert Ledger.open(store).forecast("0.05").left == 72


def test_what_an_account_is_told_it_has_left_the_whole_has_too(promise):
    store = MemoryStore()
    create(store, accounts={"heart": "9/10", "lung": "9/10"})
    heart, lung = (Ledger.open(store, account=name) for name in ("heart", "lung"))
    assert charged(heart, promise("0.1"), 100) == 35
    assert lung.share_used == Ledger.open(store).share_used > Fraction(8, 10)
    assert lung.accounts()["lung"] == 0
    last = lung.rest(delta="1e-7")
    lung.reserve(promise(last.epsilon, last.delta), purpose="p", price=gaussian(last.epsilon, last.delta)).void()
    left = lung.forecast("0.1").left
    assert charged(lung, promise("0.1"), 40) == left == 4


def test_the_last_release_of_an_account_fits_the_whole_however_each_counts(promise):
    store = MemoryStore()
    create(store, accounts={"heart": "1/2"}, shares=("1/4", "1/4", "1/2"))
    whole, heart = Ledger.open(store), Ledger.open(store, account="heart")
    whole.charge(promise("2.5"), purpose="by sums, beyond what the order allows")
    for delta in (None, "1e-7", "1e-8"):
        last = heart.rest(delta=delta)
        assert last.epsilon <= Fraction(1, 2)
        price = gaussian(last.epsilon, last.delta)
        heart.reserve(promise(last.epsilon, last.delta), purpose="p", price=price).void()
    with pytest.raises(ParameterError, match="there is nothing for one"):
        heart.rest(delta="3e-7")


def test_accounts_are_opened_later_with_a_reason(book, place, promise):
    book.charge(promise(1), purpose="before")
    book.open_account("heart", "1/4", reason="a new project")
    for wrong in ("heart", ""):
        with pytest.raises(ParameterError):
            book.open_account(wrong, "1/4", reason="again")
    with pytest.raises(ParameterError, match="account must be an account of 'clinic-2026'"):
        Ledger.open(place, account="lung")
    assert charged(Ledger.open(place, account="heart"), promise("1/4"), 9) == 3
    assert book.verify().entries == 4


def test_an_account_is_charged_by_the_name_after_its_ledger(place, promise):
    create(place, epsilon=2, delta=0, accounts={"heart": "1/2"})
    where, account = with_account(f"{place}::heart")
    assert (where, account) == (str(place), "heart")
    assert charged(Ledger.open(where, account=account), promise("1/4"), 9) == 4


def test_racing_accounts_overspend_neither_themselves_nor_the_whole(place, promise):
    create(place, epsilon=1, delta=0, accounts={"a": "1/2", "b": "1"})
    handles = [Ledger.open(place, account=name) for name in ("a", "a", "b", "b")]
    runs = [threading.Thread(target=charged, args=(one, promise("0.1"), 8)) for one in handles]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    whole = Ledger.open(place)
    assert whole.spent.epsilon == 1
    used = [sum(entry.epsilon for entry in whole.entries() if entry.account == name) for name in ("a", "b")]
    assert used[0] <= Fraction(1, 2)
    assert sum(used) == 1
    whole.verify()


def test_a_group_is_priced_at_the_door(place, promise):
    ledger = create(place, group=4, epsilon=12, delta="1e-3")
    ledger.charge(promise(1, "1e-9"), purpose="p")
    [entry] = ledger.entries()
    assert entry.epsilon == 4
    assert float(entry.delta) == pytest.approx(1e-9 * (1 + 2.718281828 + 7.389056099 + 20.085536923))
    assert entry.note == "restated for groups of 4"
    price = gaussian("1/10", "1e-9")
    ledger.charge(promise("1/10", "1e-9"), purpose="p", price=price)
    order = best_order(Fraction(12), tail=Fraction(1, 2000))
    assert ledger.entries()[1].tau == pytest.approx(16 * order * price.events[0].rho())
    assert ledger.forecast(1).left == 1  # (12 - 4 - 0.4) / 4, by sums
    assert ledger.verify().entries == 2


def test_ledgers_that_price_for_groups_say_so_together(promise):
    books = [create(MemoryStore(), group=2), create(MemoryStore(), group=2, epsilon=1, ceiling=2)]
    found = together(books)
    assert (found.epsilon, found.delta) == (5, 2 * MILLIONTH)  # what a ledger may be raised to counts
    assert "for groups of 2 'patient' together" in found.assumptions
    assert not any("groups" in words for words in together([create(MemoryStore())]).assumptions)
    with pytest.raises(IncompatibleGuarantees, match="must protect the same unit in the same way"):
        together([*books, create(MemoryStore())])
