"""Whether a ledger stands behind a release: the charge, the promise, the bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass

from sabun.errors import ReleaseError
from sabun.ledger import Entry, Ledger, Receipt
from sabun.release.document import Release
from sabun.release.draft import purpose_of
from sabun.release.publish import kept

__all__ = ["Booking", "booked"]

_FACTS = re.compile(r" \(parameters [0-9a-f]{64}\)\Z")


@dataclass(frozen=True, kw_only=True)
class Booking:
    """Where a ledger booked a release.

    Args:
        entry: The charge that paid for it.
        bytes_compared: Whether the ledger kept the released bytes (or their digest), and they are those of the release. False
            means that it kept none: charge and promise are as booked, for the value itself the ledger cannot speak.
    """

    entry: int
    bytes_compared: bool


def booked(release: Release, ledger: Ledger) -> Booking:
    """Makes sure that a ledger holds the charge of a release, for the very promise the release makes.

    Compared are every field of the receipt with the ledger's own, the whole guarantee with the one that was declared, the
    public facts with the digest in the charge's purpose, and the bytes with those the ledger kept, where it kept any.

    Raises:
        ReleaseError: The release has no receipt, or the ledger holds no such charge, or one for something else.
        LedgerError: The ledger was changed.
    """
    receipt = release.provenance.receipt
    if receipt is None:
        raise ReleaseError("the release must have been charged to a ledger; it was not.")
    ledger.verify()
    entries = ledger.entries()
    entry = next((known for known in entries if known.entry_hash == receipt.entry_hash), None)
    if entry is None or entry.state == "voided":
        raise ReleaseError(f"ledger {ledger.name!r} must hold the charge of this release; it does not.")
    _must_be_equal(receipt, _receipt(entry, ledger), ledger)
    if release.guarantee.to_dict() != dict(entry.guarantee):
        raise _differs(ledger, "guarantee")
    if not _same_facts(release, entry):
        raise _differs(ledger, "kind, mechanism, parameters, schema or notes")
    stored = kept(dataclasses.replace(release, signature=None).to_json())
    if entry.payload_size and ledger.kept(entry.entry) != stored:
        raise _differs(ledger, "value")
    # The result of a run that was interrupted is kept with a later, free entry; its bytes name the charge they belong to.
    digest = hashlib.sha256(stored).hexdigest()
    return Booking(entry=entry.entry, bytes_compared=any(known.payload_sha256 == digest for known in entries))


def _receipt(entry: Entry, ledger: Ledger) -> Receipt:
    """The receipt that the ledger gave for a charge, from its own rows."""
    return Receipt(
        ledger_name=ledger.name,
        entry=entry.entry,
        entry_hash=entry.entry_hash,
        epsilon=entry.epsilon,
        delta=entry.delta,
        relation=ledger.relation,
        unit=ledger.unit,
        note=entry.note,
        time=entry.time,
        group=ledger.group,
    )


def _must_be_equal(shown: Receipt, given: Receipt, ledger: Ledger) -> None:
    for field in dataclasses.fields(Receipt):
        if getattr(shown, field.name) != getattr(given, field.name):
            raise _differs(ledger, f"receipt's {field.name}")


def _same_facts(release: Release, entry: Entry) -> bool:
    """Whether a charge was for these public facts: its purpose is the kind, perhaps columns, then a digest of the rest.

    A charge made by hand may have any other purpose, which says nothing about them.
    """
    if not _FACTS.search(entry.purpose):
        return True
    origin = release.provenance
    whole = purpose_of(origin.kind, origin.parameters, schema_hash=origin.schema_hash, notes=origin.notes)
    of_columns = entry.purpose.startswith(f"{origin.kind} on ") and entry.purpose.endswith(whole.removeprefix(origin.kind))
    return origin.mechanism == release.guarantee.mechanism and (of_columns or entry.purpose == whole)


def _differs(ledger: Ledger, part: str) -> ReleaseError:
    return ReleaseError(
        f"ledger {ledger.name!r} must hold this release as it was paid for; the {part} in the file is another. Do not use it."
    )
