"""A private estimate of the noise scale, so that an interval is itself private; proved in error_bar.proof.md.

Notation: S is beta-smooth, so ln S moves by at most beta between neighbours; it is released as a whole number of public
steps h, with noise L. The interval is k times the estimate S e^L wide, with k from the joint law of L and the count's noise
Z S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.certified import log_down
from sabun.privacy.noise import Coin, discrete_laplace

__all__ = ["ErrorBar", "Tail"]

Tail: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Maps x to P(|noise| > x S)."""

_STEPS = 1 << 12
"""How many grid steps one neighbour step can move ln S, about."""

_CELLS = 4000

_LEAST_BETA = Fraction(1, 10**20)
"""Below this a logarithm of 40 digits could no longer tell the steps of the grid apart."""
_LARGEST_SPREAD = 10**280
"""Of the noise in ln S: its exponential, and a few hundred times that, still have to be handled."""

_LARGEST_LOG = 600.0
"""Beyond exp of this, far above every count, an estimate is not worth a number."""


@dataclass(frozen=True, kw_only=True)
class ErrorBar:
    """What the error bar costs and how it is read.

    Args:
        epsilon: What the bar may spend, at least 1e-280 of beta.
        beta: How smooth the bound is, at least 1e-20.

    Raises:
        ParameterError: One of them is smaller.
    """

    epsilon: Fraction
    beta: Fraction

    def __post_init__(self) -> None:
        advice = "Ask for a larger beta or epsilon, or turn the error bar off."
        checks.require(self.beta >= _LEAST_BETA, "at least 1e-20 with an error bar", advice, beta=float(self.beta))
        advice = "Give it a larger share, or turn it off."
        rule = "at least 1e-280 of beta in the error bar"
        checks.require(self.beta <= self.epsilon * _LARGEST_SPREAD, rule, advice, epsilon=float(self.epsilon))

    @property
    def step(self) -> Fraction:
        """The public grid of ln S."""
        return self.beta / _STEPS

    @property
    def scale(self) -> Fraction:
        """Scale of the discrete Laplace noise, in grid steps."""
        return (_STEPS + 2) / self.epsilon  # proof: steps-moved

    def draw(self, bound: Fraction, *, coin: Coin) -> int:
        """The noisy number of grid steps in ln S. The bound is private, the result is not."""
        return self._index(bound) + discrete_laplace(self.scale, coin=coin)

    def _index(self, bound: Fraction) -> int:
        return math.floor(log_down(bound) / self.step)  # proof: index

    def estimate(self, index: int, *, cap: int) -> float:
        """The scale a draw stands for: S e^L, between 1 and the public cap, which hold for every S."""
        exponent = float((index + 3) * self.step)  # proof: read-upwards
        highest = min(math.log(cap), _LARGEST_LOG)
        return math.exp(highest) if exponent >= highest else max(1.0, math.exp(exponent))

    def width(self, index: int, *, tail: Tail, miss: float, cap: int) -> int:
        """Half the width of an interval that misses the exact count with at most that probability."""
        reach = self.multiplier(tail, miss=miss) * self.estimate(index, cap=cap)
        return max(0, math.ceil(reach * (1 + 1e-9) - 0.5))

    def typical_width(self, bound: Fraction, *, tail: Tail, miss: float, cap: int) -> int:
        """The median of `width` over the draws for a bound; only for a bound that is public, in a plan."""
        return self.width(self._index(bound), tail=tail, miss=miss, cap=cap)

    def swing(self) -> float:
        """In eight of ten draws the width is at most so many times the typical one, and at least that part of it."""
        return math.exp(min(math.log(5) * float(self.scale * self.step), _LARGEST_LOG))  # P(|L| > s ln 5) = 1/5

    def multiplier(self, tail: Tail, *, miss: float) -> float:
        """The smallest k with P(|Z| > k min(1, e^L)) <= miss, rounded up."""
        spread = float(self.scale * self.step)
        # L < 0 has the law of spread * ln v with v uniform, half of the time; the left ends of the cells bound the integral.
        left_ends = (np.arange(_CELLS) / _CELLS) ** spread

        def missed(k: float) -> float:
            return 0.5 * float(tail(k * left_ends).mean()) + 0.5 * float(tail(np.array([k]))[0])  # proof: joint-law

        low, high = 0.0, 1.0
        while missed(high) > miss and high < 1e300:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if missed(middle) <= miss else (middle, high)
        return high
