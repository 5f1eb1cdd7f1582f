"""Means and spreads of number columns from one noisy release, and the network that takes them in; see standardizing.proof.md.

A record adds (z, z^2 - 1/2, a) over the number columns, z in [-1, 1] on a grid: its length is at most sqrt(5 d / 4 + a^2), for
z^2 + (z^2 - 1/2)^2 = z^4 + 1/4. Sums are whole numbers, so nothing rounds before the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.accounting import scaling_multiplier
from sabun.learning.features import Features
from sabun.learning.gaussian import rounded_gaussian
from sabun.learning.network import Floats, Network
from sabun.learning.stream import Stream
from sabun.privacy.certified import sqrt_up

__all__ = ["Standardizing", "folded"]

_GRID = 2.0**12
"""Steps to one: squares then add up exactly over half a billion rows."""
_USUAL_SQUARE, _LEAST_SQUARE = 0.25, 0.0625
"""Of means, towards which noisy ones are drawn; of spreads, below which none is taken to be."""


@final
@dataclass(frozen=True, kw_only=True)
class Standardizing:
    """How inputs between 0 and 1 are scaled before training; public.

    Args:
        features: How rows become inputs.
        paid: Whether means and spreads are released; otherwise numbers are centred by their bounds alone.
    """

    features: Features
    paid: bool

    @cached_property
    def numbers(self) -> NDArray[np.intp]:
        """Places of the inputs that are numbers between public bounds; labels stay 0 or 1."""
        return np.flatnonzero(self.features.bounded)

    @property
    def releases(self) -> bool:
        """Whether there is anything to pay for."""
        return self.paid and len(self.numbers) > 0

    @property
    def share(self) -> Fraction:
        """a above, about half the square root of d; in halves, so that its multiples are exact."""
        return Fraction(max(2, math.isqrt(len(self.numbers))), 2)

    @property
    def length(self) -> Fraction:
        """What one record can add, in L2, rounded up."""
        return sqrt_up(Fraction(5, 4) * len(self.numbers) + self.share**2)  # proof: length

    def first(self) -> Floats:
        """Means of zero, spreads of one."""
        return np.concatenate([np.zeros(len(self.numbers)), np.ones(len(self.numbers))])

    def drawn(self, rows: Floats, multiplier: Fraction, steps: int, *, stream: Stream) -> Floats:
        """Noisy means, then spreads; those of `first` where nothing is paid for."""
        if not self.releases:
            return self.first()
        columns = len(self.numbers)
        sigma = math.nextafter(float(scaling_multiplier(multiplier, steps) * self.length), math.inf)  # proof: no-less
        sums = rounded_gaussian(self._sums(rows), sigma=sigma, stream=stream, step=steps)  # proof: noise
        share = float(self.share)
        count = max(float(sums[-1]) / share, 2 * sigma / share, 10.0)
        noise = sigma / count
        means = np.clip(sums[:columns] / count, -1.0, 1.0)
        squares = np.clip(sums[columns:-1] / count + 0.5 - means**2, max(_LEAST_SQUARE, min(noise, 1.0)), 1.0)
        return np.concatenate([means * _USUAL_SQUARE / (_USUAL_SQUARE + noise**2), np.sqrt(squares)])

    def _sums(self, rows: Floats) -> Floats:
        """Sums of (z, z^2 - 1/2, a), exact: whole numbers of grid steps below 2^53."""
        places = np.rint(np.clip(2.0 * rows[:, self.numbers] - 1.0, -1.0, 1.0) * _GRID).astype(np.int64)  # proof: grid
        once = places.sum(axis=0, dtype=np.int64) / _GRID
        squares = (places**2).sum(axis=0, dtype=np.int64) / _GRID**2 - 0.5 * len(rows)  # proof: exact
        return np.concatenate([once, squares, [len(rows) * float(self.share)]])

    def applied(self, rows: Floats, scaling: Floats) -> Floats:
        """The rows as the network is trained on them, each by itself; nothing is cut, for what is released cannot cut."""
        inner, outer = self.affine(scaling)
        return np.asarray(rows * inner + outer)

    def affine(self, scaling: Floats) -> tuple[Floats, Floats]:
        """Factor and shift of each input; 1 and 0 for labels and for numbers without bounds."""
        means, spreads = np.split(scaling, 2)
        inner, outer = np.ones(self.features.width), np.zeros(self.features.width)
        inner[self.numbers], outer[self.numbers] = 2.0 / spreads, -(1.0 + means) / spreads
        return inner, outer


def folded(network: Network, weights: Floats, inner: Floats, outer: Floats) -> Floats:
    """The weights of the network that does to x what these do to inner x + outer; post-processing."""
    result = weights.copy()
    matrix, bias = network.layers(result)[0]
    bias += outer @ matrix
    matrix *= inner[:, None]
    return result
