"""Credentials that neither side can aim: a ticket buys one throw, of which each side brings half.

The device promises SHA-256(r); the server answers with a nonce s, made from its secret, the ticket and the promise, so that the
same ticket and promise give the same nonce and nothing but the promise has to be kept; the device reveals r; the credential is
SHA-256("sabun credential\\0" ‖ task ‖ r ‖ s). What is kept does not tell which ticket led to which credential.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import final

from sabun.errors import DataError
from sabun.keyvalue.client import report_id
from sabun.service.report_store import Served, Store
from sabun.service.served import rule_in

__all__ = ["EnrolmentRefused", "begin", "finish", "issue_tickets"]

_TICKET_BYTES = 16


@final
class EnrolmentRefused(DataError):
    """A ticket that is not valid here; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def issue_tickets(store: Store, served: Served, count: int) -> list[str]:
    """New tickets, to be handed out; the store keeps their hashes.

    Raises:
        EnrolmentRefused: The study takes part without enrolment.
    """
    tickets = [secrets.token_bytes(_TICKET_BYTES) for _ in range(count)]
    with store.database.change() as session:
        session.rows(f"SELECT study FROM study WHERE study = ?{session.to_change}", served.number)  # the rule stays
        if rule_in(session, served) != "tickets":
            raise EnrolmentRefused("no-enrolment", "the study must take tickets; it takes part without enrolment.")
        for ticket in sorted(map(_hash, tickets)):
            session.rows("INSERT INTO ticket (study, hash) VALUES (?, ?)", served.number, ticket)
    return [ticket.hex() for ticket in tickets]


def begin(store: Store, served: Served, ticket: bytes, promise: bytes) -> bytes:
    """The nonce for a ticket and a promise.

    Raises:
        EnrolmentRefused: The ticket is unknown, or promised something else before.
    """
    with store.database.change() as session:
        found = session.rows(
            f"SELECT promise FROM ticket WHERE study = ? AND hash = ?{session.to_change}", served.number, _hash(ticket)
        )
        if not found:
            raise _unknown()
        if found[0][0] is None:
            update = "UPDATE ticket SET promise = ? WHERE study = ? AND hash = ?"
            session.rows(update, promise, served.number, _hash(ticket))
        elif not hmac.compare_digest(bytes(found[0][0]), promise):
            raise EnrolmentRefused("other-promise", "this ticket came before with another promise.")
    return _nonce(store, served, ticket, promise)


def finish(store: Store, served: Served, ticket: bytes, secret: bytes) -> bytes:
    """The credential, once the secret is revealed; its report id counts from now on.

    Raises:
        EnrolmentRefused: The ticket is unknown, or its promise was another.
    """
    promise = hashlib.sha256(secret).digest()
    select = "SELECT promise FROM ticket WHERE study = ? AND hash = ?"
    with store.database.look() as session:
        found = session.rows(select, served.number, _hash(ticket))
    if not found:
        raise _unknown()
    if found[0][0] is None or not hmac.compare_digest(bytes(found[0][0]), promise):
        raise EnrolmentRefused("other-promise", "the secret must be the one that was promised; it is not.")
    task = served.study.terms.short_id
    nonce = _nonce(store, served, ticket, promise)
    credential = hashlib.sha256(b"sabun credential\0" + task + secret + nonce).digest()
    with store.database.change() as session:
        insert = "INSERT INTO credential (study, id) VALUES (?, ?) ON CONFLICT DO NOTHING"
        session.rows(insert, served.number, report_id(served.study.terms, credential))
    return credential


def _nonce(store: Store, served: Served, ticket: bytes, promise: bytes) -> bytes:
    message = b"sabun nonce\0" + served.study.terms.short_id + _hash(ticket) + promise
    return hmac.digest(store.keys.enrolment, message, "sha256")


def _hash(ticket: bytes) -> bytes:
    return hashlib.sha256(b"sabun ticket\0" + ticket).digest()


def _unknown() -> EnrolmentRefused:
    return EnrolmentRefused("unknown-ticket", "the ticket must be one that was issued for this study; it is not.")
