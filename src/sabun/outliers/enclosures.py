"""Real numbers known between two decimals: the arithmetic behind noise whose law is exact.

A continuous draw is a function of uniform numbers whose bits are tossed as needed. Its rounded value is known once both ends
of the interval round to the same whole number; until then more bits are tossed and more digits kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from sabun.privacy.noise import Coin
from sabun.privacy.noise.exact import contexts

__all__ = ["Arithmetic", "Interval", "Uniform", "settle"]

_FIRST_BITS, _MORE_BITS = 128, 64
_ONE, _TWO = Decimal(1), Decimal(2)


class Interval(NamedTuple):
    """All that is known of a number: it lies between these two."""

    low: Decimal
    high: Decimal


class Uniform:
    """A uniform number of (0, 1) whose binary digits are tossed as they are needed."""

    def __init__(self, coin: Coin) -> None:
        self._coin = coin
        self._bits = _FIRST_BITS
        self._prefix = coin.bits(_FIRST_BITS)

    def extend(self) -> None:
        """Tosses more digits."""
        self._prefix = self._prefix << _MORE_BITS | self._coin.bits(_MORE_BITS)  # proof: fresh-bits
        self._bits += _MORE_BITS

    def ends(self) -> tuple[int, int, int]:
        """The number lies between the first two, both over the third."""
        return self._prefix, self._prefix + 1, 1 << self._bits


class Arithmetic:
    """Interval arithmetic on numbers that are not negative, rounded outwards."""

    def __init__(self, digits: int) -> None:
        self._down, self._up = contexts(digits)

    def number(self, value: Fraction) -> Interval:
        """A rational number."""
        top, bottom = Decimal(value.numerator), Decimal(value.denominator)
        return Interval(self._down.divide(top, bottom), self._up.divide(top, bottom))

    def uniform(self, value: Uniform) -> Interval:
        """What is known of a uniform number."""
        low, high, unit = value.ends()
        return Interval(self._down.divide(Decimal(low), Decimal(unit)), self._up.divide(Decimal(high), Decimal(unit)))

    def minus_log(self, x: Interval) -> Interval:
        """-ln x for x in (0, 1]; no upper end while x may be 0."""
        # copy_negate is exact; a minus sign would round to the digits of whatever context the calling thread has set.
        low = self._up.next_plus(self._up.ln(x.high)).copy_negate()  # proof: outward
        high = self._down.next_minus(self._down.ln(x.low)).copy_negate() if x.low > 0 else Decimal("Infinity")
        return Interval(max(Decimal(0), low), high)

    def exp_minus_one(self, x: Interval) -> Interval:
        """exp(x) - 1."""
        low = self._down.subtract(self._down.next_minus(self._down.exp(x.low)), _ONE)
        return Interval(max(Decimal(0), low), self._up.subtract(self._up.next_plus(self._up.exp(x.high)), _ONE))

    def add(self, x: Interval, y: Interval) -> Interval:
        """x + y."""
        return Interval(self._down.add(x.low, y.low), self._up.add(x.high, y.high))

    def multiply(self, x: Interval, y: Interval) -> Interval:
        """x y."""
        return Interval(self._down.multiply(x.low, y.low), self._up.multiply(x.high, y.high))

    def divide(self, x: Interval, y: Interval) -> Interval:
        """x / y; no upper end while y may be 0."""
        high = self._up.divide(x.high, y.low) if y.low > 0 else Decimal("Infinity")
        return Interval(self._down.divide(x.low, y.high), high)

    def sqrt(self, x: Interval) -> Interval:
        """The square root."""
        return Interval(
            max(Decimal(0), self._down.next_minus(self._down.sqrt(x.low))), self._up.next_plus(self._up.sqrt(x.high))
        )


def settle(uniforms: Sequence[Uniform], compute: Callable[[Arithmetic], Sequence[Interval]]) -> list[int]:
    """The numbers that `compute` makes of the uniforms, each rounded to the nearest whole number.

    Guarantee: the result is the rounding of the real-valued function of the infinitely long uniforms (a tie has probability 0).
    """
    digits = 60
    while True:
        found = [(_nearest(x.low), _nearest(x.high)) for x in compute(Arithmetic(digits))]
        if all(low is not None and low == high for low, high in found):  # proof: both-ends-agree
            return [low for low, _ in found if low is not None]
        for uniform in uniforms:
            uniform.extend()
        digits += 24


def _nearest(value: Decimal) -> int | None:
    """The nearest whole number, None for infinity."""
    if not value.is_finite():
        return None
    return int((2 * Fraction(value) + 1) // 2)
