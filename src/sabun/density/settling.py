"""Which of two means answers a question: the weighted one, or the plain one where the weights say nothing about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sabun.density.kernel import Floats

__all__ = ["Settling"]

_RIDGE = 1e-3
"""Share of the coordinates' whole variance that each is given beside its own: one that hardly varies explains nothing."""

_LEAST = 1e-200
"""Lets a single row, or equal ones, be asked about too."""

_NEAR = 3
"""Rows on either side, in the order of their weights, that a row is compared with."""

_SAME = 9
"""Digits, of the largest one, in which weights are told apart: equal rows have equal ones but for rounding."""

_KEPT = 8
"""Of the groups of rows asked about, those whose factors are at hand: a quantile asks many times about one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Settling:
    """Settles between the two means of any question.

    Weights know a row by its released coordinates. What those do not explain of a question, its residual r, has nothing to do
    with the weights, which move the mean of r by sum (w_i - 1/N) r_i: a number of mean zero and variance
    v = Var(r) (sum w_i^2 - 1/N), all of it error. A difference D between the two means so estimates what the plain one misses,
    squared, by D^2 - v; that is less than the v which the weights add where D^2 < 2 v.

    A question about a part of the rows, such as a range of a column, has its residual there, where all weights may be small:
    then they add far less than that: sum (w_i - 1/N)^2 r_i^2 (White 1980). And what few coordinates leave of a question need
    not be chance: all rows with weight may lie beyond a cut, where a line says otherwise. Only what differs between rows of one
    weight is; so that sum is also taken with half the squared difference of rows with neighbouring weights for r_i^2 (Rice
    1984). The least of the three is v: of values that have nothing to do with the weights all have the same mean.

    Attributes:
        share: w, one for each public row.
        points: The public rows in the released coordinates.
    """

    share: Floats
    points: Floats
    _factors: dict[bytes, tuple[Floats, Any, float]] = field(default_factory=dict, init=False, repr=False)

    def means(self, values: Floats, rows: NDArray[np.bool_]) -> tuple[float, float]:
        """What is answered, and the weighted mean, over the rows that count."""
        mass = float(self.share @ rows)
        weighted = float(self.share @ (values * rows)) / mass
        asked, share = values[rows], self.share[rows] / mass
        plain = float(asked.mean())
        if math.isclose(plain, weighted, rel_tol=1e-9, abs_tol=1e-12):  # even weights: sums in two orders
            return weighted, weighted
        squares, apart = self._unexplained(asked, rows), (share - 1 / len(asked)) ** 2
        order = _by_weight(share, asked)
        beside = _differences(asked[order])
        added = min(float(squares.mean() * apart.sum()), float(squares @ apart), float(beside @ apart[order]))
        return plain if (weighted - plain) ** 2 < 2 * added else weighted, weighted

    def _unexplained(self, asked: Floats, rows: NDArray[np.bool_]) -> Floats:
        """What a ridge regression on the coordinates leaves of some rows' values, squared; the mean is their variance."""
        middle, factor, freedom = self._factored(rows)
        points = self.points if rows.all() else self.points[rows]
        centred = asked - asked.mean()
        slope = linalg.cho_solve(factor, points.T @ centred)  # centred sums to zero: the points need not
        residual: Floats = centred - (points @ slope - float(middle @ slope))
        return np.asarray(residual**2 * (len(residual) / freedom))

    def _factored(self, rows: NDArray[np.bool_]) -> tuple[Floats, Any, float]:
        """What questions about the same rows share: the coordinates' mean, their normal equations, degrees of freedom."""
        key = np.packbits(rows).tobytes()
        found = self._factors.get(key)
        if found is None:
            middle = self.points[rows].mean(axis=0)
            points = self.points[rows] - middle
            normal = points.T @ points
            ridge = _RIDGE * float(np.trace(normal)) + _LEAST
            normal[np.diag_indices_from(normal)] += ridge
            factor = linalg.cho_factor(normal)
            # Unrelated values lose tr(2 H - H^2) squares to the fit, where H = X (X^T X + ridge)^-1 X^T; and one to their mean.
            kept = ridge * linalg.cho_solve(factor, np.eye(len(normal)))
            freedom = max(len(points) - 1 - len(normal) + float((kept**2).sum()), 1.0)
            found = middle, factor, freedom
            if len(self._factors) >= _KEPT:
                self._factors.clear()
            self._factors[key] = found
        return found


def _by_weight(share: Floats, values: Floats) -> NDArray[np.intp]:
    """Rows in the order of their weights; of those of one weight, neighbours are as far apart in their values as by chance.

    Whatever the order of the table: ranks of values, not places, are spread by multiples of the golden section, which fill the
    unit evenly.
    """
    digits = np.round(share / max(float(share.max()), _LEAST), _SAME)
    ranked = np.lexsort((values, digits))
    tied = digits[ranked]
    turned = (np.arange(len(tied)) - np.searchsorted(tied, tied)) * ((math.sqrt(5) - 1) / 2) % 1.0
    return ranked[np.lexsort((turned, tied))]


def _differences(ordered: Floats) -> Floats:
    """Half the mean squared difference of each value from those next to it."""
    total, count = np.zeros(len(ordered)), np.zeros(len(ordered))
    for step in range(1, min(_NEAR, len(ordered) - 1) + 1):
        squares = (ordered[step:] - ordered[:-step]) ** 2 / 2
        for part in (slice(step, None), slice(None, -step)):
            total[part] += squares
            count[part] += 1
    return total / np.maximum(count, 1)
