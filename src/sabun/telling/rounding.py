"""Rounding from the error: as many digits of a number as mean something, which is two digits of how far it may be off."""

from __future__ import annotations

import datetime
import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from sabun.telling.words import number

__all__ = ["between", "day", "days_between", "give_or_take", "rounded"]

_DIGITS = 2
_LARGEST = 1e15
_EPOCH = datetime.date(1970, 1, 1)


def rounded(value: float, low: float, high: float) -> str:
    """An estimate with the digits that its interval leaves; a few digits where there is no interval.

    Example:
        >>> rounded(39.5488, 38.5037, 41.1658), rounded(1234567.8, 1_200_000, 1_300_000), rounded(0.25, 0.25, 0.25)
        ('39.5', '1,235,000', '0.25')
    """
    place = _place((high - low) / 2, value, low, high)
    return number(value) if place is None else _written(value, place, ROUND_HALF_EVEN)


def between(low: float, high: float) -> tuple[str, str]:
    """The ends of an interval, rounded outwards: what is told holds at least as often as what was found.

    Example:
        >>> between(38.5037, 41.1658), between(0.1993, 0.3161), between(0.0, 0.0)
        (('38.5', '41.2'), ('0.199', '0.317'), ('0', '0'))
    """
    place = _place((high - low) / 2, low, high)
    if place is None:
        return _outwards(low, ROUND_FLOOR), _outwards(high, ROUND_CEILING)
    return _written(low, place, ROUND_FLOOR), _written(high, place, ROUND_CEILING)


def give_or_take(error: float) -> str:
    """Two digits of an error, never below it.

    Example:
        >>> give_or_take(4.9601), give_or_take(0.0312), give_or_take(12345.0), give_or_take(3.0)
        ('5.0', '0.032', '13,000', '3')
    """
    place = _place(error, error)
    return number(error) if place is None else _written(error, place, ROUND_CEILING)


def day(value: float) -> str:
    """The date of a number of days since 1970-01-01, the nearest one; the number itself beyond the calendar.

    Example:
        >>> day(20175.4), day(-1.0), day(1e9)
        ('2025-03-28', '1969-12-31', '1,000,000,000')
    """
    try:
        return (_EPOCH + datetime.timedelta(days=round(value))).isoformat()
    except (OverflowError, ValueError):
        return number(value)


def days_between(low: float, high: float) -> tuple[str, str]:
    """The same as dates: the last one before the interval's lower end, the first one after its upper end.

    Example:
        >>> days_between(20101.5, 20256.5)
        ('2025-01-13', '2025-06-18')
    """
    return day(low if math.isnan(low) else math.floor(low)), day(high if math.isnan(high) else math.ceil(high))


def _place(error: float, *values: float) -> int | None:
    """The power of ten of an error's second digit (whole numbers stay whole); None where there is no error to round from."""
    known = all(math.isfinite(value) and abs(value) < _LARGEST for value in (error, *values))
    if not known or error <= 0 or error < 1e-12 * max(map(abs, values)):
        return None
    place = math.floor(math.log10(error)) - (_DIGITS - 1)
    return max(place, 0) if all(value == round(value) for value in values) else place


def _outwards(value: float, way: str) -> str:
    """A few digits of one end where the other says nothing about them: none that lies inside."""
    if not math.isfinite(value) or value == round(value):
        return number(value)
    return _written(value, min(0, math.floor(math.log10(abs(value))) - 3), way)


def _written(value: float, place: int, way: str) -> str:
    # From the shortest text of the float: 0.3 stands for three tenths, and must not be rounded up because of its 17th digit.
    written = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(place), rounding=way)
    written = written or abs(written)  # no sign on a zero
    if not written and place < -7:
        return "0"
    if place >= -7 or abs(written) >= 1:
        return f"{int(written):,}" if place >= 0 else f"{written:,f}"
    return f"{float(written):.{max(0, math.floor(math.log10(abs(float(written)))) - place)}e}"
