"""The public map from a record to a row of whole numbers, the same for every record.

Notation: a feature v becomes (v - centre) / half in [-1, 1]; a constant 1 joins for the intercept; the row is divided by the
radius R, shortened to length 1 where it is longer, multiplied by r 2**12 and rounded to whole numbers. r is a little below
1, so
that the rounded row is never longer than 2**12. The target becomes a whole number of [-2**12, 2**12].

Shortening the row alone makes slopes steeper. Where `weighted` is set, the target is multiplied by w = min(1, R / |row|) as
well: w depends on the features alone, so w y = (w x)'beta + w e, and a linear truth stays the truth for every radius.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun.records import NumberColumn, Schema

__all__ = ["BITS", "FINE", "UNIT", "Design", "Floats"]

Floats: TypeAlias = NDArray[np.float64]

BITS = 12
UNIT = 2**BITS
"""Whole numbers stand for multiples of 1/UNIT."""

FINE = 2.0**20
"""The finer grid on which lengths of rows are found."""


@final
@dataclass(frozen=True, kw_only=True)
class Design:
    """How a study turns records into rows; public, row by row, without rounding that depends on other rows.

    Args:
        features: The columns with their bounds.
        target: The target with its bounds.
        intercept: Whether a constant feature joins; without it nothing is centred.
        radius: Length in scaled units that rows are shortened to; None for one that no row exceeds.
        weighted: Whether the target of a shortened row is made smaller with it.
    """

    features: Schema
    target: NumberColumn
    intercept: bool
    radius: float | None
    weighted: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features; beside an intercept the first label of a category is the one others are compared with."""
        kept = zip(self.features.features, self._kept, strict=True)
        return tuple(name for name, keep in kept if keep)

    @cached_property
    def width(self) -> int:
        """Length of a row, the constant included."""
        return len(self.names) + self.intercept

    @cached_property
    def shrink(self) -> float:
        """r: what a row is multiplied by so that rounding cannot lengthen it past 1."""
        return float(1 - math.sqrt(self.width) / (2 * UNIT) - 2.0**-30)  # proof: shrink

    @property
    def scale(self) -> float:
        """R: what a scaled row is divided by."""
        return math.sqrt(self.width) if self.radius is None else self.radius

    @cached_property
    def centres(self) -> tuple[Floats, Floats]:
        """Centre and half-width of each feature in its own unit (log(1 + unit) for log1p columns; 0 and 1 for labels)."""
        pairs = [pair for column in self.features.columns for pair in _ranges(column, len(column.features), self.intercept)]
        return np.array([centre for centre, _ in pairs])[self._kept], np.array([half for _, half in pairs])[self._kept]

    @cached_property
    def target_range(self) -> tuple[float, float]:
        """Centre and half-width of the target."""
        return _ranges(self.target, 1, self.intercept)[0]

    @property
    def is_finite(self) -> bool:
        """Whether the map from features to rows has finite numbers only, so that no cell can become NaN on the way."""
        with np.errstate(all="ignore"):
            return all(bool(np.isfinite(part).all()) for part in self._affine)

    @property
    def takes_arrays(self) -> bool:
        """Whether a plain array of numbers can be mapped without being encoded first."""
        return all(isinstance(column, NumberColumn) and not column.log1p for column in self.features.columns)

    def feature_values(self, encoded: Floats) -> Floats:
        """The encoded matrix with labels spread over 0/1 columns, in the features' own units."""
        if self.takes_arrays:
            return encoded
        values = np.array(encoded, dtype=np.float64)
        for index, column in enumerate(self.features.columns):
            if isinstance(column, NumberColumn) and column.log1p:
                values[:, index] = np.log1p(values[:, index])
        return self.features.one_hot(values)[:, self._kept]

    def whole_rows(self, values: Floats, out: Floats) -> tuple[Floats | float, Floats | float]:
        """Writes the whole-number features of records into `out`; returns the column of the constant feature, and the weights.

        Guarantee: a row is a function of that record alone, and its squared length is at most UNIT**2, see
        `design.proof.md`. NaN
        stays in its row.

        Args:
            values: Feature values, see `feature_values`.
            out: A contiguous array of the same shape.

        Returns:
            The constant (0 without one); what targets are multiplied by, at most 1 (1 unless `weighted`).
        """
        if self.radius is None:
            self._mapped(values, out)
            return float(np.rint(UNIT * self.shrink / self.scale)) * self.intercept, 1.0
        longest = np.maximum(np.sqrt(self.fine_squares(values, out)), FINE * self.scale)
        factor = (UNIT * self.shrink) / longest  # proof: into-ball
        out *= factor[:, None]
        np.rint(out, out=out)
        weights = (FINE * self.scale) / longest if self.weighted else 1.0  # proof: weight
        return np.asarray(np.rint(FINE * factor * self.intercept)), weights

    def fine_squares(self, values: Floats, out: Floats) -> Floats:
        """Writes the features on a grid of 1/FINE into `out`; returns the squared lengths of rows there, constant included.

        Only where there is a radius. Whole numbers below 2**53 add up exactly in any order, so a row's length does not depend
        on where the row stands.
        """
        self._mapped(values, out)
        return np.asarray(np.einsum("ij,ij->i", out, out) + FINE**2 * self.intercept)  # proof: exact-length

    def _mapped(self, values: Floats, out: Floats) -> None:
        slope, shift, low, high = self._affine
        with np.errstate(all="ignore"):  # a warning about an overflow would speak of a private cell
            np.multiply(values, slope, out=out)
            out += shift
        np.clip(out, low, high, out=out)
        np.rint(out, out=out)

    def whole_targets(self, target: Floats, weights: Floats | float = 1.0) -> Floats:
        """The targets as whole numbers of [-UNIT, UNIT], each times its weight of [0, 1]."""
        centre, half = self.target_range
        inside = np.clip(target, self.target.lower, self.target.upper)
        return np.asarray(np.rint(np.clip((inside - centre) / half, -1.0, 1.0) * UNIT * weights))  # proof: target

    def encoded_target(self, target: object) -> Floats:
        """A column of targets in their own unit, inside the bounds."""
        if hasattr(target, "to_numpy") and getattr(target, "name", "") is None:
            target = target.to_numpy()  # a series without a name
        return self._goal.encode(target)[:, 0]

    @cached_property
    def original_units(self) -> tuple[Floats, Floats]:
        """Matrix T and vector t with (coefficients, intercept) = T beta + t for beta in row units."""
        centres, halves = self.centres
        middle, half = self.target_range
        count = len(halves)
        matrix = np.zeros((count + 1, self.width))
        matrix[np.arange(count), np.arange(count)] = half / (self.scale * halves)
        matrix[count, :count] = -half * centres / (self.scale * halves)
        if self.intercept:
            matrix[count, count] = half / self.scale
        return matrix, np.append(np.zeros(count), middle)

    @cached_property
    def _goal(self) -> Schema:
        return Schema(columns=(self.target,))

    @cached_property
    def _kept(self) -> NDArray[np.bool_]:
        first = [[place > 0 or not self.intercept for place in range(len(c.features))] for c in self.features.columns]
        labels = [isinstance(column, NumberColumn) for column in self.features.columns]
        return np.array([keep or number for row, number in zip(first, labels, strict=True) for keep in row], dtype=bool)

    @cached_property
    def _affine(self) -> tuple[Floats | float, Floats | float, Floats | float, Floats | float]:
        """Slope, shift, limits of the first map: straight to 1/UNIT where no row is shortened, else to a finer grid."""
        centres, halves = self.centres
        top = UNIT * self.shrink / self.scale if self.radius is None else FINE
        slope = top / halves
        shift = -centres * slope
        ends = [_ends(column) for column in self.features.columns for _ in column.features]
        low = np.array([end[0] for end in ends])[self._kept] * slope + shift
        high = np.array([end[1] for end in ends])[self._kept] * slope + shift
        if max(np.abs(low + top).max(), np.abs(high - top).max()) <= 1e-12 * top:
            return _one(slope), _one(shift), -top, top
        return _one(slope), _one(shift), np.maximum(low, -top), np.minimum(high, top)


def _one(numbers: Floats) -> Floats | float:
    """One number for all columns where it is the same for all: whole tables take it several times as fast."""
    return float(numbers[0]) if (numbers == numbers[0]).all() else numbers


def _ends(column: object) -> tuple[float, float]:
    if not isinstance(column, NumberColumn):
        return 0.0, 1.0
    low, high = column.lower, column.upper
    return (math.log1p(low), math.log1p(high)) if column.log1p else (low, high)


def _ranges(column: object, count: int, centred: bool) -> list[tuple[float, float]]:
    if not isinstance(column, NumberColumn):
        return [(0.0, 1.0)] * count
    low, high = _ends(column)
    if not centred:
        return [(0.0, max(abs(low), abs(high)))]
    return [(low + (high - low) / 2, (high - low) / 2)]
