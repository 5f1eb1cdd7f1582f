"""A basis of the caller's own: one record in, a few bounded numbers out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.density.kernel import UNIT_BITS, Floats
from sabun.errors import ParameterError

__all__ = ["NO_MEMORY", "BoundedBasis"]

NO_MEMORY = "the basis function keeps no memory of the records it has seen"
"""What a guarantee must assume about a function it cannot look into."""

_SMALLEST, _LARGEST = 1e-100, 1e100
"""Sizes of bounds whose squares, and whose 2**-30 parts, are ordinary floats."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedBasis:
    """phi(x) for a user's function, clipped to public bounds.

    Guarantee: each record is handed to the function by itself, so that no record can change another one's numbers. Whatever the
    function does with a record (an exception, NaN, a wrong length), the result is within the bounds: what cannot be read is 0,
    or the bound next to 0.

    Attributes:
        function: Takes one record as a 1-D float array, returns `size` numbers.
        size: b.
        lower: Public lower bound of every number.
        upper: Public upper bound.
    """

    function: Callable[[Floats], Any]
    size: int
    lower: float
    upper: float

    @classmethod
    def of(cls, function: Callable[[Floats], Any], bounds: tuple[float, float], *, example: Floats) -> BoundedBasis:
        """Tries the function on a public record to learn how many numbers it gives."""
        checks.require(callable(function), "a function of one record", basis=function)
        lower, upper = _checked_bounds(bounds)
        try:
            numbers = np.asarray(function(example.copy()), dtype=np.float64)
        except Exception as problem:  # a public record: the user may see everything
            raise ParameterError(f"basis must accept one record (a 1-D array); it raised {problem!r}.") from problem
        checks.require(numbers.ndim == 1 and len(numbers) > 0, "a function that returns a flat list of numbers", basis=function)
        made = cls(function=function, size=len(numbers), lower=lower, upper=upper)
        checks.require(made.span >= 1, "a pair (lower, upper) further apart than 2**-30 of the larger", basis_bounds=bounds)
        return made

    @property
    def span(self) -> int:
        """How far apart two values of one whole number can be."""
        ends = self._rounded(np.array([self.lower, self.upper]))
        return int(ends[1] - ends[0])

    @property
    def unit(self) -> float:
        """What one unit of the whole numbers is worth."""
        return float(max(abs(self.lower), abs(self.upper)) / 2.0**UNIT_BITS)

    def values(self, points: Floats) -> Floats:
        """The clipped numbers of each record."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a warning of the function would speak of a private record
            return np.array([self._row(point) for point in points]).reshape(len(points), self.size)

    def sums(self, points: Floats) -> NDArray[Any]:
        """The sum over all records of the rounded numbers, as Python integers."""
        total: NDArray[Any] = self._rounded(self.values(points)).astype(object).sum(axis=0)
        return total + np.zeros(self.size, dtype=object)

    def _row(self, point: Floats) -> Floats:
        try:
            numbers = np.asarray(self.function(point.copy()), dtype=np.float64)
        except KeyboardInterrupt:  # comes from the person at the keyboard
            raise
        except BaseException:  # an exit, too, would speak of a private record
            numbers = np.zeros(self.size)
        if numbers.shape != (self.size,):
            numbers = np.zeros(self.size)
        return np.clip(np.where(np.isnan(numbers), 0.0, numbers), self.lower, self.upper)  # proof: clipped

    @np.errstate(all="ignore")  # an underflow, where the caller lets numpy raise, would speak of a private record
    def _rounded(self, values: Floats) -> NDArray[np.int64]:
        return np.rint(values / self.unit).astype(np.int64)


def _checked_bounds(bounds: object) -> tuple[float, float]:
    good = (
        isinstance(bounds, tuple | list) and len(bounds) == 2 and all(checks.is_number(b) and math.isfinite(b) for b in bounds)
    )
    checks.require(good and bounds[0] < bounds[1], "a pair (lower, upper) that holds for every number", basis_bounds=bounds)  # type: ignore[index]
    lower, upper = float(bounds[0]), float(bounds[1])  # type: ignore[index]
    fits = _SMALLEST <= max(abs(lower), abs(upper)) <= _LARGEST
    checks.require(fits, f"between {_SMALLEST:g} and {_LARGEST:g} in size", "Rescale the basis.", basis_bounds=bounds)
    return lower, upper
