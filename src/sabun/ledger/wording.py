"""The sentences a ledger speaks: refusals and the page a person reads."""

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

from sabun.errors import BudgetExceeded
from sabun.foreign import padded, shown_width
from sabun.ledger.admission import Asked
from sabun.ledger.prospects import forecast
from sabun.ledger.shares import Held, Limits, Usage
from sabun.ledger.standing import Standing
from sabun.ledger.statement import Budget, Entry, Terms
from sabun.privacy.amounts import Amount, AmountLike, plain

__all__ = ["at_least", "at_most", "bar", "page", "percent", "refusal"]

_SIZES = (Fraction(1, 20), Fraction(1, 10), Fraction(3, 10), Fraction(1))
"""The sizes of questions whose cost a page tells unless others are asked for."""
_BAR = 40

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


def refusal(terms: Terms, remaining: Budget, asked: Asked, *, whole: Budget | None = None, account: str = "") -> BudgetExceeded:
    """The error for a charge that does not fit: `whole` is what there was at first.

    What is left is rounded down and what is needed is rounded up, so the two can never read as if it had fitted.
    """
    wanted = {"epsilon": asked.epsilon, "delta": asked.delta}
    short = [word for word, amount in wanted.items() if amount > getattr(remaining, word)] or ["epsilon"]
    first = terms.budget if whole is None else whole
    left = " and ".join(f"{word} {at_most(getattr(remaining, word))} of {at_most(getattr(first, word))}" for word in short)
    holder = f"{terms.name!r}" + (f", account {account!r}," if account else "")
    needs = " and ".join((f"{word} " if len(short) > 1 else "") + at_least(wanted[word]) for word in short)
    why = (
        ""
        if isinstance(asked.epsilon, Fraction)
        else " (no finite epsilon bounds all it publishes together, so no ledger can pay for it)"
    )
    restated = f" ({asked.note})" if asked.note else ""
    advice = ""
    if short == ["delta"]:
        advice = (
            " Ask for a smaller delta, or use a mechanism that needs none."
            if first.delta
            else " Use a ledger that has a delta, or a mechanism that needs none."
        )
    if short == ["epsilon"] and not why:
        advice = " Ask for a smaller epsilon." if remaining.epsilon > 0 else " No further question fits."
    return BudgetExceeded(
        f"{holder} has {left} left; this release needs {needs}{why}{restated}. "
        f"Nothing was released, nothing was charged.{advice}",
        remaining_epsilon=remaining.epsilon,
        remaining_delta=remaining.delta,
        requested_epsilon=asked.epsilon,
        requested_delta=asked.delta,
    )


def percent(share: Fraction) -> str:
    """A share that is gone, rounded up to a tenth of a percent.

    Example:
        >>> percent(Fraction(1, 3)), percent(Fraction(0))
        ('33.4 %', '0 %')
    """
    return f"{at_least(Fraction(-(-share * 1000 // 1), 10))} %"


def bar(share: Fraction, width: int = _BAR) -> str:
    """A share from 0 to 1 drawn in characters; what is gone is never drawn too small.

    Example:
        >>> bar(Fraction(1, 3), 6)
        '██····'
    """
    full = min(-int(-share * width // 1), width)
    return "█" * full + "·" * (width - full)


def page(
    terms: Terms,
    standing: Standing,
    spent: Budget,
    entries: Sequence[Entry],
    *,
    earlier: int = 0,
    sizes: Sequence[AmountLike] | None = None,
    held: Sequence[Held],
    account: str = "",
) -> str:
    """A ledger as text: terms, what is used, what is left, a line for each entry, how many earlier ones are left out.

    Questions are held against `held`: through an account, its limit and the whole.
    """
    lines = [f"Ledger {terms.name!r}", f"unit      {_one_line(terms.unit)}", f"relation  {terms.relation}"]
    if terms.group > 1:
        lines.append(f"group     {terms.group} together; every charge is priced for that many")
    if terms.ceiling is not None:
        lines.append(f"ceiling   epsilon {at_most(terms.ceiling)}, which every promise is made for")
    lines += _amounts(standing, spent) if standing.shares is None else _parts(terms, standing, spent)
    rule = "shares" if standing.rule == "open" else standing.rule
    limits, known = standing.limits(rule), "" if rule == "sums" else " for releases known by (epsilon, delta) alone"
    lines += ["", *_bars("used", limits, standing.used, "the budget", f"the delta{known}")]
    for name, one in standing.accounts.items():
        own, word = standing.limits(rule, part=one.part), _one_line(name)
        such = f"{word}'s delta" + (" for such releases" if known else "")
        lines += _bars("", own, one.used, f"{word} ({percent(one.part)} of the whole)", such)
    lines += ["", *([f"through the account {_one_line(account)}:"] if account else [])]
    lines += _forecasts(held, terms, _SIZES if sizes is None else sizes)
    if earlier:
        lines += ["", f"Earlier entries that are not shown: {earlier}."]
    if entries or not earlier:
        lines += ["", *_table(entries)]
    return "\n".join(lines)


def _bars(word: str, limits: Limits, used: Usage, whole: str, delta: str) -> list[str]:
    """How much of the whole is gone, and of its delta where some is: with that gone little may be left to ask."""
    shares = {whole: limits.share_used(used)} | ({delta: limits.delta_used(used)} if limits.delta_used(used) else {})
    lines = [f"{bar(share)} {percent(share)} of {what}" for what, share in shares.items()]
    return [f"{word if not number else '':<9} {line}" for number, line in enumerate(lines)]


def _amounts(standing: Standing, spent: Budget) -> list[str]:
    """Budget, sums and what is left, where sums are what counts."""
    whole = Budget(standing.limit, standing.delta)
    return [
        f"{word:<9} {at_most(budget)} budget, {at_least(gone)} spent, {at_most(budget - gone)} left"
        for word, budget, gone in zip(("epsilon", "delta"), whole, spent, strict=True)
    ]


def _parts(terms: Terms, standing: Standing, spent: Budget) -> list[str]:
    """The promise and its parts; where the order counts no sum of what was stated, which would read like a promise."""
    shares, used = standing.shares, standing.used
    assert shares is not None
    lines = [f"promise   epsilon {at_most(terms.promised.epsilon)}, delta {at_most(standing.delta)} for everything together"]
    if terms.ceiling is not None:
        lines.append(f"budget    epsilon {at_most(standing.limit)} for now")
    if standing.rule == "sums":
        return [*lines, "counted   by sums: the first release needed more delta than its share", *_amounts(standing, spent)]
    gone, whole = used.loose, shares.stated
    return [
        *lines,
        f"counted   by sums or by Rényi order {shares.order}, whichever has more left",
        f"delta     {at_most(whole)} for releases known by (epsilon, delta) alone, {at_most(whole - gone)} of it left",
    ]


def _forecasts(held: Sequence[Held], terms: Terms, sizes: Sequence[AmountLike]) -> list[str]:
    found = [forecast(held, terms, size) for size in sizes]
    rows = [("question of", "takes", "such are left")]
    rows += [(f"epsilon {at_least(one.epsilon)}", percent(one.share), str(one.left)) for one in found]
    return _aligned(rows)


def _table(entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return ["No entries yet."]
    rows = [("entry", "time (UTC)", "state", "epsilon", "delta", "purpose")]
    for entry in entries:
        purpose = _DIGEST.sub(r"\1…", _one_line(entry.purpose)) + (f" [{entry.note}]" if entry.note else "")
        purpose = f"{_one_line(entry.remark)}: {purpose}" if entry.remark else purpose
        amounts = at_least(entry.epsilon), at_least(entry.delta)
        rows.append((str(entry.entry), entry.time[:19].replace("T", " "), entry.state, *amounts, purpose))
    lines = _aligned(rows)
    return lines if all(entry.state != "reserved" for entry in entries) else [*lines, "", _RESERVED]


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(shown_width(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _one_line(words: str) -> str:
    """The words themselves, or their escaped form when they could move a terminal's cursor."""
    return words if words.isprintable() else repr(words)
