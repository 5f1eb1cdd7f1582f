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
    then they add far less than that. sum (w_i - 1/N)^2 r_i^2 says how much, and the smaller of the two is v (White 1980; of
    values that have nothing to do with the weights both have the same mean).

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
        added = min(float(squares.mean() * apart.sum()), float(squares @ apart))
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
        """What many questions about the same rows share: the coordinates' mean, their normal equations, degrees of freedom."""
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
            found = middle, factor, max(len(points) - 1 - len(normal) + float((kept**2).sum()), 1.0)
            if len(self._factors) >= _KEPT:
                self._factors.clear()
            self._factors[key] = found
        return found
