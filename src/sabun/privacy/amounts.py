"""Exact amounts of privacy: what a caller types and what a guarantee stores.

A float is read as the decimal it prints as (0.1 is one tenth), so ten charges of 0.1 add up to exactly 1. A number that came
out of a floating-point computation is rounded *up* with `rounded_up`, never down.
"""

from __future__ import annotations

import decimal
import math
import sys
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import TypeAlias

from sabun.checks import is_number, require

__all__ = [
    "Amount",
    "AmountLike",
    "compact",
    "exact",
    "exact_positive",
    "float_above",
    "float_below",
    "is_short",
    "plain",
    "ratio",
    "rounded_up",
]

Amount: TypeAlias = Fraction | float
"""An exact rational, or `math.inf` for "no bound at all". Never a finite float."""

AmountLike: TypeAlias = Fraction | Decimal | float | int | str

_LONGEST = 10**4000
"""Numerators and denominators of stored amounts stay below this: Python prints and reads no more than 4300 digits."""

_LARGEST_EXPONENT = 4000
_TOTAL_BITS = 2048
_LONGEST_TEXT = 10_000


def exact(value: AmountLike, *, name: str = "amount") -> Amount:
    """Reads a number as the exact rational it is written as; infinity stays `math.inf`.

    Example:
        >>> exact(0.1), exact("1/3"), exact("1e-6")
        (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    """
    if isinstance(value, str):
        return _from_text(value, name)
    require(is_number(value) or isinstance(value, Decimal), "a number", **{name: value})
    if isinstance(value, Decimal):
        return _from_text(str(value).replace("Infinity", "inf"), name)
    if isinstance(value, Rational):  # fractions and whole numbers of any library, in plain integers that cannot wrap around
        return ratio(value)
    as_float = float(value)
    require(not math.isnan(as_float), "a number", **{name: value})
    if math.isinf(as_float) or as_float == value:
        return as_float if math.isinf(as_float) else Fraction(repr(as_float))
    return ratio(value)  # a wider float: the nearest 64-bit one may lie on the wrong side


def _from_text(value: str, name: str) -> Amount:
    if value.strip() == "inf":
        return math.inf
    try:
        # Reading as a decimal first keeps "1e999999999" from becoming a number that fills the memory.
        sane = len(value) <= _LONGEST_TEXT and ("/" in value or abs(Decimal(value).adjusted()) <= _LARGEST_EXPONENT)
        read = Fraction(value) if sane else None
    except (ValueError, ArithmeticError):
        read = None
    require(read is not None and is_short(read), "a number such as 0.5, 1/3 or 1e-6", **{name: value[:40]})
    assert read is not None
    return read


def is_short(value: Amount) -> bool:
    """Whether an amount can be written down and read again."""
    return isinstance(value, float) or max(abs(value.numerator), value.denominator) < _LONGEST


def exact_positive(value: AmountLike, *, name: str) -> Fraction:
    """Reads a finite amount above zero: what an epsilon, a sensitivity or a rho must be.

    Example:
        >>> exact_positive("0.1", name="epsilon")
        Fraction(1, 10)
    """
    read = exact(value, name=name)
    require(isinstance(read, Fraction) and read.numerator > 0, "finite and > 0", **{name: value})
    assert isinstance(read, Fraction)
    return read


def rounded_up(value: float, *, digits: int = 12) -> Amount:
    """The smallest rational with `digits` significant decimal digits that is not below a computed float.

    Example:
        >>> rounded_up(1/3) >= Fraction(1, 3), rounded_up(0.0)
        (True, Fraction(0, 1))
    """
    require(not math.isnan(value) and value >= 0, "a number >= 0", value=value)
    if math.isinf(value):
        return math.inf
    if value == 0:
        return Fraction(0)
    unit = Fraction(10) ** (math.floor(math.log10(value)) + 1 - digits)
    return math.ceil(ratio(value) / unit) * unit


def compact(total: Fraction) -> Fraction:
    """A total that stays writable: exact until its denominator passes 2048 bits, then rounded up."""
    if total.denominator.bit_length() <= _TOTAL_BITS:
        return total
    return Fraction(math.ceil(total * 2**_TOTAL_BITS), 2**_TOTAL_BITS)


def ratio(value: float | Rational) -> Fraction:
    """The very number that a finite float (of any width, of any library) or a rational holds."""
    if type(value) is Fraction and type(value.numerator) is int is type(value.denominator):
        return value
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    above, below = value.as_integer_ratio()
    return Fraction(int(above), int(below))


def float_above(value: Fraction) -> float:
    """The smallest float not below a rational, for code that can only take floats."""
    nearest = float(value)
    above, below = nearest.as_integer_ratio()
    return nearest if above * value.denominator >= value.numerator * below else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """The largest finite float not above a rational, for code that can only take floats."""
    try:
        nearest = float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -math.inf
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def plain(value: Amount) -> str:
    """An amount as a person reads it: a short decimal when it is one, otherwise the next larger one of six digits.

    Example:
        >>> plain(Fraction(1, 2)), plain(Fraction(1, 3)), plain(Fraction(1, 10**6))
        ('0.5', '0.333334', '1e-06')
    """
    if isinstance(value, float):
        return "infinity" if math.isinf(value) else format(value, "g")
    if value == 0:
        return "0"
    up = decimal.Context(prec=6, rounding=decimal.ROUND_CEILING, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    shown = up.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(up)
    return format(float(shown), "g") if -300 < shown.adjusted() < 300 else str(shown)
