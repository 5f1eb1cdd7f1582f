"""Rows and kept bytes in an open transaction on PostgreSQL.

A server may be far away, so little is asked for and much at once: the newest rows come with the beginning of the transaction;
what is appended is sent, compared there with what was meant, and committed in one go, or sent before the next look at rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sabun.errors import LedgerError
from sabun.ledger.postgres_line import psycopg
from sabun.ledger.row import Row

__all__ = ["PostgresTransaction"]

_PIECE = 256
_RECENT = 32
"""How many of the newest rows are fetched at once; a client that charges among others has seldom missed more."""


# Divides by zero where a row or kept bytes are not there as they were sent: an error, after which nothing can be committed.
_CHECK = """
SELECT 1 / (
  (SELECT string_agg(concat_ws(' ', sequence, entry, coalesce(key, ''), hash,
      encode(sha256(convert_to(record, 'UTF8')), 'hex')), E'\\n' ORDER BY sequence)
    FROM (SELECT * FROM {book} ORDER BY sequence DESC LIMIT {rows}) AS newest) IS NOT DISTINCT FROM %s
  AND (SELECT string_agg(concat_ws(' ', entry, encode(sha256(payload), 'hex')), E'\\n' ORDER BY entry)
    FROM {payloads} WHERE entry IN ({entries})) IS NOT DISTINCT FROM %s)::int
"""


class PostgresTransaction:
    """One transaction on the server; it remembers what it was told to write, so that a change cut off can be made again."""

    def __init__(self, connection: Any, schema: str, place: str, *, known: Row | None = None) -> None:
        self._connection = connection
        self._remembered = known
        self._book, self._payloads = f'"{schema}".book', f'"{schema}".payloads'
        self._columns = f"SELECT sequence, entry, key, record, hash FROM {self._book}"
        self._place = place
        self.ending = False
        self._recent: dict[int, Row | tuple[Any, ...]] = {}
        self._unsent: list[Row] = []
        self._unkept: dict[int, bytes] = {}
        self.added: list[Row] = []
        self.kept: dict[int, bytes] = {}

    def last(self) -> Row:
        """The newest row; nobody else can add one to what this transaction sees."""
        if self.added:
            return self.added[-1]
        if not self._recent:
            self.see(self.ask())
        return self._known(max(self._recent))

    def ask(self) -> Any:
        """Asks for the newest rows, from the one that is remembered on; the answer is for `see`."""
        since = -1 if self._remembered is None else self._remembered.sequence
        query = f"{self._columns} WHERE sequence >= %s ORDER BY sequence DESC LIMIT {_RECENT}"
        return self._connection.execute(query, (since,))

    def see(self, answer: Any) -> None:
        """Takes the newest rows from an answer."""
        self._recent = {columns[0]: columns for columns in answer.fetchall()}
        if not self._recent and self._remembered is not None:  # an older book than the one that is remembered
            self._remembered = None
            self.see(self.ask())
        if not self._recent:
            raise LedgerError(f"{self._place}: the ledger has no rows; it was emptied. Restore it from a backup.")

    def _known(self, sequence: int) -> Row:
        """One of the newest rows, read when it is wanted."""
        row = self._recent[sequence]
        if not isinstance(row, Row):
            self._recent[sequence] = row = self._read(*row)
        return row

    def at(self, sequence: int) -> Row | None:
        """The row with that number, or None."""
        if sequence in self._recent:
            return self._known(sequence)
        return next(iter(self._found("WHERE sequence = %s", sequence)), None)

    def rows(self, after: int = -1, *, limit: int | None = None) -> Iterator[Row]:
        """The rows with a number above `after`, oldest first, at most `limit` of them; fetched in pieces."""
        while (limit is None or limit > 0) and after < self.last().sequence:
            size = _PIECE if limit is None else min(limit, _PIECE)
            piece = self._piece(after, size)
            yield from piece
            if len(piece) < size:
                return
            after, limit = piece[-1].sequence, None if limit is None else limit - size

    def _piece(self, after: int, size: int) -> list[Row]:
        wanted = range(after + 1, self.last().sequence + 1)
        if not self.added and len(wanted) <= size and all(number in self._recent for number in wanted):
            return [self._known(number) for number in wanted]
        return self._found("WHERE sequence > %s ORDER BY sequence LIMIT %s", after, size)

    def of_entry(self, entry: int) -> list[Row]:
        """The rows that speak of one entry, oldest first."""
        return self._found("WHERE entry = %s ORDER BY sequence", entry)

    def with_key(self, key: str) -> list[Row]:
        """The reserving rows with that key, oldest first."""
        return self._found("WHERE key = %s ORDER BY sequence", key)

    def _found(self, condition: str, *values: object) -> list[Row]:
        self.send()
        answer = self._connection.execute(f"{self._columns} {condition}", values)
        return [self._read(*columns) for columns in answer.fetchall()]

    def _read(self, sequence: int, entry: int, key: str | None, record: str, digest: str) -> Row:
        row = self._remembered  # most often its record comes again, and what was read needs no second reading
        if row is None or (row.record, row.hash) != (record, digest):
            row = Row.read(record, digest, place=self._place)
        if (row.sequence, row.entry, row.key) != (sequence, entry, key):
            raise LedgerError(f"{self._place}: a row was moved or relabelled after it was written. Restore it from a backup.")
        return row

    def payload(self, entry: int) -> bytes | None:
        """The bytes kept for an entry, or None."""
        self.send()
        query = f"SELECT payload FROM {self._payloads} WHERE entry = %s"
        found = self._connection.execute(query, (entry,), binary=True).fetchone()
        return None if found is None else bytes(found[0])

    def counts(self) -> tuple[int, int]:
        """How many rows there are, and how many entries have bytes."""
        self.send()
        counts = f"SELECT (SELECT count(*) FROM {self._book}), (SELECT count(*) FROM {self._payloads})"
        rows, payloads = self._connection.execute(counts).fetchone()
        return rows, payloads

    def append(self, row: Row) -> None:
        """Adds a row."""
        self.added.append(row)
        self._unsent.append(row)

    def keep(self, entry: int, payload: bytes) -> None:
        """Keeps the bytes of an entry, whose row was added before."""
        self.kept[entry] = payload
        self._unkept[entry] = payload

    def send(self) -> None:
        """Writes what was added since the last time: what the server then holds is what was meant, or it is an error."""
        if self._unsent or self._unkept:
            with self._meant(), self._connection.pipeline():
                self._write()

    def commit(self) -> None:
        """Ends the change; what was not sent yet goes in the same exchange, which the server leaves at the first error."""
        with self._meant(), self._warned() as warnings, self._connection.pipeline():
            self._write()
            self.ending = True
            answer = self._connection.execute("COMMIT")
        # A transaction in which anything failed answers COMMIT with ROLLBACK, and without an error.
        if answer.statusmessage != "COMMIT":
            raise psycopg.errors.SerializationFailure(f"the server answered {answer.statusmessage}")
        # Where somebody ended the wait for a synchronous standby, COMMIT is answered with a warning alone.
        if warnings:
            raise psycopg.OperationalError("the server warned when it committed")

    @contextmanager
    def _warned(self) -> Iterator[list[str]]:
        """What the server warns of meanwhile."""
        warnings: list[str] = []

        def hear(note: Any) -> None:
            if note.severity_nonlocalized == "WARNING":
                warnings.append(note.sqlstate or "")

        self._connection.add_notice_handler(hear)
        try:
            yield warnings
        finally:
            self._connection.remove_notice_handler(hear)

    def mark(self) -> None:
        """Writes to the log what is no row: the end of a change that wrote nothing would wait for no disk and no standby."""
        self._connection.execute("SELECT pg_logical_emit_message(true, 'sabun', '')")

    def _write(self) -> None:
        rows, kept, self._unsent, self._unkept = self._unsent, self._unkept, [], {}
        if rows:
            values = [value for row in rows for value in (row.sequence, row.entry, row.key, row.record, row.hash)]
            places = ", ".join(["(%s, %s, %s, %s, %s)"] * len(rows))
            self._connection.execute(f"INSERT INTO {self._book} VALUES {places}", values)
        for entry, payload in kept.items():
            self._connection.execute(f"INSERT INTO {self._payloads} VALUES (%s, %b)", (entry, payload))
        if rows or kept:
            entries = ", ".join(["%s"] * len(kept)) or "NULL"
            check = _CHECK.format(book=self._book, payloads=self._payloads, rows=len(rows), entries=entries)
            self._connection.execute(check, (_lines(rows), *sorted(kept), _digests(kept)))

    @contextmanager
    def _meant(self) -> Iterator[None]:
        try:
            yield
        except psycopg.errors.DivisionByZero:
            raise LedgerError(
                f"{self._place} must hold every row as it was written, and does not: another program changes the tables. "
                "Nothing was written; restore the ledger from a backup."
            ) from None

    def repeat(self, other: PostgresTransaction) -> None:
        """Writes again what another transaction was told to write."""
        for row in other.added:
            self.append(row)
        for entry, payload in other.kept.items():
            self.keep(entry, payload)


def _lines(rows: list[Row]) -> str | None:
    lines = (f"{row.sequence} {row.entry} {row.key or ''} {row.hash} {row.hash}" for row in rows)
    return "\n".join(lines) or None


def _digests(kept: dict[int, bytes]) -> str | None:
    return "\n".join(f"{entry} {hashlib.sha256(kept[entry]).hexdigest()}" for entry in sorted(kept)) or None
