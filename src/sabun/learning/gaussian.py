"""Gaussian noise for gradients: continuous around each number, then rounded to a public grid; proved in gaussian.proof.md.

Notation: a normal pair is (x, y) sqrt(-2 ln s / s) with (x, y) uniform in the unit disc, s = x**2 + y**2 (Marsaglia's polar
method). Floats decide almost every rounding; the few that lie within `_BAND` of an edge are decided by intervals around the
same real numbers, with more bits drawn until the answer is certain.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator
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
_BLOCK = 8192
"""Points worked on at a time."""


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
    scale, result = np.ldexp(sigma, -exponent), centre * 2.0**-exponent
    pairs = _Pairs(-(-centre.size // 2), stream, step)
    for at, normals in pairs:
        nearest = result[at : at + len(normals)]
        values = normals[: len(nearest)]
        values *= scale
        values += nearest
        np.rint(values, out=nearest)
        values -= nearest
        np.abs(values, out=values)
        unsure = {i for i in pairs.unsure if i < len(nearest)}
        if values.max() > 0.5 - _BAND:  # proof: band
            unsure.update(np.flatnonzero(values > 0.5 - _BAND).tolist())
        if max(nearest.max(), -nearest.min()) >= _LARGEST:
            unsure.update(np.flatnonzero(np.abs(nearest) >= _LARGEST).tolist())
        for i in sorted(unsure):
            nearest[i] = pairs.settle(i, Fraction(float(centre[at + i])), Fraction(sigma), exponent)  # proof: settle
    result *= 2.0**exponent
    return result


class _Pairs:
    """Accepted points of the disc, two normals each, with the bits to look closer.

    Args:
        count: How many.
        stream: Where the bits come from.
        step: Which part of the stream.
    """

    def __init__(self, count: int, stream: Stream, step: int) -> None:
        self._count, self._stream, self._step = count, stream, step
        self._closer: dict[int, _Point] = {}
        self._points, self._both = np.empty((2, min(_BLOCK, _drawn(count)), 2))
        self._words: NDArray[np.int64]
        self._members: NDArray[np.intp]
        self.unsure: list[int] = []
        """Which normals of the block may be far from what they stand for."""

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """The floats near the normals with the place of the first, block by block: what is computed of one stays at hand."""
        source, found = self._stream.coin(NOISE, self._step), 0
        while found < self._count:
            drawn = min(_BLOCK, _drawn(self._count - found))
            self._words = source.words(2 * drawn).view(np.int64).reshape(-1, 2)
            normals = self._normals(self._count - found)
            if len(normals):
                yield 2 * found, normals
            found += len(normals) // 2

    @cached_property
    def _coin(self) -> Coin:
        return self._stream.coin(REFINE, self._step)

    def _normals(self, most: int) -> NDArray[np.float64]:
        """Two normals for each of the first points of the block that are inside the disc."""
        words = self._words
        points = np.multiply(words, 2.0**-_BITS, out=self._points[: len(words)])
        both = np.multiply(points, points, out=self._both[: len(words)])
        squares = both[:, 0] + both[:, 1]
        members = np.flatnonzero(squares < 1.0 + _EDGE)
        kept = squares.take(members)
        if kept.max(initial=0.0) > 1.0 - _EDGE:  # proof: disc-edge
            inside = [square <= 1.0 - _EDGE or self._inside(words[at]) for at, square in zip(members, kept, strict=True)]
            members, kept = members[inside], kept[inside]
        members, kept, self.unsure = members[:most], kept[:most], []
        self._members = members
        if kept.max(initial=0.0) > 1.0 - _EDGE or kept.min(initial=1.0) < _CENTRE:
            rare = np.flatnonzero((kept > 1.0 - _EDGE) | (kept < _CENTRE))
            self.unsure = [2 * place + which for place in rare.tolist() for which in (0, 1)]
            kept[rare] = 0.5
        factor = np.log(kept)
        factor /= kept
        factor *= -2.0
        np.sqrt(factor, out=factor)
        # As complex numbers a pair is one thing to move instead of two.
        pairs = points.view(np.complex128).reshape(-1).take(members)
        normals = np.empty(2 * len(members))
        np.multiply(pairs.real, factor, out=normals[::2])
        np.multiply(pairs.imag, factor, out=normals[1::2])
        return normals

    def _inside(self, words: NDArray[np.int64]) -> bool:
        """Whether a point near the edge of the disc is inside; it is thrown away whole, or kept with its further bits."""
        point = _exactly_placed(_point(words), self._coin)
        if point is None:
            return False
        self._closer[_name(words)] = point
        return True

    def settle(self, index: int, centre: Fraction, sigma: Fraction, exponent: int) -> int:
        """The certain nearest whole number of (centre + sigma z) / 2**exponent, for a normal z of the block."""
        words = self._words[self._members[index // 2]]
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


def _drawn(count: int) -> int:
    """How many points to draw for so many inside the disc: a few more than are likely to be needed."""
    return int(1.3 * count) + 16


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
