"""What one handle of a ledger has seen of its book; every look goes on from there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sabun import checks
from sabun.errors import LedgerError
from sabun.ledger.chain import Book, entry_of, followed, read_entry, walk
from sabun.ledger.row import Row
from sabun.ledger.shares import Shares
from sabun.ledger.statement import Entry, Receipt, Terms
from sabun.ledger.store import Store, Transaction, Unavailable

__all__ = ["Outlook"]


class Outlook:
    """A store, and the newest row that was seen in it: a live handle notices when the file is swapped or rows are forged."""

    def __init__(self, store: Store, book: Book) -> None:
        self.store = store
        self._known = book
        self._closed = False

    @property
    def terms(self) -> Terms:
        """The terms of the book, which never change."""
        return self._known.terms

    @property
    def shares(self) -> Shares | None:
        """How delta was split when this handle last looked."""
        return self._known.standing.shares

    def close(self) -> None:
        """Refuses every further look."""
        self._closed = True

    def must_be_open(self) -> None:
        """Raises LedgerError after `close`."""
        if self._closed:
            raise LedgerError(f"this handle of ledger {self.terms.name!r} must be open; it was closed. Open it again.")

    @contextmanager
    def reading(self) -> Iterator[tuple[Transaction, Book]]:
        """A view of the rows, and where the book stands in it."""
        self.must_be_open()
        with self.store.reading() as view:
            yield view, self._followed(view)

    @contextmanager
    def view(self) -> Iterator[Transaction]:
        """A view alone, of a book that was followed to its end."""
        with self.reading() as (view, _):
            yield view

    @contextmanager
    def charging(self) -> Iterator[tuple[Transaction, Book]]:
        """A change that books a charge; where it cannot be made, the error says what that means for the charge."""
        checks.in_earnest("a charge")  # a worker that reads its owner's script again would pay for all of it again
        self.must_be_open()
        try:
            with self.store.writing() as view:
                yield view, self._followed(view)
        except Unavailable as error:
            means = "Nothing may be released for this charge." if error.written else "Nothing was charged."
            raise error.meaning(means) from error

    def has_written(self, newest: Row) -> None:
        """Remembers a row that this handle wrote, once it is on disk."""
        self._known = Book(terms=self.terms, head=newest)

    def _followed(self, view: Transaction) -> Book:
        known = self._known
        row = view.at(known.head.sequence)
        if row is None or row.hash != known.head.hash:
            raise LedgerError(
                f"{self.store.place}: the ledger must still hold what this handle has seen; it was replaced by an older or "
                "another one. Find out why before you open it again."
            )
        self._known = book = followed(view, known, place=self.store.place)
        return book

    def head(self) -> Row:
        """The newest row."""
        with self.reading() as (_, book):
            return book.head

    def entry(self, view: Transaction, book: Book, number: object) -> Entry | None:
        """One charge as it stands in a view; None when there is none of that number."""
        if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= book.head.entries:
            return None
        return read_entry(view, number, place=self.store.place)

    def may_hold(self, receipt: Receipt) -> bool:
        """Whether a charge is in the book; one that cannot be looked up may be, and is never called free for that."""
        try:
            with self.reading() as (view, book):
                found = self.entry(view, book, receipt.entry)
        except LedgerError:
            return True
        return found is not None and found.entry_hash == receipt.entry_hash

    def records(self) -> Iterator[str]:
        """The text of every row, oldest first; a piece at a time, between which others may write."""
        piece, after = [""], -1
        while piece:
            with self.reading() as (view, _):
                piece = [row.record for row in view.rows(after, limit=256)]
            after += len(piece)
            yield from piece

    def standing(self, last: int | None) -> tuple[Row, tuple[Entry, ...]]:
        """The newest row, with the newest entries (through the index) or with all (by reading the whole chain)."""
        checks.require(last is None or (isinstance(last, int) and last >= 0), "a whole number of at least 0", last=last)
        place, head, found = self.store.place, self._known.head, dict[int, Entry]()
        if last is not None:
            with self.reading() as (view, book):
                numbers = range(max(book.head.entries - last, 0) + 1, book.head.entries + 1)
                return book.head, tuple(read_entry(view, number, place=place) for number in numbers)
        for piece in walk(self.view, place=place):
            head = piece.book.head
            found |= {row.entry: entry_of(opening, None if row is opening else row) for row, opening in piece.rows if row.entry}
        return head, tuple(found.values())
