"""Laplace noise on the whole numbers; Gaussian noise on the whole numbers.

Notation: q = exp(-1/scale). A geometric number G, P(G = g) = (1 - q) q**g, has independent binary digits, and digit j is 1 with
probability 1 / (1 + exp(2**j / scale)); so a geometric number is a row of tosses. The Gaussian is a Laplace number kept with
probability exp(-(|y| - c)**2 / (2 sigma**2)), where c = sigma**2 / scale.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.noise.coin import Coin
from sabun.privacy.noise.exact import Floors, Tosses, bernoulli_exp, check_draw, exp_floor, finish, rational

__all__ = ["discrete_gaussian", "discrete_laplace"]

_OBJECTS_FROM = 1 << 50
_CHUNK = 1 << 13
_STEP = 18
_CELLS = 11
_UNIT = 31
_BAND = 1 << 15


@overload
def discrete_laplace(scale: Fraction | int, *, coin: Coin, size: None = None) -> int: ...
@overload
def discrete_laplace(scale: Fraction | int, *, coin: Coin, size: int) -> NDArray[Any]: ...
def discrete_laplace(scale: Fraction | int, *, coin: Coin, size: int | None = None) -> int | NDArray[Any]:
    """Whole numbers x with probability exactly proportional to exp(-|x| / scale).

    Guarantee: added to a whole number that a neighbour step changes by at most d, the sum is
    (d / scale)-differentially private.

    Args:
        scale: A Fraction or int > 0, of any size.
        coin: Where the bits come from.
        size: None for one int, otherwise the length of the array: int64, or Python ints (dtype object) when `scale` >= 2**50
            or a draw does not fit. Nothing wraps around, nothing is clamped.

    Raises:
        ParameterError: If a parameter breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> discrete_laplace(10, coin=os_coin(), size=3).shape
        (3,)
    """
    exact_scale = rational(scale=scale)
    size = check_draw(coin, size)
    return int(_laplace(exact_scale, 1, coin)[0]) if size is None else _laplace(exact_scale, size, coin)


@overload
def discrete_gaussian(sigma_squared: Fraction | int, *, coin: Coin, size: None = None) -> int: ...
@overload
def discrete_gaussian(sigma_squared: Fraction | int, *, coin: Coin, size: int) -> NDArray[Any]: ...
def discrete_gaussian(sigma_squared: Fraction | int, *, coin: Coin, size: int | None = None) -> int | NDArray[Any]:
    """Whole numbers x with probability exactly proportional to exp(-x**2 / (2 sigma_squared)).

    Guarantee: added to a whole-number vector that a neighbour step changes by at most d in the Euclidean norm, the sum is
    (d**2 / (2 sigma_squared))-zCDP (Canonne, Kamath, Steinke 2020, Theorem 4).

    Args:
        sigma_squared: A Fraction or int > 0, of any size.
        coin: Where the bits come from.
        size: None for one int, otherwise the length of the array: int64, or Python ints (dtype object) when sigma is about
            2**50 or more, or a draw does not fit.

    Raises:
        ParameterError: If a parameter breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> discrete_gaussian(Fraction(1, 2), coin=os_coin(), size=3).shape
        (3,)
    """
    variance = rational(sigma_squared=sigma_squared)
    size = check_draw(coin, size)
    wanted = 1 if size is None else size
    centre = _centre(variance)
    kept: list[NDArray[Any]] = [np.empty(0, dtype=np.int64)]
    missing = wanted
    while missing > 0:
        proposed = _laplace(variance / centre, min(_CHUNK, 4 + missing * 3 // 2), coin)  # proof: proposal
        kept.append(proposed[_accepted(proposed, centre, variance, coin)][:missing])  # proof: keep
        missing -= kept[-1].size
    drawn = np.concatenate(kept)
    return int(drawn[0]) if size is None else drawn


@functools.lru_cache(maxsize=128)
def _digits(scale: Fraction) -> tuple[int, Tosses]:
    """The number J of binary digits tossed for a scale, with their tosses: nonzero, sign, J digits, overflow."""
    count = max(0, math.ceil(16 * scale) - 1).bit_length()
    row: list[Floors] = [lambda bits: _digit(1 / scale, bits + 1), lambda bits: 1 << bits >> 1]  # proof: nonzero
    row += [functools.partial(_digit, (1 << j) / scale) for j in range(count)]  # proof: digits
    row.append(functools.partial(exp_floor, (1 << count) / scale))  # proof: overflow
    return count, Tosses(row)


def _digit(exponent: Fraction, bits: int) -> int:
    """floor(2**bits / (1 + exp(exponent))), certified, for exponent > 0."""
    precision = bits + 32
    while True:
        unit, low = 1 << precision, exp_floor(exponent, precision)
        lowest, highest = (low << bits) // (unit + low), (low + 1 << bits) // (unit + low + 1)
        if lowest == highest:
            return lowest  # proof: digit-floor
        precision *= 2


def _laplace(scale: Fraction, size: int, coin: Coin) -> NDArray[Any]:
    """Discrete Laplace numbers, a few thousand at a time so that the tosses stay in the processor's cache."""
    count, tosses = _digits(scale)
    parts = [_from_tosses(scale, count, tosses.toss(min(_CHUNK, size - at), coin), coin) for at in range(0, size, _CHUNK)]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64 if scale < _OBJECTS_FROM else object)


def _from_tosses(scale: Fraction, count: int, heads: NDArray[np.bool_], coin: Coin) -> NDArray[Any]:
    laps = np.zeros(len(heads), dtype=np.int64)
    for i in np.flatnonzero(heads[:, -1]):
        laps[i] = 1
        while bernoulli_exp((1 << count) / scale, coin=coin):  # proof: laps
            laps[i] += 1
    packed = np.packbits(heads[:, :-1], axis=1, bitorder="little")
    return _signed(packed, laps, count, wide=scale >= _OBJECTS_FROM)


def _signed(packed: NDArray[np.uint8], laps: NDArray[np.int64], count: int, *, wide: bool) -> NDArray[Any]:
    """The numbers that rows of packed tosses (nonzero, sign, digits) stand for."""
    if wide or (laps.size and int(laps.max()) >> (62 - count)):  # proof: no-wrap
        rows = np.array([int.from_bytes(row.tobytes(), "little") for row in packed] + [0], dtype=object)[:-1]
    else:
        padded = np.zeros((len(packed), 8), dtype=np.uint8)
        padded[:, : packed.shape[1]] = packed
        rows = padded.view("<i8")[:, 0].astype(np.int64, copy=False)
    magnitude = ((rows >> 2) + laps.astype(rows.dtype) * (1 << count) + 1) * (rows & 1)
    return np.asarray(magnitude * (1 - (rows & 2)))  # proof: sign


def _centre(variance: Fraction) -> Fraction:
    """The standard deviation rounded down to a whole number, or to four binary digits where it is small."""
    shift = 0
    while variance * 4**shift < 64:
        shift += 1
    return Fraction(math.isqrt(math.floor(variance * 4**shift)), 1 << shift)


def _accepted(drawn: NDArray[Any], centre: Fraction, variance: Fraction, coin: Coin) -> NDArray[np.bool_]:
    """For each y, heads with probability exactly exp(-(|y| - centre)**2 / (2 variance))."""
    a, b = centre.numerator, centre.denominator
    rate = 1 / (2 * variance * b * b)
    if drawn.dtype == object or ((int(np.abs(drawn).max()) + 1) * b + a) >> 62:  # proof: distance-fits
        return np.array([bernoulli_exp((abs(int(y)) * b - a) ** 2 * rate, coin=coin) for y in drawn], dtype=np.bool_)
    distance = np.abs(drawn) * b - a
    root = distance * math.sqrt(rate)
    words = coin.words(drawn.size)
    guess = _exp_guess(root * root)
    upper = (words >> np.uint64(64 - _UNIT)).astype(np.int64)
    heads = upper < guess - _BAND  # proof: band
    for i in np.flatnonzero(np.abs(upper - guess) <= _BAND):
        gamma = int(distance[i]) ** 2 * rate
        heads[i] = finish(functools.partial(exp_floor, gamma), prefix=int(words[i]), bits=64, coin=coin)  # proof: undecided
    return heads


def _exp_guess(gamma: NDArray[np.float64]) -> NDArray[np.int64]:
    """exp(-gamma) in units of 2**-31, wrong by less than `_BAND` units."""
    coarse, fine = _tables()
    steps = np.minimum(gamma * float(1 << _STEP), float((1 << 2 * _CELLS) - 1)).astype(np.int64)
    product: NDArray[np.int64] = coarse[steps >> _CELLS] * fine[steps & (1 << _CELLS) - 1]
    return product >> _UNIT  # proof: guess


@functools.cache
def _tables() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """exp(-k 2**-7) for k below 2**11; exp(-k 2**-18) likewise; in units of 2**-31, rounded down."""
    return _powers(Fraction(1 << _CELLS, 1 << _STEP)), _powers(Fraction(1, 1 << _STEP))


def _powers(step: Fraction) -> NDArray[np.int64]:
    base, power, powers = exp_floor(step, 128), 1 << 128, []
    for _ in range(1 << _CELLS):
        powers.append(power >> 128 - _UNIT)
        power = power * base >> 128  # proof: powers
    return np.array(powers, dtype=np.int64)
