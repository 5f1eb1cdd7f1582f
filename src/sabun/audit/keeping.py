"""What a ledger keeps for those who use it: parts of every limit, charges that were given back, the book that they opened."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

from sabun.asking.evidence import Bench, Checklist
from sabun.audit.admissions import BOOK, DELTA, EPSILON, gaussian, made, promise, refused
from sabun.audit.leaving import order_of_writing
from sabun.errors import LedgerError
from sabun.ledger import Ledger, journal
from sabun.ledger.shares import Limits, Shares, Usage

__all__ = ["CHECKS"]

CHECKS = Checklist()


@CHECKS(BOOK, part=(Fraction(1, 4), Fraction(2, 3)))
def every_limit_holds_and_an_account_has_its_part_of_each(bench: Bench, part: Fraction) -> str:
    """By the definition, on lists that stay below each limit or pass it; of an account, on lists that much shorter."""
    shares, tried = Shares.of(Fraction(EPSILON), DELTA), 0
    for split in (shares, None):
        whole, own = (Limits(epsilon=Fraction(EPSILON), delta=DELTA, shares=split, part=size) for size in (Fraction(1), part))
        levels = [(Fraction(0), *(limit * Fraction(share, 8) for share in (2, 5, 7, 9))) for limit in _limits(whole)]
        for amounts in itertools.product(*levels):
            used = Usage(*amounts)
            bench.must(whole.admit(used) == _admitted(used, split, whole), f"{used} is judged otherwise.")
            bench.must(whole.admit(used) == own.admit(Usage(*(part * one for one in amounts))), f"other limits for {used}.")
            tried += 1
    return f"{tried} lists of charges"


def _admitted(used: Usage, split: Shares | None, whole: Limits) -> bool:
    """Sums within epsilon and delta; or stated deltas within their share, and the rest by its sums or by the order."""
    if split is None:
        return used.epsilon <= whole.epsilon and used.loose + used.extra <= whole.delta
    by_sums = used.epsilon <= whole.epsilon and used.extra <= split.sums
    return used.loose <= split.stated and (by_sums or used.tau <= split.threshold(whole.epsilon))


def _limits(limits: Limits) -> tuple[Fraction, ...]:
    """The largest amounts that could be admitted, in the order of `Usage`."""
    split = limits.shares
    if split is None:
        return limits.epsilon, limits.delta, limits.delta, limits.epsilon
    return limits.epsilon, split.stated, split.sums, split.threshold(limits.epsilon)


@CHECKS(BOOK, accounting=("shares", "sums"))
def a_charge_that_is_given_back_leaves_all_sums_as_they_were(bench: Bench, accounting: str) -> None:
    with made(accounting=accounting, accounts={"heart": "1/2"}) as (ledger, path):
        ledger.charge(promise("0.1", "1e-8"), purpose="p")
        for account in ("", "heart"):
            handle = Ledger.open(path, account=account)
            for price in (None, gaussian("0.1", "1e-8")):
                before = _standing(handle)
                handle.reserve(promise("0.1", "1e-8"), purpose="p", price=price).void()
                bench.must(_standing(Ledger.open(path)) == before, f"account {account!r}: a voided charge is still counted.")
                bench.must(Ledger.open(path).verify().entries > 1)


def _standing(ledger: Ledger) -> Any:
    kept = ledger.to_dict()
    return kept["standing"], ledger.spent


@CHECKS(BOOK)
def an_open_handle_notices_another_book_of_the_same_length(bench: Bench) -> None:
    with made() as (ledger, path), made() as (other, elsewhere):
        for handle in (ledger, other):
            handle.charge(promise("0.1"), purpose="p")
        elsewhere.replace(path)
        refused(bench, LedgerError, lambda: ledger.charge(promise("0.1"), purpose="p"), "another book under the same name")
        refused(bench, LedgerError, lambda: ledger.spent, "a look at another book")


@CHECKS(BOOK)
def pages_are_on_disk_before_the_journal_that_would_restore_them_goes(bench: Bench) -> str:
    with made() as (_, path):
        beside = journal.beside(path, "-journal")
        beside.write_bytes(b"left by a crash")
        steps = order_of_writing(bench, journal)
        journal.drop(path)
        bench.must(not beside.exists(), "the journal is still there.")
    gone = next((place for place, step in enumerate(steps) if step in ("unlink", "remove")), None)
    bench.must(gone is not None and "fsync" in steps[:gone], f"the steps were {steps}.")
    bench.must(gone is not None and "fsync folder" in steps[gone:], f"the steps were {steps}.")
    return ", ".join(steps)
