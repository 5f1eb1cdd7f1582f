"""What a ledger admits, and what it refuses to read, tried on ledgers made for it: nothing of the rooms is needed.

What was admitted is added up again here, from the definitions; what is on disk is changed behind the ledger's back, with every
hash made to fit, and must be refused.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from sabun.asking.evidence import Bench, Checklist
from sabun.asking.evidence.needed import gaussian_sigma
from sabun.errors import BudgetExceeded, LedgerError, ParameterError, SimulatedError
from sabun.ledger import Ledger, Reservation
from sabun.privacy import Guarantee, Price, discrete_gaussian_variance
from sabun.privacy.events import DiscreteGaussian
from sabun.privacy.noise import os_coin, seeded_coin
from sabun.release.publish import publish

__all__ = ["BOOK", "CHECKS", "DELTA", "EPSILON", "gaussian", "made", "promise", "refused", "rewritten"]

CHECKS = Checklist()
BOOK, _DOOR = "Ledger", "publish"
EPSILON, DELTA = 3, Fraction(1, 10**6)
_STEP = Fraction(1, 10)


@contextlib.contextmanager
def made(**terms: Any) -> Iterator[tuple[Ledger, Path]]:
    """A ledger on disk, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book"
        given: dict[str, Any] = {"name": "book", "unit": "patient", "epsilon": EPSILON, "delta": DELTA} | terms
        yield Ledger.create(path, **given), path


def promise(epsilon: Any, delta: Any = 0, *, relation: str = "replace-one") -> Guarantee:
    """A promise to charge it with."""
    return Guarantee(epsilon=epsilon, delta=delta, unit="patient", relation=relation)


def gaussian(epsilon: Any, delta: Any, *, relation: str = "replace-one") -> Price:
    """The price of noise that keeps such a promise."""
    variance = discrete_gaussian_variance(l2_squared=1, epsilon=epsilon, delta=delta)
    return Price(events=(DiscreteGaussian(sigma_squared=variance, l2_squared=Fraction(1)),), relation=relation)


def _charged(ledger: Ledger, guarantee: Guarantee, times: int, **more: Any) -> int:
    """How many of so many tries were admitted before the first refusal."""
    for done in range(times):
        try:
            ledger.charge(guarantee, purpose="p", **more)
        except BudgetExceeded:
            return done
    return times


_MIXES: dict[str, tuple[tuple[str, str], ...]] = {
    "small pure ones": (("0.1", "0"),),
    "small ones with a delta": (("0.1", "1e-7"), ("0.1", "0"), ("0.1", "1e-8")),
    "deltas first": (("0.1", "3e-7"), ("0.1", "5e-8"), ("0.1", "0")),
    "large ones": (("1", "4e-7"), ("0.5", "2e-7"), ("0.1", "1e-7")),
}


@CHECKS(BOOK, mix=tuple(_MIXES), accounting=("shares", "sums"))
def whatever_a_ledger_admits_composes_to_its_promise(bench: Bench, mix: str, accounting: str) -> str:
    """Greedily, until each kind is refused; then the exact composition of the worst mechanisms with these promises."""
    with made(accounting=accounting) as (ledger, path):
        admitted: list[tuple[Fraction, Fraction]] = []
        for epsilon, delta in _MIXES[mix]:
            times = _charged(ledger, promise(epsilon, delta), 100)
            admitted += [(Fraction(epsilon), Fraction(delta))] * times
        bench.must(_promised(admitted, Fraction(EPSILON), DELTA), "more was admitted than the promise covers.")
        bench.must(bool(admitted), "nothing was admitted.")
        Ledger.open(path).verify()
        return f"{len(admitted)} {mix} by {accounting}"


def _promised(charges: list[tuple[Fraction, Fraction]], epsilon: Fraction, delta: Fraction) -> bool:
    """By sums, or by the exact law of the loss: each charge is randomised response, or fails with its delta."""
    if sum(one for one, _ in charges) <= epsilon and sum(other for _, other in charges) <= delta:
        return True
    chances = np.ones(1)
    for one, _ in charges:
        heads, step = 1 / (1 + math.exp(-float(one))), int(2 * one / _STEP)
        longer = np.zeros(len(chances) + step)
        longer[step:] += heads * chances
        longer[: len(chances)] += (1 - heads) * chances
        chances = longer
    total = int(sum(one / _STEP for one, _ in charges))
    losses = float(_STEP) * (np.arange(len(chances)) - total)
    beyond = float((chances * np.maximum(0.0, -np.expm1(float(epsilon) - losses))).sum())
    return beyond + float(sum(other for _, other in charges)) <= float(delta) * (1 + 1e-9)


@CHECKS(BOOK)
def as_much_gaussian_noise_is_admitted_as_composes_to_the_promise(bench: Bench) -> str:
    price = gaussian("0.5", "1e-7")
    [event] = price.events
    assert isinstance(event, DiscreteGaussian)
    with made() as (ledger, _):
        times = _charged(ledger, promise("0.5", "1e-7"), 100, price=price)
        spread = math.sqrt(float(event.sigma_squared) / times)
        bench.enough(spread, gaussian_sigma(EPSILON, float(DELTA)))
    return f"{times} times"


@CHECKS(BOOK)
def the_shares_of_delta_are_all_of_it_and_no_more(bench: Bench) -> None:
    for shares in (None, (0, 0, 1), ("1/5", "1/5", "3/5")):
        with made(**({} if shares is None else {"shares": shares})) as (ledger, _):
            kept = ledger.to_dict()["standing"]["shares"]
            bench.must(sum(Fraction(kept[name]) for name in ("sums", "stated", "tail")) == DELTA, f"shares {shares}")


@CHECKS(BOOK)
def other_relations_and_groups_cost_what_they_do(bench: Bench) -> None:
    with made(delta=0) as (ledger, _):
        ledger.charge(promise("0.1", relation="add-remove"), purpose="p")
        bench.must(ledger.spent.epsilon == Fraction(1, 5), "one replaced record is two steps of add and remove.")
    for group in (2, 3):
        with made(group=group, epsilon=20) as (ledger, _):
            ledger.charge(promise("0.1", "1e-8"), purpose="p")
            growth = sum(math.exp(0.1 * step) for step in range(group))
            bench.must(ledger.spent.epsilon == group * Fraction(1, 10), f"a group of {group} costs so many times epsilon.")
            bench.must(float(ledger.spent.delta) >= 1e-8 * growth * (1 - 1e-9), f"a group of {group}: delta")
    with made(epsilon=9) as (ledger, _):
        ledger.charge(promise(1, "1e-7"), purpose="p", price=gaussian("1/2", "1e-8", relation="add-remove"))
        ledger.charge(promise(1, "1e-7"), purpose="p", price=gaussian("1/2", "1e-8"))
        double, single = (entry.tau for entry in ledger.entries())
        bench.must(double is not None and single is not None and abs(float(double / single) - 4) < 1e-6, "two steps cost 4.")


@CHECKS(BOOK)
def limits_hold_for_accounts_and_ceilings(bench: Bench) -> None:
    with made(ceiling=4, accounts={"heart": "1/3"}, delta=0) as (ledger, path):
        heart = Ledger.open(path, account="heart")
        bench.must(_charged(heart, promise("0.5"), 9) == 2, "an account of a third admits a third.")
        ledger.raise_to(4, reason="r")
        refused(bench, ParameterError, lambda: ledger.raise_to(5, reason="r"), "a budget above the ceiling")
        bench.must(_charged(ledger, promise("0.5"), 9) == 6, "a raised budget admits what is left of it.")
    with made(accounts={"heart": "1/2"}) as (ledger, path):
        half = _charged(Ledger.open(path, account="heart"), promise("0.1"), 99)
        rest = _charged(ledger, promise("0.1"), 99)
        bench.must(half <= rest + 1, f"an account of a half admitted {half} where {rest} were left for all.")
        bench.must(_charged(Ledger.open(path, account="heart"), promise("0.1"), 1) == 0, "a full ledger admitted more.")
    with made(accounting="sums", accounts={"heart": "1/2"}) as (ledger, path):
        Ledger.open(path, account="heart").charge(promise("0.1", "5e-7"), purpose="p")
        refused(bench, ParameterError, lambda: ledger.convert(reason="r"), "a conversion that an account cannot keep")
    with made(accounting="sums") as (ledger, _):
        ledger.charge(promise("1/2", "1e-7"), purpose="p")
        ledger.convert(reason="r")
        used = ledger.to_dict()["standing"]["used"]
        bench.must(Fraction(used["tau"]) >= Fraction(1, 2), "an old charge lost its epsilon in a conversion.")


def refused(bench: Bench, kind: type[Exception], act: Callable[[], object], what: str) -> None:
    """Makes sure that something is refused."""
    try:
        act()
    except kind:
        return
    bench.fail(f"{what} was not refused.")


class _Watched(sqlite3.Connection):
    """Reads settings back whenever a change begins or ends; may lose rows on the way."""

    seen: ClassVar[list[tuple[Any, ...]]] = []
    losing: ClassVar[bool] = False

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        run = super().execute
        if statement == "COMMIT":
            self.seen.append(tuple(run(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "journal_mode")))
        if self.losing and statement.startswith("INSERT INTO book"):
            return run("SELECT 1")
        return run(statement, *values)


@CHECKS(BOOK)
def a_charge_waits_for_the_disk_alone_and_is_read_back(bench: Bench) -> str:
    connect: Callable[..., Any] = sqlite3.connect
    with made() as (ledger, path):
        with contextlib.closing(connect(path)) as other:
            other.execute("PRAGMA journal_mode=WAL")  # by another program
        bench.replace(sqlite3, "connect", lambda *about, **how: connect(*about, **how, factory=_Watched))
        bench.replace(_Watched, "seen", [])
        ledger.charge(promise("0.1"), purpose="p")
        bench.must(_Watched.seen and set(_Watched.seen) == {(3, "delete")}, f"written with {_Watched.seen}.")
        with ledger._store.writing(), contextlib.closing(connect(path, timeout=0, isolation_level=None)) as other:
            refused(bench, sqlite3.OperationalError, lambda: other.execute("BEGIN IMMEDIATE"), "a second writer")
        bench.replace(_Watched, "losing", True)
        refused(bench, LedgerError, lambda: ledger.charge(promise("0.1"), purpose="p"), "a disk that loses rows")
    return f"{len(_Watched.seen)} changes, synchronous and with a rollback journal"


def _rows(path: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as book:
        return book.execute("SELECT sequence, entry, key, record, hash FROM book ORDER BY sequence").fetchall()


def rewritten(path: Path, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Changes the records behind the ledger's back; every hash is made to fit."""
    rows = _rows(path)
    records = [json.loads(row[3]) for row in rows]
    change(records)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as book:
        guards = book.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in guards:
            book.execute(f"DROP TRIGGER {name}")
        book.execute("DELETE FROM book")
        previous = None
        for number, record in enumerate(records):
            if previous is not None:
                record["previous"] = previous
            text = json.dumps(record, sort_keys=True, separators=(",", ":"))
            previous = hashlib.sha256(text.encode()).hexdigest()
            key = rows[number][2] if number < len(rows) else None
            book.execute("INSERT INTO book VALUES (?, ?, ?, ?, ?)", (number, record["entry"], key, text, previous))
        for _, text in guards:
            book.execute(text)


def _halved(name: str) -> Callable[[list[dict[str, Any]]], None]:
    """Halves every amount of that name after the first row, but for what is promised."""

    def walk(thing: Any) -> None:
        for part, value in thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ():
            if part == name and isinstance(value, str) and "/" in value:
                thing[part] = "/".join(map(str, (Fraction(value) / 2).as_integer_ratio()))
            elif part not in ("guarantee", "price", "shares"):
                walk(value)

    def change(records: list[dict[str, Any]]) -> None:
        for record in records[1:]:
            walk(record)

    return change


def _again(records: list[dict[str, Any]]) -> None:
    """The last row once more: an entry is closed twice."""
    records.append(copy.deepcopy(records[-1]) | {"sequence": len(records)})


def _by_sums(records: list[dict[str, Any]]) -> None:
    for record in records[1:]:
        if record["kind"] == "reserve":
            record["body"]["rule"] = "sums"
        record["standing"]["rule"] = "sums"


def _forgotten(records: list[dict[str, Any]]) -> None:
    for record in records[1:]:
        record["spent"]["epsilon"] = "0/1"


def _beyond(records: list[dict[str, Any]]) -> None:
    for record in records:
        record["standing"]["limit"] = "9/1"


_FORGERIES: dict[str, Callable[[list[dict[str, Any]]], None]] = {
    "half the epsilons": _halved("epsilon"),
    "half the deltas": _halved("delta"),
    "half the prices": _halved("tau"),
    "an entry closed twice": _again,
    "a price counted by sums": _by_sums,
    "a forgotten sum": _forgotten,
    "a limit beyond the promise": _beyond,
}


@CHECKS(BOOK, forgery=tuple(_FORGERIES))
def a_book_forged_with_hashes_that_fit_is_refused(bench: Bench, forgery: str) -> None:
    with made() as (ledger, path):
        ledger.charge(promise(1, "1e-7"), purpose="p", price=gaussian(1, "1e-7"))
        ledger.charge(promise("0.5", "1e-8"), purpose="p")
        rewritten(path, lambda records: None)
        Ledger.open(path).verify()  # written anew as it was, it is taken
        rewritten(path, _FORGERIES[forgery])
        refused(bench, LedgerError, lambda: Ledger.open(path).verify(), forgery)


_ADDED = {
    "a trigger": "CREATE TRIGGER more AFTER INSERT ON book BEGIN SELECT 1; END",
    "a table": "CREATE TABLE more (cell)",
    "a result of no entry": "INSERT INTO payloads VALUES (99, x'00')",
}


@CHECKS(BOOK, added=tuple(_ADDED))
def what_does_not_belong_into_a_book_is_refused(bench: Bench, added: str) -> None:
    with made() as (ledger, path):
        ledger.charge(promise("0.1"), purpose="p")
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as book:
            book.execute(_ADDED[added])
        refused(bench, LedgerError, lambda: Ledger.open(path).verify(), added)


@CHECKS(_DOOR)
def the_door_out_charges_and_closes_the_way_back_before_it_draws(bench: Bench) -> None:
    steps: list[str] = []
    touch = Reservation.touch

    def touched(self: Any) -> Any:
        steps.append("no way back")
        return touch(self)

    with made() as (ledger, path):

        def draw() -> dict[str, Any]:
            steps.append(f"drawn after {Ledger.open(path).spent.epsilon}")
            return {"number": 1}

        def asked(coin: Any, draw: Callable[[], Any] = draw) -> Any:
            return publish(kind="k", guarantee=promise("0.1"), parameters={}, draw=draw, ledger=ledger, coin=coin)

        bench.replace(Reservation, "touch", touched)
        asked(os_coin())
        bench.must(steps == ["no way back", "drawn after 1/10"], f"the steps were {steps}.")
        refused(bench, SimulatedError, lambda: asked(seeded_coin(1)), "a seeded result")
        bench.must(len(steps) == 2 and ledger.spent.epsilon == Fraction(1, 10), "a seeded result was drawn or charged.")
        refused(bench, ZeroDivisionError, lambda: asked(os_coin(), lambda: {"number": 1 // 0}), "a failing draw")
        bench.must(Ledger.open(path).spent.epsilon == Fraction(1, 5), "a draw that failed gave its charge back.")
