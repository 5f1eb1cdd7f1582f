"""What a budget went on, how many questions of a size it still allows, and the last Gaussian release that takes the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.errors import ParameterError
from sabun.ledger.amounts import write_amount
from sabun.ledger.shares import Held, Limits, Usage
from sabun.ledger.statement import Entry, Terms
from sabun.privacy.amounts import AmountLike, exact_positive
from sabun.privacy.conversion import epsilon_of_rho, rho_of
from sabun.privacy.renyi import grouped, pure_cost, stepped

__all__ = ["Forecast", "Rest", "forecast", "rest", "uses"]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What questions of one size would cost.

    Args:
        epsilon: The size of one question, which needs no delta.
        share: The share of the whole budget that the next one takes, by the rule that lasts longer.
        left: How many of them fit, if nothing else is asked.
    """

    epsilon: Fraction
    share: Fraction
    left: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"epsilon": write_amount(self.epsilon), "share": write_amount(self.share), "left": self.left}


@dataclass(frozen=True, kw_only=True)
class Rest:
    """One last Gaussian release that takes what is left.

    Args:
        rho: The zCDP parameter it may have.
        epsilon: What to ask for, together with `delta`, to get noise of that size.
        delta: The same.
    """

    rho: Fraction
    epsilon: Fraction
    delta: Fraction

    def to_dict(self) -> dict[str, str]:
        """Exact text."""
        return {field.name: write_amount(getattr(self, field.name)) for field in dataclasses.fields(self)}


def forecast(held: Sequence[Held], terms: Terms, epsilon: AmountLike) -> Forecast:
    """What questions of that epsilon would cost, and how many fit everything they are held against.

    Raises:
        ParameterError: Epsilon breaks its rule.
    """
    size = exact_positive(epsilon, name="epsilon")
    asked = Fraction(grouped(size, Fraction(0), steps=terms.group)[0])
    left, share = min((_questions(limits, used, asked) for limits, used in held), key=lambda way: (way[0], -way[1]))
    return Forecast(epsilon=size, share=share, left=left)


def _questions(limits: Limits, used: Usage, asked: Fraction) -> tuple[int, Fraction]:
    """How many questions fit, and the share that one takes."""
    whole = limits.part * limits.epsilon
    may_sum = limits.shares is None or limits.sums_admit(used)
    ways = [(max((whole - used.epsilon) // asked, 0), asked / whole)] if may_sum else []
    if limits.shares is not None and (room := limits.part * limits.shares.threshold(limits.epsilon)) > 0:
        tau = pure_cost(asked, order=limits.shares.order)
        ways.append((max((room - used.tau) // tau, 0), tau / room))
    # Of two rules with as many left, the one by which a question takes less.
    return max(ways, key=lambda way: (way[0], -way[1]), default=(0, Fraction(1)))


def uses(limits: Limits, used: Usage, charges: Iterable[tuple[str, Entry]]) -> dict[str, Fraction]:
    """The share of a budget that each name's charges take, largest first, counted by the rule that has more left."""
    share, order = limits.share_used(used), Fraction(0)
    if limits.shares is not None and (room := limits.part * limits.shares.threshold(limits.epsilon)) > 0:
        order = room if used.tau / room == share else order
    totals = dict[str, Fraction]()
    for name, entry in charges:
        if entry.state != "voided":
            taken = (entry.epsilon if entry.tau is None else entry.tau) / order if order else entry.epsilon / limits.epsilon
            totals[name] = totals.get(name, Fraction(0)) + taken
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def rest(held: Sequence[Held], terms: Terms, *, delta: AmountLike | None = None) -> Rest:
    """What one last Gaussian release may have, at a delta of its own, in everything it is held against.

    Raises:
        ParameterError: The ledger has no delta, or nothing is left for such a release.
    """
    whole = held[0][0].delta
    checks.require(whole > 0, "above 0 for a Gaussian release", "This ledger takes none.", delta=whole)
    given = None if delta is None else exact_positive(delta, name="delta")
    checks.require(given is None or given < 1, "above 0 and below 1", delta=delta)
    deltas = _deltas(held) if given is None else [given]
    found = [
        one for stated in deltas if stated > 0 for one in (_by_promise(held, terms, stated), _by_curve(held, terms, stated))
    ]
    best = max((one for one in found if one is not None), key=lambda one: one.rho, default=None)
    if best is None:
        which = "" if given is None else " with this delta"
        raise ParameterError(
            f"a last Gaussian release must have something left in {terms.name!r}; there is nothing for one{which}."
        )
    return best


def _deltas(held: Sequence[Held]) -> list[Fraction]:
    """What a last release could state: all that is left for those known by it alone, all for priced ones, the order's share."""
    deltas = [min(limits.left(used)[1] for limits, used in held)]
    for shares in {limits.shares for limits, _ in held if limits.shares is not None}:
        deltas += [min(limits.part * shares.sums - used.extra for limits, used in held), shares.tail]
    return deltas


def _by_promise(held: Sequence[Held], terms: Terms, delta: Fraction) -> Rest | None:
    """The largest release that is known by its (epsilon, delta) alone."""
    left = [limits.left(used) for limits, used in held]
    epsilon = _floor(min(most for most, _ in left) / terms.group)
    if epsilon <= 0 or grouped(epsilon, delta, steps=terms.group)[1] > min(most for _, most in left):
        return None
    return Rest(rho=rho_of(epsilon, delta), epsilon=epsilon, delta=delta)


def _by_curve(held: Sequence[Held], terms: Terms, delta: Fraction) -> Rest | None:
    """The largest release whose noise is known: each limit counts it by sums or by the order, as has more left."""
    ways = [max(_noise(limits, used, terms, delta), default=None) for limits, used in held]
    known = [way for way in ways if way is not None]
    if len(known) < len(ways):
        return None
    rho, epsilon = map(min, zip(*known, strict=True))
    return Rest(rho=rho, epsilon=epsilon, delta=delta)


def _noise(limits: Limits, used: Usage, terms: Terms, delta: Fraction) -> Iterator[tuple[Fraction, Fraction]]:
    """The rho and the epsilon at delta that each way of counting has left."""
    if limits.shares is None:
        return
    # A price is rounded up to this grid, so what is left of it is rounded down.
    room = -stepped(used.tau - limits.part * limits.shares.threshold(limits.epsilon))
    if room > 0:
        rho = room / (limits.shares.order * terms.group**2)
        yield rho, _asking(rho, delta)
    epsilon = _floor((limits.part * limits.epsilon - used.epsilon) / terms.group)
    if epsilon > 0 and used.extra + grouped(epsilon, delta, steps=terms.group)[1] <= limits.part * limits.shares.sums:
        yield rho_of(epsilon, delta), epsilon


def _asking(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon, just below the true one, whose Gaussian noise at delta has at most this rho."""
    epsilon, shrink = epsilon_of_rho(rho, delta=delta), Fraction(1, 10**9)
    while rho_of(epsilon, delta) > rho:
        epsilon, shrink = epsilon * (1 - shrink), 2 * shrink
    return _floor(epsilon)


def _floor(epsilon: Fraction) -> Fraction:
    """Twelve decimals, not above it."""
    return Fraction(epsilon.numerator * 10**12 // epsilon.denominator, 10**12)
