"""Public marks on a number column: a clipped cell becomes the whole number of its nearest mark, so that sums are exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.records import NumberColumn

__all__ = ["Ruler", "number"]

_FINE = 20
_LARGEST = math.nextafter(math.inf, 0.0)


@final
@dataclass(frozen=True, kw_only=True)
class Ruler:
    """The multiples of 2**exponent from one end of a column's bounds to the other.

    Mark k, for k from 0 to `steps`, stands for (first + k) 2**exponent. Whole numbers fall on marks wherever the bounds are
    less than 2**19 apart.

    Args:
        exponent: Public, from the bounds alone.
        first: The mark nearest to the lower bound, as a multiple of 2**exponent.
        steps: How many marks further the upper bound is.
    """

    exponent: int
    first: int
    steps: int

    @classmethod
    def of(cls, column: NumberColumn, *, bits: int = _FINE, resolution: float | None = None) -> Self:
        """The marks of a column: between 2**(bits - 1) and 2**bits + 1 of them, fewer where `resolution` asks for less."""
        exponent = math.frexp(column.upper - column.lower)[1] - bits
        if resolution is not None:
            good = checks.is_number(resolution) and checks.is_finite(resolution)
            good = good and 0 < float(resolution) <= column.upper - column.lower
            checks.require(good, "above 0 and at most as large as the bounds are apart", resolution=resolution)
            exponent = max(exponent, math.frexp(resolution)[1] - 1)
        first, last = (int(np.rint(math.ldexp(end, -exponent))) for end in (column.lower, column.upper))
        return cls(exponent=exponent, first=first, steps=last - first)

    @property
    def step(self) -> Fraction:
        """The distance between two marks."""
        return Fraction(2) ** self.exponent

    @property
    def largest(self) -> int:
        """The most that one cell can add to a sum, in steps, whatever its sign."""
        return max(abs(self.first), abs(self.first + self.steps))

    @property
    def count(self) -> int:
        """How many marks there are."""
        return self.steps + 1

    @np.errstate(all="ignore")
    def index(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """The number of each cell's nearest mark, from 0 to `steps`; a map of one cell at a time."""
        # Exact: scaling by a power of two loses nothing, and both terms of the difference lie within a factor of two of each
        # other or below 2**53.
        marks = np.rint(np.ldexp(values, -self.exponent)) - float(self.first)
        return np.clip(marks, 0, self.steps).astype(np.int64)

    def at(self, mark: Fraction | int) -> Fraction:
        """What a mark, or a place between two, stands for."""
        return (self.first + mark) * self.step


def number(value: Fraction) -> float:
    """The nearest float, the largest there is for what lies beyond."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(_LARGEST, 1 if value > 0 else -1)
