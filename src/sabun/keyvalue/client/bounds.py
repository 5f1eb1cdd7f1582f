"""Exponentials and logarithms with a known side, by the standard library alone.

The same arithmetic as `sabun.privacy.certified`, kept here a second time because this folder imports nothing outside itself; a
test compares the two.
"""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from fractions import Fraction

__all__ = ["decimal_text", "exact", "exp_down", "log_up"]

_DIGITS = 60
_LONGEST, _LARGEST_EXPONENT, _MOST_BITS = 4000, 1000, 13_000
"""No public number needs more; a text such as 1e3000000 would keep a device busy for seconds."""
_EXPONENT = re.compile(r"[eE]([-+]?\d+)\s*\Z")
_UP = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_DOWN = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_FLOOR, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def exact(value: Fraction | Decimal | float | int | str) -> Fraction:
    """Reads a finite number as the decimal or ratio it is written as.

    Raises:
        ValueError: It is no finite number, or one of absurd length.

    Example:
        >>> exact(0.1), exact("1/3")
        (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(value, bool):
        raise ValueError("a truth value is no number")
    if isinstance(value, float):
        return Fraction(repr(float(value)))
    if isinstance(value, str):
        _refuse_absurd(value)
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError("a number of absurd size")
    try:
        number = Fraction(value)
    except (TypeError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(str(error)) from None
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise ValueError("a number of absurd length")
    return number


def _refuse_absurd(text: str) -> None:
    plain = len(text) <= _LONGEST and text.isascii() and "_" not in text
    exponent = _EXPONENT.search(text) if plain else None
    if not plain or (exponent is not None and abs(int(exponent[1])) > _LARGEST_EXPONENT):
        raise ValueError("a number of absurd length")


def decimal_text(value: Fraction) -> str:
    """A rational as a plain decimal when it is one of at most 40 places, otherwise as a ratio; `exact` reads it back.

    Example:
        >>> decimal_text(Fraction(1, 10)), decimal_text(Fraction(1, 3)), decimal_text(Fraction(-2))
        ('0.1', '1/3', '-2')
    """
    places = 0
    while places <= 40 and (value * 10**places).denominator != 1:
        places += 1
    if places > 40:
        return str(value)
    digits = str(abs(value * 10**places)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return sign + (digits if places == 0 else f"{digits[:-places]}.{digits[-places:]}")


def exp_down(value: Fraction) -> Fraction:
    """A rational not above exp(value)."""
    return Fraction(_DOWN.next_minus(_DOWN.exp(_DOWN.divide(Decimal(value.numerator), Decimal(value.denominator)))))


def log_up(value: Fraction) -> Fraction:
    """A rational not below ln(value), for value > 0."""
    return Fraction(_UP.next_plus(_UP.ln(_UP.divide(Decimal(value.numerator), Decimal(value.denominator)))))
