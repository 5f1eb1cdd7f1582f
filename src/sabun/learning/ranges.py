"""Public ranges of weights and biases, each with its own noise; proved in ranges.proof.md.

The paper has a least and a largest value for weights, others for biases, and the same for their changes. One bound for all,
plus or minus, is the case of both ranges alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Floats, Network
from sabun.privacy.noise import Coin, Grid, discrete_laplace

__all__ = ["Bound", "Part", "Ranges", "bound_of", "cut", "noisy_within", "parts_of"]


@final
@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Least and largest value of weights and of biases; public constants, never taken from data or trained weights."""

    weights: tuple[float, float]
    biases: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"weights": list(self.weights), "biases": list(self.biases)}


Bound = float | Ranges
"""Plus or minus one number for all, or ranges of their own."""


def bound_of(bound: float, weights: Sequence[float] | None, biases: Sequence[float] | None) -> Bound:
    """What was chosen: one bound, unless a range was given; then the other is plus or minus the bound."""
    if weights is None and biases is None:
        return float(bound)
    (low, high), (least, most) = ((-bound, bound) if ends is None else ends for ends in (weights, biases))
    return Ranges(weights=(float(low), float(high)), biases=(float(least), float(most)))


@final
@dataclass(frozen=True, kw_only=True)
class Part:
    """Coordinates with one range, in steps of a grid."""

    places: NDArray[np.intp] | slice = field(repr=False)
    ends: tuple[float, float]
    low: int
    high: int

    @property
    def width(self) -> int:
        """By how much a coordinate can differ between any two data sets."""
        return self.high - self.low  # proof: width


def parts_of(bound: Bound, network: Network, grid: Grid) -> tuple[Part, ...]:
    """All coordinates at once where they have one range; else weights and biases."""
    if not isinstance(bound, Ranges):
        steps = int(grid.index(bound))
        return (Part(places=slice(None), ends=(-bound, bound), low=-steps, high=steps),)
    marks = np.ones(network.n_weights)
    weights = network.without_biases(marks) != 0
    chosen = ((np.flatnonzero(weights), bound.weights), (np.flatnonzero(~weights), bound.biases))
    return tuple(
        Part(places=places, ends=ends, low=int(grid.index(ends[0])), high=int(grid.index(ends[1]))) for places, ends in chosen
    )


def cut(numbers: Floats, parts: Sequence[Part]) -> Floats:
    """A copy with every number inside its range; what is no number counts as 0 first."""
    inside = np.nan_to_num(numbers, nan=0.0)
    for part in parts:
        inside[part.places] = np.clip(inside[part.places], *part.ends)
    return inside


def noisy_within(numbers: Floats, parts: Sequence[Part], grid: Grid, *, epsilon: Fraction, coin: Coin) -> Floats:
    """Each number cut to its range, with noise for that whole range, cut again.

    Args:
        numbers: One for each coordinate, finite.
        parts: Which range each has.
        grid: On which everything is counted.
        epsilon: Of each coordinate by itself.
        coin: Of the noise.
    """
    # Rounding keeps order, so what is cut to a range lies between the range's own ends on the grid.
    whole, found = grid.index(cut(numbers, parts)), np.empty(len(numbers))  # proof: cut-before-noise
    for part in parts:
        inside = whole[part.places]
        noise = discrete_laplace(part.width / epsilon, coin=coin, size=inside.size)  # proof: full-range
        found[part.places] = np.clip((inside + noise).astype(np.float64), part.low, part.high)  # proof: cut-after-noise
    return np.asarray(np.ldexp(found, grid.exponent))
