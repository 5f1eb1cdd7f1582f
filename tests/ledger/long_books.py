"""Ledgers with very many entries, written in one go: for tests and benchmarks, for nothing here makes a charge durable."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

from sabun.ledger import Ledger
from sabun.ledger.row import Row, next_row, seal_of
from sabun.ledger.statement import Budget
from sabun.privacy.guarantee import Guarantee

__all__ = ["EACH", "long_book"]

EACH = Guarantee(epsilon="1/1000", unit="patient", mechanism="count")
"""What every entry promises."""

_RESULT = b"result"
_DONE = {"payload_sha256": hashlib.sha256(_RESULT).hexdigest(), "payload_size": len(_RESULT)}


def long_book(path: Path, entries: int, *, key: str | None = None) -> Path:
    """Makes a sound ledger with that many charges and room for as many again; `key` names entry 1."""
    Ledger.create(path, name="long", unit="patient", epsilon=Fraction(max(entries, 1), 500))
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        [(record, digest)] = file.execute("SELECT record, hash FROM book").fetchall()
        first = Row.read(record, digest, place="here")
        file.execute("PRAGMA synchronous=OFF")
        file.execute("PRAGMA cache_size=-200000")
        file.execute("BEGIN")
        rows = _rows(first, entries, key)
        file.executemany(
            "INSERT INTO book VALUES (?, ?, ?, ?, ?)",
            ((row.sequence, row.entry, row.key, row.record, row.hash) for row in rows),
        )
        file.executemany("INSERT INTO payloads VALUES (?, ?)", ((entry, _RESULT) for entry in range(1, entries + 1)))
        file.execute("COMMIT")
    return path


def _rows(last: Row, entries: int, key: str | None) -> Iterator[Row]:
    amount = Budget(*map(Fraction, EACH.cost))
    words = {"purpose": "p", "guarantee": EACH.to_dict(), "note": "", "software": "a test", "void_seal": seal_of(b"")}
    for entry in range(1, entries + 1):
        name = key if entry == 1 else None
        last = next_row(last, kind="reserve", entry=entry, body=words | amount.to_dict(), amount=amount, key=name)
        yield last
        last = next_row(last, kind="commit", entry=entry, body=_DONE, amount=amount, time=last.time)
        yield last
