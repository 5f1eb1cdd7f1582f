"""What a ledger needs from the place where its rows are kept.

A store keeps bytes and gives transactions; it knows nothing of privacy. Two are there: `sqlite_store.py`, `postgres_store.py`.
Whoever adds one implements these two protocols and hands the store to `Ledger.create` or `Ledger.open` in place of a path. The
laws it must keep:

1. Two `writing` blocks never overlap, whichever processes they are in; each sees all that earlier ones appended.
2. When a `writing` block ends without an exception, what it appended survives a crash of the machine, and is part of whatever a
   user would move or copy as "the ledger" (a file with a second file beside it that holds the newest rows breaks this law).
3. When it ends with an exception, nothing it appended remains.
4. A failure of the place itself is a `LedgerError` (`Unavailable` when the same call may succeed later, which never says what
   was charged: that is for the caller to know); exceptions of the block pass through unchanged.
5. A writer gets its turn however many readers there are, and readers however many writers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from sabun.errors import LedgerError
from sabun.ledger.row import Row

__all__ = ["Store", "Transaction", "Unavailable"]


class Unavailable(LedgerError):
    """The place was held by others, or could not be written: the same call may succeed later.

    Args:
        what: What happened.
        advice: What to do.
        means: What that means for a charge; whoever makes one says it, for the place does not know.
        written: Whether the change may have reached the disk all the same.
    """

    def __init__(self, what: str, advice: str, *, means: str = "", written: bool = False) -> None:
        super().__init__(" ".join(filter(None, (what, means, advice))))
        self._parts = what, advice
        self.written = written

    def meaning(self, means: str) -> Unavailable:
        """The same, with what it means for a charge."""
        return Unavailable(*self._parts, means=means, written=self.written)


class Transaction(Protocol):
    """One consistent view of the rows."""

    def last(self) -> Row:
        """The newest row."""

    def at(self, sequence: int) -> Row | None:
        """The row with that number, or None."""

    def rows(self, after: int = -1, *, limit: int | None = None) -> Iterator[Row]:
        """The rows with a number above `after` (all when left out), oldest first, at most `limit` of them."""

    def of_entry(self, entry: int) -> list[Row]:
        """The rows that speak of one entry, oldest first."""

    def with_key(self, key: str) -> list[Row]:
        """The reserving rows with that idempotency key, oldest first."""

    def payload(self, entry: int) -> bytes | None:
        """The bytes kept for an entry, or None."""

    def counts(self) -> tuple[int, int]:
        """How many rows there are, and how many entries have bytes."""

    def append(self, row: Row) -> None:
        """Adds a row; only inside `writing`."""

    def keep(self, entry: int, payload: bytes) -> None:
        """Keeps the bytes of an entry; only inside `writing`."""


class Store(Protocol):
    """A durable place for one ledger; picklable. What it keeps open between calls belongs to its own process, not to a fork."""

    @property
    def place(self) -> str:
        """Where it is, for messages."""

    def create(self, first: Row) -> None:
        """Makes the place with its first row; refuses a place that is taken."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A consistent view without the right to write."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """An exclusive, atomic, durable change."""

    def inspect(self) -> None:
        """Raises LedgerError when the place itself finds damage (pages, indexes)."""
