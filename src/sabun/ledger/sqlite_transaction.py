"""Rows and kept bytes in an open SQLite transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from sabun.errors import LedgerError
from sabun.ledger.row import Row

__all__ = ["SqliteTransaction"]

_COLUMNS = "SELECT sequence, entry, key, record, hash FROM book"


class SqliteTransaction:
    """One transaction on the file."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    def last(self) -> Row:
        """The newest row."""
        found = self._rows("ORDER BY sequence DESC LIMIT 1")
        for row in found:
            return row
        raise LedgerError(f"{self._place}: the ledger has no rows; it was emptied. Restore it from a backup.")

    def at(self, sequence: int) -> Row | None:
        """The row with that number, or None."""
        return next(self._rows("WHERE sequence = ?", sequence), None)

    def rows(self, after: int = -1, *, limit: int | None = None) -> Iterator[Row]:
        """The rows with a number above `after`, oldest first, at most `limit` of them."""
        return self._rows("WHERE sequence > ? ORDER BY sequence LIMIT ?", after, -1 if limit is None else limit)

    def of_entry(self, entry: int) -> list[Row]:
        """The rows that speak of one entry, oldest first."""
        return list(self._rows("WHERE entry = ? ORDER BY sequence", entry))

    def with_key(self, key: str) -> list[Row]:
        """The reserving rows with that key, oldest first."""
        return list(self._rows("WHERE key = ? ORDER BY sequence", key))

    def _rows(self, condition: str, *values: object) -> Iterator[Row]:
        for sequence, entry, key, record, digest in self._connection.execute(f"{_COLUMNS} {condition}", values):
            row = Row.read(record, digest, place=self._place)
            if (row.sequence, row.entry, row.key) != (sequence, entry, key):
                raise LedgerError(
                    f"{self._place}: a row was moved or relabelled after it was written. Restore it from a backup."
                )
            yield row

    def payload(self, entry: int) -> bytes | None:
        """The bytes kept for an entry, or None."""
        found = self._connection.execute("SELECT payload FROM payloads WHERE entry = ?", (entry,)).fetchone()
        if found is None:
            return None
        if not isinstance(found[0], bytes):
            raise LedgerError(f"{self._place}: the kept bytes of entry {entry} were changed. Restore it from a backup.")
        return found[0]

    def counts(self) -> tuple[int, int]:
        """How many rows there are, and how many entries have bytes."""
        counts = "SELECT (SELECT count(*) FROM book), (SELECT count(*) FROM payloads)"
        [(rows, payloads)] = self._connection.execute(counts).fetchall()
        return rows, payloads

    def append(self, row: Row) -> None:
        """Adds a row, then reads it back: what is committed is what was meant."""
        self._connection.execute(
            "INSERT INTO book VALUES (?, ?, ?, ?, ?)", (row.sequence, row.entry, row.key, row.record, row.hash)
        )
        if self.last().hash != row.hash:
            raise self._unlike(row.entry)

    def keep(self, entry: int, payload: bytes) -> None:
        """Keeps the bytes of an entry, then reads them back."""
        self._connection.execute("INSERT INTO payloads VALUES (?, ?)", (entry, payload))
        if self.payload(entry) != payload:
            raise self._unlike(entry)

    def _unlike(self, entry: int) -> LedgerError:
        return LedgerError(
            f"{self._place} must hold entry {entry} as it was written, and does not: another program changes the file. "
            "Nothing was written; restore the ledger from a backup."
        )
