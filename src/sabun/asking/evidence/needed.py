"""What noise is needed, worked out from the definitions alone: nothing here comes from the package."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "WASTE",
    "Density",
    "gaussian_delta",
    "gaussian_sigma",
    "hockey_stick",
    "power_loss",
    "rho_of",
    "sampled_gaussian_delta",
]

Density = Callable[[NDArray[np.float64]], NDArray[np.float64]]

WASTE = 1.5
"""Noise of more than this times what is needed is a mistake too."""


def _bisected(good: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest good number between two, for a rule that is good above it."""
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP gives (epsilon, delta): Canonne, Kamath, Steinke 2020, Corollary 13, by plain search."""

    def delta_of(rho: float) -> float:
        low, high = -4.0, 5.0
        for _ in range(4):  # ever finer grids around the best order
            orders = 1 + np.logspace(low, high, 200)
            logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders) - np.log(orders - 1)
            best = low + (high - low) * int(logs.argmin()) / 199
            low, high = best - (high - low) / 100, best + (high - low) / 100
        return float(np.exp(logs.min()))

    return 1 / _bisected(lambda inverse: delta_of(1 / inverse) <= delta, 1e-9, 1e15)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """The least deviation of Gaussian noise for one step of length 1: Balle, Wang 2018, Theorem 8."""
    return _bisected(lambda sigma: gaussian_delta(sigma, epsilon) <= delta, 1e-3, 1e6)


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """delta at epsilon of Gaussian noise of that deviation for one step of length 1: the same theorem."""

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    return below(0.5 / sigma - epsilon * sigma) - math.exp(epsilon) * below(-0.5 / sigma - epsilon * sigma)


def sampled_gaussian_delta(sigma: float, *, rate: float, steps: int, epsilon: float) -> float:
    """delta of one or two steps in which a record of length 1 takes part with that probability, by sums over a fine grid."""
    x = np.linspace(-12 * sigma, 12 * sigma + 1, 2001)
    without = np.exp(-(x**2) / (2 * sigma**2))
    among = (1 - rate) * without + rate * np.exp(-((x - 1) ** 2) / (2 * sigma**2))
    one, other = among / without.sum(), without / without.sum()
    if steps == 2:
        one, other = np.outer(one, one), np.outer(other, other)
    growth = math.exp(epsilon)
    return max(float(np.maximum(a - growth * b, 0).sum()) for a, b in ((one, other), (other, one)))


def hockey_stick(first: Density, second: Density, epsilon: float, *, reach: float) -> float:
    """The delta of two densities at epsilon, one way: the integral of max(first - e^epsilon second, 0), midpoint rule."""
    edges = np.linspace(-reach, reach, 400_001)
    middle = (edges[1:] + edges[:-1]) / 2
    return float(np.maximum(first(middle) - math.exp(epsilon) * second(middle), 0).sum() * (edges[1] - edges[0]))


def power_loss(theta: float, *, power: float, beta: float, outputs: int = 1) -> float:
    """The largest log ratio of densities (theta/S)^m (1 + theta |z| / S)^-(m + p) between neighbours.

    A neighbour step moves the centre by at most both bounds, S by at most e^beta either way.
    """
    far = np.concatenate([[0.0], np.logspace(-9, 12, 4000)])
    worst = 0.0
    for stretch in (math.exp(-beta), 1.0, math.exp(beta)):
        shift = min(1.0, stretch)
        for z in (far, far + shift, np.linspace(0, shift, 400)):
            log = outputs * math.log(stretch) - (outputs + power) * (
                np.log1p(theta * z) - np.log1p(theta * np.abs(z - shift) / stretch)
            )
            worst = max(worst, float(np.abs(log).max()))
            log = outputs * math.log(stretch) - (outputs + power) * (
                np.log1p(theta * z) - np.log1p(theta * (z + shift) / stretch)
            )
            worst = max(worst, float(np.abs(log).max()))
    return worst
