"""Laws of the ledger: what is booked stays booked, and whoever changes it is noticed."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

from sabun.asking.evidence import Bench, Checklist
from sabun.audit.altered import altered
from sabun.errors import BudgetExceeded, LedgerError, SabunError
from sabun.ledger import Ledger
from sabun.ledger.row import Row
from sabun.privacy import Guarantee

__all__ = ["CHECKS"]

CHECKS = Checklist()

_TENTH = Guarantee(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7), mechanism="made up")


@contextmanager
def _ledger(**terms: Any) -> Iterator[tuple[Ledger, Path]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book"
        facts: dict[str, Any] = {"epsilon": 1, "delta": Fraction(1, 10**5), "accounting": "sums"} | terms
        yield Ledger.create(path, name="book", unit="record", **facts), path


@CHECKS("budget", accounting=["sums", "shares"])
def _charges_add_up_to_the_last_one_and_no_further(bench: Bench, accounting: str) -> str:
    """Ten tenths are one, exactly; the eleventh is refused and leaves the book as it was."""
    with _ledger(accounting=accounting) as (ledger, path):
        for number in range(10):
            bench.must(ledger.spent.epsilon == Fraction(number, 10), f"{ledger.spent} was spent after {number} charges.")
            ledger.charge(_TENTH, purpose="x")
            bench.must(Ledger.open(path).spent.epsilon == Fraction(number + 1, 10), "a charge is not in the book on disk.")
        bench.must(ledger.spent.delta == Fraction(10, 10**7), f"{ledger.spent.delta} of delta was spent.")
        before = path.read_bytes()
        try:
            ledger.charge(_TENTH, purpose="x")
        except BudgetExceeded:
            bench.must(path.read_bytes() == before, "a refusal wrote to the book.")
        else:
            bench.fail("more than everything was spent.")
        bench.must(len(Ledger.open(path).entries()) == 10, "a refusal left an entry.")
    return "ten tenths of epsilon, ten of delta; the eleventh refused, the file the same"


@CHECKS("budget")
def _delta_alone_is_enough_to_refuse(bench: Bench) -> None:
    with _ledger(epsilon=1000, delta=Fraction(3, 10**7)) as (ledger, _):
        for _ in range(3):
            ledger.charge(_TENTH, purpose="x")
        try:
            ledger.charge(_TENTH, purpose="x")
        except BudgetExceeded:
            return
        bench.fail("more delta than there is was spent.")


@CHECKS("reservation")
def _a_charge_comes_back_only_before_data_was_touched_and_only_once(bench: Bench) -> None:
    with _ledger() as (ledger, path):
        given_back = ledger.reserve(_TENTH, purpose="x")
        bench.must(Ledger.open(path).spent.epsilon == Fraction(1, 10), "a reservation is not charged.")
        given_back.void()
        bench.must(not any(Ledger.open(path).spent), "what was voided stays charged.")
        _refused(bench, given_back.void, "it was given back twice")
        _refused(bench, lambda: given_back.commit(b"x"), "a voided charge got a result")
        touched = ledger.reserve(_TENTH, purpose="x")
        touched.touch()
        _refused(bench, touched.void, "it was given back after data was touched")
        touched.commit(b"result")
        _refused(bench, lambda: touched.commit(b"another"), "two results for one charge")
        _refused(bench, touched.void, "it was given back after its result was kept")
        bench.must(Ledger.open(path).spent.epsilon == Fraction(1, 10), "the charge is not in the book.")


def _refused(bench: Bench, call: Any, words: str) -> None:
    try:
        call()
    except SabunError:
        return
    bench.fail(f"{words}.")


@CHECKS("reservation")
def _a_key_returns_the_same_bytes_and_only_to_the_same_question(bench: Bench) -> None:
    with _ledger() as (ledger, _):
        made = ledger.reserve(_TENTH, purpose="x", key="k")
        made.touch()
        made.commit(b"result")
        found = ledger.recall("k", guarantee=_TENTH, purpose="x")
        bench.must(found is not None and found[1] == b"result", "other bytes came back.")
        bench.must(ledger.spent.epsilon == Fraction(1, 10), "a repeat was charged.")
        for changed in altered(_TENTH.to_dict()):
            with suppress(SabunError):
                other = Guarantee.from_dict(changed.record)
                if other != _TENTH:
                    _refused(
                        bench, lambda asked=other: ledger.recall("k", guarantee=asked, purpose="x"), f"another {changed.way}"
                    )
        _refused(bench, lambda: ledger.recall("k", guarantee=_TENTH, purpose="y"), "another purpose got its bytes")


@CHECKS("book")
def _every_altered_field_of_a_row_is_refused(bench: Bench) -> str:
    """A byte changed in place, and forgeries with a fitting hash of every number that later rows build upon."""
    with _ledger(accounting="shares") as (ledger, path):
        for _ in range(3):
            made = ledger.reserve(_TENTH, purpose="x")
            made.touch()
            made.commit(b"result")
        rows, tried = _rows(path), 0
        for sequence, record, own in rows:
            for changed in altered(json.loads(record)):
                text = json.dumps(changed.record, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
                _refused(bench, lambda text=text, own=own: Row.read(text, own, place="here"), f"row {sequence}, {changed.way}")
                tried += 1
        original = path.read_bytes()
        for name in ("sequence", "entry", "entries", "previous", "spent", "standing", "kind"):
            sequence, record, _ = rows[-1]
            for changed in altered(json.loads(record)[name]):
                forged = json.loads(record) | {name: changed.record}
                text = json.dumps(forged, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
                _rewrite(path, sequence, text)
                _refused(bench, lambda: Ledger.open(path).verify(), f"a forged {name}{changed.way} was taken")
                path.write_bytes(original)
                tried += 1
        bench.must(Ledger.open(path).verify().entries == 3, "the book itself was broken on the way.")
    return f"{tried} changes, all refused"


def _rows(path: Path) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(path)) as base:
        table, columns = _table(base)
        found = base.execute(f"SELECT sequence, {columns[0]}, {columns[1]} FROM {table} ORDER BY sequence").fetchall()
    return [(int(number), str(record), str(own)) for number, record, own in found]


def _table(base: sqlite3.Connection) -> tuple[str, tuple[str, str]]:
    """The table of rows, with the names of the record and its hash, as any database tool shows them."""
    for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [row[1] for row in base.execute(f"PRAGMA table_info({name})").fetchall()]
        if "record" in columns and "hash" in columns:
            return str(name), ("record", "hash")
    raise LedgerError("the book must have a table of rows; it has none.")


def _rewrite(path: Path, sequence: int, text: str) -> None:
    own = hashlib.sha256(text.encode("ascii")).hexdigest()
    with closing(sqlite3.connect(path)) as base:
        table, _ = _table(base)
        for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            base.execute(f"DROP TRIGGER {name}")
        base.execute(f"UPDATE {table} SET record = ?, hash = ? WHERE sequence = ?", (text, own, sequence))
        base.commit()


@CHECKS("book")
def _a_charge_waits_for_the_disk(bench: Bench) -> str:
    """SQLite's own word: every commit syncs the file and its journal, and the journal goes away only after that."""
    asked: list[str] = []
    true = sqlite3.connect

    def connect(*given: Any, **how: Any) -> Any:
        base = true(*given, **how)
        base.set_trace_callback(asked.append)
        return base

    bench.replace(sqlite3, "connect", connect)
    with _ledger() as (ledger, _):
        asked.clear()
        ledger.reserve(_TENTH, purpose="x")
    settings = " ".join(asked).lower().replace(" ", "")
    bench.must("synchronous=extra" in settings or "synchronous=3" in settings, "a commit may be lost with the power.")
    bench.must(not any(f"journal_mode={mode}" in settings for mode in ("off", "memory")), "a crash would break the book.")
    return "synchronous=EXTRA: the file, its journal and their folder"
