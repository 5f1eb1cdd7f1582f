"""Noise on whole numbers, with how far it reaches: what is added, and what an interval may promise; proved in laws.proof.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Self, final

from sabun.asking import Ask
from sabun.privacy.calibration import discrete_gaussian_variance, discrete_laplace_scale
from sabun.privacy.certified import sqrt_up
from sabun.privacy.events import DiscreteGaussian
from sabun.privacy.noise import Coin, discrete_gaussian, discrete_laplace
from sabun.privacy.pricing import Price
from sabun.summaries.sensitivity import Change

__all__ = ["Noise"]

_CARE = Fraction(1) + Fraction(1, 1 << 30)
"""Reaches are computed with library logarithms and made this much longer."""


@final
@dataclass(frozen=True, kw_only=True)
class Noise:
    """Independent noise of one size for each of some whole numbers; public.

    Args:
        gaussian: Discrete Gaussian noise; else discrete Laplace noise.
        size: Its scale, or for Gaussian noise its variance.
        l2_squared: How far one neighbour step moves the numbers together, squared; None where nobody asks for a price.
    """

    gaussian: bool
    size: Fraction
    l2_squared: Fraction | None = None

    @classmethod
    def of(cls, ask: Ask, change: Change) -> Self:
        """What the terms need for numbers that one person can change by so much: Laplace noise unless there is a delta."""
        if not ask.delta:
            return cls(gaussian=False, size=discrete_laplace_scale(l1=change.l1, epsilon=ask.epsilon))  # proof: scale
        variance = discrete_gaussian_variance(l2_squared=change.l2_squared, epsilon=ask.epsilon, delta=ask.delta)
        return cls(gaussian=True, size=variance, l2_squared=change.l2_squared)  # proof: variance

    @property
    def words(self) -> str:
        """The name of the law."""
        return "discrete Gaussian noise" if self.gaussian else "discrete Laplace noise"

    def price(self, relation: str) -> Price | None:
        """What a ledger with a Rényi order may book for it; Laplace noise is known well enough by its epsilon."""
        if not self.gaussian or self.l2_squared is None:
            return None
        noise = DiscreteGaussian(sigma_squared=self.size, l2_squared=self.l2_squared)
        return Price(events=(noise,), relation=relation)  # proof: price

    def added(self, exact: Sequence[int], coin: Coin) -> list[int]:
        """The numbers with noise."""
        law = discrete_gaussian if self.gaussian else discrete_laplace
        drawn = law(self.size, coin=coin, size=len(exact))
        return [int(value) + int(noise) for value, noise in zip(exact, drawn, strict=True)]  # proof: add

    def reach(self, miss: float, *, numbers: int = 1) -> int:
        """The least k (for Gaussian noise, about) such that all of so many draws are within k with probability 1 - miss."""
        each = -math.expm1(math.log1p(-miss) / numbers)
        if self.gaussian:
            return math.ceil(sqrt_up(self.size) * Fraction(_normal(each)) * _CARE)  # proof: gaussian-reach
        below = math.exp(-1 / self.size) if self.size > Fraction(1, 700) else 0.0
        times = Fraction(math.log(2 / (each * (1 + below))))
        return max(math.ceil(self.size * times * _CARE) - 1, 0)  # proof: laplace-reach

    def reach_of_two(self, one: float, other: float, miss: float) -> Fraction:
        """How far one * X - other * Y is from 0 with probability 1 - miss at most, for two draws X and Y."""
        edge = Fraction(one) + Fraction(other)  # whole numbers instead of a density: at most this far from it
        if self.gaussian:
            size = sqrt_up(self.size) * Fraction(_normal(miss) * math.hypot(one, other))
        else:
            size = self.size * Fraction(_two_laplaces(one, other, miss))
        return size * _CARE + edge  # proof: two-draws


def _normal(miss: float) -> float:
    """How far a standard normal number is from 0 with probability 1 - miss."""
    return -NormalDist().inv_cdf(miss / 2)


def _two_laplaces(one: float, other: float, miss: float) -> float:
    """How far one * X - other * Y is from 0 with probability 1 - miss, for X and Y of the Laplace density of scale 1."""
    large, small = max(one, other), min(one, other)

    def tail(t: float) -> float:
        if large - small < 1e-6 * large:  # the limit of equal weights, which is the larger
            return (1 + t / (2 * large)) * math.exp(-t / large)
        other_part = small**2 * math.exp(-t / small) if small > 0 else 0.0
        return (large**2 * math.exp(-t / large) - other_part) / (large**2 - small**2)

    low, high = 0.0, large
    while tail(high) > miss:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > miss else (low, middle)
    return high
