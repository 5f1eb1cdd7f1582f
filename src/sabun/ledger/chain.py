"""The rules that the rows of a book must keep: the newest rows on every look, all of them on request.

Every row carries the totals after it, so the newest one tells what was spent. It is not taken on trust: `followed` checks it
and the rows just before it, in a long book as quickly as in a short one. `walk` reads the whole book from its first row, in
pieces between which others may write.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from sabun.errors import LedgerError, SabunError
from sabun.ledger.admission import check_booked
from sabun.ledger.amounts import read_amount
from sabun.ledger.row import FIRST_PREVIOUS, FORMATS, Row, seal_of, standing_after, standing_in, total_after
from sabun.ledger.shares import NOTHING
from sabun.ledger.standing import Standing, changed
from sabun.ledger.statement import Budget, Entry, Terms, Verification
from sabun.ledger.store import Transaction
from sabun.privacy.guarantee import RELATIONS

__all__ = ["WINDOW", "Book", "append", "check_payload", "followed", "inspected", "opened", "read_entry", "walk"]

WINDOW = 64
"""How many of the newest rows are checked on every look; a forgery further back shows when the whole book is read."""

_PIECE = 256
_LARGE = 1 << 20
"""Kept bytes above this many are read in a view of their own, so that no view lasts long."""
_RESTORE = "the ledger was changed by something other than Sabun. Do not release from it; restore it from a backup."


@dataclass(frozen=True, kw_only=True)
class Book:
    """Where a chain stands: its terms, and the newest row, which carries the totals."""

    terms: Terms
    head: Row

    @property
    def standing(self) -> Standing:
        """Its rule, its limit, what was used; open also where the row says otherwise and everything was given back since."""
        found = standing_in(self.head, terms=self.terms)
        return dataclasses.replace(found, rule="open") if found.undecided else found


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Rows that were checked one after another.

    Args:
        book: Where the chain stands after them.
        rows: Each row with the one that reserved its entry.
        newest: Number of the book's newest row when they were read.
        before: The row before the first of them.
    """

    book: Book
    rows: Sequence[tuple[Row, Row]]
    newest: int
    before: Row

    @property
    def last(self) -> bool:
        """Whether the book ended with them."""
        return self.book.head.sequence == self.newest


def opened(view: Transaction, *, place: str) -> Book:
    """The book in a view: its first row and its newest ones, checked."""
    book, newest = _beginning(view, place), view.last()
    if newest.sequence > WINDOW:
        base = view.at(newest.sequence - WINDOW)
        if base is None or not _may_stand(base, book):
            raise _broken(place, newest.sequence - WINDOW, "must be there and stand within what the ledger promises")
        book = Book(terms=book.terms, head=base)
    return followed(view, book, place=place)


def followed(view: Transaction, book: Book, *, place: str) -> Book:
    """The book as it stands now: all rows since it was last seen are checked, however many."""
    head = book.head
    for row, _ in _checked(view.rows(head.sequence), head, book.terms, _through_index(view), place):
        head = row
    return Book(terms=book.terms, head=head)


def append(view: Transaction, row: Row, opening: Row, *, terms: Terms, place: str) -> None:
    """Adds a row, once whoever reads it later will accept it; `opening` is the one that reserved its entry, or the row itself.

    A row in the book stays there: one that broke a rule would make all of it unreadable.
    """
    head = view.last()
    try:
        list(_checked((row,), head, terms, lambda _: opening, place))
    except LedgerError as error:
        raise LedgerError(f"{error} Nothing was written.") from None
    view.append(row)


def walk(
    reading: Callable[[], AbstractContextManager[Transaction]],
    *,
    place: str,
    visit: Callable[[Transaction, Piece], None] | None = None,
) -> Iterator[Piece]:
    """Reads a whole book piece by piece, each in a view of its own: no writer waits until a long book is read.

    Rows are never changed, so what one piece has shown stays true, and the next must follow it. `visit` sees a piece in its
    view; it is yielded when the view has ended, so that whoever goes through the pieces holds up nobody.
    """
    book, piece, reserving = None, None, _by_memory()
    while piece is None or not piece.last:
        with reading() as view:
            book = _beginning(view, place) if book is None else book
            before = book.head
            rows = list(_checked(view.rows(before.sequence, limit=_PIECE), before, book.terms, reserving, place))
            book = Book(terms=book.terms, head=rows[-1][0] if rows else before)
            piece = Piece(book=book, rows=rows, newest=view.last().sequence, before=before)
            if visit is not None:
                visit(view, piece)
        yield piece


def inspected(
    reading: Callable[[], AbstractContextManager[Transaction]],
    *,
    place: str,
    expect_head: str | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> Verification:
    """Reads all rows and all kept bytes again; the first thing that does not fit is a LedgerError."""
    kept, large, seen = 0, list[Row](), expect_head is None

    def visit(view: Transaction, piece: Piece) -> None:
        nonlocal kept
        for before, row in itertools.pairwise((piece.before, *(row for row, _ in piece.rows))):
            if row.kind == "reserve":
                _check_price(row, standing_in(before, terms=piece.book.terms), piece.book.terms, place)
        for row in (row for row, _ in piece.rows if row.kind == "commit"):
            kept += 1
            if row.body["payload_size"] > _LARGE:
                large.append(row)
            else:
                _check_kept(view, row, place)
        if piece.last and view.counts() != (piece.newest + 1, kept):
            raise LedgerError(f"{place}: every row must be in the chain and all kept bytes of it; some are foreign: {_RESTORE}")

    for piece in walk(reading, place=place, visit=visit):
        head = piece.book.head
        seen = seen or expect_head in (head.hash, *(row.previous for row, _ in piece.rows))
        if progress is not None:
            progress(head.sequence / max(piece.newest, 1), f"{head.entries} charges")
    for row in large:
        with reading() as view:
            _check_kept(view, row, place)
    if not seen:
        raise LedgerError(
            f"{place}: expect_head must be part of the chain; it is not. The ledger was cut short or replaced; "
            "restore the newest backup that holds it."
        )
    return Verification(entries=head.entries, head_hash=head.hash)


def _check_kept(view: Transaction, closing: Row, place: str) -> None:
    check_payload(closing.entry, view.payload(closing.entry), closing.body["payload_sha256"], place=place)


def _check_price(row: Row, before: Standing, terms: Terms, place: str) -> None:
    """Reckons the price of a charge anew: what was booked must not be less."""
    try:
        check_booked(row.body, before, terms)
    except (SabunError, KeyError, ValueError, TypeError, AttributeError):
        raise _broken(place, row.sequence, "must book what its guarantee and its price cost") from None


def read_entry(view: Transaction, number: int, *, place: str) -> Entry:
    """One charge as it stands, found through the index; its rows must fit each other."""
    match view.of_entry(number):
        case [opening] if opening.kind == "reserve":
            return entry_of(opening)
        case [opening, closing] if opening.kind == "reserve" and closing.kind in ("commit", "void"):
            return entry_of(opening, closing)
    raise LedgerError(f"{place}: entry {number} must have a row that opens it and at most one that closes it: {_RESTORE}")


def entry_of(opening: Row, closing: Row | None = None) -> Entry:
    """A charge from the row that reserved it and the one that closed it, if any."""
    body, amount = opening.body, opening.amount
    entry = Entry(
        entry=opening.entry,
        time=opening.time,
        purpose=body["purpose"],
        epsilon=amount.epsilon,
        delta=amount.delta,
        state="reserved",
        key=opening.key,
        note=body["note"],
        guarantee=body["guarantee"],
        software=body["software"],
        entry_hash=opening.hash,
        remark=str(body.get("remark", "")),
        account=str(body.get("account", "")),
        form=str(body.get("form", "")),
        tau=read_amount(body["tau"]) if "tau" in body else None,
        price=body.get("price"),
    )
    if closing is None:
        return entry
    if closing.kind == "void":
        return dataclasses.replace(entry, state="voided")
    digest, size = closing.body["payload_sha256"], closing.body["payload_size"]
    return dataclasses.replace(entry, state="committed", payload_sha256=digest, payload_size=size)


def check_payload(entry: int, payload: bytes | None, digest: object, *, place: str) -> None:
    """Refuses kept bytes that are not those whose digest is in the chain."""
    if payload is None or hashlib.sha256(payload).hexdigest() != digest:
        raise LedgerError(f"{place}: the kept bytes of entry {entry} were changed. Restore the ledger from a backup.")


def _beginning(view: Transaction, place: str) -> Book:
    """The book as its first row opens it."""
    first = view.at(0)
    if first is None:
        raise LedgerError(f"{place}: the ledger has no first row; it was emptied. Restore it from a backup.")
    return Book(terms=_terms_of(first, place), head=first)


def _terms_of(first: Row, place: str) -> Terms:
    body = first.body
    if first.sequence != 0 or first.kind != "create" or first.previous != FIRST_PREVIOUS:
        raise _broken(place, 0, "must open the book")
    if body.get("format") not in FORMATS:
        raise LedgerError(
            f"{place}: ledger format must be {' or '.join(map(str, FORMATS))}; got {body.get('format')!r}. "
            "Open it with the version that wrote it."
        )
    try:
        terms = _written_terms(first)
        (terms.name + terms.unit).encode("utf-8")  # a receipt repeats them
    except (KeyError, ValueError, TypeError, AttributeError):
        raise _broken(place, 0, "must hold name, unit, relation and budget") from None
    if terms.relation not in RELATIONS or first.spent != Budget(*(0 * part for part in terms.budget)) or first.entries:
        raise _broken(place, 0, "must open the book with nothing spent")
    if (body["format"] == 2) != (first.standing is not None) or not _may_begin(terms, standing_in(first, terms=terms)):
        raise _broken(place, 0, "must open the book with limits within its budget")
    return terms


def _written_terms(first: Row) -> Terms:
    body, more = first.body, dict[str, Any]()
    if body["format"] == 2:
        more = {"group": body["group"], "ceiling": read_amount(body["ceiling"]) if "ceiling" in body else None}
    return Terms(name=body["name"], unit=body["unit"], relation=body["relation"], budget=first.amount, **more)


def _may_begin(terms: Terms, standing: Standing) -> bool:
    """Whether a ledger may stand so when nothing was spent."""
    shares, accounts = standing.shares, standing.accounts.values()
    return (
        (standing.limit, standing.delta) == terms.budget
        and standing.used == NOTHING
        and (standing.rule, shares is None) in (("open", False), ("sums", True))
        and (shares is None or shares.total <= standing.delta)
        and all(account.used == NOTHING and 0 < account.part <= 1 for account in accounts)
        and isinstance(terms.group, int)
        and terms.group >= 1
        and (terms.ceiling is None or terms.ceiling >= terms.budget.epsilon)
    )


def _may_stand(row: Row, beginning: Book) -> bool:
    """Whether a row from which the newest ones are followed can be one of this book at all; its totals are taken on trust."""
    terms, standing = beginning.terms, row.standing
    if standing is None:
        within = all(spent <= most for spent, most in zip(row.spent, terms.budget, strict=True))
        return within and beginning.head.standing is None
    return (
        standing.limit <= terms.promised.epsilon
        and standing.delta == terms.budget.delta
        and (standing.shares is None or standing.shares.total <= standing.delta)
        and all(0 < account.part <= 1 for account in standing.accounts.values())
        and standing.admits()
    )


def _checked(
    rows: Iterable[Row], head: Row, terms: Terms, reserving: Callable[[Row], Row | None], place: str
) -> Iterator[tuple[Row, Row]]:
    """The rows that follow `head`, each with the one that reserved its entry; the first that breaks a rule is a LedgerError.

    `reserving` finds the row that opened the entry of a row (itself, when it opens one); None when there is no open one.
    """
    for row in rows:
        if row.sequence != head.sequence + 1 or row.previous != head.hash:
            raise _broken(place, row.sequence, "must follow the row before it")
        try:
            opening = _obeyed(row, reserving(row), head, terms, place)
        except LedgerError:  # a ValueError too
            raise
        except (KeyError, ValueError, TypeError, AttributeError):
            raise _broken(place, row.sequence, "must have the fields of its kind") from None
        yield row, opening
        head = row


def _obeyed(row: Row, opening: Row | None, head: Row, terms: Terms, place: str) -> Row:
    """The opening row, once the row changes the state of one entry and carries the totals that follow from the row before."""
    opens = row.kind == "reserve"
    if row.kind == "change":
        return _obeyed_change(row, head, terms, place)
    if opening is None or row.kind == "create" or (opens and row.entry != head.entries + 1):
        raise _broken(place, row.sequence, "must change the state of an entry by the rules")
    if row.kind == "void" and seal_of(bytes.fromhex(row.body["void_token"])) != opening.body["void_seal"]:
        raise _broken(place, row.sequence, "must be voided by its own reservation")
    if row.entries != head.entries + opens or row.spent != total_after(head.spent, row.kind, opening.amount):
        raise _broken(place, row.sequence, "must carry the sums of the rows before it")
    if row.standing != standing_after(head.standing, row.kind, opening.body):
        raise _broken(place, row.sequence, "must stand where the rows before it lead")
    within = row.spent.epsilon <= terms.budget.epsilon and row.spent.delta <= terms.budget.delta
    if not (within if row.standing is None else row.standing.admits()):
        raise _broken(place, row.sequence, "must stay within the budget")
    return opening


def _obeyed_change(row: Row, head: Row, terms: Terms, place: str) -> Row:
    """The row itself, once it changes the terms by the rules and nothing else."""
    before = Book(terms=terms, head=head).standing
    same = (row.entry, row.key, row.entries, row.spent) == (0, None, head.entries, head.spent)
    if not same or row.standing != changed(before, row.body, ceiling=terms.ceiling):
        raise _broken(place, row.sequence, "must change the terms by the rules")
    return row


def _through_index(view: Transaction) -> Callable[[Row], Row | None]:
    """Finds the row that opened an entry: among the rows seen so far, or by its number, however far back it lies."""
    seen = _by_memory()

    def reserving(row: Row) -> Row | None:
        opening = seen(row)
        if opening is not None:
            return opening
        match [known for known in view.of_entry(row.entry) if known.sequence < row.sequence]:
            case [opening] if opening.kind == "reserve":
                return opening
        return None

    return reserving


def _by_memory() -> Callable[[Row], Row | None]:
    """Finds it among the rows seen so far; of those only the ones whose entries are still open are remembered."""
    reserved: dict[int, Row] = {}

    def reserving(row: Row) -> Row | None:
        if row.kind == "change":
            return row
        return reserved.setdefault(row.entry, row) if row.kind == "reserve" else reserved.pop(row.entry, None)

    return reserving


def _broken(place: str, sequence: int, rule: str) -> LedgerError:
    return LedgerError(f"{place}: row {sequence} {rule}, and does not: {_RESTORE}")
