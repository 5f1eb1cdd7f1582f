"""Continuous Gaussian noise, rounded to whole numbers.

Notation: a normal pair is (x, y) sqrt(-2 ln s / s) with (x, y) uniform in the unit disc and s = x**2 + y**2, as in `spherical`.
Floats decide almost every rounding: each comes with a bound of its error, and what lies so near an edge is decided by intervals
around the same real numbers, with more bits drawn until the answer is certain.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.amounts import float_above
from sabun.privacy.noise.coin import Coin
from sabun.privacy.noise.exact import check_draw, contexts, rational
from sabun.privacy.noise.spherical import _far, _normal_pair, _Point, _refined, _square

__all__ = ["rounded_gaussian", "rounded_gaussians"]

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
    [drawn] = rounded_gaussians([(variance, 1 if size is None else size)], coin=coin)
    return int(drawn[0]) if size is None else drawn


def rounded_gaussians(parts: Sequence[tuple[Fraction | int, int]], *, coin: Coin) -> list[NDArray[Any]]:
    """The same for several variances at once, which costs little more than one of them.

    Args:
        parts: Variances, each with how many numbers are drawn with it.
        coin: Where the bits come from.

    Returns:
        An array for each part, as `rounded_gaussian` gives it.

    Raises:
        ParameterError: If a parameter breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> [drawn.shape for drawn in rounded_gaussians([(Fraction(5, 2), 3), (7, 1)], coin=os_coin())]
        [(3,), (1,)]
    """
    variances = [rational(variance=variance) for variance, _ in parts]
    sizes = [check_draw(coin, size) or 0 for _, size in parts]
    pairs = (sum(sizes) + 1) // 2
    # Of an odd number the last pair has one draw to spare.
    owners = np.resize(np.repeat(np.arange(len(sizes)), sizes), 2 * pairs).reshape(pairs, 2)
    drawn: list[NDArray[Any]] = [np.empty(0, dtype=np.int64)]
    found = 0
    while found < pairs:
        missing = owners[found:]
        drawn.append(_pairs(variances, missing, int(1.4 * len(missing)) + 8, coin))
        found += len(drawn[-1]) // 2
    ends = np.cumsum(sizes).tolist()
    whole = np.concatenate(drawn)
    return [whole[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _pairs(variances: Sequence[Fraction], owners: NDArray[np.int64], count: int, coin: Coin) -> NDArray[Any]:
    """The rounded normals of those of `count` uniform points of the square that lie in the disc, as far as they have owners."""
    words = coin.words(2 * count).reshape(count, 2)
    points = (words >> np.uint64(1)).astype(np.float64) * 2.0**-_BITS
    squares = np.einsum("ij,ij->i", points, points)
    kept = squares < 1
    rim = {int(i): _beside_rim(_point(words[i]), coin) for i in np.flatnonzero(np.abs(squares - 1) < 1 - _RIM)}  # proof: rim
    for i, point in rim.items():
        kept[i] = point is not None
    places = np.flatnonzero(kept)[: len(owners)]
    owners = owners[: len(places)]
    words, squares, points = words[places], squares[places], points[places]
    # What floats cannot tell is told by intervals: points near the rim or the centre, and noise of no ordinary size.
    rare = (squares > _RIM) | (squares < _CORE)  # proof: rare
    safe = np.where(rare, 0.5, squares)
    fall = -2 * np.log(safe)
    normals = points * np.sqrt(fall / safe)[:, None]
    deviations = np.array([math.sqrt(float_above(min(variance, _WIDEST))) for variance in variances])[owners]
    values = deviations * normals
    nearest = np.rint(values)
    error = deviations * ((_LAST / np.sqrt(fall))[:, None] + _SLIP * normals) + 2.0**-60  # proof: error
    open_ = (np.abs(values - nearest) + error >= 0.5) | (values > _LARGEST) | rare[:, None]  # proof: near-edge
    if max(variances) > _WIDEST:
        open_ |= np.array([variance > _WIDEST for variance in variances])[owners]  # proof: widest
    magnitudes: NDArray[Any] = np.where(open_, 0.0, nearest).astype(np.int64)
    signs = 1 - 2 * (words & np.uint64(1)).astype(np.int64)
    settled = {}
    for i in np.flatnonzero(open_.any(axis=1)).tolist():
        point = rim.get(int(places[i])) or _point(words[i])
        settled[i] = _settled(point, [variances[owner] for owner in owners[i]], coin)  # proof: settle
    if any(max(pair) >= 1 << 63 for pair in settled.values()):
        magnitudes, signs = magnitudes.astype(object), signs.astype(object)
    for i, pair in settled.items():
        magnitudes[i] = pair
    return np.asarray((signs * magnitudes).reshape(-1))


def _point(words: NDArray[np.uint64]) -> _Point:
    return _Point(int(words[0]) >> 1, int(words[1]) >> 1, _BITS)


def _beside_rim(point: _Point, coin: Coin) -> _Point | None:
    """The point with as many more bits as it takes to know that it lies in the disc; None for one outside."""
    while _square(point) < (one := 1 << 2 * point.bits):
        if _square(_far(point)) <= one:
            return point  # proof: inside
        point = _refined(point, coin)
    return None  # proof: outside


def _settled(point: _Point, variances: Sequence[Fraction], coin: Coin) -> tuple[int, int]:
    """The rounded magnitudes of the pair of a point of the disc, with as many more bits as they take."""
    while not _square(point) or (pair := _rounded(point, variances)) is None:
        point = _refined(point, coin)
    return pair  # proof: certain


def _rounded(point: _Point, variances: Sequence[Fraction]) -> tuple[int, int] | None:
    """The nearest whole numbers of the two magnitudes, or None while one of them is open."""
    down, up = contexts(30 + point.bits * 2 // 5)
    found, half = [], Decimal("0.5")
    for normal, variance in zip(_normal_pair(point, down, up), variances, strict=True):
        numerator, denominator = Decimal(variance.numerator), Decimal(variance.denominator)
        least = max(Decimal(0), down.next_minus(down.sqrt(down.divide(numerator, denominator))))
        most = up.next_plus(up.sqrt(up.divide(numerator, denominator)))
        low = int(down.add(down.multiply(least, normal.low), half))
        high = int(up.add(up.multiply(most, normal.high), half))
        if low != high:
            return None
        found.append(low)
    return found[0], found[1]
