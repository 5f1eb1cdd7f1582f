"""Which records the public table can speak for: a rule made from the public table alone, one record at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sabun.density.kernel import UNIT_BITS, Floats, GaussianKernel

__all__ = ["Support"]

_BLOCK = 1024
_QUANTILE = 0.005
_FARTHER = 1.05
"""A record may be this much farther from its nearest centre than all but the farthest 0.5 % of the public rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Support:
    """A record is off the public support when a cell lies outside the public range of its column, or no centre is near.

    Guarantee: whether a record is off depends on that record alone, to the last bit. A record that is not finite is off.

    Attributes:
        lowest: The smallest public value of each coordinate.
        highest: The largest one.
        nearest: Least whole-number kernel value that a record must have with one of the centres.
    """

    lowest: Floats
    highest: Floats
    nearest: int

    @classmethod
    def of(cls, points: Floats, kernel: GaussianKernel) -> Self:
        """The rule for public points; a point that is itself a centre is compared with the other centres."""
        unit = 1 << UNIT_BITS
        found: list[NDArray[Any]] = []
        for start in range(0, len(points), _BLOCK):
            whole = kernel.whole(points[start : start + _BLOCK])
            two = (
                np.sort(np.partition(whole, -2, axis=1)[:, -2:], axis=1) if kernel.size > 1 else np.pad(whole, ((0, 0), (1, 0)))
            )
            found.append(np.where(two[:, 1] >= unit, two[:, 0], two[:, 1]))
        value = int(np.quantile(np.concatenate(found), _QUANTILE, method="lower"))
        # The kernel is exp(-distance^2 ...): a distance 1.05 times as large raises its value to the power 1.05^2.
        nearest = math.floor(unit * (value / unit) ** (_FARTHER**2))
        return cls(lowest=points.min(axis=0), highest=points.max(axis=0), nearest=nearest)

    def off(self, points: Floats, whole: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of some points are off, given their whole-number kernel values."""
        inside = ((points >= self.lowest) & (points <= self.highest)).all(axis=1)
        near = whole.max(axis=1, initial=0) >= self.nearest
        result: NDArray[np.bool_] = ~(inside & near)
        return result
