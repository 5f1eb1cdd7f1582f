"""The Gaussian kernel of a record with public centres, as whole numbers that depend on that record alone.

Notation: a point y and a centre c are float vectors; their kernel value is exp(-64 |y - c|^2), where the factor 64 = 2**6 is
taken out by squaring six times. `GaussianKernel` scales its input so that this is exp(-|z - c|^2 / (2 bandwidth^2)).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sabun import checks

__all__ = ["UNIT_BITS", "VALUE_ERROR", "WHOLE_ERROR", "Floats", "GaussianKernel"]

Floats = NDArray[np.float64]

UNIT_BITS = 30
"""Kernel values are counted in units of 2**-30."""

WHOLE_ERROR = Fraction(1, 2) + Fraction(1, 1024)
"""No whole number is further than this from 2**30 times the true kernel value, for up to `_MOST_COLUMNS` columns."""

VALUE_ERROR = 2.0**-40
"""No float value is further than this from the true kernel value."""

_MOST_COLUMNS = 4096
_FAR = 0.45
"""Beyond 64 * 0.45 = 28.8 the kernel value is below 2**-41 and counts as zero."""

_BLOCK = 1024
_UNIT = float(1 << UNIT_BITS)


@dataclass(frozen=True, kw_only=True, eq=False)
class GaussianKernel:
    """exp(-|z - c|^2 / (2 bandwidth^2)) for each of b public centres c.

    Guarantee: what `whole` gives for a record depends on that record alone, to the last bit, wherever it stands in the table. A
    record that is not finite gives zeros.

    Attributes:
        centres: The centres divided by 8 sqrt(2) bandwidth, one column for each; shape (d, b).
        factor: What a point is multiplied with before it is compared.
    """

    centres: Floats
    factor: float

    @classmethod
    def of(cls, centres: Floats, *, bandwidth: float) -> Self:
        """The kernel with those centres (rows) and that bandwidth, which must be large enough to be told from zero."""
        checks.positive(bandwidth=bandwidth)
        checks.require(float(bandwidth) > 1e-300, "above 1e-300", bandwidth=bandwidth)
        factor = 1.0 / (8.0 * math.sqrt(2.0) * float(bandwidth))
        checks.require(centres.shape[1] <= _MOST_COLUMNS, f"at most {_MOST_COLUMNS}", columns=centres.shape[1])
        with np.errstate(over="ignore"):
            scaled = np.ascontiguousarray(centres.T * factor)
        checks.require(bool(np.isfinite(scaled).all()), "large enough for finite scaled centres", bandwidth=bandwidth)
        return cls(centres=scaled, factor=factor)

    @property
    def size(self) -> int:
        """How many centres there are."""
        return int(self.centres.shape[1])

    def whole(self, points: Floats) -> NDArray[np.int32]:
        """2**30 times each kernel value, rounded; shape (points, centres)."""
        result = np.empty((len(points), self.size), dtype=np.int32)
        _compiled()(self._scaled(points), self.centres, _UNIT, 0.5, result)
        return result

    def values(self, points: Floats) -> Floats:
        """Each kernel value as a float; shape (points, centres)."""
        result = np.empty((len(points), self.size))
        _compiled()(self._scaled(points), self.centres, 1.0, 0.0, result)
        return result

    def sums(self, points: Floats) -> NDArray[Any]:
        """The sum of `whole` over all points, as Python integers, so that no number of records can overflow it."""
        total = np.zeros(self.size, dtype=object)
        for start in range(0, len(points), _BLOCK):
            total += self.whole(points[start : start + _BLOCK]).sum(axis=0, dtype=np.int64)  # proof: whole-sums
        return total

    def gram(self) -> Floats:
        """The kernel values of the centres with each other, made exactly symmetric."""
        values = np.empty((self.size, self.size))
        _compiled()(np.ascontiguousarray(self.centres.T), self.centres, 1.0, 0.0, values)
        return np.maximum(values, values.T)

    def _scaled(self, points: Floats) -> Floats:
        with np.errstate(all="ignore"):  # a warning about an overflow would speak of a private record
            return np.ascontiguousarray(points * self.factor)


def _fill(points: Floats, centres: Floats, unit: float, half: float, result: NDArray[Any]) -> None:
    """Writes unit * kernel + half into `result`, which cuts off the fraction where it holds whole numbers."""
    columns, size = centres.shape
    squared = np.empty(size)
    for i in range(points.shape[0]):
        squared[:] = 0.0
        for j in range(columns):
            for k in range(size):
                difference = points[i, j] - centres[j, k]  # proof: direct-differences
                squared[k] += difference * difference
        for k in range(size):
            near = squared[k] < _FAR  # proof: not-finite-is-far
            s = squared[k] if near else 0.0
            # The Taylor polynomial of exp(-s), then its 64th power.
            p = 1 / 720 - s * (1 / 5040 - s * (1 / 40320))
            p = 1 - s * (1 - s * (1 / 2 - s * (1 / 6 - s * (1 / 24 - s * (1 / 120 - s * p)))))  # proof: taylor
            p *= p
            p *= p
            p *= p
            p *= p
            p *= p
            p *= p
            result[i, k] = p * unit + half if near else 0.0  # proof: nearest


@functools.cache
def _compiled() -> Callable[..., None]:
    """The loop as machine code, when it is first needed."""
    from sabun.compiled import compiled

    return compiled(_fill)
