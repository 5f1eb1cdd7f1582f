"""Where a ledger stands beyond its sums: its rule, its limit, what the order and each account have used.

Every row of a ledger with such terms carries it, so that the newest row tells all; a change of terms is a row of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from sabun.ledger.amounts import read_amount, write_amount
from sabun.ledger.shares import NOTHING, Limits, Shares, Usage

__all__ = ["RULES", "Account", "Standing", "changed", "charge_in"]

RULES = ("open", "sums", "shares")
"""`open` until the first charge, which fits the shares or makes the ledger count by sums, and again when all was voided."""


@dataclass(frozen=True, kw_only=True)
class Account:
    """A named part of a budget.

    Args:
        part: Its limit, as a part of the whole.
        used: What was charged to it.
    """

    part: Fraction
    used: Usage = NOTHING

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"part": write_amount(self.part), "used": self.used.to_dict()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote."""
        if len(record) != 2:
            raise ValueError("not an account")
        return cls(part=read_amount(record["part"]), used=Usage.from_dict(record["used"]))


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What a row carries beside the sums.

    Args:
        rule: How charges are admitted, one of `RULES`.
        limit: The epsilon that may be spent now.
        delta: The delta.
        shares: How delta is split; None where only sums count.
        used: Totals of all charges that were not voided.
        accounts: The accounts by name.
    """

    rule: str
    limit: Fraction
    delta: Fraction
    shares: Shares | None
    used: Usage = NOTHING
    accounts: Mapping[str, Account] = field(default_factory=dict)

    @property
    def undecided(self) -> bool:
        """Whether the next charge decides the rule: nothing was used yet, or all of it was given back."""
        return self.shares is not None and self.used == NOTHING

    def limits(self, rule: str | None = None, *, part: Fraction = Fraction(1)) -> Limits:
        """What lists of charges are held against, by this rule."""
        shares = self.shares if (rule or self.rule) == "shares" else None
        return Limits(epsilon=self.limit, delta=self.delta, shares=shares, part=part)

    def after(self, charge: Usage, *, account: str, sign: int = 1, rule: str = "") -> Standing:
        """With a charge, or without it again."""
        accounts = dict(self.accounts)
        if account:
            own = accounts[account]
            accounts[account] = dataclasses.replace(own, used=own.used.plus(charge, sign))
        return dataclasses.replace(self, used=self.used.plus(charge, sign), accounts=accounts, rule=rule or self.rule)

    def admits(self) -> bool:
        """Whether the whole and every account keep their limits; an undecided ledger has used nothing."""
        if self.rule == "open":
            return self.used == NOTHING
        return self.limits().admit(self.used) and all(
            self.limits(part=account.part).admit(account.used) for account in self.accounts.values()
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "rule": self.rule,
            "limit": write_amount(self.limit),
            "delta": write_amount(self.delta),
            "shares": None if self.shares is None else self.shares.to_dict(),
            "used": self.used.to_dict(),
            "accounts": {name: account.to_dict() for name, account in self.accounts.items()},
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote; anything else is a ValueError, KeyError, TypeError or AttributeError."""
        rule, shares = record["rule"], record["shares"]
        if rule not in RULES or (rule != "sums" and shares is None):
            raise ValueError("not a rule")
        return cls(
            rule=rule,
            limit=read_amount(record["limit"]),
            delta=read_amount(record["delta"]),
            shares=None if shares is None else Shares.from_dict(shares),
            used=Usage.from_dict(record["used"]),
            accounts={name: Account.from_dict(account) for name, account in record["accounts"].items()},
        )


def charge_in(body: Mapping[str, Any]) -> Usage:
    """The charge in a reserving row; one that was booked by sums alone counts with its epsilon and delta as they are."""
    epsilon, delta = read_amount(body["epsilon"]), read_amount(body["delta"])
    if "tau" not in body:
        return Usage(epsilon, delta, Fraction(0), epsilon)
    return Usage(epsilon, read_amount(body["loose"]), read_amount(body["extra"]), read_amount(body["tau"]))


def changed(before: Standing, body: Mapping[str, Any], *, ceiling: Fraction | None) -> Standing:
    """Where a ledger stands after a change of its terms; one that breaks the rules is a ValueError.

    A change raises the limit up to the ceiling, opens an account, or takes up counting by shares.
    """
    match body["change"]:
        case "raise":
            limit = read_amount(body["epsilon"])
            if ceiling is None or not before.limit < limit <= ceiling:
                raise ValueError("above the ceiling")
            return dataclasses.replace(before, limit=limit)
        case "account":
            name, part = body["account"], read_amount(body["part"])
            if not isinstance(name, str) or name in before.accounts or not 0 < part <= 1:
                raise ValueError("not a new account")
            return dataclasses.replace(before, accounts={**before.accounts, name: Account(part=part)})
        case "convert":
            shares = Shares.from_dict(body["shares"])
            if before.rule != "sums" or shares.total > before.delta or shares.stated < before.used.loose:
                raise ValueError("not a conversion")
            after = dataclasses.replace(before, rule="shares", shares=shares)
            if not after.admits():  # an account's limits shrink with the share
                raise ValueError("beyond a limit")
            return after
    raise ValueError("not a change")
