"""A charge that is on disk while its result does not exist yet."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from sabun import checks
from sabun.errors import LedgerError, ParameterError
from sabun.ledger.chain import append
from sabun.ledger.row import Row, next_row, seal_of
from sabun.ledger.statement import Receipt, Terms
from sabun.ledger.store import Store, Transaction, Unavailable

__all__ = ["LARGEST_PAYLOAD", "Reservation", "keep_result"]

LARGEST_PAYLOAD = 64 * 2**20


class Reservation:
    """A charge that is already on disk, waiting for its result.

    Made by `Ledger.reserve`; it belongs to the process that made it. Call `touch` before private data is read, then
    `commit` with the bytes of the result. `void` gives the charge back, and only before `touch`. An object that is lost
    (crash, exception, fork) leaves its charge spent: only this object knows the token that voids it, and `touch` forgets it.
    """

    def __init__(self, store: Store, row: Row, receipt: Receipt, *, token: bytes, terms: Terms) -> None:
        self._store = store
        self._row = row
        self._receipt = receipt
        self._token = token
        self._terms = terms
        self._state = "reserved"
        self._touched = False
        self._owner = os.getpid()
        self._lock = threading.Lock()

    @property
    def receipt(self) -> Receipt:
        """The receipt; known before the result is, so that the result can carry it."""
        return self._receipt

    @property
    def touched(self) -> bool:
        """Whether the charge can no longer be given back."""
        return self._touched

    def touch(self) -> None:
        """Marks the moment before private data is read; from here on there is no way back."""
        with self._mine():
            self._touched, self._token = True, b""  # proof: touch-forbids-void

    def commit(self, payload: bytes) -> Receipt:
        """Keeps the bytes of the result beside the charge.

        Args:
            payload: What is released, at most 64 MiB. `Ledger.recall` returns exactly these bytes.

        Raises:
            LedgerError: The reservation is already closed, or the ledger cannot be written. The charge stays spent; a ledger
                that could not be written may be tried again.
        """
        checks.require(isinstance(payload, bytes), "bytes", payload=type(payload).__name__)
        if len(payload) > LARGEST_PAYLOAD:
            raise ParameterError(
                f"payload must be at most {LARGEST_PAYLOAD} bytes; got {len(payload)}. "
                "Keep the result in a file and commit its digest."
            )
        with self._mine():
            self._touched, self._token = True, b""
            try:
                with self._store.writing() as book:
                    if not self._arrived(book, payload):
                        self._must_be_open(book)
                        keep_result(book, self._row, payload, terms=self._terms, place=self._store.place)
            except Unavailable as error:
                raise error.meaning(f"Entry {self._row.entry} stays charged; its result is not kept yet.") from error
            self._state = "committed"
        return self._receipt

    def void(self) -> None:
        """Gives the charge back; only while no private data has been touched.

        Raises:
            LedgerError: After `touch` or `commit`, after another `void`, in another process, or by an object that
                `Ledger.reserve` did not make.
        """
        with self._mine():
            if self._touched:  # proof: void-only-untouched
                raise LedgerError(
                    f"entry {self._row.entry} must be voided before touch(); data was already touched. "
                    "The charge stays spent; commit its result."
                )
            if seal_of(self._token) != self._row.body.get("void_seal"):  # proof: only-the-maker
                raise LedgerError(
                    f"entry {self._row.entry} must be voided by the object that Ledger.reserve returned; this is another one. "
                    "The charge stays spent."
                )
            # Set before writing: if the write fails half-way, nobody may go on to draw noise on a charge that may be gone.
            self._state = "voided"  # proof: void-is-final
            with self._store.writing() as book:
                self._must_be_open(book)
                row = _closing_row(book, self._row, "void", {"void_token": self._token.hex()})
                append(book, row, self._row, terms=self._terms, place=self._store.place)

    @contextmanager
    def _mine(self) -> Iterator[None]:
        if os.getpid() != self._owner:  # proof: one-owner
            raise LedgerError(
                f"entry {self._row.entry} must be closed by the process that reserved it; this is another one. "
                "Reserve in this process."
            )
        with self._lock:
            if self._state != "reserved":
                raise LedgerError(
                    f"entry {self._row.entry} must be open; it is already {self._state}. Reserve again for a new result."
                )
            yield

    def _must_be_open(self, book: Transaction) -> None:
        if [row.hash for row in book.of_entry(self._row.entry)] != [self._row.hash]:  # proof: closed-once
            raise LedgerError(
                f"{self._store.place}: entry {self._row.entry} must be open; it is closed, or the ledger was replaced."
            )

    def _arrived(self, book: Transaction, payload: bytes) -> bool:
        """Whether an earlier try of this very commit reached the disk although the disk said no."""
        hashes = [row.hash for row in book.of_entry(self._row.entry)]
        return len(hashes) == 2 and hashes[0] == self._row.hash and book.payload(self._row.entry) == payload

    def __reduce__(self) -> NoReturn:
        raise LedgerError(
            "a reservation must stay in the process that made it; it cannot be copied or pickled. Pass the Ledger instead."
        )

    def __repr__(self) -> str:
        return f"<Reservation entry={self._row.entry} state={self._state!r} touched={self._touched}>"


def keep_result(book: Transaction, reserved: Row, payload: bytes, *, terms: Terms, place: str) -> Row:
    """Closes an entry with the bytes of its result; returns the row that says so."""
    body = {"payload_sha256": hashlib.sha256(payload).hexdigest(), "payload_size": len(payload)}
    row = _closing_row(book, reserved, "commit", body)
    append(book, row, reserved, terms=terms, place=place)
    book.keep(reserved.entry, payload)
    return row


def _closing_row(book: Transaction, reserved: Row, kind: str, body: dict[str, Any]) -> Row:
    return next_row(
        book.last(),
        kind=kind,
        entry=reserved.entry,
        body=body,
        amount=reserved.amount,
        time=reserved.time,  # proof: no-clock
        opening=reserved.body,
    )
