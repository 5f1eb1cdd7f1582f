"""The exponential mechanism on whole-number costs, drawn exactly; proved in choice.proof.md."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.noise.coin import Coin
from sabun.privacy.noise.exact import categorical, check_draw, exp_floor, finish, rational, uniform_below

__all__ = ["exponential_choice"]

_BITS = 64


def exponential_choice(costs: Sequence[int] | NDArray[np.int64], *, rate: Fraction | int, coin: Coin) -> int:
    """An index i with probability exactly proportional to exp(-rate * costs[i]).

    Guarantee: where a neighbour step moves every cost by at most d, the index is (2 d rate)-differentially private.

    Args:
        costs: Whole numbers, at least one; the smallest is the best.
        rate: A Fraction or int > 0.
        coin: Where the bits come from.

    Raises:
        ParameterError: If `rate` or `coin` breaks its rule.

    Example:
        >>> from sabun.privacy.noise import os_coin
        >>> exponential_choice([10**9, 0, 10**9], rate=1, coin=os_coin())
        1
    """
    exact_rate = rational(rate=rate)
    check_draw(coin, None)
    levels, place, sizes = np.unique(np.asarray(costs, dtype=np.int64), return_inverse=True, return_counts=True)
    exponents = [exact_rate * (int(level) - int(levels[0])) for level in levels]
    ceilings = [_ceiling(exponent) for exponent in exponents]
    weights = [int(size) * ceiling for size, ceiling in zip(sizes, ceilings, strict=True)]
    while True:
        level = categorical(weights, coin=coin)  # proof: propose
        if _kept(exponents[level], ceilings[level], coin):  # proof: keep
            break
    inside = np.flatnonzero(place.ravel() == level)
    return int(inside[uniform_below(len(inside), coin=coin)])  # proof: alike


def _ceiling(exponent: Fraction) -> int:
    """A whole number not below exp(-exponent) 2**64, and not much above it: that of the next quarter below the exponent."""
    return _ceiling_of_quarters(min(math.floor(4 * exponent), 4 * _BITS))


@functools.cache
def _ceiling_of_quarters(quarters: int) -> int:
    return 1 << _BITS if quarters == 0 else exp_floor(Fraction(quarters, 4), _BITS) + 1  # proof: ceiling


def _kept(exponent: Fraction, ceiling: int, coin: Coin) -> bool:
    """True with probability exactly exp(-exponent) 2**64 / ceiling."""
    if exponent == 0:
        return True

    def floors(bits: int) -> int:
        extra = 32
        while True:
            low, unit = exp_floor(exponent, _BITS + bits + extra), ceiling << extra
            if low // unit == (low + 1) // unit:
                return low // unit  # proof: ratio-floor
            extra *= 2

    return finish(floors, prefix=coin.bits(64), bits=64, coin=coin)
