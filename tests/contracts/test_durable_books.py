"""Whoever keeps a book in a file of SQLite's writes to it alone, and has it on disk before anybody is answered."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

import sabun
from sabun.keyvalue.client import Client, Diary
from sabun.ledger import Ledger
from sabun.privacy import Guarantee
from sabun.service.arrivals import read_reports
from sabun.service.report_store import Batch, Store
from sabun.service.round_keys import RoundKeys
from sabun.service.sqlite_session import SqliteDatabase
from service.devices import KV3, made_up

PACKAGE = Path(sabun.__file__).parent


def charge(folder: Path) -> None:
    Ledger.create(folder / "book", name="book", epsilon=1).charge(Guarantee(epsilon=0.1), purpose="p")


def answer(folder: Path) -> None:
    Client(KV3.terms, diary=Diary(folder / "diary")).report({"LINE": 1})


def collect(folder: Path) -> None:
    store = Store(SqliteDatabase(folder / "reports.sqlite"), RoundKeys(folder / "keys"))
    served = store.register(KV3)
    store.commit([Batch(served=served, number=0, arrival=read_reports(KV3, 0, made_up(KV3, 5, seed=1)))])
    store.database.close()


BOOKS: dict[str, Callable[[Path], None]] = {
    "keyvalue/client/diary.py": answer,
    "ledger/sqlite_store.py": charge,
    "service/sqlite_session.py": collect,
}


class Watched(sqlite3.Connection):
    """Notes how each change began, and how it is brought to disk."""

    changes: ClassVar[list[tuple[str, str, int]]] = []
    begun = ""
    before = 0

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        run = super().execute
        if statement.startswith("BEGIN"):
            self.begun, self.before = statement, self.total_changes
        if statement == "COMMIT" and self.total_changes > self.before:
            mode, waits = (run(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous"))
            self.changes.append((self.begun, mode, waits))
        return run(statement, *values)


def test_every_book_is_tried_here() -> None:
    keeping = {path for path in PACKAGE.rglob("*.py") if "sqlite3.connect(" in path.read_text(encoding="utf-8")}
    assert {str(path.relative_to(PACKAGE)) for path in keeping if path.parent.name != "audit"} == set(BOOKS)


@pytest.mark.parametrize("book", BOOKS)
def test_a_change_is_made_alone_and_waits_for_the_disk(book: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect: Callable[..., Any] = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *about, **how: connect(*about, **how, factory=Watched))
    monkeypatch.setattr(Watched, "changes", [])
    BOOKS[book](tmp_path)
    assert Watched.changes
    for begun, mode, waits in Watched.changes:
        assert begun == "BEGIN IMMEDIATE", "two processes could read the same totals"
        # A log is synced by FULL; a journal that goes away must be gone from its folder too, which only EXTRA waits for.
        assert waits >= {"wal": 2, "delete": 3}[mode], "what was answered may be lost with the power"
