"""One row of the book: canonical text, hashed together with the row before it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cached_property
from typing import Any

from sabun.errors import LedgerError
from sabun.ledger.amounts import read_amount, write_amount
from sabun.ledger.shares import NOTHING
from sabun.ledger.standing import Standing, charge_in
from sabun.ledger.statement import Budget, Terms
from sabun.privacy.amounts import compact

__all__ = [
    "FIRST_PREVIOUS",
    "FORMATS",
    "Row",
    "first_row",
    "next_row",
    "seal_of",
    "standing_after",
    "standing_in",
    "total_after",
]

FORMATS = (1, 2)
"""1: sums alone. 2: every row carries where the ledger stands beyond them. A ledger that needs no more is written as 1."""
FIRST_PREVIOUS = "0" * 64
_FIELDS: dict[str, dict[str, type]] = {
    "create": {},
    "reserve": dict.fromkeys(("purpose", "note", "software", "epsilon", "delta", "void_seal"), str) | {"guarantee": dict},
    "commit": {"payload_sha256": str, "payload_size": int},
    "void": {"void_token": str},
    "change": {"change": str, "reason": str, "software": str},
}
"""What the body of a row of each kind holds; whoever finds one through the index reads it without the rows around it."""

_SIGNS = {"reserve": 1, "void": -1}


@dataclass(frozen=True, kw_only=True)
class Row:
    """A written line of the book; `entries`, `spent` and `standing` are what holds after it."""

    sequence: int
    kind: str
    time: str
    entry: int
    key: str | None
    body: Mapping[str, Any]
    entries: int
    spent: Budget
    previous: str
    standing: Standing | None = None

    @cached_property
    def record(self) -> str:
        """Canonical JSON: sorted names, no spaces, ASCII only, amounts as exact text."""
        fields = {
            "sequence": self.sequence,
            "kind": self.kind,
            "time": self.time,
            "entry": self.entry,
            "key": self.key,
            "body": dict(self.body),
            "entries": self.entries,
            "spent": self.spent.to_dict(),
            "previous": self.previous,
        }
        if self.standing is not None:
            fields["standing"] = self.standing.to_dict()
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the record, which holds the hash of the row before."""
        return hashlib.sha256(self.record.encode("ascii")).hexdigest()

    @cached_property
    def amount(self) -> Budget:
        """What a creating row grants or a reserving row takes."""
        return Budget(read_amount(self.body["epsilon"]), read_amount(self.body["delta"]))

    def _is_well_formed(self) -> bool:
        """Whether all parts have the types that a row of this kind has."""
        fields = _FIELDS.get(self.kind) if isinstance(self.kind, str) else None
        types = (type(part) for part in (self.sequence, self.entry, self.entries, self.time))
        if fields is None or tuple(types) != (int, int, int, str):
            return False
        try:
            good = all(isinstance(self.body.get(name), kind) for name, kind in fields.items())
            return good and (self.kind != "reserve" or min(self.amount) >= 0)
        except ValueError:
            return False

    @classmethod
    def read(cls, record: object, expected_hash: object, *, place: str) -> Row:
        """Reads a stored record; anything but the bytes that were hashed is a LedgerError."""
        try:
            if not isinstance(record, str):
                raise TypeError
            fields = json.loads(record)
            spent = Budget(read_amount(fields["spent"]["epsilon"]), read_amount(fields["spent"]["delta"]))
            standing = Standing.from_dict(fields["standing"]) if "standing" in fields else None
            row = cls(**(fields | {"spent": spent, "standing": standing}))
            good = row.record == record and row.hash == expected_hash
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            good = False
        if not good:
            raise LedgerError(
                f"{place}: a row was changed after it was written. Do not release from this ledger; restore it from a backup "
                "and verify that against a hash you kept."
            )
        if not row._is_well_formed():
            raise LedgerError(
                f"{place}: row {row.sequence!r:.20} must have the fields of its kind, and does not: the ledger was changed by "
                "something other than Sabun. Do not release from it; restore it from a backup."
            )
        return row


def seal_of(token: bytes) -> str:
    """What a reserving row shows of the secret that can void it; who knows only the row cannot find the secret."""
    return hashlib.sha256(b"void " + token).hexdigest()


def first_row(terms: Terms, *, software: str, standing: Standing | None = None) -> Row:
    """The row that opens a book."""
    body: dict[str, Any] = {"format": 1 if standing is None else 2, "name": terms.name, "unit": terms.unit}
    body |= {"relation": terms.relation, "software": software}
    if standing is not None:
        body |= {"group": terms.group} | ({} if terms.ceiling is None else {"ceiling": write_amount(terms.ceiling)})
    return Row(
        sequence=0,
        kind="create",
        time=_now(),
        entry=0,
        key=None,
        body=body | terms.budget.to_dict(),
        entries=0,
        spent=Budget(Fraction(0), Fraction(0)),
        previous=FIRST_PREVIOUS,
        standing=standing,
    )


def next_row(
    last: Row,
    *,
    kind: str,
    entry: int,
    body: Mapping[str, Any],
    amount: Budget,
    key: str | None = None,
    time: str | None = None,
    opening: Mapping[str, Any] | None = None,
    standing: Standing | None = None,
) -> Row:
    """The row that follows `last`; `amount` is that of the entry it speaks of, `opening` the body of the row that reserved it.

    `standing` is where the ledger stands after a change of its terms; otherwise it follows from the row before.

    The row that closes an entry repeats the time of the one that opened it: its own would tell how long the private work took.
    """
    return Row(
        sequence=last.sequence + 1,
        kind=kind,
        time=_now() if time is None else time,
        entry=entry,
        key=key,
        body=body,
        entries=max(last.entries, entry),
        spent=total_after(last.spent, kind, amount),
        previous=last.hash,
        standing=standing or standing_after(last.standing, kind, body if opening is None else opening),
    )


def standing_after(before: Standing | None, kind: str, opening: Mapping[str, Any]) -> Standing | None:
    """Where the ledger stands once a row about an entry is written: as with the totals, a void takes its charge back.

    A charge that is not booked as the rule in force has it is a ValueError.
    """
    sign = _SIGNS.get(kind)
    if before is None or sign is None:
        return before
    rule = opening.get("rule", "") if before.undecided else ""  # the first charge decides
    after = before.after(charge_in(opening), account=opening.get("account", ""), sign=sign, rule=rule)
    if kind == "reserve" and ("tau" in opening) != (after.rule == "shares"):
        raise ValueError("not booked by the rule in force")
    if kind == "void" and "rule" in opening and after.used == NOTHING:
        return dataclasses.replace(after, rule="open")  # nothing was drawn under the rule that it chose
    return after


def standing_in(row: Row, *, terms: Terms) -> Standing:
    """Where a ledger stands; one of the first format as if it had said so in every row."""
    if row.standing is not None:
        return row.standing
    used = NOTHING._replace(epsilon=row.spent.epsilon, loose=row.spent.delta, tau=row.spent.epsilon)
    return Standing(rule="sums", limit=terms.budget.epsilon, delta=terms.budget.delta, shares=None, used=used)


def total_after(spent: Budget, kind: str, amount: Budget) -> Budget:
    """The spent total once a row is written: a reserve adds its amount, a void takes it back, a commit changes nothing.

    Totals stay exact until a denominator passes 2048 bits; then they are rounded up, so they never fall below the true sum.
    """
    sign = _SIGNS.get(kind)
    if sign is None:
        return spent
    return Budget(*(compact(total + sign * part) for total, part in zip(spent, amount, strict=True)))


def _now() -> str:
    # To the second: the time of the next charge would tell, more finely, how long the work on this one took.
    return datetime.now(UTC).isoformat(timespec="seconds")
