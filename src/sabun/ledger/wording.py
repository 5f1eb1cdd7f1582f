"""The sentences a ledger speaks: refusals and the page a person reads."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sabun.errors import BudgetExceeded
from sabun.ledger.admission import Price
from sabun.ledger.statement import Budget, Entry, Terms
from sabun.privacy.amounts import Amount, plain

__all__ = ["at_least", "at_most", "page", "refusal"]

_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
"""A SHA-256 in a purpose, shown by its first twelve digits."""

_RESERVED = (
    "reserved: spent, though no result was kept: the run was stopped, failed or still goes on. "
    "Records may have been read, so it cannot be given back."
)

_UP = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_DOWN = decimal.Context(prec=6, rounding=decimal.ROUND_FLOOR, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def at_most(amount: Fraction) -> str:
    """A decimal of six digits that is not above the amount: what is left.

    Example:
        >>> at_most(Fraction(1, 3)), at_most(Fraction(1, 2))
        ('0.333333', '0.5')
    """
    return _shown(amount, _DOWN)


def at_least(amount: Amount) -> str:
    """A decimal of six digits that is not below the amount: what is needed or gone.

    Example:
        >>> at_least(Fraction(1, 3)), at_least(float("inf"))
        ('0.333334', 'infinity')
    """
    return _shown(amount, _UP) if isinstance(amount, Fraction) else plain(amount)


def _shown(amount: Fraction, context: decimal.Context) -> str:
    number = context.divide(Decimal(amount.numerator), Decimal(amount.denominator))
    fits_float = not number or -300 < number.adjusted() < 300
    return format(float(number), ".6g") if fits_float else format(number.normalize(context), "e")


def refusal(terms: Terms, remaining: Budget, asked: Price) -> BudgetExceeded:
    """The error for a charge that does not fit.

    What is left is rounded down and what is needed is rounded up, so the two can never read as if it had fitted.
    """
    wanted = {"epsilon": asked.epsilon, "delta": asked.delta}
    short = [word for word, amount in wanted.items() if amount > getattr(remaining, word)] or ["epsilon"]
    left = " and ".join(
        f"{word} {at_most(getattr(remaining, word))} of {at_most(getattr(terms.budget, word))}" for word in short
    )
    needs = " and ".join((f"{word} " if len(short) > 1 else "") + at_least(wanted[word]) for word in short)
    why = (
        ""
        if isinstance(asked.epsilon, Fraction)
        else " (no finite epsilon bounds all it publishes together, so no ledger can pay for it)"
    )
    restated = f" ({asked.note})" if asked.note else ""
    advice = "" if short != ["delta"] else " Ask for a smaller delta, or use a mechanism that needs none."
    return BudgetExceeded(
        f"{terms.name!r} has {left} left; this release needs {needs}{why}{restated}. "
        f"Nothing was released, nothing was charged.{advice}",
        remaining_epsilon=remaining.epsilon,
        remaining_delta=remaining.delta,
        requested_epsilon=asked.epsilon,
        requested_delta=asked.delta,
    )


def page(terms: Terms, spent: Budget, entries: Sequence[Entry], *, earlier: int = 0) -> str:
    """A ledger as text: terms, sums, a line for each entry, how many earlier ones are left out."""
    lines = [f"Ledger {terms.name!r}", f"unit      {_one_line(terms.unit)}", f"relation  {terms.relation}"]
    for word, budget, gone in zip(("epsilon", "delta"), terms.budget, spent, strict=True):
        lines.append(f"{word:<9} {at_most(budget)} budget, {at_least(gone)} spent, {at_most(budget - gone)} left")
    if earlier:
        lines += ["", f"Earlier entries that are not shown: {earlier}."]
    if entries or not earlier:
        lines += ["", *_table(entries)]
    return "\n".join(lines)


def _table(entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return ["No entries yet."]
    rows = [("entry", "time (UTC)", "state", "epsilon", "delta", "purpose")]
    for entry in entries:
        purpose = _DIGEST.sub(r"\1…", _one_line(entry.purpose)) + (f" [{entry.note}]" if entry.note else "")
        purpose = f"{_one_line(entry.remark)}: {purpose}" if entry.remark else purpose
        amounts = at_least(entry.epsilon), at_least(entry.delta)
        rows.append((str(entry.entry), entry.time[:19].replace("T", " "), entry.state, *amounts, purpose))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return lines if all(entry.state != "reserved" for entry in entries) else [*lines, "", _RESERVED]


def _one_line(words: str) -> str:
    """The words themselves, or their escaped form when they could move a terminal's cursor."""
    return words if words.isprintable() else repr(words)
