"""A charge is on disk before anything is released for it: what SQLite is told on every connection that writes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sabun import Guarantee, Ledger
from sabun.ledger import sqlite_store

ABOUT_FILES = True

PROMISE = Guarantee(epsilon=1, unit="record")
PRAGMAS = {"synchronous": 3, "fullfsync": 1, "cache_spill": 0, "journal_mode": "delete"}
"""EXTRA, every cache down to the disk, pages in their order, a rollback journal."""


class _Watched(sqlite3.Connection):
    """Reads the settings back at every statement that begins or ends a change."""

    seen: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        if statement.startswith(("BEGIN IMMEDIATE", "COMMIT")):
            settings = {name: super(_Watched, self).execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
            self.seen.append((statement, settings))
        return super().execute(statement, *values)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    connect: Callable[..., Any] = sqlite3.connect
    monkeypatch.setattr(_Watched, "seen", [])
    monkeypatch.setattr(sqlite_store.sqlite3, "connect", lambda *about, **how: connect(*about, **how, factory=_Watched))
    return _Watched.seen


def _create(path: Path) -> Ledger:
    return Ledger.create(path, name="book", epsilon=9)


def _spoil(path: Path) -> None:
    """Another program switches the file to a write-ahead log, where a charge could be left behind."""
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("PRAGMA synchronous=OFF")
    other.close()


@pytest.mark.parametrize(
    "write",
    [
        lambda ledger: ledger.charge(PROMISE, purpose="x"),
        lambda ledger: ledger.reserve(PROMISE, purpose="x"),
        lambda ledger: ledger.reserve(PROMISE, purpose="x").commit(b"payload"),
        lambda ledger: ledger.reserve(PROMISE, purpose="x").void(),
        lambda ledger: ledger.reserve(PROMISE, purpose="x").touch(),
    ],
    ids=["charge", "reserve", "commit", "void", "touch"],
)
@pytest.mark.parametrize("spoilt", [False, True], ids=["its own", "spoilt"])
def test_every_write_waits_for_the_disk(
    write: Callable[[Ledger], Any], spoilt: bool, watched: list[tuple[str, dict[str, Any]]], tmp_path: Path
) -> None:
    _create(tmp_path / "book")
    if spoilt:
        _spoil(tmp_path / "book")
    made = len(watched)
    write(Ledger.open(tmp_path / "book"))
    assert len(watched) > made > 0
    assert {statement for statement, _ in watched} == {"BEGIN IMMEDIATE", "COMMIT"}
    assert [settings for _, settings in watched if settings != PRAGMAS] == []


def test_a_new_name_is_on_disk_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    synced: list[int] = []
    fsync = sqlite_store.os.fsync
    monkeypatch.setattr(sqlite_store.os, "fsync", lambda file: (synced.append(file), fsync(file)))
    _create(tmp_path / "book")
    assert len(synced) == 1
