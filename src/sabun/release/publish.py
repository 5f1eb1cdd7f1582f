"""The only door out: charge, then toss the coin, then hand over; proved in publish.proof.md."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sabun import checks
from sabun.errors import LedgerError, ParameterError, SimulatedError
from sabun.ledger import Ledger, Reservation
from sabun.ledger.reservation import LARGEST_PAYLOAD
from sabun.ledger.store import Unavailable
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import Coin
from sabun.privacy.pricing import Price
from sabun.release.document import Release
from sabun.release.draft import Draft
from sabun.release.encoding import canonical

__all__ = ["SAME", "ResultNotKept", "kept", "publish", "recovered", "refuse_seeded"]

SAME = "same:"
"""How keys begin that are made of what is public about a question."""

_DIGEST = b"sha256:"
_ATTEMPTS = 3
_SEEDED = (
    "a seeded result is not private, so it cannot be charged to a ledger. "
    "Use random_state=None for a private result, or ledger=None for a simulation."
)
_SAVE_IT = "The result is drawn and paid for, and comes with this error as `error.release`: save it, for no retry returns it."


class ResultNotKept(LedgerError):
    """The ledger holds the charge but could not keep the result: it is on the error, for it is paid for.

    Args:
        message: What happened.
        release: The result. Save it now; no retry returns it.
    """

    def __init__(self, message: str, *, release: Release) -> None:
        super().__init__(message)
        self.release = release


def publish(
    *,
    kind: str,
    guarantee: Guarantee,
    parameters: Mapping[str, Any],
    draw: Callable[[], Mapping[str, Any]],
    ledger: Ledger | None,
    coin: Coin,
    key: str | None = None,
    subject: Sequence[str] = (),
    schema_hash: str | None = None,
    notes: tuple[str, ...] = (),
    price: Price | None = None,
    apart: str = "",
) -> Release:
    """Charges a ledger, draws a value, returns both as a release.

    Guarantee: no coin is tossed before the charge is on disk; whatever happens after that, the charge stays. A repeated `key`
    returns the bytes of the first time, draws nothing and costs nothing.

    Edge cases:

        | situation                                   | outcome                                             |
        |---------------------------------------------|-----------------------------------------------------|
        | seeded coin with a ledger                   | SimulatedError; nothing charged, nothing drawn      |
        | seeded coin without a ledger                | a release marked NOT PRIVATE that cannot be saved   |
        | no ledger                                   | a release whose provenance says so                  |
        | budget too small                            | BudgetExceeded; `draw` is not called                |
        | `draw` raises                               | the exception; the charge stays spent               |
        | `draw` returns what no release can hold     | ParameterError; the value is lost, the charge spent |
        | the ledger cannot keep the result           | ResultNotKept, with the release on it               |
        | any public fact no file can hold            | ParameterError; nothing charged, nothing drawn      |
        | `key` seen before, all public facts the same | the stored release                                 |
        | no `key`, the ledger's `table` named         | the same, with a key made of all that is public    |

    Args:
        kind: What is released, e.g. "outlier count".
        guarantee: The promise `draw` keeps.
        parameters: The public choices behind it; they are published.
        draw: Computes the noisy value, with names; called at most once, after the charge.
        ledger: The book to charge, or None.
        coin: The coin `draw` uses; a seeded one makes the release simulated.
        key: Idempotency key for retries; only with a ledger.
        subject: Public names of the columns it is about, for the ledger's readers.
        schema_hash: Hash of the public schema, for the provenance.
        notes: Sentences for the reader, for the provenance.
        price: What `draw` runs, where that is known; a ledger that counts by a Rényi order books what it costs there.
        apart: What else is public and tells this question from others; not published.

    Raises:
        SimulatedError: A seeded coin (or a simulated guarantee) came with a ledger.
        BudgetExceeded: The ledger refuses; nothing was released, nothing was charged.
        ParameterError: A parameter breaks its rule.
        ResultNotKept: The charge stands, but its result could not be written beside it; `error.release` is the result.
    """
    _check_kinds(guarantee, coin)
    promise = guarantee if coin.private else guarantee.as_simulated()
    draft = Draft(  # proof: writable-first
        kind=kind, promise=promise, facts=parameters, subject=subject, schema_hash=schema_hash, notes=notes
    )
    if ledger is None:
        checks.require(key is None, "left out when there is no ledger", "Pass a ledger that remembers it.", key=key)
        return draft.filled(_drawn(draw))
    if promise.simulated:  # proof: refuse-simulated
        raise SimulatedError(_SEEDED)
    key = _same_request(draft, ledger.table, apart) if key is None else key  # proof: public-key
    if key is not None:
        known = ledger.recall(key, guarantee=promise, purpose=draft.purpose)
        if known is not None:
            return _recalled(known[1], f"key {key!r}")  # proof: replay
    reservation = ledger.reserve(promise, purpose=draft.purpose, key=key, price=price)  # proof: charge-first
    paid = draft.paid(reservation.receipt)  # proof: facts-before-draw
    reservation.touch()
    release = paid.filled(_drawn(draw))  # proof: draw-once
    _keep(reservation, release)  # proof: commit-last
    return release


def _same_request(draft: Draft, table: str, apart: str) -> str | None:
    """The key of the same question about a table of that public name; None for a table without one.

    Nothing of the data is in it: a fingerprint of the rows would show in the ledger whether one of them was edited.
    """
    if not table:
        return None
    parts = (table, draft.purpose, draft.promise.to_json(), apart)
    return f"{SAME}{hashlib.sha256(canonical(list(parts))).hexdigest()}"


def refuse_seeded(coin: Coin, ledger: Ledger | None) -> None:
    """Refuses what `publish` would refuse later, before any data is read.

    Raises:
        SimulatedError: A seeded coin came with a ledger.
    """
    if ledger is not None and not coin.private:
        raise SimulatedError(_SEEDED)


def _keep(reservation: Reservation, release: Release) -> None:
    """Commits the result; where the ledger is held by others it is tried again, for the result is drawn and paid for."""
    content = kept(release.to_json())
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            reservation.commit(content)
        except Exception as error:  # whatever it is: the result must not be lost with it
            if attempt < _ATTEMPTS and isinstance(error, Unavailable):
                continue
            known = error if isinstance(error, LedgerError) else _stopped(reservation, error)
            raise ResultNotKept(f"{known} {_SAVE_IT}", release=release) from known  # proof: handed-over
        return


def _stopped(reservation: Reservation, error: Exception) -> LedgerError:
    """Names only the type: what the system or a library says may be about anything."""
    entry = reservation.receipt.entry
    return LedgerError(f"entry {entry} stays charged; keeping its result ended with an unexpected {type(error).__name__}.")


@np.errstate(all="ignore")
def _drawn(draw: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """The value, whatever the caller asked numpy to do about rounding: such an error would speak of private cells."""
    return draw()  # proof: quiet


def _check_kinds(guarantee: object, coin: object) -> None:
    if not isinstance(guarantee, Guarantee):
        raise ParameterError(f"guarantee must be a Guarantee; got {type(guarantee).__name__}.")
    if not isinstance(coin, Coin):
        raise ParameterError(f"coin must be a Coin; got {type(coin).__name__}. Pass os_coin() for a private result.")


def kept(content: bytes) -> bytes:
    """What the ledger keeps: the release itself, or its digest when it is larger than the ledger takes."""
    return content if len(content) <= LARGEST_PAYLOAD else _DIGEST + hashlib.sha256(content).hexdigest().encode("ascii")


def recovered(ledger: Ledger, entry: int) -> Release:
    """The release that a ledger kept with a charge, for whoever lost its file; costs nothing.

    Raises:
        ParameterError: There is no such entry, no result was kept with it, or it was too large to be.
        LedgerError: The kept bytes were changed.
    """
    return _recalled(ledger.kept(entry), f"entry {entry}")


def _recalled(stored: bytes, which: str) -> Release:
    if stored.startswith(_DIGEST):
        raise ParameterError(
            f"the release of {which} must be small enough to be kept in the ledger; it was not. "
            "Load the file it was saved to, or pay for another: under a new key, or drawn again (--again)."
        )
    return Release.from_json(stored, max_bytes=len(stored))
