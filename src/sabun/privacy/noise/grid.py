"""A public grid of floats: what is released is a whole number of steps of 2**exponent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import ParameterError

__all__ = ["Grid"]

_MANTISSA = np.uint64(1 << 53)


@dataclass(frozen=True)
class Grid:
    """The multiples of 2**exponent. The exponent is public; it must not depend on private data.

    Args:
        exponent: A whole number from -1022 to 1023.

    Example:
        >>> grid = Grid(-2)
        >>> grid.index(0.7), grid.value(3), grid.step
        (3, 0.75, Fraction(1, 4))
    """

    exponent: int

    def __post_init__(self) -> None:
        whole = isinstance(self.exponent, int | np.integer) and not isinstance(self.exponent, bool)
        checks.require(whole and -1022 <= self.exponent <= 1023, "a whole number from -1022 to 1023", exponent=self.exponent)
        object.__setattr__(self, "exponent", int(self.exponent))

    @property
    def step(self) -> Fraction:
        """The distance between two neighbours on the grid."""
        return Fraction(2) ** self.exponent

    @overload
    def index(self, value: float) -> int: ...
    @overload
    def index(self, value: NDArray[Any]) -> NDArray[np.int64]: ...
    def index(self, value: float | NDArray[Any]) -> int | NDArray[np.int64]:
        """The number of the nearest grid point, found without rounding error; a tie goes to the even number.

        Args:
            value: A finite real number, or an array of them (any shape).

        Returns:
            An int of any size, or an int64 array.

        Raises:
            ParameterError: If a value is not finite, or an array's index does not fit in 63 bits. The value itself is
                not shown.
        """
        if not isinstance(value, np.ndarray):
            if isinstance(value, Rational):  # of any library, in plain integers that cannot wrap around
                return round(Fraction(int(value.numerator), int(value.denominator)) / self.step)  # proof: plain-integers
            if not math.isfinite(value):
                raise ParameterError("value must be finite; got one that is not. Replace missing values first.")
            return round(Fraction(float(value) if isinstance(value, np.floating) else value) / self.step)
        if value.dtype.kind in "iu":
            whole = [round(Fraction(int(cell)) / self.step) for cell in value.ravel()]  # proof: whole-numbers
            if any(not -(1 << 63) < index < 1 << 63 for index in whole):
                raise _too_large()
            return np.array(whole, dtype=np.int64).reshape(value.shape)
        floats = value.astype(np.float64, casting="safe", copy=False)
        if not np.isfinite(floats).all():
            raise ParameterError("value must be finite; got one that is not. Replace missing values first.")
        with np.errstate(over="ignore", under="ignore"):
            steps = np.rint(np.ldexp(floats, -self.exponent))  # proof: nearest
        if not (np.abs(steps) < 2.0**63).all():  # proof: fits
            raise _too_large()
        return np.asarray(steps.astype(np.int64))

    @overload
    def value(self, index: int) -> float: ...
    @overload
    def value(self, index: NDArray[Any]) -> NDArray[np.float64]: ...
    def value(self, index: int | NDArray[Any]) -> float | NDArray[np.float64]:
        """The grid point of that number, as the float that equals it exactly.

        Args:
            index: A whole number, or an array of them (int64, or Python ints with dtype object).

        Raises:
            ParameterError: If no float equals the grid point. The index itself is not shown.
        """
        if not isinstance(index, np.ndarray):
            whole_number = isinstance(index, int | np.integer) and not isinstance(index, bool)
            checks.require(whole_number, "a whole number", index=type(index))
            return self._point(int(index))
        if index.dtype == object:
            return np.array([self._point(int(i)) for i in index.ravel()], dtype=np.float64).reshape(index.shape)
        whole = index.astype(np.int64, casting="safe", copy=False)
        with np.errstate(over="ignore", under="ignore"):
            points = np.ldexp(whole.astype(np.float64), self.exponent)
            back = np.ldexp(points, -self.exponent) == whole.astype(np.float64)
        if not (_representable(whole) & np.isfinite(points) & back).all():  # proof: representable
            raise _inexact()
        return np.asarray(points)

    def _point(self, index: int) -> float:
        try:
            point = math.ldexp(float(index), self.exponent)
        except OverflowError:
            raise _inexact() from None
        if Fraction(point) != index * self.step:
            raise _inexact()
        return point


def _representable(whole: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether a number has at most 53 significant binary digits."""
    magnitude = np.where(whole < 0, ~whole.view(np.uint64) + np.uint64(1), whole.view(np.uint64))
    lowest = magnitude & (~magnitude + np.uint64(1))
    return np.asarray(magnitude // np.maximum(lowest, np.uint64(1)) < _MANTISSA)


def _too_large() -> ParameterError:
    return ParameterError("value must be below 2**63 grid steps in size; got one that is not. Use a larger exponent.")


def _inexact() -> ParameterError:
    return ParameterError("index must name a grid point that is exactly a float; got one that is not. Use a larger exponent.")
