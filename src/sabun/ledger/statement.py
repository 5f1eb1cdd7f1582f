"""What a ledger tells its reader: amounts, terms, entries, receipts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self

from sabun.errors import ParameterError
from sabun.ledger.amounts import read_amount, write_amount

__all__ = ["LARGEST_GROUP", "Budget", "Entry", "Receipt", "Terms", "Verification"]

LARGEST_GROUP = 1000
"""How many units a ledger may protect together."""


class Budget(NamedTuple):
    """An exact pair of amounts.

    Example:
        >>> Budget(Fraction(1, 2), Fraction(0)).epsilon
        Fraction(1, 2)
    """

    epsilon: Fraction
    delta: Fraction

    def minus(self, other: Budget) -> Budget:
        """What is left of both amounts."""
        return Budget(self.epsilon - other.epsilon, self.delta - other.delta)

    def to_dict(self) -> dict[str, str]:
        """Both amounts as exact text, such as "1/2"."""
        return {"epsilon": write_amount(self.epsilon), "delta": write_amount(self.delta)}


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is fixed for good when a ledger is created.

    Args:
        name: What people call it.
        unit: Whose data is protected.
        relation: The neighbour relation.
        budget: The budget at creation.
        ceiling: The epsilon that the budget may be raised to; every statement is made for it.
        group: How many units of a group are protected together.
    """

    name: str
    unit: str
    relation: str
    budget: Budget
    ceiling: Fraction | None = None
    group: int = 1

    @property
    def promised(self) -> Budget:
        """What all releases together keep, whatever is raised later."""
        return Budget(self.budget.epsilon if self.ceiling is None else self.ceiling, self.budget.delta)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One charge as it stands now.

    Args:
        entry: Number of the charge, counted from 1.
        time: When it was reserved (UTC, ISO 8601).
        purpose: What it was for, in the caller's words.
        epsilon: Amount booked, in the ledger's own relation.
        delta: The same for delta.
        state: `reserved` (spent; no result was kept), `committed` (spent; the result is kept) or `voided` (not spent).
        key: The caller's idempotency key, if any.
        note: What the ledger did to the amounts before booking them; empty when nothing.
        guarantee: The promise as it was declared, in plain JSON types.
        software: Which version wrote the entry.
        entry_hash: Hash of the reserving row; it stands in the receipt.
        payload_sha256: Digest of the kept bytes once committed.
        payload_size: Their number.
        remark: What whoever paid wanted to add, in their own words.
        account: The account it was charged to, if any.
        form: What was booked at the ledger's order: `curve` (by what is run), `stated` (by epsilon and delta), or nothing.
        tau: What it takes of the order's total; None in a ledger that counts by sums.
        price: What is run, as it was stated; None when nothing was.
    """

    entry: int
    time: str
    purpose: str
    epsilon: Fraction
    delta: Fraction
    state: str
    key: str | None
    note: str
    guarantee: Mapping[str, Any]
    software: str
    entry_hash: str
    payload_sha256: str | None = None
    payload_size: int | None = None
    remark: str = ""
    account: str = ""
    form: str = ""
    tau: Fraction | None = None
    price: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; amounts are exact text."""
        record: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return record | {
            "epsilon": write_amount(self.epsilon),
            "delta": write_amount(self.delta),
            "guarantee": dict(self.guarantee),
            "tau": None if self.tau is None else write_amount(self.tau),
            "price": None if self.price is None else dict(self.price),
        }


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Evidence that a charge was booked before its result existed.

    `Ledger.verify(expect_head=receipt.entry_hash)` checks that the charge is still in the book.

    Args:
        ledger_name: Name of the ledger.
        entry: Number of the charge in it.
        entry_hash: Hash of the row that reserved it.
        epsilon: Amount booked, in the ledger's relation.
        delta: The same for delta.
        relation: The ledger's relation.
        unit: The ledger's unit.
        note: What the ledger did to the amounts before booking them; empty when nothing.
        time: When it was reserved (UTC, ISO 8601).
        group: For how many units together it was priced.
    """

    ledger_name: str
    entry: int
    entry_hash: str
    epsilon: Fraction
    delta: Fraction
    relation: str
    unit: str
    note: str
    time: str
    group: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; amounts are exact text such as "1/10". A group of one is not written, as it never was."""
        record = dataclasses.asdict(self) | {"epsilon": write_amount(self.epsilon), "delta": write_amount(self.delta)}
        return {name: value for name, value in record.items() if (name, value) != ("group", 1)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote; unknown, missing or wrongly typed fields are an error."""
        if not isinstance(record, Mapping):
            raise ParameterError(f"receipt must be a JSON object; got {type(record).__name__}.")
        known = {field.name for field in dataclasses.fields(cls) if field.name != "group" or "group" in record}
        if set(record) != known:
            raise ParameterError(
                f"receipt must have exactly the fields {sorted(known)}; check {sorted(set(record) ^ known, key=str)}."
            )
        wrong = sorted(name for name in known if type(record[name]) is not (int if name in ("entry", "group") else str))
        if wrong:
            raise ParameterError(f"receipt must hold text, with a whole number for entry and group; check {wrong}.")
        if "group" in known and not 2 <= record["group"] <= LARGEST_GROUP:
            raise ParameterError(f"receipt group must be from 2 to {LARGEST_GROUP} where it is written.")
        values = dict(record)
        for name in ("epsilon", "delta"):
            try:
                values[name] = read_amount(values[name])
            except ValueError:
                raise ParameterError(f"receipt {name} must be exact text such as '1/10'; got {values[name]!r}.") from None
        return cls(**values)


@dataclass(frozen=True, kw_only=True)
class Verification:
    """The outcome of a check that found nothing wrong.

    Args:
        entries: Number of charges in the book.
        head_hash: Hash of the newest row. Keep it elsewhere: it is what a later check can be held against.
    """

    entries: int
    head_hash: str
