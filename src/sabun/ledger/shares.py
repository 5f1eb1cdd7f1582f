"""Which lists of charges a budget admits; proved in shares.proof.md.

Notation: E, D the budget; a the order; D_s, D_0, D_1 its shares `sums`, `stated`, `tail`. A charge is (epsilon, loose, extra,
tau): but for outcomes of probability `loose` it is (epsilon, extra)-DP, and at most tau at order a. A list is admitted iff the
loose parts sum to at most D_0, and (the epsilons to at most E with the extras to at most D_s, or the taus to at most B).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, Self, TypeAlias

from sabun import checks
from sabun.errors import ParameterError
from sabun.ledger.amounts import read_amount, write_amount
from sabun.privacy.amounts import compact, exact
from sabun.privacy.renyi import best_order, largest_pure, pure_cost, threshold, whole_order

__all__ = ["DEFAULT_PARTS", "NOTHING", "Held", "Limits", "Shares", "Usage"]

DEFAULT_PARTS = (Fraction(1, 10), Fraction(2, 5), Fraction(1, 2))
"""Of delta: for the stated deltas of priced releases in sums; for releases known by (epsilon, delta) alone; for the order."""


class Usage(NamedTuple):
    """The totals of a list of charges, or one charge."""

    epsilon: Fraction
    loose: Fraction
    extra: Fraction
    tau: Fraction

    def plus(self, other: Usage, sign: int = 1) -> Usage:
        """With a further charge, or (sign -1) without one; never below the truth."""
        return Usage(*(compact(total + sign * part) for total, part in zip(self, other, strict=True)))

    def to_dict(self) -> dict[str, str]:
        """Exact text."""
        return {name: write_amount(amount) for name, amount in zip(self._fields, self, strict=True)}

    @classmethod
    def from_dict(cls, record: Mapping[str, str]) -> Self:
        """Reads what `to_dict` wrote; anything else is a ValueError or a KeyError."""
        if len(record) != len(cls._fields):
            raise ValueError("not a usage")
        return cls(*(read_amount(record[name]) for name in cls._fields))


NOTHING = Usage(Fraction(0), Fraction(0), Fraction(0), Fraction(0))


@dataclass(frozen=True, kw_only=True)
class Shares:
    """How delta is split, and the order; fixed when a ledger is created or converted.

    Args:
        order: The Rényi order a, a whole number.
        sums: D_s, for the deltas that priced releases state, where the sums decide.
        stated: D_0, for releases of which (epsilon, delta) is all that is known.
        tail: D_1, for turning the order's total into epsilon.
    """

    order: int
    sums: Fraction
    stated: Fraction
    tail: Fraction

    @classmethod
    def of(
        cls, epsilon: Fraction, delta: Fraction, *, order: int | None = None, parts: object = None, used: Fraction = Fraction(0)
    ) -> Self:
        """The shares of what is left of delta, by parts of it (sums, stated, tail); `used` was spent before.

        Raises:
            ParameterError: The parts are not three numbers from 0 on, at most 1 together, the last above 0.
        """
        sums, stated, tail = _checked(DEFAULT_PARTS if parts is None else parts)
        left = delta - used
        kept = {"sums": sums * left, "stated": used + stated * left, "tail": tail * left}
        return cls(order=best_order(epsilon, tail=kept["tail"]) if order is None else whole_order(order), **kept)

    def threshold(self, epsilon: Fraction) -> Fraction:
        """B: what all charges together may cost at the order."""
        return threshold(epsilon, order=self.order, tail=self.tail)

    @property
    def total(self) -> Fraction:
        """What they take of delta together."""
        return self.sums + self.stated + self.tail

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        amounts = {name: write_amount(getattr(self, name)) for name in ("sums", "stated", "tail")}
        return {"order": self.order} | amounts

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote; anything else is a ValueError, KeyError or TypeError."""
        order = whole_order(record["order"])
        amounts = {name: read_amount(record[name]) for name in ("sums", "stated", "tail")}
        if len(record) != 1 + len(amounts) or not amounts["tail"]:
            raise ValueError("not shares")
        return cls(order=order, **amounts)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a list of charges is held against: a whole budget, or a part of it.

    Args:
        epsilon: E.
        delta: D.
        shares: None where sums decide.
        part: An account's limit as a part of the whole.
    """

    epsilon: Fraction
    delta: Fraction
    shares: Shares | None
    part: Fraction = Fraction(1)

    def admit(self, used: Usage) -> bool:
        """Whether a list with these totals is admitted."""
        if self.shares is None:
            delta = used.loose + used.extra
            return used.epsilon <= self.part * self.epsilon and delta <= self.part * self.delta  # proof: sums
        if used.loose > self.part * self.shares.stated:  # proof: loose
            return False
        return self.sums_admit(used) or used.tau <= self.part * self.shares.threshold(self.epsilon)  # proof: either

    def sums_admit(self, used: Usage) -> bool:
        """Whether the epsilons and the stated deltas of priced releases fit by their sums."""
        sums = self.delta if self.shares is None else self.shares.sums
        return used.epsilon <= self.part * self.epsilon and used.extra <= self.part * sums  # proof: sums-of-good

    def left(self, used: Usage) -> tuple[Fraction, Fraction]:
        """The largest epsilon and delta of one more release of which no more is known; exact unless the order gives more."""
        whole = self.part * self.epsilon
        if self.shares is None:
            return _not_below_zero(whole - used.epsilon), _not_below_zero(self.part * self.delta - used.loose - used.extra)
        by_sums = whole - used.epsilon if self.sums_admit(used) else Fraction(0)
        room = self.part * self.shares.threshold(self.epsilon) - used.tau
        more = room > 0 and pure_cost(by_sums, order=self.shares.order) < room
        by_order = largest_pure(room, order=self.shares.order) if more else Fraction(0)
        return max(by_sums, by_order), _not_below_zero(self.part * self.shares.stated - used.loose)

    def share_used(self, used: Usage) -> Fraction:
        """How much of the budget is gone, from 0 to 1, by whichever rule has more left."""
        if self.shares is None:
            return used.epsilon / (self.part * self.epsilon)
        whole = self.part * self.shares.threshold(self.epsilon)
        by_order = used.tau / whole if whole > 0 else Fraction(1)
        by_sums = used.epsilon / (self.part * self.epsilon) if used.extra <= self.part * self.shares.sums else Fraction(1)
        return min(by_order, by_sums, Fraction(1))

    def delta_used(self, used: Usage) -> Fraction:
        """How much is gone of the delta for releases of which (epsilon, delta) is all that is known, from 0 to 1."""
        gone, whole = (used.loose + used.extra, self.delta) if self.shares is None else (used.loose, self.shares.stated)
        return gone / (self.part * whole) if gone else Fraction(0)


Held: TypeAlias = tuple[Limits, Usage]
"""Limits, and what was used of them."""


def _not_below_zero(amount: Fraction) -> Fraction:
    return max(amount, Fraction(0))


def _checked(parts: object) -> tuple[Fraction, Fraction, Fraction]:
    good = isinstance(parts, tuple | list) and len(parts) == 3
    checks.require(good, "three parts of delta: for sums, for stated deltas, for the order", shares=parts)
    assert isinstance(parts, tuple | list)
    read = [exact(part, name="shares") for part in parts]
    if min(read) < 0 or not read[2] or sum(read) > 1:
        raise ParameterError(
            f"shares must be three numbers from 0 on, together at most 1, the last above 0; got {parts!r:.80}."
        )
    sums, stated, tail = read
    return Fraction(sums), Fraction(stated), Fraction(tail)
