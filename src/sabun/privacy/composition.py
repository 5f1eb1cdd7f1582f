"""Several releases about the same people, as one promise."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from sabun import checks
from sabun.privacy.amounts import Amount, AmountLike, exact, float_below, rounded_up
from sabun.privacy.conversion import epsilon_of_rho
from sabun.privacy.events import Approximate, Event
from sabun.privacy.guarantee import Guarantee

__all__ = ["basic_cost", "compose", "pld_epsilon", "tight_epsilon", "zcdp_epsilon"]

_PLD_SLACK = 1 + 1e-9
_PLD_MARGIN = Fraction(1, 10**11)
_PLD_MARGIN_OF_A_RUN = Fraction(1, 10**15)


def compose(guarantees: Iterable[Guarantee]) -> Guarantee:
    """Basic composition: epsilons add up, deltas add up.

    Guarantee: holds for adaptively chosen mechanisms. Relations, units and scopes must agree.

    Example:
        >>> tenth = Guarantee(epsilon=0.1, mechanism="discrete Laplace")
        >>> compose([tenth] * 10).epsilon
        Fraction(1, 1)
    """
    parts = list(guarantees)
    checks.require(bool(parts), "at least one guarantee", guarantees=parts)
    return functools.reduce(Guarantee.__add__, parts)


def basic_cost(events: Sequence[Event]) -> tuple[Fraction, Fraction] | None:
    """The sums of epsilon and delta, where every event states them."""
    if not all(isinstance(event, Approximate) for event in events):
        return None
    stated = [event for event in events if isinstance(event, Approximate)]
    return sum((e.count * e.epsilon for e in stated), Fraction(0)), sum((e.count * e.delta for e in stated), Fraction(0))


def zcdp_epsilon(events: Sequence[Event], *, delta: AmountLike) -> Fraction | None:
    """Epsilon at delta by adding up rho (Bun-Steinke 2016, Lemma 1.7); None where an event has no rho."""
    rhos = [event.rho() for event in events]
    total = sum((rho for rho in rhos if rho is not None), Fraction(0))
    return None if None in rhos else epsilon_of_rho(total, delta=delta)


def pld_epsilon(events: Sequence[Event], *, delta: AmountLike) -> Amount | None:
    """Epsilon at delta by composing privacy-loss distributions; None where an event has none.

    The accountant (dp-accounting) rounds pessimistically when it discretises, but its floating-point convolutions are not
    certified, and lose a little probability with each run. It is asked at delta less a margin far beyond their observed error
    (10^-15 for each run, at least 10^-11), and its figure is raised by one part in 10^9. A delta below ten margins gives None.
    """
    margin = max(_PLD_MARGIN, sum(event.count for event in events) * _PLD_MARGIN_OF_A_RUN)
    target = _checked(delta) - margin  # proof: margin
    if target < 9 * margin:
        return None
    losses = [(event.privacy_loss(), event.count) for event in events]
    runs = [loss.self_compose(count) for loss, count in losses if loss is not None]
    if not runs or len(runs) < len(losses):
        return None
    total = functools.reduce(lambda left, right: left.compose(right), runs)
    epsilon = float(total.get_epsilon_for_delta(float_below(target)))
    return rounded_up(epsilon * _PLD_SLACK) if math.isfinite(epsilon) else math.inf


def tight_epsilon(events: Sequence[Event], *, delta: AmountLike) -> Amount:
    """The smallest epsilon at delta that any of our accountants can prove for all events together.

    Guarantee: every candidate is an upper bound by itself, so their minimum is one. Events are public and fixed before the
    choice; the minimum is over accountants, not over data.

    Example:
        >>> from sabun.privacy.events import DiscreteGaussian
        >>> once = tight_epsilon([DiscreteGaussian(sigma_squared=100, l2_squared=1)], delta=1e-6)
        >>> fifty = tight_epsilon([DiscreteGaussian(sigma_squared=100, l2_squared=1, count=50)], delta=1e-6)
        >>> fifty < 10 * once
        True
    """
    slack = _checked(delta)
    candidates: list[Amount] = []
    basic = basic_cost(events)
    if basic is not None and basic[1] <= slack:
        candidates.append(basic[0])
    for bound in (zcdp_epsilon(events, delta=delta), pld_epsilon(events, delta=delta)):
        if bound is not None:
            candidates.append(bound)
    return min(candidates, default=math.inf)


def _checked(delta: AmountLike) -> Fraction:
    read = exact(delta, name="delta")
    checks.require(isinstance(read, Fraction) and 0 < read < 1, "above 0 and below 1", delta=delta)
    return Fraction(read)
