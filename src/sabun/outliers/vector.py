"""Power-tail noise on a whole vector of counts at once; proved in vector.proof.md.

Notation: m outputs, p = epsilon / beta a whole number, a = m + p. The density is proportional to (1 + theta ||z||_1 /
S)**-a, and z_i = ± (S / theta) E_i / G with E_1 .. E_m exponential, G a sum of p exponential numbers, all independent.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.outliers.enclosures import Arithmetic, Interval, Uniform, settle
from sabun.outliers.laws import power_theta
from sabun.privacy.amounts import AmountLike, exact_positive
from sabun.privacy.noise import Coin

__all__ = ["PowerVector"]

_USUAL_RATIO = 5


@dataclass(frozen=True, kw_only=True)
class PowerVector:
    """Noise for m counts whose vector a neighbour step moves by at most S in the sum of absolute changes. Pure epsilon.

    Args:
        epsilon: What the vector may spend.
        outputs: m.
        exponent: p = epsilon / beta, a whole number above m.
    """

    epsilon: Fraction
    outputs: int
    exponent: int

    @classmethod
    def of(cls, *, epsilon: Fraction, outputs: int, beta: AmountLike | None) -> PowerVector:
        """The law for a wanted beta, which is lowered until epsilon / beta is whole; None takes epsilon / (5 m)."""
        if beta is None:
            return cls(epsilon=epsilon, outputs=outputs, exponent=_USUAL_RATIO * outputs)
        rate = exact_positive(beta, name="beta")
        rule = "below the counts' epsilon divided by the number of regions"
        checks.require(rate * outputs < epsilon, rule, beta=beta)
        return cls(epsilon=epsilon, outputs=outputs, exponent=math.ceil(epsilon / rate))  # proof: whole-exponent

    @property
    def beta(self) -> Fraction:
        """How smooth the bound has to be."""
        return self.epsilon / self.exponent

    @property
    def theta(self) -> Fraction:
        """The inverse of the scale in units of S."""
        return power_theta(epsilon=self.epsilon, beta=self.beta, outputs=self.outputs)  # proof: vector-theta

    def draw(self, bound: Fraction, *, coin: Coin) -> list[int]:
        """Noise for each output, rounded to the nearest whole numbers."""
        sides = [Uniform(coin) for _ in range(self.outputs)]
        common = [Uniform(coin) for _ in range(self.exponent)]
        scale = bound / self.theta

        def magnitudes(reals: Arithmetic) -> list[Interval]:
            gamma = functools.reduce(reals.add, (reals.minus_log(reals.uniform(u)) for u in common))  # proof: gamma
            size = reals.divide(reals.number(scale), gamma)
            return [reals.multiply(size, reals.minus_log(reals.uniform(u))) for u in sides]  # proof: shares

        return [w if coin.bits(1) else -w for w in settle([*sides, *common], magnitudes)]  # proof: signs

    def tail(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(|z_i| > x S), for each output by itself."""
        return np.asarray((1.0 + float(self.theta) * x) ** -float(self.exponent))
