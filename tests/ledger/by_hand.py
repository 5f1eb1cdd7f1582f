"""Rows made and inserted by hand, past the ledger."""

from __future__ import annotations

from fractions import Fraction

from ledger.behind import on_server
from sabun.ledger.row import next_row, seal_of
from sabun.ledger.statement import Budget

__all__ = ["insert", "ledger_row"]


def ledger_row(view, guarantee):
    last, amount = view.last(), Budget(*map(Fraction, guarantee.cost))
    words = {"purpose": "first", "guarantee": guarantee.to_dict(), "note": "", "software": "a test", "void_seal": seal_of(b"")}
    return next_row(last, kind="reserve", entry=last.entries + 1, body=words | amount.to_dict(), amount=amount)


def insert(place, row):
    key = "NULL" if row.key is None else f"'{row.key}'"
    on_server(place, f"INSERT INTO book VALUES ({row.sequence}, {row.entry}, {key}, '{row.record}', '{row.hash}')")
