"""Means and spreads of numbers and shares of labels from one noisy release, and the network that takes them in; see
standardizing.proof.md.

A record adds (z, z^2 - 1/2) for each of d number columns, z in [-1, 1] on a grid, 1/2 at the label that it has in each of m
category columns, and a: its length is at most sqrt(5 d / 4 + m / 4 + a^2), for z^2 + (z^2 - 1/2)^2 = z^4 + 1/4. Sums are whole
numbers, so nothing rounds before the noise.
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
"""Of means, before any is seen; of spreads, below which none is taken to be."""
_USUAL = 4
"""How many columns such means count as."""
_LABEL = Fraction(1, 2)
"""What a label adds: shares need less precision than means."""


@final
@dataclass(frozen=True, kw_only=True)
class Standardizing:
    """How inputs between 0 and 1 are scaled before training; public.

    Args:
        features: How rows become inputs.
        paid: Whether means, spreads and shares are released; otherwise numbers are centred by their bounds alone.
    """

    features: Features
    paid: bool

    @cached_property
    def numbers(self) -> NDArray[np.intp]:
        """Places of the inputs that are numbers between public bounds."""
        return np.flatnonzero(self.features.bounded)

    @cached_property
    def labels(self) -> NDArray[np.intp]:
        """Places of the inputs that are labels, 0 or 1; none without a schema."""
        return np.flatnonzero(~self.features.bounded) if self.features.schema is not None else np.empty(0, dtype=np.intp)

    @property
    def columns(self) -> int:
        """Of numbers and of categories: each row has one label of a category at most."""
        schema = self.features.schema
        return self.features.width if schema is None else len(schema.columns)

    @property
    def releases(self) -> bool:
        """Whether there is anything to pay for."""
        return self.paid and self.features.schema is not None

    @property
    def share(self) -> Fraction:
        """a above, about half the square root of all columns; in halves, so that its multiples are exact."""
        return Fraction(max(2, math.isqrt(self.columns)), 2)

    @property
    def length(self) -> Fraction:
        """What one record can add, in L2, rounded up."""
        labels = _LABEL**2 * (self.columns - len(self.numbers))
        return sqrt_up(Fraction(5, 4) * len(self.numbers) + labels + self.share**2)  # proof: length

    def first(self) -> Floats:
        """Means of zero, spreads of one, shares of zero, a length of zero for not known."""
        return np.repeat([0.0, 1.0, 0.0], [len(self.numbers), len(self.numbers), len(self.labels) + 1])

    def drawn(self, rows: Floats, multiplier: Fraction, steps: int, *, stream: Stream) -> Floats:
        """Noisy means, spreads, shares and mean squared length of rows; those of `first` where nothing is paid for."""
        if not self.releases:
            return self.first()
        columns = len(self.numbers)
        sigma = math.nextafter(float(scaling_multiplier(multiplier, steps) * self.length), math.inf)  # proof: no-less
        sums = rounded_gaussian(self._sums(rows), sigma=sigma, stream=stream, step=steps)  # proof: noise
        share = float(self.share)
        count = max(float(sums[-1]) / share, 2 * sigma / share, 10.0)
        noise = sigma / count
        means, found, shares = np.split(sums[:-1] / count, [columns, 2 * columns])
        means, shares = _together(means, noise), np.clip(shares / float(_LABEL), 0.0, 1.0)
        found += 0.5 - means**2
        squares = np.clip(found, max(_LEAST_SQUARE, min(noise, 1.0)), 1.0)
        # Noise over very many labels must not shift all inputs: shares that noise alone could bring about are taken for zero.
        shares[shares < noise / float(_LABEL) * math.sqrt(2 * math.log(len(shares) + 1))] = 0.0
        length = (np.clip(found, 0.0, 1.0) / squares).sum() + max(self.columns - columns - (shares**2).sum(), 0.0)
        return np.concatenate([means, np.sqrt(squares), shares, [length]])

    def _sums(self, rows: Floats) -> Floats:
        """Sums of (z, z^2 - 1/2, labels, a), exact: whole numbers of grid steps below 2^53."""
        places = np.rint(np.clip(2.0 * rows[:, self.numbers] - 1.0, -1.0, 1.0) * _GRID).astype(np.int64)  # proof: grid
        once = places.sum(axis=0, dtype=np.int64) / _GRID
        squares = (places**2).sum(axis=0, dtype=np.int64) / _GRID**2 - 0.5 * len(rows)  # proof: exact
        labels = np.rint(np.clip(rows[:, self.labels], 0.0, 1.0)).sum(axis=0) * float(_LABEL)
        return np.concatenate([once, squares, labels, [len(rows) * float(self.share)]])

    def applied(self, rows: Floats, scaling: Floats, constant: float) -> Floats:
        """The rows as the network is trained on them, each by itself; nothing is cut, for what is released cannot cut."""
        inner, outer = self.affine(scaling, constant)
        return np.asarray(rows * inner + outer)

    def affine(self, scaling: Floats, constant: float) -> tuple[Floats, Floats]:
        """Factor and shift of each input, so that they are around 0 wherever that was paid for; both over the constant."""
        means, spreads, shares = np.split(scaling[:-1], [len(self.numbers), 2 * len(self.numbers)])
        inner, outer = np.ones(self.features.width), np.zeros(self.features.width)
        inner[self.numbers], outer[self.numbers] = 2.0 / spreads, -(1.0 + means) / spreads
        outer[self.labels] = -shares
        return inner / constant, outer / constant


def _together(found: Floats, noise: float) -> Floats:
    """Noisy means, each drawn towards where the columns' means are, as far as noise is longer than they differ.

    Drawn towards the middle of the bounds alone, means of a hundred columns at one end of them were all wrong in one direction,
    which together was longer than what the columns said.
    """
    columns = len(found)
    if not columns:
        return found
    middle = found.sum() / (columns + 1 + noise**2 / _USUAL_SQUARE)
    apart = ((found - middle) ** 2).sum() + _USUAL * (_USUAL_SQUARE + noise**2)
    spread = max(apart / (columns + _USUAL) - noise**2, 0.0)
    return np.asarray(np.clip(middle + (found - middle) * (spread / (spread + noise**2)), -1.0, 1.0))


def folded(network: Network, weights: Floats, inner: Floats, outer: Floats) -> Floats:
    """The weights of the network that does to x what these do to inner x + outer; post-processing."""
    result = weights.copy()
    matrix, bias = network.layers(result)[0]
    bias += outer @ matrix
    matrix *= inner[:, None]
    return result
