"""Noise that looks the same in every direction: a continuous vector with density exp(-|x| / scale), rounded to whole numbers.

Notation: N and M are standard normal vectors of `dimension` and `dimension` + 1 coordinates; scale |M| N has that density. A
normal pair is (x, y) sqrt(-2 ln s / s) with (x, y) uniform in the unit disc and s = x**2 + y**2 (Marsaglia's polar method).
Every real number is held as an interval around it; more bits are drawn until each coordinate's nearest whole number is certain.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.noise.coin import Coin
from sabun.privacy.noise.exact import check_draw, contexts, rational

__all__ = ["spherical_laplace"]

_MORE = 64


class _Interval(NamedTuple):
    """A real number >= 0 known to lie between two decimals."""

    low: Decimal
    high: Decimal


class _Point(NamedTuple):
    """A point of the open quarter disc: x is in [x, x + 1] 2**-bits, y likewise."""

    x: int
    y: int
    bits: int


def spherical_laplace(scale: Fraction | int, *, dimension: int, coin: Coin) -> NDArray[Any]:
    """A whole-number vector: round(X) by coordinate, where X has density exactly proportional to exp(-|X|_2 / scale).

    Guarantee: added to a whole-number vector that a neighbour step changes by at most d in the Euclidean norm, the sum is
    (d / scale)-differentially private, with delta = 0: it equals round(vector + X), post-processing of the K-norm mechanism.
    The law on the whole numbers is that of the rounded vector, not exp(-|z|_2 / scale) itself; they differ when scale is small.

    Args:
        scale: A Fraction or int > 0.
        dimension: A whole number >= 1.
        coin: Where the bits come from.

    Returns:
        An int64 array of that length, or Python ints (dtype object) if a coordinate does not fit.

    Raises:
        ParameterError: If a parameter breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> spherical_laplace(Fraction(5, 2), dimension=4, coin=os_coin()).shape
        (4,)
    """
    exact_scale = rational(scale=scale)
    checks.whole(minimum=1, dimension=dimension)
    check_draw(coin, None)
    dimension = int(dimension)  # a numpy integer would wrap around in what follows
    signs = coin.bits(dimension)
    bits = 128 + max(0, exact_scale.numerator.bit_length() - exact_scale.denominator.bit_length())
    points = [_disc_point(bits, coin) for _ in range(dimension + 1)]
    while (magnitudes := _rounded(points, int(dimension), exact_scale)) is None:
        points = [_refined(point, coin) for point in points]  # proof: refine
    values = [-m if signs >> i & 1 else m for i, m in enumerate(magnitudes)]
    fits = max(magnitudes) < 1 << 63
    return np.array(values, dtype=np.int64 if fits else object)


def _disc_point(bits: int, coin: Coin) -> _Point:
    """A uniform point of the unit quarter disc, with at least that many bits of each coordinate."""
    while True:
        point = _Point(coin.bits(bits), coin.bits(bits), bits)
        while not (outside := _square(point) >= 1 << 2 * point.bits) and _square(_far(point)) > 1 << 2 * point.bits:
            point = _refined(point, coin)
        if not outside:
            return point  # proof: in-disc


def _refined(point: _Point, coin: Coin) -> _Point:
    return _Point(point.x << _MORE | coin.bits(_MORE), point.y << _MORE | coin.bits(_MORE), point.bits + _MORE)


def _far(point: _Point) -> _Point:
    return _Point(point.x + 1, point.y + 1, point.bits)


def _square(point: _Point) -> int:
    return point.x * point.x + point.y * point.y


def _rounded(points: list[_Point], dimension: int, scale: Fraction) -> list[int] | None:
    """The nearest whole numbers of scale |M| |N_i|, or None while one of them is open."""
    down, up = contexts(30 + max(point.bits for point in points) * 2 // 5)
    normals: list[_Interval] = []
    for point in points:
        if _square(point) == 0:
            return None
        normals += _normal_pair(point, down, up)
    length = _length(normals[dimension : 2 * dimension + 1], down, up)
    numerator, denominator, half = Decimal(scale.numerator), Decimal(scale.denominator), Decimal("0.5")
    factor_low = down.divide(down.multiply(length.low, numerator), denominator)
    factor_high = up.divide(up.multiply(length.high, numerator), denominator)
    result = []
    for normal in normals[:dimension]:
        low = int(down.add(down.multiply(factor_low, normal.low), half))
        high = int(up.add(up.multiply(factor_high, normal.high), half))
        if low != high:
            return None
        result.append(low)  # proof: certain
    return result


def _normal_pair(point: _Point, down: decimal.Context, up: decimal.Context) -> tuple[_Interval, _Interval]:
    """The magnitudes of two independent standard normals."""
    unit, area = Decimal(1 << point.bits), Decimal(1 << 2 * point.bits)
    s_low = down.divide(Decimal(_square(point)), area)
    s_high = min(Decimal(1), up.divide(Decimal(_square(_far(point))), area))
    ln_low = max(Decimal(0), down.multiply(Decimal(-2), up.next_plus(up.ln(s_high))))
    ln_high = up.multiply(Decimal(-2), down.next_minus(down.ln(s_low)))
    root_low = max(Decimal(0), down.next_minus(down.sqrt(down.divide(ln_low, s_high))))  # proof: decreasing
    root_high = up.next_plus(up.sqrt(up.divide(ln_high, s_low)))
    first, second = (
        _Interval(
            down.divide(down.multiply(Decimal(near), root_low), unit),
            up.divide(up.multiply(Decimal(near + 1), root_high), unit),
        )
        for near in (point.x, point.y)
    )
    return first, second


def _length(normals: list[_Interval], down: decimal.Context, up: decimal.Context) -> _Interval:
    """The Euclidean norm of a normal vector."""
    low = high = Decimal(0)
    for normal in normals:
        low, high = down.add(low, down.multiply(normal.low, normal.low)), up.add(high, up.multiply(normal.high, normal.high))
    return _Interval(max(Decimal(0), down.next_minus(down.sqrt(low))), up.next_plus(up.sqrt(high)))
