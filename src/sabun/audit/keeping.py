"""What a ledger keeps for those who use it: parts of every limit, charges that were given back, the book that they opened."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from sabun.asking.evidence import Bench, Checklist
from sabun.audit.admissions import BOOK, DELTA, EPSILON, gaussian, made, promise, refused, rewritten
from sabun.audit.leaving import order_of_writing
from sabun.errors import BudgetExceeded, LedgerError
from sabun.ledger import Ledger, journal
from sabun.ledger.shares import Limits, Shares, Usage
from sabun.privacy import Guarantee, Price
from sabun.privacy.events import Approximate

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


@CHECKS(BOOK, account=("", "heart"), priced=(False, True))
def a_charge_takes_all_that_it_states_of_every_limit(bench: Bench, account: str, priced: bool) -> None:
    """Its epsilon, its delta once, and at the order what its noise costs there or the worst case of its epsilon."""
    epsilon, delta = Fraction(1, 10), Fraction(1, 10**8)
    with made(accounts={"heart": "1/2"}) as (_, path):
        handle, price = Ledger.open(path, account=account), gaussian(epsilon, delta) if priced else None
        order = handle.to_dict()["standing"]["shares"]["order"]
        handle.charge(promise(epsilon, delta), purpose="p", price=price)
        least = price.cost(order=order) if price is not None else Approximate(epsilon=epsilon).cost(order)
        assert least is not None
        standing = handle.to_dict()["standing"]
        for used in (standing["used"], *([standing["accounts"][account]["used"]] if account else [])):
            found = Usage(*(Fraction(used[name]) for name in Usage._fields))
            bench.must(found.epsilon == epsilon, f"epsilon {found.epsilon} is booked.")
            bench.must(found.loose + found.extra == delta, f"of delta {found.loose} and {found.extra} are booked.")
            bench.must(found.tau >= least.tau > 0, f"{float(found.tau):.3g} is booked at the order.")


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


@CHECKS(BOOK, counted=("by shares", "by the order alone", "by sums"), account=("", "heart"), group=(1, 3))
def what_is_told_to_be_left_is_admitted_and_hardly_more(bench: Bench, counted: str, account: str, group: int) -> str:
    """The largest epsilon and delta, the last Gaussian release; then as many questions as were foretold, and no more."""
    part = Fraction(1, 3)
    accounting = "sums" if counted == "by sums" else "shares"
    with made(accounting=accounting, accounts={"heart": part}, group=group) as (ledger, path):
        for handle in (ledger, Ledger.open(path, account="heart")):
            handle.charge(promise("0.05", "1e-8"), purpose="p")
        handle = Ledger.open(path, account=account)
        small = (part if account else 1) * Fraction(EPSILON, 6 * group)
        for _ in range(7 if counted == "by the order alone" else 0):  # more than the sums allow
            handle.charge(promise(small, "1e-9"), purpose="p", price=gaussian(small, "1e-9"))
        left, whole = handle.remaining, handle.whole
        last = handle.rest(delta=None if group == 1 else left.delta / 10**4)
        one, more = Fraction(1, group), Fraction(10**5 + 1, 10**5)
        for told, just, beyond in (
            ("epsilon", promise(left.epsilon * one), promise(left.epsilon * one * more)),
            ("delta", promise(0, left.delta * one / more), promise(0, left.delta * one * more)),
        ):
            bench.must(_fits(handle, just), f"the {told} that is told to be left is refused.")
            bench.must(not _fits(handle, beyond), f"more {told} is admitted than is told to be left.")
        bench.must(1 - handle.delta_used(account) == left.delta / whole.delta, "another share of delta is told to be gone.")
        noise = gaussian(last.epsilon, last.delta)
        bench.must(_fits(handle, promise(last.epsilon, last.delta), noise), "the last release that is told is refused.")
        size = left.epsilon * one / 5
        foretold, times = handle.forecast(size).left, 0
        while times <= foretold and _fits(handle, promise(size), keep=True):
            times += 1
        bench.must(times == foretold, f"{foretold} questions are foretold, and {times} fit.")
        share = handle.share_used + handle.forecast(size).share
        bench.must(share > 1, f"nothing fits any more, and {float(share):.3f} with one more is told.")
    return f"{times} questions"


def _fits(handle: Ledger, guarantee: Guarantee, price: Price | None = None, *, keep: bool = False) -> bool:
    """Whether a charge is admitted; it is given back unless it is to be kept."""
    try:
        charge = handle.reserve(guarantee, purpose="p", price=price)
    except BudgetExceeded:
        return False
    if not keep:
        charge.void()
    return True


@CHECKS(BOOK)
def every_altered_cell_of_the_tables_beside_the_rows_is_refused(bench: Bench) -> str:
    """What the tables hold twice, to find rows quickly, must say what the rows say; so must what is kept of the results."""
    with made() as (ledger, path):
        for key in (None, "k"):
            ledger.reserve(promise("0.1"), purpose="p", key=key).commit(b"result")
        sound, tried = path.read_bytes(), 0
        with contextlib.closing(sqlite3.connect(path)) as book:
            tables = [name for (name,) in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            cells = [(name, row[1]) for name in tables for row in book.execute(f"PRAGMA table_info({name})")]
        for (table, column), new in itertools.product(cells, ("x", 7, None, b"x")):
            with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as book, contextlib.suppress(sqlite3.Error):
                guards = book.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
                for name, _ in guards:
                    book.execute(f"DROP TRIGGER {name}")
                at = f"rowid = (SELECT max(rowid) FROM {table} WHERE {column} IS NOT ?)"
                tried += book.execute(f"UPDATE {table} SET {column} = ? WHERE {at}", (new, new)).rowcount
                for _, text in guards:
                    book.execute(text)
            if path.read_bytes() != sound:
                refused(bench, LedgerError, lambda: Ledger.open(path).verify(), f"another {column} in {table}")
                path.write_bytes(sound)
        bench.must(Ledger.open(path).verify().entries == 2, "the book itself was broken on the way.")
    return f"{tried} cells of {len(cells)} columns"


@CHECKS(BOOK, door=("verify", "kept", "recall"))
def kept_bytes_that_were_changed_come_out_by_no_door(bench: Bench, door: str) -> None:
    with made() as (ledger, path):
        ledger.reserve(promise("0.1"), purpose="p", key="k").commit(b"result")
        doors: dict[str, Callable[[], object]] = {
            "verify": ledger.verify,
            "kept": lambda: ledger.kept(1),
            "recall": lambda: ledger.recall("k", guarantee=promise("0.1"), purpose="p"),
        }
        doors[door]()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as book:
            [(name, text)] = book.execute("SELECT name, sql FROM sqlite_master WHERE name = 'payloads_keep'").fetchall()
            book.execute(f"DROP TRIGGER {name}")
            book.execute("UPDATE payloads SET payload = ?", (b"resulT",))
            book.execute(text)
        refused(bench, LedgerError, doors[door], f"other bytes by the door {door!r}")


_CHANGED: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "a limit above the ceiling": ("raise", ("epsilon",), ("limit",)),
    "an account of more than all": ("account", ("part",), ("accounts", "heart", "part")),
    **{f"more delta for {name}": ("convert", ("shares", name), ("shares", name)) for name in ("sums", "stated", "tail")},
}
"""Forged changes of terms: which, where it stands in the row that makes it, and where in every row from there on."""


@CHECKS(BOOK, forgery=tuple(_CHANGED))
def a_change_of_terms_beyond_what_was_promised_is_refused_though_every_hash_fits(bench: Bench, forgery: str) -> None:
    kind, made_in, stands_in = _CHANGED[forgery]

    def forged(records: list[dict[str, Any]]) -> None:
        since = next(number for number, record in enumerate(records) if record["body"].get("change") == kind)
        _set(records[since]["body"], made_in, "9/1")
        for record in records[since:]:
            _set(record["standing"], stands_in, "9/1")

    with made(accounting="sums", ceiling=EPSILON + 1) as (ledger, path):
        ledger.open_account("heart", "1/2", reason="r")
        ledger.raise_to(EPSILON + 1, reason="r")
        ledger.convert(reason="r")
        ledger.charge(promise("0.1"), purpose="p")
        rewritten(path, lambda records: None)
        Ledger.open(path).verify()  # written anew as it was, it is taken
        rewritten(path, forged)
        refused(bench, LedgerError, lambda: Ledger.open(path).verify(), forgery)


def _set(record: dict[str, Any], way: tuple[str, ...], value: str) -> None:
    for step in way[:-1]:
        record = record[step]
    record[way[-1]] = value
