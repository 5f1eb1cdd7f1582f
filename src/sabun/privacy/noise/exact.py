"""Exact coins: a uniform number is compared with a probability, drawing more bits for as long as the answer is open.

Notation: a probability p is known through its floors, F(b) = floor(p 2**b), each certified; U is a uniform number in [0, 1)
whose bits are drawn as needed. U < p is decided at the first b where the b drawn bits differ from F(b).
"""

from __future__ import annotations

import bisect
import decimal
import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import ParameterError
from sabun.privacy.amounts import ratio
from sabun.privacy.noise.coin import Coin

__all__ = [
    "Floors",
    "Tosses",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "check_draw",
    "contexts",
    "exp_floor",
    "finish",
    "rational",
    "uniform_below",
]

Floors: TypeAlias = Callable[[int], int]
"""Maps a number of bits b to floor(p 2**b)."""

_HEAD, _NEXT = 16, 64


def rational(*, minimum: int | None = None, maximum: int | None = None, **named: object) -> Fraction:
    """A parameter that must be an exact number; with `minimum` it may equal it, without one it must be positive."""
    [(name, value)] = named.items()
    lower = "> 0" if minimum is None else f">= {minimum}"
    rule = f"a Fraction or int {lower}" + ("" if maximum is None else f" and <= {maximum}")
    good = isinstance(value, Rational) and not isinstance(value, bool)
    # The type alone is shown: a scale may have been computed from private data.
    checks.require(good, rule, "Floats are not exact: use sabun.privacy.amounts.exact.", **{name: type(value)})
    assert isinstance(value, Rational)
    number = ratio(value)
    inside = (number.numerator > 0 if minimum is None else number >= minimum) and (maximum is None or number <= maximum)
    checks.require(inside, rule, **{name: value})
    return number


def check_draw(coin: Coin, size: int | None) -> int | None:
    """Checks the two parameters every sampler has; gives the size as a plain integer, which cannot wrap around."""
    checks.require(isinstance(coin, Coin), "a coin", "Pass os_coin() for a private result.", coin=coin)
    if size is None:
        return None
    checks.whole(minimum=0, size=size)
    return int(size)


def exp_floor(gamma: Fraction, bits: int) -> int:
    """floor(exp(-gamma) 2**bits), certified, for gamma >= 0."""
    if gamma == 0:
        return 1 << bits
    if gamma >= bits:
        return 0  # proof: exp-small
    digits = 12 + bits * 3 // 10
    while True:
        down, up = contexts(digits)
        # Only context methods: an operator such as unary minus would round to the thread's own context.
        numerator, denominator, unit = Decimal(-gamma.numerator), Decimal(gamma.denominator), Decimal(1 << bits)
        low = down.next_minus(down.exp(down.divide(numerator, denominator)))
        high = up.next_plus(up.exp(up.divide(numerator, denominator)))
        lowest, highest = int(down.multiply(low, unit)), int(up.multiply(high, unit))
        if lowest == highest:
            return lowest  # proof: exp-floor
        digits *= 2


def finish(floors: Floors, *, prefix: int, bits: int, coin: Coin) -> bool:
    """Whether U < p, given that the first `bits` bits of U are `prefix`."""
    while (bound := floors(bits)) == prefix:  # proof: draw-on
        prefix, bits = prefix << 64 | coin.bits(64), bits + 64
    return prefix < bound


class Tosses:
    """A row of probabilities, ready to be tossed together many times."""

    def __init__(self, row: Sequence[Floors]) -> None:
        eighty = [floors(_HEAD + _NEXT) for floors in row]
        self._row = tuple(row)
        self._head = np.array([value >> _NEXT for value in eighty], dtype=np.uint16)
        self._next = np.array([value & (1 << _NEXT) - 1 for value in eighty], dtype=np.uint64)

    def toss(self, count: int, coin: Coin) -> NDArray[np.bool_]:
        """A table of `count` rows whose column j is heads with the row's probability j, all independent."""
        count = int(count)
        drawn = coin.halfwords(count * len(self._row)).reshape(count, len(self._row))
        heads = drawn < self._head  # proof: head
        tied = np.flatnonzero((drawn == self._head).ravel())
        if tied.size:
            self._break_ties(heads.reshape(-1), tied, coin)
        return heads

    def _break_ties(self, heads: NDArray[np.bool_], tied: NDArray[np.intp], coin: Coin) -> None:
        columns, drawn = tied % len(self._row), coin.words(tied.size)
        heads[tied] = drawn < self._next[columns]
        for i in np.flatnonzero(drawn == self._next[columns]):
            column = int(columns[i])
            prefix = int(self._head[column]) << _NEXT | int(drawn[i])
            heads[tied[i]] = finish(self._row[column], prefix=prefix, bits=_HEAD + _NEXT, coin=coin)  # proof: tie


@overload
def bernoulli(probability: Fraction | int, *, coin: Coin, size: None = None) -> bool: ...
@overload
def bernoulli(probability: Fraction | int, *, coin: Coin, size: int) -> NDArray[np.bool_]: ...
def bernoulli(probability: Fraction | int, *, coin: Coin, size: int | None = None) -> bool | NDArray[np.bool_]:
    """True with exactly the given rational probability.

    Args:
        probability: A Fraction or int in [0, 1].
        coin: Where the bits come from.
        size: None for one bool, otherwise the length of the boolean array.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> bernoulli(Fraction(1), coin=os_coin())
        True
    """
    p = rational(probability=probability, minimum=0, maximum=1)
    return _tossed(p == 1, lambda bits: (p.numerator << bits) // p.denominator, coin, size)


@overload
def bernoulli_exp(gamma: Fraction | int, *, coin: Coin, size: None = None) -> bool: ...
@overload
def bernoulli_exp(gamma: Fraction | int, *, coin: Coin, size: int) -> NDArray[np.bool_]: ...
def bernoulli_exp(gamma: Fraction | int, *, coin: Coin, size: int | None = None) -> bool | NDArray[np.bool_]:
    """True with probability exactly exp(-gamma), for a rational gamma >= 0.

    Args:
        gamma: A Fraction or int >= 0.
        coin: Where the bits come from.
        size: None for one bool, otherwise the length of the boolean array.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> bernoulli_exp(0, coin=os_coin())
        True
    """
    exponent = rational(gamma=gamma, minimum=0)
    return _tossed(exponent == 0, lambda bits: exp_floor(exponent, bits), coin, size)


def _tossed(certain: bool, floors: Floors, coin: Coin, size: int | None) -> bool | NDArray[np.bool_]:
    size = check_draw(coin, size)
    if size is None:
        return certain or finish(floors, prefix=coin.bits(64), bits=64, coin=coin)
    return np.ones(size, dtype=np.bool_) if certain else Tosses([floors]).toss(size, coin)[:, 0]


@overload
def uniform_below(bound: int, *, coin: Coin, size: None = None) -> int: ...
@overload
def uniform_below(bound: int, *, coin: Coin, size: int) -> NDArray[Any]: ...
def uniform_below(bound: int, *, coin: Coin, size: int | None = None) -> int | NDArray[Any]:
    """A whole number of 0 .. bound - 1, each exactly equally likely.

    Args:
        bound: A whole number >= 1, of any size.
        coin: Where the bits come from.
        size: None for one int, otherwise the length of the array (int64; Python ints once bound exceeds 2**63).

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> uniform_below(1, coin=os_coin())
        0
    """
    checks.whole(minimum=1, bound=bound)
    size, limit = check_draw(coin, size), int(bound)
    if size is None:
        return _uniform(limit, coin)
    if limit > 1 << 63:
        return _objects([_uniform(limit, coin) for _ in range(size)])
    shift = np.uint64(64 - max(1, (limit - 1).bit_length()))
    kept = np.empty(0, dtype=np.int64)
    while kept.size < size:
        drawn = (coin.words(2 * (size - kept.size)) >> shift).astype(np.int64)  # proof: leading-bits
        kept = np.concatenate([kept, drawn[drawn < limit]])  # proof: keep-below
    return kept[:size]


def _uniform(limit: int, coin: Coin) -> int:
    bits = (limit - 1).bit_length()
    while (drawn := coin.bits(bits)) >= limit:
        pass
    return drawn


@overload
def categorical(weights: Sequence[int], *, coin: Coin, size: None = None) -> int: ...
@overload
def categorical(weights: Sequence[int], *, coin: Coin, size: int) -> NDArray[np.int64]: ...
def categorical(weights: Sequence[int], *, coin: Coin, size: int | None = None) -> int | NDArray[np.int64]:
    """An index, with probability exactly its weight divided by the total.

    Args:
        weights: Whole numbers >= 0 of any size, not all zero.
        coin: Where the bits come from.
        size: None for one index, otherwise the length of the int64 array.

    Raises:
        ParameterError: If a weight breaks its rule. No weight is shown.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> categorical([0, 5, 0], coin=os_coin())
        1
    """
    # Weights may have been computed from private data, so neither message shows one.
    if not all(isinstance(weight, Integral) and not isinstance(weight, bool) and weight >= 0 for weight in weights):
        raise ParameterError("weights must be whole numbers >= 0; got one that is not. Scale and round them first.")
    ends = list(itertools.accumulate(map(int, weights)))
    if not (ends and ends[-1] > 0):
        raise ParameterError("weights must hold a number above zero; got none. Give at least one choice a weight.")
    size = check_draw(coin, size)
    if size is None:
        return bisect.bisect_right(ends, _uniform(ends[-1], coin))  # proof: ends
    drawn = uniform_below(ends[-1], coin=coin, size=size)
    if ends[-1] > 1 << 63:
        return np.array([bisect.bisect_right(ends, u) for u in drawn], dtype=np.int64)
    return np.searchsorted(np.array(ends, dtype=np.uint64), drawn.astype(np.uint64), side="right").astype(np.int64)


def _objects(values: list[int]) -> NDArray[Any]:
    """Python ints in an array that keeps them whole."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def contexts(digits: int) -> tuple[decimal.Context, decimal.Context]:
    """Decimal arithmetic rounded down, rounded up."""
    down, up = (
        decimal.Context(prec=digits, rounding=rounding, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[])
        for rounding in (decimal.ROUND_FLOOR, decimal.ROUND_CEILING)
    )
    return down, up
