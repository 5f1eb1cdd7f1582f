"""Idempotency keys: a retried release is free only when it returns the identical bytes."""

from __future__ import annotations

from sabun import checks
from sabun.errors import ParameterError
from sabun.ledger.row import Row
from sabun.ledger.store import Transaction
from sabun.privacy.guarantee import Guarantee

__all__ = ["LONGEST_KEY", "answer", "check_key", "refuse_answered"]

LONGEST_KEY = 200


def check_key(key: str | None) -> None:
    """A key is None or a short printable text."""
    good = key is None or (isinstance(key, str) and len(key.strip()) > 0 and len(key) <= LONGEST_KEY and key.isprintable())
    checks.require(good, f"a printable text of at most {LONGEST_KEY} characters", key=key)


def answer(book: Transaction, key: str, guarantee: Guarantee, purpose: str) -> tuple[Row, Row] | None:
    """The reserving row of the key's earliest commit, with that commit; other uses of the key are an error.

    The earliest, because two processes may have paid for the same key at once and every later caller must get the same bytes.
    """
    asked, found = guarantee.to_dict(), list[tuple[Row, Row]]()
    for row in book.with_key(key):
        closing = book.of_entry(row.entry)[1:]
        if closing and closing[0].kind == "void":
            continue
        if row.body.get("guarantee") != asked or row.body.get("purpose") != purpose:
            raise ParameterError(
                f"key must be new for another guarantee or purpose; got {key!r}, used before. Choose a new key."
            )
        if closing:
            found.append((row, closing[0]))
    return min(found, key=lambda pair: pair[1].sequence, default=None)


def refuse_answered(book: Transaction, key: str, guarantee: Guarantee, purpose: str) -> None:
    """Raises when a key already has a result, which the caller should take instead of paying again."""
    if answer(book, key, guarantee, purpose) is not None:
        raise ParameterError(
            f"key must be new or unanswered; got {key!r}, which already has a result. Take that one with Ledger.recall, "
            "or choose a new key to pay for another."
        )
