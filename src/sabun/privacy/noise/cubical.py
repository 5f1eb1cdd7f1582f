"""Noise that fills a cube: a whole-number vector whose law depends on its largest coordinate alone; see cubical.proof.md.

Notation: q = exp(-1 / scale). A half side m is drawn with weight q**m (2m + 1)**dimension, then a point uniform in
{-m, …, m}**dimension. Many half sides reach a point, all from its largest coordinate on: their weights are a geometric sum.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.noise.coin import Coin
from sabun.privacy.noise.exact import bernoulli, bernoulli_exp, check_draw, rational, uniform_below

__all__ = ["cubical_laplace"]


def cubical_laplace(scale: Fraction | int, *, dimension: int, coin: Coin) -> NDArray[Any]:
    """A whole-number vector with probability exactly proportional to exp(-(largest absolute coordinate) / scale).

    Guarantee: added to a whole-number vector that a neighbour step changes by at most d in every coordinate, the sum is
    (d / scale)-differentially private, with delta = 0: the K-norm mechanism of the cube. For vectors whose coordinates may all
    change at once its standard deviation is sqrt(6) below that of independent Laplace noise.

    Args:
        scale: A Fraction or int > 0; large beside the dimension, or many draws are thrown away.
        dimension: A whole number >= 1.
        coin: Where the bits come from.

    Returns:
        An int64 array of that length, or Python ints (dtype object) if a coordinate does not fit.

    Raises:
        ParameterError: If a parameter breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> cubical_laplace(Fraction(500), dimension=4, coin=os_coin()).shape
        (4,)
    """
    exact_scale = rational(scale=scale)
    checks.whole(minimum=1, dimension=dimension)
    check_draw(coin, None)
    size = int(dimension)  # a numpy integer would wrap around in what follows
    while not _kept(half := sum(_geometric(exact_scale, coin) for _ in range(size + 1)), size, coin):  # proof: proposal
        pass
    drawn = [int(place) - half for place in uniform_below(2 * half + 1, coin=coin, size=size)]  # proof: uniform
    return np.array(drawn, dtype=np.int64 if half < 1 << 63 else object)


def _kept(half: int, dimension: int, coin: Coin) -> bool:
    """True with probability (2m + 1)^k / ((2m + 2) (2m + 4) … (2m + 2k)), k the dimension: all of k tosses."""
    return all(bernoulli(Fraction(2 * half + 1, 2 * half + 2 * i), coin=coin) for i in range(1, dimension + 1))  # proof: kept


def _geometric(scale: Fraction, coin: Coin) -> int:
    """A whole number >= 0 with probability (1 - q) q^g, q = exp(-1 / scale) (Canonne-Kamath-Steinke 2020, Algorithm 2)."""
    top = scale.numerator
    while not bernoulli_exp(Fraction(rest := uniform_below(top, coin=coin), top), coin=coin):
        pass
    laps = 0
    while bernoulli_exp(1, coin=coin):
        laps += 1
    return (rest + top * laps) // scale.denominator  # proof: geometric
