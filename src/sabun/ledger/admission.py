"""What a guarantee costs in a given ledger, or why it cannot be booked there."""

from __future__ import annotations

import functools
import json
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.errors import IncompatibleGuarantees, ParameterError, SimulatedError
from sabun.ledger.amounts import read_amount, write_amount
from sabun.ledger.shares import Shares, Usage
from sabun.ledger.standing import Standing, charge_in
from sabun.ledger.statement import Budget, Terms
from sabun.privacy.amounts import Amount, AmountLike, exact, plain
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.pricing import Price
from sabun.privacy.renyi import grouped, pure_cost

__all__ = ["CONVERTED", "Asked", "amount_in", "asked", "booking", "budget_of", "check_booked", "check_words", "warn_if_cheap"]

CONVERTED = "restated from add-remove to replace-one neighbours: 2 epsilon, (1 + e^epsilon) delta"
_LARGEST_BITS = 2048
_FAR_BELOW = 2


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A release's joint cost in the ledger's own relation; epsilon may be `math.inf`, which no ledger can pay.

    Args:
        epsilon: What its guarantee adds up to.
        delta: The same.
        note: What was done to the amounts.
        price: What is run for it, where that is stated.
        steps: Over how many neighbour steps of the price's relation a group's change leads.
    """

    epsilon: Amount
    delta: Amount
    note: str
    price: Price | None = None
    steps: int = 1

    def prepare(self, shares: Shares | None) -> None:
        """Reckons prices that take a while before others have to wait for them; they are remembered."""
        if shares is not None and self.price is not None:
            self.price.cost(order=shares.order, steps=self.steps)

    def forms(self, order: int) -> Iterator[tuple[str, Usage]]:
        """The true statements about it that a ledger of this order may book, the one that is cheaper there first."""
        epsilon, delta = Fraction(self.epsilon), Fraction(self.delta)
        cost = None if self.price is None else self.price.cost(order=order, steps=self.steps)
        stated = "stated", Usage(epsilon, delta, Fraction(0), pure_cost(epsilon, order=order))
        curve = [] if cost is None else [("curve", Usage(epsilon, cost.delta, delta, cost.tau))]
        yield from sorted((*curve, stated), key=lambda form: form[1].tau)


def budget_of(epsilon: AmountLike, delta: AmountLike) -> Budget:
    """The budget of a new ledger: exact, finite, above zero.

    Raises:
        ParameterError: An amount breaks its rule.
    """
    parts = exact(epsilon, name="epsilon"), exact(delta, name="delta")
    checks.require(parts[0] > 0 and isinstance(parts[0], Fraction), "finite and > 0", epsilon=epsilon)
    checks.require(0 <= parts[1] < 1, "at least 0 and below 1", delta=delta)
    whole, rest = Fraction(parts[0]), Fraction(parts[1])
    bits = max(number.bit_length() for part in (whole, rest) for number in (part.numerator, part.denominator))
    if bits > _LARGEST_BITS:
        raise ParameterError(
            f"epsilon and delta must be fractions of numbers of at most {_LARGEST_BITS} bits; got one of {bits}."
        )
    return Budget(whole, rest)


def asked(guarantee: Guarantee, terms: Terms, price: Price | None = None) -> Asked:
    """The joint cost of a guarantee in a ledger's terms.

    Raises:
        SimulatedError: The guarantee describes a seeded run.
        IncompatibleGuarantees: Its unit or relation is not the ledger's, with no sound conversion.
        ParameterError: It is not a guarantee, or its amounts or words cannot be written down.
    """
    if not isinstance(guarantee, Guarantee):
        raise ParameterError(
            f"guarantee must be a Guarantee; got {type(guarantee).__name__}. Build one with sabun.Guarantee(epsilon=...)."
        )
    if price is not None and not isinstance(price, Price):
        raise ParameterError(f"price must be a Price or None; got {type(price).__name__}.")
    if guarantee.simulated:
        raise SimulatedError(
            f"a charge to {terms.name!r} must come from OS entropy; got a simulated guarantee (NOT PRIVATE). "
            "Leave random_state at None to release, or leave the ledger out to simulate."
        )
    _must_be_writable(guarantee)
    _must_share_unit(guarantee, terms)
    restated, note = _in_relation(guarantee, terms)
    epsilon, delta = grouped(*restated.cost, steps=terms.group)
    if terms.group > 1:
        note = "; ".join(filter(None, (note, f"restated for groups of {terms.group}")))
    steps = 1 if price is None else _steps(price.relation, terms)
    return Asked(epsilon=epsilon, delta=delta, note=note, price=price, steps=steps)


def warn_if_cheap(guarantee: Guarantee, price: Price | None) -> None:
    """Warns of a price that implies less than half the epsilon of its guarantee: one of the two may say something untrue.

    A price is believed: one that was made for less than what is run, or for other neighbours, would spend more than it books.
    """
    epsilon, delta = guarantee.cost
    if price is None or price.relation != guarantee.relation or not isinstance(epsilon, Fraction):
        return
    implied = price.epsilon(delta=Fraction(delta), near=epsilon) if epsilon else None
    if implied is not None and _FAR_BELOW * implied < epsilon:
        warnings.warn(
            f"the price of this release implies an epsilon of at most {plain(implied)}, and its guarantee says "
            f"{plain(epsilon)}: check that the price states all that is run, with its sensitivities between the guarantee's "
            "neighbours.",
            stacklevel=4,
        )


def booking(standing: Standing, wanted: Asked, *, account: str) -> dict[str, Any] | None:
    """What a reserving row says of the amounts of a charge that is admitted; None when it is not.

    The first charge decides: while it fits the shares the ledger counts by them, else by sums. An account has its part of the
    shares alone, so that it never decides by sums for all.
    """
    if not isinstance(wanted.epsilon, Fraction) or not isinstance(wanted.delta, Fraction):
        return None
    amount = Budget(wanted.epsilon, wanted.delta).to_dict() | ({"account": account} if account else {})
    undecided = ("shares",) if account else ("shares", "sums")
    for rule in undecided if standing.rule == "open" else (standing.rule,):
        first = {"rule": rule} if standing.rule == "open" else {}
        for more in _forms(standing, wanted) if rule == "shares" else ({},):
            body = amount | first | more
            if standing.after(charge_in(body), account=account, rule=rule).admits():
                return body
    return None


def _forms(standing: Standing, wanted: Asked) -> Iterator[dict[str, Any]]:
    assert standing.shares is not None
    for form, usage in wanted.forms(standing.shares.order):
        parts = {name: write_amount(getattr(usage, name)) for name in ("loose", "extra", "tau")}
        yield {"form": form} | parts | ({} if wanted.price is None else {"price": wanted.price.to_dict()})


def check_booked(body: Mapping[str, Any], before: Standing, terms: Terms) -> None:
    """Reckons a charge anew from the guarantee and the price in its row; a ValueError when less was booked."""
    price = _text(body["price"]) if "price" in body else ""
    wanted, booked, stated = _asked_in(_text(body["guarantee"]), price, terms), charge_in(body), amount_in(body)
    if not wanted.epsilon <= stated.epsilon or not wanted.delta <= stated.delta:
        raise ValueError("less than the guarantee")
    if "tau" in body:
        if before.shares is None:
            raise ValueError("a price without an order")
        owed = dict(wanted.forms(before.shares.order))[body["form"]]
        if any(due > paid for due, paid in zip(owed, booked, strict=True)):
            raise ValueError("less than the price")


@functools.lru_cache(maxsize=1024)
def _asked_in(guarantee: str, price: str, terms: Terms) -> Asked:
    """What a row asked for; many rows of a book ask for the same."""
    stated = Price.from_dict(json.loads(price)) if price else None
    return asked(Guarantee.from_dict(json.loads(guarantee)), terms, stated)


def _text(part: object) -> str:
    return json.dumps(part, sort_keys=True)


def amount_in(body: Mapping[str, Any]) -> Budget:
    """The epsilon and delta in the body of a reserving row."""
    return Budget(read_amount(body["epsilon"]), read_amount(body["delta"]))


def check_words(**named: str) -> None:
    """Refuses text that no file could hold; found out after a charge, it would cost the charge.

    Raises:
        ParameterError: A text has half a character (a lone surrogate).
    """
    for name, words in named.items():
        try:
            words.encode("utf-8")
        except UnicodeEncodeError:
            raise ParameterError(f"{name} must be valid Unicode text; got one with a lone surrogate. Write it anew.") from None


def _must_be_writable(guarantee: Guarantee) -> None:
    check_words(unit=guarantee.unit, mechanism=guarantee.mechanism)
    for words in guarantee.assumptions:
        check_words(assumptions=words)
    for name in ("epsilon", "delta", "joint_epsilon", "joint_delta"):
        amount = getattr(guarantee, name)
        bits = max(amount.numerator.bit_length(), amount.denominator.bit_length()) if isinstance(amount, Fraction) else 0
        if bits > _LARGEST_BITS:
            raise ParameterError(
                f"{name} must be a fraction of numbers of at most {_LARGEST_BITS} bits; got one of {bits}. "
                "Round it up with sabun.privacy.amounts.rounded_up."
            )


def _must_share_unit(guarantee: Guarantee, terms: Terms) -> None:
    if guarantee.unit != terms.unit:
        raise IncompatibleGuarantees(
            f"unit must be {terms.unit!r}, as in ledger {terms.name!r}; got {guarantee.unit!r}. State the guarantee for one "
            f"whole {terms.unit} (k times the epsilon where one can hold k of the others), or use a ledger with "
            f"the unit {guarantee.unit!r}."
        )


def _steps(relation: str, terms: Terms) -> int:
    """How many neighbour steps of a relation make up one of the ledger's, for its groups."""
    if relation == terms.relation:
        return terms.group
    if (relation, terms.relation) == ("add-remove", "replace-one"):
        return 2 * terms.group
    raise IncompatibleGuarantees(
        f"price must be stated for {terms.relation!r} neighbours, as in ledger {terms.name!r}; got {relation!r}. "
        "State it for those, or leave it out."
    )


def _in_relation(guarantee: Guarantee, terms: Terms) -> tuple[Guarantee, str]:
    if guarantee.relation == terms.relation:
        return guarantee, ""
    if (guarantee.relation, terms.relation) == ("add-remove", "replace-one"):
        return guarantee.as_replace_one(), CONVERTED
    raise IncompatibleGuarantees(
        f"relation must be {terms.relation!r}, as in ledger {terms.name!r}; got {guarantee.relation!r}. "
        f"{_WAY_OUT[guarantee.relation]}"
    )


_WAY_OUT = {
    "replace-one": "A replace-one promise says nothing about adding or removing: use a ledger with relation='replace-one', "
    "which takes add-remove guarantees too.",
    "add-remove": "Use a ledger with relation='add-remove' or relation='replace-one'.",
    "local": "Book local reports in a ledger with relation='local'.",
}
