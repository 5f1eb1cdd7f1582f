"""Continuous Gaussian noise, rounded to whole numbers.

Notation: a normal pair is (x, y) sqrt(-2 ln s / s) with (x, y) uniform in the unit disc and s = x**2 + y**2, as in `spherical`.
Floats decide almost every rounding: each comes with a bound of its error, and what lies so near an edge is decided by intervals
around the same real numbers, with more bits drawn until the answer is certain.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.amounts import float_above
from sabun.privacy.noise.coin import Coin
from sabun.privacy.noise.exact import check_draw, contexts, rational
from sabun.privacy.noise.spherical import _far, _normal_pair, _Point, _refined, _square

__all__ = ["rounded_gaussian"]

_BITS = 63
_RIM = 1 - 2.0**-30
_CORE = 2.0**-20
_SLIP = 2.0**-43
_LAST = 2.0**-47
_LARGEST = 2.0**50
_WIDEST = Fraction(2**120)


@overload
def rounded_gaussian(variance: Fraction | int, *, coin: Coin, size: None = None) -> int: ...
@overload
def rounded_gaussian(variance: Fraction | int, *, coin: Coin, size: int) -> NDArray[Any]: ...
def rounded_gaussian(variance: Fraction | int, *, coin: Coin, size: int | None = None) -> int | NDArray[Any]:
    """Whole numbers round(Z), each for an independent normal Z of mean 0 and exactly that variance.

    Guarantee: added to a whole-number vector it gives round(vector + Z), post-processing of the continuous Gaussian mechanism:
    whatever holds for that one (the analytic epsilon and delta, composition in mu) holds for the sum.

    Args:
        variance: A Fraction or int > 0, of any size.
        coin: Where the bits come from.
        size: None for one int, otherwise the length of the array: int64, or Python ints (dtype object) if a draw does not fit.

    Raises:
        ParameterError: If a parameter breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> rounded_gaussian(Fraction(5, 2), coin=os_coin(), size=3).shape
        (3,)
    """
    exactly = rational(variance=variance)
    size = check_draw(coin, size)
    wanted = 1 if size is None else size
    parts: list[NDArray[Any]] = [np.empty(0, dtype=np.int64)]
    missing = wanted
    while missing > 0:
        parts.append(_pairs(exactly, int(0.7 * missing) + 8, coin)[:missing])
        missing -= parts[-1].size
    drawn = np.concatenate(parts)
    return int(drawn[0]) if size is None else drawn


def _pairs(variance: Fraction, count: int, coin: Coin) -> NDArray[Any]:
    """The rounded normals of those of `count` uniform points of the square that lie in the disc."""
    words = coin.words(2 * count).reshape(count, 2)
    signs = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
    points = (words >> np.uint64(1)).astype(np.float64) * 2.0**-_BITS
    squares = np.einsum("ij,ij->i", points, points)
    # What floats cannot tell is told by intervals: points near the rim or the centre, and noise of no ordinary size.
    rare = (squares > _RIM) & (squares < 2 - _RIM) | (squares < _CORE) | (variance > _WIDEST)  # proof: rare
    kept = rare | (squares < 1)
    signs, words, squares, points, rare = (part[kept] for part in (signs, words, squares, points, rare))
    safe = np.where(rare, 0.5, squares)
    fall = -2 * np.log(safe)
    normals = points * np.sqrt(fall / safe)[:, None]
    deviation = math.sqrt(float_above(min(variance, _WIDEST)))
    values = deviation * normals
    nearest = np.rint(values)
    error = deviation * (_LAST / np.sqrt(fall)[:, None] + _SLIP * normals) + 2.0**-60  # proof: error
    open_ = (np.abs(values - nearest) + error >= 0.5) | (values > _LARGEST)  # proof: near-edge
    undecided = np.flatnonzero(rare | open_.any(axis=1))
    magnitudes: NDArray[Any] = np.where(open_ | rare[:, None], 0.0, nearest).astype(np.int64)
    inside = np.ones(len(words), dtype=np.bool_)
    settled = {
        int(i): _settled(_Point(int(words[i, 0]) >> 1, int(words[i, 1]) >> 1, _BITS), variance, coin)  # proof: settle
        for i in undecided
    }
    if any(pair is not None and max(pair) >= 1 << 63 for pair in settled.values()):
        magnitudes, signs = magnitudes.astype(object), signs.astype(object)
    for i, pair in settled.items():
        inside[i] = pair is not None
        magnitudes[i] = (0, 0) if pair is None else pair
    return np.asarray((signs * magnitudes)[inside].reshape(-1))


def _settled(point: _Point, variance: Fraction, coin: Coin) -> tuple[int, int] | None:
    """The rounded magnitudes of the pair, with as many more bits as they take; None for a point outside the disc."""
    while True:
        one = 1 << 2 * point.bits
        if _square(point) >= one:
            return None  # proof: outside
        if _square(point) and _square(_far(point)) <= one and (pair := _rounded(point, variance)) is not None:
            return pair  # proof: certain
        point = _refined(point, coin)


def _rounded(point: _Point, variance: Fraction) -> tuple[int, int] | None:
    """The nearest whole numbers of the two magnitudes, or None while one of them is open."""
    down, up = contexts(30 + point.bits * 2 // 5)
    numerator, denominator, half = Decimal(variance.numerator), Decimal(variance.denominator), Decimal("0.5")
    least = max(Decimal(0), down.next_minus(down.sqrt(down.divide(numerator, denominator))))
    most = up.next_plus(up.sqrt(up.divide(numerator, denominator)))
    found = []
    for normal in _normal_pair(point, down, up):
        low = int(down.add(down.multiply(least, normal.low), half))
        high = int(up.add(up.multiply(most, normal.high), half))
        if low != high:
            return None
        found.append(low)
    return found[0], found[1]
