"""Gaussian noise for gradients: continuous around each number, then rounded to a public grid; proved in gaussian.proof.md.

Notation: a normal pair is (x, y) sqrt(-2 ln s / s) with (x, y) uniform in the unit disc, s = x**2 + y**2 (Marsaglia's polar
method). Floats decide almost every rounding; the few that lie within `_BAND` of an edge are decided by intervals around the
same real numbers, with more bits drawn until the answer is certain.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun.learning.stream import NOISE, REFINE, Stream
from sabun.privacy.noise import Coin
from sabun.privacy.noise.exact import contexts

__all__ = ["grid_exponent", "rounded_gaussian"]

_STEPS_PER_SIGMA = 11
_BITS = 63
_BAND = 2.0**-18
_LARGEST = 2.0**30
_EDGE = 2.0**-30
_CENTRE = 2.0**-40
_MORE = 64


class _Point(NamedTuple):
    """x lies in [x, x + 1] 2**-bits, y likewise."""

    x: int
    y: int
    bits: int


def grid_exponent(sigma: float) -> int:
    """The exponent of the grid for that standard deviation: between 2**10 and 2**11 steps to one sigma."""
    return int(np.frexp(sigma)[1]) - _STEPS_PER_SIGMA


def rounded_gaussian(centre: NDArray[np.float64], *, sigma: float, stream: Stream, step: int) -> NDArray[np.float64]:
    """The grid points nearest to centre + sigma Z, for independent standard normal Z.

    Guarantee: the law is exactly that of ideal continuous Gaussian noise followed by rounding, given uniform stream words and
    `log` and `sqrt` of the floating-point library right to within 2**8 units in the last place; see the proof file.

    Args:
        centre: Finite numbers.
        sigma: Standard deviation, a positive float taken exactly.
        stream: Where the bits come from.
        step: Which part of the stream; never to be used for two different centres.

    Returns:
        Multiples of 2**grid_exponent(sigma).
    """
    exponent = grid_exponent(sigma)
    pairs = _Pairs(-(-centre.size // 2), stream, step)
    normals = pairs.normals()[: centre.size]
    normals *= np.ldexp(sigma, -exponent)
    normals += centre * 2.0**-exponent
    nearest = np.rint(normals)
    normals -= nearest
    unsure = np.abs(normals, out=normals) > 0.5 - _BAND  # proof: band
    if max(nearest.max(initial=0.0), -nearest.min(initial=0.0)) >= _LARGEST:
        unsure |= np.abs(nearest) >= _LARGEST
    if pairs.unsure is not None:
        unsure |= pairs.unsure[: centre.size]
    for i in np.flatnonzero(unsure):
        nearest[i] = pairs.settle(int(i), Fraction(float(centre[i])), Fraction(sigma), exponent)  # proof: settle
    nearest *= 2.0**exponent
    return np.asarray(nearest)


class _Pairs:
    """Accepted points of the disc, two normals each, with the bits to look closer."""

    def __init__(self, count: int, stream: Stream, step: int) -> None:
        self._stream, self._step = stream, step
        self._closer: dict[int, _Point] = {}
        source = stream.coin(NOISE, step)
        kept: list[tuple[NDArray[np.int64], NDArray[np.complex128], NDArray[np.float64]]] = []
        found = 0
        while found < count:
            words = source.words(2 * (int(1.3 * (count - found)) + 16)).view(np.int64).reshape(-1, 2)
            kept.append(self._inside(words, count - found))
            found += len(kept[-1][1])
        whole = len(kept) == 1
        self._words: NDArray[np.int64] = kept[0][0] if whole else np.concatenate([words for words, _, _ in kept])
        self._points: NDArray[np.complex128] = kept[0][1] if whole else np.concatenate([points for _, points, _ in kept])
        self._squares: NDArray[np.float64] = kept[0][2] if whole else np.concatenate([squares for _, _, squares in kept])
        self.unsure: NDArray[np.bool_] | None = None

    @cached_property
    def _coin(self) -> Coin:
        return self._stream.coin(REFINE, self._step)

    def _inside(
        self, words: NDArray[np.int64], most: int
    ) -> tuple[NDArray[np.int64], NDArray[np.complex128], NDArray[np.float64]]:
        """The words, points (as complex numbers: one thing to move instead of two) and squared radii of the first inside."""
        points: NDArray[np.float64] = words * np.float64(2.0**-_BITS)
        both = points * points
        squares: NDArray[np.float64] = both[:, 0] + both[:, 1]
        inside = squares < 1.0
        for i in np.flatnonzero(np.abs(squares - 1.0) < _EDGE):  # proof: disc-edge
            # A point this near the edge is thrown away whole or kept whole; its further bits are drawn here and kept for later.
            point = _exactly_placed(_point(words[i]), self._coin)
            inside[i] = point is not None
            if point is not None:
                self._closer[_name(words[i])] = point
        members = np.flatnonzero(inside)[:most]
        return words.take(members, axis=0), points.view(np.complex128).reshape(-1).take(members), squares.take(members)

    def normals(self) -> NDArray[np.float64]:
        """The floats near the normals, in pairs."""
        squares = self._squares
        rare = (squares > 1.0 - _EDGE) | (squares < _CENTRE)
        if rare.any():
            self.unsure = np.repeat(rare, 2)
            squares = np.where(rare, 0.5, squares)
        factor = np.log(squares)
        factor /= squares
        factor *= -2.0
        np.sqrt(factor, out=factor)
        normals = np.empty(2 * len(factor))
        np.multiply(self._points.real, factor, out=normals[::2])
        np.multiply(self._points.imag, factor, out=normals[1::2])
        return normals

    def settle(self, index: int, centre: Fraction, sigma: Fraction, exponent: int) -> int:
        """The certain nearest whole number of (centre + sigma z) / 2**exponent."""
        words = self._words[index // 2]
        name = _name(words)
        point = self._closer.get(name) or _point(words)
        negative = bool(words[index % 2] < 0)
        unit = Fraction(2) ** exponent
        while True:
            low, high = _normal(point, index % 2)
            near, far = (-high, -low) if negative else (low, high)
            ends = [_nearest((centre + sigma * Fraction(end)) / unit) for end in (near, far)]
            if ends[0] == ends[1]:
                self._closer[name] = point
                return ends[0]  # proof: certain
            point = _Point(
                point.x << _MORE | self._coin.bits(_MORE), point.y << _MORE | self._coin.bits(_MORE), point.bits + _MORE
            )


def _name(words: NDArray[np.int64]) -> int:
    return int(words[0]) << 64 | int(words[1]) & (1 << 64) - 1


def _point(words: NDArray[np.int64]) -> _Point:
    """The magnitudes: a word w stands for a number in [w, w + 1] 2**-63, so its magnitude for w >= 0 is w, else -w - 1."""
    x, y = (int(word) if word >= 0 else ~int(word) for word in words)
    return _Point(x, y, _BITS)


def _exactly_placed(point: _Point, coin: Coin) -> _Point | None:
    """The point with as many bits as it takes to tell that it is inside the disc, or None when it is outside."""
    while True:
        one = 1 << 2 * point.bits
        if point.x**2 + point.y**2 >= one:
            return None
        if (point.x + 1) ** 2 + (point.y + 1) ** 2 <= one:
            return point
        point = _Point(point.x << _MORE | coin.bits(_MORE), point.y << _MORE | coin.bits(_MORE), point.bits + _MORE)


def _normal(point: _Point, which: int) -> tuple[Decimal, Decimal]:
    """An interval around the magnitude of one normal of the pair."""
    down, up = contexts(20 + point.bits * 2 // 5)
    unit, area = Decimal(1 << point.bits), Decimal(1 << 2 * point.bits)
    low_square = down.divide(Decimal(point.x**2 + point.y**2), area)
    high_square = min(Decimal(1), up.divide(Decimal((point.x + 1) ** 2 + (point.y + 1) ** 2), area))
    near = (point.x, point.y)[which]
    if low_square == 0:
        return Decimal(0), Decimal(10) ** 9
    low = _root(high_square, high_square, down, smallest=True)
    high = _root(low_square, low_square, up, smallest=False)
    return down.divide(down.multiply(Decimal(near), low), unit), up.divide(up.multiply(Decimal(near + 1), high), unit)


def _root(inside: Decimal, below: Decimal, context: decimal.Context, *, smallest: bool) -> Decimal:
    """sqrt(-2 ln(inside) / below) on the context's side; decreasing in the square, so each end uses one end of it."""
    other = contexts(context.prec)[1 if smallest else 0]
    logarithm = other.next_plus(other.ln(inside)) if smallest else other.next_minus(other.ln(inside))  # proof: decreasing
    doubled = max(Decimal(0), context.multiply(Decimal(-2), logarithm))
    root = context.sqrt(context.divide(doubled, below))
    return max(Decimal(0), context.next_minus(root)) if smallest else context.next_plus(root)


def _nearest(value: Fraction) -> int:
    """Rounding half down the number line; ties have probability zero."""
    return -((-2 * value.numerator + value.denominator) // (2 * value.denominator))
