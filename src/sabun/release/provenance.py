"""Where a result comes from: public facts only."""

from __future__ import annotations

import dataclasses
import functools
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Self

import numpy as np

from sabun import checks
from sabun.errors import ParameterError, ReleaseError
from sabun.foreign import one_line
from sabun.ledger import Receipt
from sabun.ledger.wording import at_least
from sabun.release.encoding import check_amount, decode_mapping, encode, exactly
from sabun.release.tree import Frozen, freeze

__all__ = ["Provenance", "installed", "now"]

_CLOCK = "%Y-%m-%dT%H:%M:%SZ"


def installed() -> dict[str, str]:
    """The versions that make a result: Sabun, Python, numpy."""
    return dict(_versions())


@functools.cache
def _versions() -> Frozen:
    """Looked up once: to read them from what is installed takes longer than many a release."""
    found = {"sabun": version("sabun"), "python": platform.python_version(), "numpy": np.__version__}
    return Frozen(found, where="provenance.software")


def now() -> str:
    """The time in UTC, to the second: finer would tell how long private work took."""
    return datetime.now(UTC).strftime(_CLOCK)


@dataclass(frozen=True, kw_only=True, eq=False)
class Provenance:
    """How a released value was made, without a single private fact.

    Args:
        kind: What was released, e.g. "outlier count".
        mechanism: Name of the mechanism that made it private.
        parameters: The public choices: bounds, sizes, options.
        software: Versions of what computed it.
        time: When it was made, in UTC, to the second.
        receipt: The ledger's receipt for the charge, or None when no ledger was charged.
        schema_hash: Hash of the public schema of the table, if there was one.
        notes: Sentences for the reader.

    Example:
        >>> Provenance(kind="count", mechanism="discrete Laplace", parameters={"column": "age"}).charge
        'not charged to a ledger'
    """

    kind: str
    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    software: Mapping[str, str] = field(default_factory=_versions)
    time: str = field(default_factory=now)
    receipt: Receipt | None = None
    schema_hash: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.text(kind=self.kind, mechanism=self.mechanism)
        if self.schema_hash is not None:
            checks.text(schema_hash=self.schema_hash)
        checks.require(_is_time(self.time), "a UTC time such as '2026-01-31T12:00:00Z'", time=self.time)
        if not (self.receipt is None or isinstance(self.receipt, Receipt)):
            raise ParameterError(f"receipt must be a ledger's Receipt or None; got {type(self.receipt).__name__}.")
        _sentences(self.notes)
        for name in ("kind", "mechanism", "time", "schema_hash", "notes"):
            object.__setattr__(self, name, freeze(getattr(self, name), f"provenance.{name}"))
        for name in ("parameters", "software"):
            object.__setattr__(self, name, Frozen(getattr(self, name), where=f"provenance.{name}"))
        for name, value in self.software.items():
            checks.text(**{f"software.{one_line(name)}": value})

    @property
    def charge(self) -> str:
        """Who paid for it, in words."""
        if self.receipt is None:
            return "not charged to a ledger"
        paid = f"epsilon {at_least(self.receipt.epsilon)}" + (
            f", delta {at_least(self.receipt.delta)}" if self.receipt.delta else ""
        )
        return f"charged to {self.receipt.ledger_name!r} as entry {self.receipt.entry} ({paid})"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        record = {field.name: encode(getattr(self, field.name)) for field in dataclasses.fields(self)}
        record["receipt"] = None if self.receipt is None else self.receipt.to_dict()
        return record

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Reads what `to_dict` wrote, strictly.

        Raises:
            ReleaseError: A field is missing, unknown or of the wrong type.
        """
        values = dict(exactly(record, {field.name for field in dataclasses.fields(cls)}, "provenance"))
        for name in ("parameters", "software"):
            values[name] = decode_mapping(values[name], f"provenance.{name}")
        if values["receipt"] is not None:
            values["receipt"] = _receipt(values["receipt"])
        if not isinstance(values["notes"], list):
            raise ReleaseError("provenance.notes must be a list of sentences; it is not.")
        values["notes"] = tuple(values["notes"])
        try:
            return cls(**values)
        except ParameterError as error:
            raise ReleaseError(f"provenance: {error}") from None


def _receipt(record: object) -> Receipt:
    if not isinstance(record, dict):
        raise ReleaseError("provenance.receipt must be a JSON object or null; it is not.")
    for name in ("epsilon", "delta"):
        check_amount(record.get(name), f"provenance.receipt.{name}")
    try:
        return Receipt.from_dict(record)
    except (ValueError, TypeError, KeyError) as error:
        raise ReleaseError(f"provenance.receipt: {error}") from None


def _is_time(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).strftime(_CLOCK) == text
    except ValueError:
        return False


def _sentences(notes: object) -> None:
    good = isinstance(notes, tuple) and all(isinstance(note, str) and note for note in notes)
    checks.require(good, "a tuple of sentences", notes=notes)
