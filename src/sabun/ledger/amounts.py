"""Exact amounts as text in rows and receipts."""

from __future__ import annotations

import functools
from fractions import Fraction

__all__ = ["read_amount", "write_amount"]

_LONGEST_NUMBER = 4000
"""Decimal digits; Python refuses to read integers of more than 4300, and no honest amount comes near."""


def write_amount(amount: Fraction) -> str:
    """An amount as "numerator/denominator"."""
    return f"{amount.numerator}/{amount.denominator}"


@functools.lru_cache(maxsize=4096)
def read_amount(text: str) -> Fraction:
    """Reads what `write_amount` wrote; anything else is a ValueError."""
    above, _, below = text.partition("/")
    if max(len(above), len(below)) > _LONGEST_NUMBER or not (_digits(above) and _digits(below)) or not int(below):
        raise ValueError("not an exact amount")
    return Fraction(int(above), int(below))


def _digits(text: str) -> bool:
    return text.isascii() and text.isdigit()
