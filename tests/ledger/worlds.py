"""Small worlds in which every adaptive analyst can be tried: exact rational arithmetic over all strategies.

An analyst asks one mechanism after another, each chosen from the outcomes so far, as long as a rule admits the list; P and Q
are the laws of all outcomes on two neighbouring tables. The worst true delta at factor R = e^E is the largest, over analysts,
of the sum over transcripts of max(P - R Q, 0).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

__all__ = ["Mechanism", "flip", "leak", "noisy", "rare", "stated", "worst_delta"]


@dataclass(frozen=True)
class Mechanism:
    """Two laws over the same outcomes, by name."""

    name: str
    first: tuple[Fraction, ...]
    second: tuple[Fraction, ...]

    def moment(self, order: int) -> Fraction:
        """e^((a-1) D_a) in the worse direction."""
        ways = (self.first, self.second), (self.second, self.first)
        return max(sum((p**order * q ** (1 - order) for p, q in zip(*way, strict=True) if p), Fraction(0)) for way in ways)

    def delta(self, factor: Fraction) -> Fraction:
        """The true delta at a factor e^epsilon, in the worse direction."""
        ways = (self.first, self.second), (self.second, self.first)
        return max(sum((max(p - factor * q, Fraction(0)) for p, q in zip(*way, strict=True)), Fraction(0)) for way in ways)


def flip(factor: Fraction) -> Mechanism:
    """Randomized response with e^epsilon = factor: the worst that is epsilon-DP."""
    yes = factor / (1 + factor)
    return Mechanism(f"flip {factor}", (yes, 1 - yes), (1 - yes, yes))


def leak(delta: Fraction) -> Mechanism:
    """Tells all with probability delta: the worst that is (0, delta)-DP."""
    return stated(Fraction(1), delta)


def stated(factor: Fraction, delta: Fraction) -> Mechanism:
    """The worst of all mechanisms that are (ln factor, delta)-DP (Kairouz, Oh and Viswanath 2015)."""
    yes = (1 - delta) * factor / (1 + factor)
    no = (1 - delta) / (1 + factor)
    return Mechanism(f"stated {factor} {delta}", (delta, yes, no, Fraction(0)), (Fraction(0), no, yes, delta))


def rare(share: Fraction, factor: Fraction) -> Mechanism:
    """One outcome that is unlikely, and so many times as likely on one table as on the other."""
    return Mechanism(f"rare {share} {factor}", (share, 1 - share), (share / factor, 1 - share / factor))


def noisy(weights: Sequence[int]) -> Mechanism:
    """Noise of finite support: one law, and its mirror image."""
    total = sum(weights)
    law = tuple(Fraction(weight, total) for weight in weights)
    return Mechanism(f"noisy {tuple(weights)}", law, law[::-1])


def worst_delta(
    menu: Sequence[Mechanism],
    step: Callable[[Any, Mechanism], Sequence[Any]],
    start: Any,
    *,
    factor: Fraction,
    depth: int,
) -> Fraction:
    """The worst delta over all analysts; `step` says in which states a ledger may be after a question (none: refused)."""

    @cache
    def value(p: Fraction, q: Fraction, state: Any, left: int) -> Fraction:
        best = max(p - factor * q, Fraction(0))
        if not left or not p:
            return best
        for mechanism in menu:
            for after in step(state, mechanism):
                outcomes = zip(mechanism.first, mechanism.second, strict=True)
                best = max(best, sum((value(p * a, q * b, after, left - 1) for a, b in outcomes), Fraction(0)))
        return best

    return value(Fraction(1), Fraction(1), start, depth)
