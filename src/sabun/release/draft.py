"""A release under construction: all of it but the value, fixed and tried before anything private is read."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, final

from sabun import checks
from sabun.errors import ParameterError
from sabun.ledger import Receipt
from sabun.privacy.guarantee import Guarantee
from sabun.release.document import Release, check_facts
from sabun.release.encoding import canonical, encode
from sabun.release.provenance import Provenance
from sabun.release.tree import Frozen

__all__ = ["Draft", "derived", "purpose_of"]

_NAMED = 3


@final
@dataclass(frozen=True, kw_only=True)
class Draft:
    """What is public about a release; complete but for its value and, where it is charged, its receipt.

    Args:
        kind: What is released, e.g. "outliers.count".
        promise: What whoever draws the value keeps.
        facts: The public choices behind it; they are published.
        subject: Public names of the columns it is about, for the ledger's readers.
        schema_hash: Hash of the public schema.
        notes: Sentences for the reader.

    Raises:
        ParameterError: No file could hold these facts.
    """

    kind: str
    promise: Guarantee
    facts: Mapping[str, Any]
    subject: Sequence[str] = ()
    schema_hash: str | None = None
    notes: tuple[str, ...] = ()
    origin: Provenance = field(init=False)

    def __post_init__(self) -> None:
        checks.text(kind=self.kind)
        if not isinstance(self.promise, Guarantee):
            raise ParameterError(f"guarantee must be a Guarantee; got {type(self.promise).__name__}.")
        frozen = Frozen(self.facts, where="parameters")
        origin = Provenance(
            kind=self.kind,
            mechanism=self.promise.mechanism,
            parameters=frozen,
            schema_hash=self.schema_hash,
            notes=self.notes,
        )
        check_facts(self.promise, origin)
        object.__setattr__(self, "facts", frozen)
        object.__setattr__(self, "origin", origin)

    @property
    def purpose(self) -> str:
        """What the ledger writes down about it."""
        return purpose_of(self.kind, self.facts, subject=self.subject, schema_hash=self.schema_hash, notes=self.notes)

    def paid(self, receipt: Receipt | None) -> Self:
        """The draft with the receipt of its charge; its time stays that of the draft, before the private work."""
        whole = copy.copy(self)
        object.__setattr__(whole, "origin", dataclasses.replace(self.origin, receipt=receipt))
        return whole

    def filled(self, value: Mapping[str, Any]) -> Release:
        """The release."""
        return Release(value=value, guarantee=self.promise, provenance=self.origin)


def derived(
    value: Mapping[str, Any],
    *,
    kind: str,
    promise: Guarantee,
    facts: Mapping[str, Any],
    notes: tuple[str, ...] = (),
) -> Release:
    """A release made of what was released before: no coin, no charge, the promise of what it is made of."""
    return Draft(kind=kind, promise=promise, facts=facts, notes=notes).filled(value)


def purpose_of(
    kind: str,
    parameters: Mapping[str, Any],
    *,
    subject: Sequence[str] = (),
    schema_hash: str | None = None,
    notes: tuple[str, ...] = (),
) -> str:
    """What the ledger writes down: the kind, the first columns, a digest of all public facts behind the release.

    The whole SHA-256 ties an idempotency key to these facts, so a retry with others is not answered with the old value.

    Example:
        >>> purpose_of("count", {"column": "age"})[:30]
        'count (parameters a86d31cee3c0'
        >>> purpose_of("count", {}, subject=["age", "sex", "ward", "dose", "year"])[:37]
        'count on age, sex, ward and 2 more (p'
    """
    facts = {"parameters": encode(Frozen(parameters, where="parameters")), "schema_hash": schema_hash, "notes": list(notes)}
    more = "" if len(subject) <= _NAMED else f" and {len(subject) - _NAMED} more"
    about = f" on {', '.join(subject[:_NAMED])}{more}" if subject else ""
    return f"{kind}{about} (parameters {hashlib.sha256(canonical(facts)).hexdigest()})"
