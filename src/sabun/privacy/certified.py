"""Exponentials and logarithms with a known side: every result is a rational at or beyond the true value.

Notation: the `decimal` module rounds exp and ln correctly (error below one unit in the last of `_DIGITS` digits), so one unit
added or taken away gives a bound that holds.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

from sabun.privacy.amounts import Amount

__all__ = ["exp_down", "exp_up", "log_down", "log_up", "sqrt_up"]

_DIGITS = 40
_UP = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_DOWN = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_FLOOR, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_LARGEST_EXPONENT = 5000


def exp_up(value: Amount) -> Amount:
    """A rational not below exp(value); `math.inf` once exp is too large to be worth a number."""
    if value > _LARGEST_EXPONENT:
        return math.inf
    return Fraction(_UP.next_plus(_UP.exp(_decimal(Fraction(max(value, -_LARGEST_EXPONENT)), _UP))))  # proof: exp-up


def exp_down(value: Amount) -> Fraction:
    """A rational not above exp(value)."""
    if value < -_LARGEST_EXPONENT:
        return Fraction(0)
    return Fraction(_DOWN.next_minus(_DOWN.exp(_decimal(Fraction(min(value, _LARGEST_EXPONENT)), _DOWN))))


def log_up(value: Fraction) -> Fraction:
    """A rational not below ln(value), for value > 0."""
    logarithm = _UP.ln(_decimal(value, _UP))
    return Fraction(_UP.next_plus(logarithm)) if logarithm else Fraction(0)  # proof: log-of-one


def log_down(value: Fraction) -> Fraction:
    """A rational not above ln(value), for value > 0."""
    logarithm = _DOWN.ln(_decimal(value, _DOWN))
    return Fraction(_DOWN.next_minus(logarithm)) if logarithm else Fraction(0)


def sqrt_up(value: Fraction) -> Fraction:
    """A rational not below the square root, within 2**-64 of it relatively."""
    shift = max(0, 128 - (value.numerator.bit_length() - value.denominator.bit_length()))
    scaled = -((-value.numerator << 2 * shift) // value.denominator)
    root = math.isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << shift)


def _decimal(value: Fraction, context: decimal.Context) -> Decimal:
    """The fraction as a decimal, rounded towards the context's side."""
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
