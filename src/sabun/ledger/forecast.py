"""What a budget still allows: how many questions of a size, and the one last Gaussian release that takes the rest."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.errors import ParameterError
from sabun.ledger.amounts import write_amount
from sabun.ledger.shares import Limits, Usage
from sabun.ledger.statement import Terms
from sabun.privacy.amounts import AmountLike, exact_positive
from sabun.privacy.conversion import epsilon_of_rho, rho_of
from sabun.privacy.renyi import grouped, pure_cost

__all__ = ["Forecast", "Rest", "forecast", "rest"]


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


def forecast(limits: Limits, used: Usage, terms: Terms, epsilon: AmountLike) -> Forecast:
    """What questions of that epsilon would cost, and how many fit.

    Raises:
        ParameterError: Epsilon breaks its rule.
    """
    size = exact_positive(epsilon, name="epsilon")
    asked = Fraction(grouped(size, Fraction(0), steps=terms.group)[0])
    whole = limits.part * limits.epsilon
    may_sum = limits.shares is None or limits.sums_admit(used)
    ways = [(max((whole - used.epsilon) // asked, 0), asked / whole)] if may_sum else []
    if limits.shares is not None and (room := limits.part * limits.shares.threshold(limits.epsilon)) > 0:
        tau = pure_cost(asked, order=limits.shares.order)
        ways.append((max((room - used.tau) // tau, 0), tau / room))
    # Of two rules with as many left, the one by which a question takes less.
    left, share = max(ways, key=lambda way: (way[0], -way[1]), default=(0, Fraction(1)))
    return Forecast(epsilon=size, share=share, left=left)


def rest(limits: Limits, used: Usage, terms: Terms, *, delta: AmountLike | None = None) -> Rest:
    """What one last Gaussian release may have, at a delta of its own.

    Raises:
        ParameterError: The ledger has no delta, or nothing is left for such a release.
    """
    checks.require(limits.delta > 0, "above 0 for a Gaussian release", "This ledger takes none.", delta=limits.delta)
    left = limits.left(used)
    if limits.shares is None:
        stated = min(left[1] if delta is None else exact_positive(delta, name="delta"), left[1])
        rho = rho_of(left[0] / terms.group, stated) if min(*left, stated) > 0 and terms.group == 1 else Fraction(0)
    else:
        stated = limits.shares.tail if delta is None else exact_positive(delta, name="delta")
        room = limits.part * limits.shares.threshold(limits.epsilon) - used.tau
        rho = max(room, Fraction(0)) / (limits.shares.order * terms.group**2)
    checks.require(0 < stated < 1, "above 0 and below 1", delta=delta)
    if rho <= 0:
        raise ParameterError(f"a last Gaussian release must have something left in {terms.name!r}; there is nothing for one.")
    return Rest(rho=rho, epsilon=_asking(rho, stated), delta=stated)


def _asking(rho: Fraction, delta: Fraction) -> Fraction:
    """An epsilon, just below the true one, whose Gaussian noise at delta has at most this rho."""
    epsilon, shrink = epsilon_of_rho(rho, delta=delta), Fraction(1, 10**9)
    while rho_of(epsilon, delta) > rho:
        epsilon, shrink = epsilon * (1 - shrink), 2 * shrink
    return Fraction(epsilon.numerator * 10**12 // epsilon.denominator, 10**12)
