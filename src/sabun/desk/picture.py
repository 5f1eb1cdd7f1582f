"""What is drawn: the plan of a question for several epsilons, a ledger's budget. The rooms' plans have the numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, final

from sabun.desk.errands import Foreseen
from sabun.errors import SabunError
from sabun.ledger import Ledger
from sabun.ledger.wording import at_most, percent
from sabun.privacy.amounts import plain
from sabun.reports.purposes import in_short
from sabun.telling.language import retold, said
from sabun.telling.words import guess, number

__all__ = ["Budget", "Outlook", "Sight", "budget_after", "outlook", "spent_on"]

_FACTORS = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))


@final
@dataclass(frozen=True, kw_only=True)
class Sight:
    """The error to expect with one epsilon.

    Args:
        epsilon: The epsilon, in words.
        low: Its least usual size.
        middle: Its typical size.
        high: Its largest usual size.
        words: The same, to be read.
        chosen: Whether this is the epsilon that was chosen.
    """

    epsilon: str
    low: float
    middle: float
    high: float
    words: tuple[str, str]
    chosen: bool


@final
@dataclass(frozen=True, kw_only=True)
class Outlook:
    """A plan, drawn.

    Args:
        sights: The errors to expect, the smallest epsilon first.
        most: Where the picture ends.
        quantity: What is foretold.
        lines: What the plan says of the chosen epsilon.
        assumed: What it assumes.
        vacuous: Whether nothing but noise is expected.
        guess: How often the best guesser is right at most, in per cent.
        delta: The delta that is charged.
    """

    sights: tuple[Sight, ...] = ()
    most: float = 1.0
    quantity: str = ""
    lines: tuple[str, ...] = ()
    assumed: tuple[str, ...] = field(default=())
    vacuous: bool = False
    guess: float | None = None
    delta: Fraction = Fraction(0)


@final
@dataclass(frozen=True, kw_only=True)
class Budget:
    """What a question takes of a ledger's budget.

    Args:
        name: The ledger's name.
        takes: The share it takes, in words, and
        share: as a number.
        used: The share that is used before it.
        left: The largest epsilon of one more release, in words.
        questions: How many such questions are left.
        after: The share that is used after it, in words, and
        before: the same before it.
        lacks_delta: Whether it needs a delta and the ledger has none.
    """

    name: str = ""
    takes: str = ""
    share: float = 0.0
    used: float = 0.0
    left: str = ""
    questions: int = 0
    after: str = ""
    before: str = ""
    lacks_delta: bool = False


def outlook(seen: Foreseen, epsilon: Fraction) -> Outlook:
    """The plan with an epsilon, and with others around it.

    Raises:
        SabunError: It cannot be asked with that epsilon.
    """
    plan = seen.plan(epsilon)
    if plan is None:
        return Outlook(guess=guess(epsilon, Fraction(0)))
    sights = [
        _sight(plan if factor == 1 else _tried(seen, epsilon * factor), epsilon * factor, factor == 1) for factor in _FACTORS
    ]
    found = tuple(one for one in sights if one is not None)
    forecasts = tuple(getattr(plan, "forecasts", ()))
    delta = Fraction(str(getattr(plan, "delta", None) or 0))
    return Outlook(
        sights=found,
        most=max((one.high for one in found if math.isfinite(one.high)), default=1.0) or 1.0,
        quantity=retold(forecasts[0].quantity) if forecasts else "",
        lines=tuple(map(str, forecasts)) or tuple(str(plan).splitlines()),
        assumed=_assumed(forecasts),
        vacuous=bool(getattr(plan, "vacuous", False)),
        guess=guess(epsilon, delta),
        delta=delta,
    )


def _assumed(forecasts: Sequence[Any]) -> tuple[str, ...]:
    """What each forecast assumes, in a line: the kindest first, the least kind last."""
    lines = [said("; ").join(map(retold, one.assumed)) for one in forecasts]
    if len(lines) < 2:
        return tuple(said("Assumed: {lines}.", lines=line) for line in lines if line)
    return (
        said("The smallest, if {lines}.", lines=lines[0]),
        *(said("The largest, if {lines}.", lines=one) for one in lines[-1:]),
    )


def _tried(seen: Foreseen, epsilon: Fraction) -> Any:
    """The plan with another epsilon; None where the question does not take that."""
    try:
        return seen.plan(epsilon)
    except SabunError:
        return None


def _sight(plan: Any, epsilon: Fraction, chosen: bool) -> Sight | None:
    """One row: the middles, from the kindest forecast to the least kind, and the high end of that."""
    forecasts = tuple(getattr(plan, "forecasts", ()))
    if not forecasts:
        return None
    low, middle, high = forecasts[0].low, forecasts[0].middle, forecasts[-1].high
    about = dict.fromkeys((_rounded(middle), _rounded(forecasts[-1].middle)))
    words = (
        said("{low} to {high}", low=next(iter(about)), high=next(reversed(about))) if len(about) > 1 else next(iter(about)),
        _rounded(high),
    )
    return Sight(epsilon=plain(epsilon), low=low, middle=middle, high=high, words=words, chosen=chosen)


def _rounded(error: float) -> str:
    """Two digits: nobody knows an error better."""
    return number(float(f"{error:.2g}")) if math.isfinite(error) else "∞"


def spent_on(book: Ledger) -> dict[str, Fraction]:
    """What the budget went on, in words that people read; questions of the same words together, largest first."""
    found: dict[str, Fraction] = {}
    for purpose, share in book.uses("purpose").items():
        found[in_short(purpose)] = found.get(in_short(purpose), Fraction(0)) + share
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def budget_after(ledger: Path | None, epsilon: Fraction, delta: Fraction) -> Budget:
    """What a question of an epsilon and a delta takes; empty without a ledger."""
    if ledger is None:
        return Budget()
    with Ledger.open(ledger) as book:
        told = book.forecast(epsilon)
        return Budget(
            name=book.name,
            takes=percent(told.share),
            share=float(told.share),
            used=float(book.share_used),
            left=at_most(book.remaining.epsilon),
            questions=told.left,
            before=percent(book.share_used),
            after=percent(min(book.share_used + told.share, Fraction(1))),
            lacks_delta=bool(delta) and not book.budget.delta,
        )
