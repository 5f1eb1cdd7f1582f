"""What a guarantee costs in a given ledger, or why it cannot be booked there."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sabun import checks
from sabun.errors import IncompatibleGuarantees, ParameterError, SimulatedError
from sabun.ledger.statement import Budget, Terms
from sabun.privacy.amounts import Amount, AmountLike, exact
from sabun.privacy.guarantee import Guarantee

__all__ = ["CONVERTED", "Price", "budget_of", "check_words", "price"]

CONVERTED = "restated from add-remove to replace-one neighbours: 2 epsilon, (1 + e^epsilon) delta"
_LARGEST_BITS = 2048


@dataclass(frozen=True, kw_only=True)
class Price:
    """A guarantee's joint cost in the ledger's own relation; epsilon may be `math.inf`, which no ledger can pay."""

    epsilon: Amount
    delta: Amount
    note: str


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


def price(guarantee: Guarantee, terms: Terms) -> Price:
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
    if guarantee.simulated:
        raise SimulatedError(
            f"a charge to {terms.name!r} must come from OS entropy; got a simulated guarantee (NOT PRIVATE). "
            "Leave random_state at None to release, or leave the ledger out to simulate."
        )
    _must_be_writable(guarantee)
    _must_share_unit(guarantee, terms)
    restated, note = _in_relation(guarantee, terms)
    epsilon, delta = restated.cost
    return Price(epsilon=epsilon, delta=delta, note=note)


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
