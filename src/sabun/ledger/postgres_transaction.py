"""Rows and kept bytes in an open transaction on PostgreSQL."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from sabun.errors import LedgerError
from sabun.ledger.row import Row

__all__ = ["PostgresTransaction"]

_PIECE = 256


class PostgresTransaction:
    """One transaction on the server; it remembers what it was told to write, so that a change cut off can be made again."""

    def __init__(self, connection: Any, schema: str, place: str) -> None:
        self._connection = connection
        self._book, self._payloads = f'"{schema}".book', f'"{schema}".payloads'
        self._columns = f"SELECT sequence, entry, key, record, hash FROM {self._book}"
        self._place = place
        self._newest: Row | None = None
        self.added: list[Row] = []
        self.kept: dict[int, bytes] = {}

    def last(self) -> Row:
        """The newest row; asked for once, for nobody else can add one to what this transaction sees."""
        if self._newest is None:
            self.see(self.ask())
        assert self._newest is not None
        return self._newest

    def ask(self) -> Any:
        """Asks for the newest row; the answer is for `see`."""
        return self._connection.execute(f"{self._columns} ORDER BY sequence DESC LIMIT 1")

    def see(self, answer: Any) -> None:
        """Takes the newest row from an answer."""
        found = answer.fetchone()
        if found is None:
            raise LedgerError(f"{self._place}: the ledger has no rows; it was emptied. Restore it from a backup.")
        self._newest = self._read(*found)

    def at(self, sequence: int) -> Row | None:
        """The row with that number, or None."""
        if self._newest is not None and self._newest.sequence == sequence:
            return self._newest
        return next(iter(self._found("WHERE sequence = %s", sequence)), None)

    def rows(self, after: int = -1, *, limit: int | None = None) -> Iterator[Row]:
        """The rows with a number above `after`, oldest first, at most `limit` of them; fetched in pieces."""
        while (limit is None or limit > 0) and after < self.last().sequence:
            size = _PIECE if limit is None else min(limit, _PIECE)
            piece = self._found("WHERE sequence > %s ORDER BY sequence LIMIT %s", after, size)
            yield from piece
            if len(piece) < size:
                return
            after, limit = piece[-1].sequence, None if limit is None else limit - size

    def of_entry(self, entry: int) -> list[Row]:
        """The rows that speak of one entry, oldest first."""
        return self._found("WHERE entry = %s ORDER BY sequence", entry)

    def with_key(self, key: str) -> list[Row]:
        """The reserving rows with that key, oldest first."""
        return self._found("WHERE key = %s ORDER BY sequence", key)

    def _found(self, condition: str, *values: object) -> list[Row]:
        answer = self._connection.execute(f"{self._columns} {condition}", values)
        return [self._read(*columns) for columns in answer.fetchall()]

    def _read(self, sequence: int, entry: int, key: str | None, record: str, digest: str) -> Row:
        row = Row.read(record, digest, place=self._place)
        if (row.sequence, row.entry, row.key) != (sequence, entry, key):
            raise LedgerError(f"{self._place}: a row was moved or relabelled after it was written. Restore it from a backup.")
        return row

    def payload(self, entry: int) -> bytes | None:
        """The bytes kept for an entry, or None."""
        query = f"SELECT payload FROM {self._payloads} WHERE entry = %s"
        found = self._connection.execute(query, (entry,), binary=True).fetchone()
        return None if found is None else bytes(found[0])

    def counts(self) -> tuple[int, int]:
        """How many rows there are, and how many entries have bytes."""
        counts = f"SELECT (SELECT count(*) FROM {self._book}), (SELECT count(*) FROM {self._payloads})"
        rows, payloads = self._connection.execute(counts).fetchone()
        return rows, payloads

    def append(self, row: Row) -> None:
        """Adds a row, then reads it back: what is committed is what was meant."""
        values = row.sequence, row.entry, row.key, row.record, row.hash
        self.added.append(row)
        with self._connection.pipeline():
            self._connection.execute(f"INSERT INTO {self._book} VALUES (%s, %s, %s, %s, %s)", values)
            answer = self.ask()
        self.see(answer)
        if self.last().hash != row.hash:  # proof: read-back
            raise self._unlike(row.entry)

    def keep(self, entry: int, payload: bytes) -> None:
        """Keeps the bytes of an entry, then compares their digest with the server's."""
        self.kept[entry] = payload
        query = f"SELECT encode(sha256(payload), 'hex') FROM {self._payloads} WHERE entry = %s"
        with self._connection.pipeline():
            self._connection.execute(f"INSERT INTO {self._payloads} VALUES (%s, %b)", (entry, payload))
            answer = self._connection.execute(query, (entry,))
        if answer.fetchone() != (hashlib.sha256(payload).hexdigest(),):
            raise self._unlike(entry)

    def repeat(self, other: PostgresTransaction) -> None:
        """Writes again what another transaction was told to write."""
        for row in other.added:
            self.append(row)
        for entry, payload in other.kept.items():
            self.keep(entry, payload)

    def _unlike(self, entry: int) -> LedgerError:
        return LedgerError(
            f"{self._place} must hold entry {entry} as it was written, and does not: another program changes the tables. "
            "Nothing was written; restore the ledger from a backup."
        )
