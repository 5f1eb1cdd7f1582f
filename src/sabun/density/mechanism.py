"""Noise for whole-number vectors: one object that adds it, states its promise, knows its size."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sabun.privacy import discrete_gaussian_variance, discrete_laplace_scale
from sabun.privacy.events import DiscreteGaussian, Event
from sabun.privacy.noise import Coin, discrete_gaussian, discrete_laplace, spherical_laplace

__all__ = ["EuclideanNoise", "ManhattanNoise"]


@dataclass(frozen=True, kw_only=True)
class EuclideanNoise:
    """Noise for a whole-number vector with a known L2 sensitivity.

    Guarantee: epsilon-DP when `delta` is None (rounded K-norm noise), otherwise (epsilon, delta)-DP (discrete Gaussian noise).
    """

    l2: Fraction
    epsilon: Fraction
    delta: Fraction | None
    dimension: int

    @property
    def mechanism(self) -> str:
        """Its name in a guarantee."""
        return "rounded spherical Laplace (L2 K-norm)" if self.delta is None else "discrete Gaussian"

    @property
    def variance(self) -> Fraction:
        """The variance of the noise in each coordinate, in squared units (of the continuous law, before rounding)."""
        if self.delta is None:
            return (self.dimension + 1) * (self.l2 / self.epsilon) ** 2
        return _gaussian_variance(self.l2, self.epsilon, self.delta)

    @property
    def events(self) -> tuple[Event, ...]:
        """What is drawn, for a ledger with a Rényi order; nothing where epsilon tells it as well."""
        if self.delta is None:
            return ()
        return (DiscreteGaussian(sigma_squared=self.variance, l2_squared=self.l2**2),)  # proof: events

    def add(self, vector: Sequence[int], *, coin: Coin) -> list[int]:
        """The vector with noise."""
        if self.delta is None:
            drawn = spherical_laplace(self.l2 / self.epsilon, dimension=self.dimension, coin=coin)  # proof: k-norm
        else:
            drawn = discrete_gaussian(self.variance, coin=coin, size=self.dimension)  # proof: gaussian
        return [value + int(noise) for value, noise in zip(vector, drawn, strict=True)]


@functools.lru_cache(maxsize=64)
def _gaussian_variance(l2: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    return discrete_gaussian_variance(l2_squared=l2**2, epsilon=epsilon, delta=delta)


@dataclass(frozen=True, kw_only=True)
class ManhattanNoise:
    """Discrete Laplace noise for a whole-number vector with a known L1 sensitivity.

    Guarantee: epsilon-DP.
    """

    l1: Fraction
    epsilon: Fraction
    dimension: int

    @property
    def mechanism(self) -> str:
        """Its name in a guarantee."""
        return "discrete Laplace"

    def add(self, vector: Sequence[int], *, coin: Coin) -> list[int]:
        """The vector with noise."""
        scale = discrete_laplace_scale(l1=self.l1, epsilon=self.epsilon)
        drawn = discrete_laplace(scale, coin=coin, size=self.dimension)  # proof: laplace
        return [value + int(noise) for value, noise in zip(vector, drawn, strict=True)]
