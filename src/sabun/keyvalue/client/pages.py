"""One page of a device's book: what can be read and written between opening and closing it, all of which is kept or none.

A book is a file (SQLite) or lies in memory (one dictionary); a page says the same of both. Proved in pages.proof.md.
"""

from __future__ import annotations

import secrets
import sqlite3
from fractions import Fraction
from typing import Any, Protocol, final

from .bounds import decimal_text
from .refusals import BudgetRefused, DiaryError

__all__ = ["TABLES", "Book", "Page", "Rows", "Staged", "Transaction"]

TABLES = (
    "CREATE TABLE device (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
    "CREATE TABLE enrolment (task TEXT PRIMARY KEY, credential BLOB NOT NULL, place INTEGER) STRICT",
    "CREATE TABLE spent (task TEXT, round INTEGER, epsilon TEXT NOT NULL, PRIMARY KEY (task, round)) STRICT",
    "CREATE TABLE memory (task TEXT, state BLOB, answer BLOB NOT NULL, PRIMARY KEY (task, state)) STRICT",
    "CREATE TABLE sent (task TEXT, round INTEGER, report BLOB NOT NULL, PRIMARY KEY (task, round)) STRICT",
)
_FIND = {
    "device": "SELECT value FROM device WHERE name = ?",
    "enrolment": "SELECT credential, place FROM enrolment WHERE task = ?",
    "spent": "SELECT epsilon FROM spent WHERE task = ? LIMIT 1",
    "memory": "SELECT answer FROM memory WHERE task = ? AND state = ?",
    "sent": "SELECT report FROM sent WHERE task = ? AND round = ?",
}
_ADD = {
    "device": "INSERT OR REPLACE INTO device VALUES (?, ?)",
    "enrolment": "INSERT INTO enrolment VALUES (?, ?, ?)",
    "spent": "INSERT INTO spent VALUES (?, ?, ?)",
    "memory": "INSERT INTO memory VALUES (?, ?, ?)",
    "sent": "INSERT INTO sent VALUES (?, ?, ?)",
}
_KEY = {"device": 1, "enrolment": 1, "spent": 1, "memory": 2, "sent": 2}
"""By how many of its first columns a row is found."""

Book = dict[tuple[Any, ...], tuple[Any, ...]]
"""A book in memory: the rest of a row, by its table and key."""


class Rows(Protocol):
    """Where a page's rows lie."""

    def find(self, table: str, *key: Any) -> tuple[Any, ...] | None:
        """What stands behind a key; of a study's charges, one of them."""

    def add(self, table: str, *row: Any) -> None:
        """Keeps a row once the page is closed."""

    def total(self) -> Fraction:
        """Everything booked."""

    def set_total(self, total: Fraction) -> None:
        """Keeps it once the page is closed."""


@final
class Transaction:
    """The rows of a file, within an open transaction."""

    __slots__ = ("_base",)

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def find(self, table: str, *key: Any) -> tuple[Any, ...] | None:
        """Reads a row."""
        row: tuple[Any, ...] | None = self._base.execute(_FIND[table], key).fetchone()
        return row

    def add(self, table: str, *row: Any) -> None:
        """Writes a row; the transaction keeps or forgets it."""
        self._base.execute(_ADD[table], row)

    def total(self) -> Fraction:
        """Reads the total, kept as text."""
        return Fraction(bytes(_there(self.find("device", "spent"))[0]).decode())

    def set_total(self, total: Fraction) -> None:
        """Writes it."""
        self.add("device", "spent", str(total).encode())


@final
class Staged:
    """The rows of a book in memory; new ones wait beside it."""

    __slots__ = ("_book", "written")

    def __init__(self, book: Book) -> None:
        self._book = book
        self.written: Book = {}
        """In order: a charge stands before the answer it pays for."""

    def find(self, table: str, *key: Any) -> tuple[Any, ...] | None:
        """Reads a row, a new one first."""
        return self.written.get((table, *key)) or self._book.get((table, *key))

    def add(self, table: str, *row: Any) -> None:
        """Puts a row beside the book."""
        cut = _KEY[table]
        self.written[(table, *row[:cut])] = row[cut:]

    def total(self) -> Fraction:
        """Reads the total."""
        total: Fraction = _there(self.find("device", "spent"))[0]
        return total

    def set_total(self, total: Fraction) -> None:
        """Puts it beside the book."""
        self.add("device", "spent", total)


@final
class Page:
    """What a device's book can tell and be told."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def prepare(self) -> None:
        """Makes what is not there yet: the device's secret, a total of 0."""
        if self._rows.find("device", "secret") is None:
            self._rows.add("device", "secret", secrets.token_bytes(32))  # proof: once
        if self._rows.find("device", "spent") is None:
            self._rows.set_total(Fraction(0))

    def secret(self) -> bytes:
        """32 bytes that never leave the device."""
        return bytes(_there(self._rows.find("device", "secret"))[0])

    def spent(self) -> Fraction:
        """Everything booked so far."""
        return self._rows.total()

    def charge(self, task: str, number: int, epsilon: Fraction, *, limit: Fraction | None) -> None:
        """Books a round of a study.

        Raises:
            BudgetRefused: The device's budget would be exceeded.
        """
        before = self.spent()
        total = before + epsilon
        if limit is not None and total > limit:  # proof: cap
            raise BudgetRefused(
                f"this device has epsilon {decimal_text(limit - before)} of {decimal_text(limit)} left; this report needs "
                f"{decimal_text(epsilon)}. Nothing was drawn, nothing was booked."
            )
        self._rows.set_total(total)
        self._rows.add("spent", task, number, str(epsilon))

    def booked(self, task: str) -> bool:
        """Whether any round of a study was booked."""
        return self._rows.find("spent", task) is not None

    def enrolment(self, task: str) -> tuple[bytes, int | None] | None:
        """The credential and the chosen key of a study."""
        row = self._rows.find("enrolment", task)
        return None if row is None else (bytes(row[0]), row[1])

    def enrol(self, task: str, credential: bytes, place: int | None) -> None:
        """Keeps them."""
        self._rows.add("enrolment", task, credential, place)

    def remembered(self, task: str, state: bytes) -> bytes | None:
        """The permanent answer for a state."""
        row = self._rows.find("memory", task, state)
        return None if row is None else bytes(row[0])

    def remember(self, task: str, state: bytes, answer: bytes) -> None:
        """Keeps it."""
        self._rows.add("memory", task, state, answer)

    def sent(self, task: str, number: int) -> bytes | None:
        """The bytes of a report that was made before."""
        row = self._rows.find("sent", task, number)
        return None if row is None else bytes(row[0])

    def keep(self, task: str, number: int, report: bytes) -> None:
        """Keeps them."""
        self._rows.add("sent", task, number, report)


def _there(row: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if row is None:
        raise DiaryError("the diary must hold its device's secret and total; it does not. Nothing was sent.")
    return row
