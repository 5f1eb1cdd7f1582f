"""Reading the whole book again from its first row: every link, every total, every change of state."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sabun.errors import LedgerError
from sabun.ledger.row import FIRST_PREVIOUS, FORMAT, Row, seal_of, total_after
from sabun.ledger.statement import Budget, Entry, Terms
from sabun.ledger.store import Transaction
from sabun.privacy.guarantee import RELATIONS

__all__ = ["Book", "check_payload", "continued", "inspected", "replay", "terms_of"]


@dataclass(frozen=True, kw_only=True)
class Book:
    """A chain that was read to its end without finding anything wrong; `seals` are those of entries still open."""

    terms: Terms
    entries: tuple[Entry, ...]
    seals: Mapping[int, str]
    head: Row


def terms_of(first: Row, *, place: str) -> Terms:
    """The terms in the first row of a book."""
    body = first.body
    if first.sequence != 0 or first.kind != "create" or first.previous != FIRST_PREVIOUS:
        raise _broken(place, 0, "must open the book")
    if body.get("format") != FORMAT:
        raise LedgerError(
            f"{place}: ledger format must be {FORMAT}; got {body.get('format')!r}. Open it with the version that wrote it."
        )
    try:
        terms = Terms(name=body["name"], unit=body["unit"], relation=body["relation"], budget=first.amount)
        (terms.name + terms.unit).encode("utf-8")  # a receipt repeats them
    except (KeyError, ValueError, TypeError, AttributeError):
        raise _broken(place, 0, "must hold name, unit, relation and budget") from None
    if terms.relation not in RELATIONS or first.spent != Budget(*(0 * part for part in terms.budget)) or first.entries:
        raise _broken(place, 0, "must open the book with nothing spent")
    return terms


def replay(rows: Iterable[Row], *, place: str) -> Book:
    """Follows the chain from the first row; the first thing that does not fit is a LedgerError."""
    chain = iter(rows)
    first = next(chain, None)
    if first is None:
        raise LedgerError(f"{place}: the ledger has no rows; it was emptied. Restore it from a backup.")
    opened = Book(terms=terms_of(first, place=place), entries=(), seals={}, head=first)
    return continued(opened, chain, place=place)


def inspected(view: Transaction, *, place: str) -> tuple[Book, frozenset[str]]:
    """Reads all there is again: the place itself, every row, every kept byte; with the hashes of the rows."""
    view.inspect()
    rows = list(view.rows())
    book = replay(rows, place=place)
    kept = {entry.entry: entry.payload_sha256 for entry in book.entries if entry.state == "committed"}
    if view.payload_entries() != sorted(kept):
        raise LedgerError(f"{place}: each committed entry must have its kept bytes; some are missing or foreign.")
    for entry, digest in kept.items():
        check_payload(entry, view.payload(entry), digest, place=place)
    return book, frozenset(row.hash for row in rows)


def check_payload(entry: int, payload: bytes | None, digest: object, *, place: str) -> None:
    """Refuses kept bytes that are not those whose digest is in the chain."""
    if payload is None or hashlib.sha256(payload).hexdigest() != digest:
        raise LedgerError(f"{place}: the kept bytes of entry {entry} were changed. Restore the ledger from a backup.")


def continued(book: Book, rows: Iterable[Row], *, place: str) -> Book:
    """Follows the chain from the end of a book that was read before; the same rules hold."""
    new = list(rows)
    head, entries, seals = book.head, {entry.entry: entry for entry in book.entries} if new else {}, dict(book.seals)
    for row in new:
        if row.sequence != head.sequence + 1 or row.previous != head.hash:
            raise _broken(place, row.sequence, "must follow the row before it")
        try:
            _apply(row, head, book.terms, entries, seals, place)
        except LedgerError:  # a ValueError too
            raise
        except (KeyError, ValueError, TypeError, AttributeError):
            raise _broken(place, row.sequence, "must have the fields of its kind") from None
        head = row
    return Book(terms=book.terms, entries=tuple(entries.values()), seals=seals, head=head) if new else book


def _apply(row: Row, head: Row, terms: Terms, entries: dict[int, Entry], seals: dict[int, str], place: str) -> None:
    """Brings the entries up to date with one row; totals and states must be the ones the rules give."""
    if row.kind == "reserve":
        amount, after = row.amount, _reserved(row)
        fits = row.entry == len(entries) + 1
        seals[row.entry] = str(row.body["void_seal"])
    else:
        before = entries[row.entry]
        amount = Budget(before.epsilon, before.delta)
        after = _closed(row, before)
        fits = before.state == "reserved" and row.kind in ("commit", "void")
        seal = seals.pop(row.entry, None)
        if fits and row.kind == "void" and seal_of(bytes.fromhex(row.body["void_token"])) != seal:
            raise _broken(place, row.sequence, "must be voided by its own reservation")
    if not fits:
        raise _broken(place, row.sequence, "must change the state of an entry by the rules")
    entries[row.entry] = after
    if row.entries != len(entries) or row.spent != total_after(head.spent, row.kind, amount):
        raise _broken(place, row.sequence, "must carry the sums of the rows before it")
    if row.spent.epsilon > terms.budget.epsilon or row.spent.delta > terms.budget.delta:
        raise _broken(place, row.sequence, "must stay within the budget")


def _reserved(row: Row) -> Entry:
    body = row.body
    return Entry(
        entry=row.entry,
        time=row.time,
        purpose=body["purpose"],
        epsilon=row.amount.epsilon,
        delta=row.amount.delta,
        state="reserved",
        key=row.key,
        note=body["note"],
        guarantee=body["guarantee"],
        software=body["software"],
        entry_hash=row.hash,
        remark=str(body.get("remark", "")),
    )


def _closed(row: Row, before: Entry) -> Entry:
    if row.kind == "void":
        return dataclasses.replace(before, state="voided")
    digest, size = row.body["payload_sha256"], row.body["payload_size"]
    return dataclasses.replace(before, state="committed", payload_sha256=digest, payload_size=size)


def _broken(place: str, sequence: int, rule: str) -> LedgerError:
    return LedgerError(
        f"{place}: row {sequence} {rule}, and does not: the ledger was changed by something other than Sabun. "
        "Do not release from it; restore it from a backup."
    )
