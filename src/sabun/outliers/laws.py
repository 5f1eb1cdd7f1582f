"""Noise for a bound that depends on the data; proved in laws.proof.md.

Notation: q the exact count, S its beta-smooth bound, epsilon the part of the budget this draw may use. A law adds continuous
noise of scale proportional to S to q; what leaves is the nearest whole number. S is PRIVATE, and so is every method's result
that depends on it, except `draw`'s once it was added to the count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from sabun.outliers.enclosures import Arithmetic, Interval, Uniform, settle
from sabun.privacy.amounts import float_above
from sabun.privacy.certified import exp_down, exp_up, log_up, sqrt_up
from sabun.privacy.noise import Coin

__all__ = ["Gaussian", "Laplace", "Law", "PowerTail", "power_theta"]

_LARGEST_PROVED = Fraction(2)
_LARGEST_THETA = Fraction(1 << 40)
"""Beyond this there is no noise left to make smaller."""


class Law(Protocol):
    """A family of noise, calibrated once from public amounts, scaled by a smooth bound S."""

    @property
    def beta(self) -> Fraction:
        """How smooth the bound has to be."""

    def draw(self, bound: Fraction, *, coin: Coin) -> int:
        """Noise for a bound, rounded to the nearest whole number."""

    def tail(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(|noise| > x S)."""

    def reach(self, bound: float, *, miss: float) -> int:
        """The smallest w with P(|noise| > w) <= miss."""

    def deviation(self, bound: float) -> float:
        """Standard deviation of the continuous noise; `math.inf` when it has none."""


def power_theta(*, epsilon: Fraction, beta: Fraction, outputs: int = 1) -> Fraction:
    """The largest theta the proof admits, rounded down.

    Notation: a = m + eps/beta with m outputs; theta = min(e^(eps/a) - 1, e^beta (e^((eps - m beta)/a) - 1)).
    """
    a = outputs + epsilon / beta
    slide = _exp_minus_one_down(epsilon / a)
    stretch = max(exp_down(beta), 1 + beta) * _exp_minus_one_down((epsilon - outputs * beta) / a)
    return min(slide, stretch, _LARGEST_THETA)  # proof: theta


def _exp_minus_one_down(x: Fraction) -> Fraction:
    """Not above e^x - 1, above 0 for every x > 0."""
    return max(exp_down(x) - 1, x + x * x / 2)


@final
@dataclass(frozen=True, kw_only=True)
class PowerTail:
    """Noise with density proportional to (1 + theta |z| / S)**-a, a = 1 + epsilon / beta. Pure epsilon."""

    epsilon: Fraction
    beta: Fraction

    @property
    def theta(self) -> Fraction:
        """The inverse of the scale in units of S."""
        return power_theta(epsilon=self.epsilon, beta=self.beta)

    @property
    def exponent(self) -> Fraction:
        """p of the tail P(|z| > x) = (1 + theta x / S)**-p."""
        return self.epsilon / self.beta

    def draw(self, bound: Fraction, *, coin: Coin) -> int:
        """Noise for a bound, rounded to the nearest whole number."""
        u, scale, power = Uniform(coin), bound / self.theta, self.exponent

        def magnitude(reals: Arithmetic) -> list[Interval]:
            stretched = reals.divide(reals.minus_log(reals.uniform(u)), reals.number(power))
            return [reals.multiply(reals.number(scale), reals.exp_minus_one(stretched))]  # proof: inverse-tail

        return _signed(settle([u], magnitude)[0], coin)

    def tail(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(|noise| > x S)."""
        return np.asarray((1.0 + float(self.theta) * x) ** -float(self.exponent))

    def reach(self, bound: float, *, miss: float) -> int:
        """The smallest w with P(|noise| > w) <= miss."""
        return _whole(bound / float(self.theta) * math.expm1(-math.log(miss) / float(self.exponent)))

    def deviation(self, bound: float) -> float:
        """Standard deviation; infinite for beta >= epsilon / 2."""
        p = float(self.exponent)
        return bound / float(self.theta) * math.sqrt(2 / ((p - 1) * (p - 2))) if p > 2 else math.inf


@final
@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Laplace noise of scale 2 S / epsilon with beta = min(epsilon / (2 ln(1/delta)), epsilon / 2). (epsilon, delta)."""

    epsilon: Fraction
    delta: Fraction

    @property
    def _proved(self) -> Fraction:
        return min(self.epsilon, _LARGEST_PROVED)  # proof: at-most-two

    @property
    def beta(self) -> Fraction:
        """How smooth the bound has to be."""
        return self._proved / 2 / max(Fraction(1), log_up(1 / self.delta))  # proof: laplace-beta

    def draw(self, bound: Fraction, *, coin: Coin) -> int:
        """Noise for a bound, rounded to the nearest whole number."""
        u, scale = Uniform(coin), 2 * bound / self._proved  # proof: laplace-scale

        def magnitude(reals: Arithmetic) -> list[Interval]:
            return [reals.multiply(reals.number(scale), reals.minus_log(reals.uniform(u)))]

        return _signed(settle([u], magnitude)[0], coin)

    def tail(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(|noise| > x S)."""
        return np.exp(-float(self._proved) / 2 * x)

    def reach(self, bound: float, *, miss: float) -> int:
        """The smallest w with P(|noise| > w) <= miss."""
        return _whole(-2 * bound / float(self._proved) * math.log(miss))

    def deviation(self, bound: float) -> float:
        """Standard deviation."""
        return 2 * math.sqrt(2) * bound / float(self._proved)


@final
@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Gaussian noise of deviation 5 sqrt(2 L) S / epsilon with beta = epsilon / (4 (1 + L)), L = ln(2/delta'). (epsilon,
    delta).

    delta' = 2 delta / (1 + e^(epsilon/2)) makes up for the two failure events, which the published lemma adds up too cheaply.
    """

    epsilon: Fraction
    delta: Fraction

    @property
    def _proved(self) -> Fraction:
        return min(self.epsilon, _LARGEST_PROVED)

    @property
    def _log(self) -> Fraction:
        grown = exp_up(self._proved / 2)
        return log_up((1 + Fraction(grown)) / self.delta)  # proof: two-failures

    @property
    def beta(self) -> Fraction:
        """How smooth the bound has to be."""
        return self._proved / (4 * (1 + self._log))  # proof: gaussian-beta

    def sigma(self, bound: Fraction) -> Fraction:
        """The deviation for a bound."""
        return 5 * sqrt_up(2 * self._log) * bound / self._proved  # proof: gaussian-scale

    def draw(self, bound: Fraction, *, coin: Coin) -> int:
        """Noise for a bound, rounded to the nearest whole number."""
        return normal(self.sigma(bound), coin=coin)

    def tail(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(|noise| > x S)."""
        from scipy.special import erfc

        return np.asarray(erfc(x / (self.deviation(1.0) * math.sqrt(2))))

    def reach(self, bound: float, *, miss: float) -> int:
        """The smallest w with P(|noise| > w) <= miss."""
        return _whole(self.deviation(bound) * NormalDist().inv_cdf(1 - miss / 2))

    def deviation(self, bound: float) -> float:
        """Standard deviation."""
        return float_above(self.sigma(Fraction(1))) * bound


def normal(sigma: Fraction, *, coin: Coin) -> int:
    """A normal number of that deviation, rounded to the nearest whole number (the polar method in interval arithmetic)."""
    while True:
        x, y = Uniform(coin), Uniform(coin)
        if not _inside(x, y):
            continue

        def magnitude(reals: Arithmetic, x: Uniform = x, y: Uniform = y) -> list[Interval]:
            square = _square_sum(reals, x, y)
            ratio = reals.divide(reals.multiply(reals.number(Fraction(2)), reals.minus_log(_at_most_one(square))), square)
            length = reals.multiply(reals.uniform(x), reals.sqrt(ratio))
            return [reals.multiply(reals.number(sigma), length)]  # proof: polar

        return _signed(settle([x, y], magnitude)[0], coin)


def _inside(x: Uniform, y: Uniform) -> bool:
    """Whether the point (x, y) lies in the unit disc, tossing more digits while that is open."""
    digits = 60
    while True:
        square = _square_sum(Arithmetic(digits), x, y)
        if square.high < 1 or square.low > 1:
            return square.high < 1
        x.extend()
        y.extend()
        digits += 24


def _square_sum(reals: Arithmetic, x: Uniform, y: Uniform) -> Interval:
    a, b = reals.uniform(x), reals.uniform(y)
    return reals.add(reals.multiply(a, a), reals.multiply(b, b))


def _at_most_one(x: Interval) -> Interval:
    return Interval(x.low, min(x.high, type(x.high)(1)))


def _signed(magnitude: int, coin: Coin) -> int:
    return magnitude if coin.bits(1) else -magnitude  # proof: sign


def _whole(width: float) -> int:
    """The smallest w with P(round(|z|) > w) <= P(|z| > width), with a little room for the rounding of floats."""
    return max(0, math.ceil(width * (1 + 1e-9) - 0.5))
