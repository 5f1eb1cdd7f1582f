"""uLSIF without privacy: the yardstick, and the core of the paper's methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from sabun import checks
from sabun.density.features import chosen_rows, median_distance
from sabun.density.kernel import Floats
from sabun.density.loocv import loo_scores
from sabun.errors import DataError

__all__ = ["ULSIF"]

_GRID = tuple(float(x) for x in np.logspace(-3, 1, 9))
_BLOCK = 4096
_SMALLEST = 0.2
"""A bandwidth of the grid is at least this share of the public table's median distance: below it leave-one-out degenerates."""


class ULSIF(BaseEstimator):  # type: ignore[misc]
    """Least-squares importance fitting. NOT PRIVATE: everything it holds may tell about single records.

    Estimates w(x) = p_private(x) / p_public(x) as a nonnegative combination of Gaussian kernels, with bandwidth and penalty
    chosen by exact leave-one-out cross-validation (Kanamori, Hido, Sugiyama 2009). `fit` takes its tables by the same names as
    `DensityRatio`, so that one can stand in for the other; the private table is the numerator.

    Args:
        sigma: Bandwidth in the data's own units, a list of candidates, or "cv" for a grid of nine from 0.001 to 10 (never below
            a fifth of the public table's median distance).
        lam: Penalty, a list of candidates, or "cv" for nine from 0.001 to 10.
        n_centers: How many kernels, at rows chosen by a public rule.
        centers: "numerator" (private rows, as in the literature), "denominator" (public rows), or an array of centres.
        loo: "exact" scores the clipped solution, "unclipped" is faster but another score, None takes the first candidates.
        normalize: Whether the weights are scaled to mean one over the public rows.

    Attributes:
        alpha_: Coefficients of the kernels, >= 0.
        centers_: Their centres.
        sigma_: The bandwidth used.
        lam_: The penalty used.
        scores_: Leave-one-out scores, one row for each sigma, one column for each lam; None without a search.
        weights_: The ratio at the public rows.

    Example:
        >>> from sabun.datasets import density_paper
        >>> tables = density_paper(random_state=0)
        >>> fit = ULSIF().fit(private=tables.private, public=tables.public)
        >>> bool(fit.predict([[2.0]])[0] > fit.predict([[0.0]])[0])
        True
    """

    def __init__(
        self,
        *,
        sigma: float | Sequence[float] | str = "cv",
        lam: float | Sequence[float] | str = "cv",
        n_centers: int = 100,
        centers: str | Any = "numerator",
        loo: str | None = "exact",
        normalize: bool = False,
    ) -> None:
        self.sigma = sigma
        self.lam = lam
        self.n_centers = n_centers
        self.centers = centers
        self.loo = loo
        self.normalize = normalize
        self._check()

    def _check(self) -> None:
        checks.whole(minimum=1, n_centers=self.n_centers)
        checks.boolean(normalize=self.normalize)
        if self.loo is not None:
            checks.one_of(("exact", "unclipped"), loo=self.loo)
        if isinstance(self.centers, str):
            checks.one_of(("numerator", "denominator"), centers=self.centers)
        for name in ("sigma", "lam"):
            _candidates(getattr(self, name), name, _GRID)

    def fit(self, *, private: Any, public: Any) -> Self:
        """Fits the ratio of the private table's density to the public one's.

        Args:
            private: Rows of the numerator: a 2-D array (or 1-D for one column).
            public: Rows of the denominator.

        Raises:
            DataError: A table is no finite array, or the two have different columns.
        """
        self._check()
        top, bottom = _array(private, "private"), _array(public, "public")
        if top.shape[1] != bottom.shape[1]:
            raise DataError(f"both tables must have the same columns; got {top.shape[1]} and {bottom.shape[1]}.")
        self.centers_ = self._centres(top, bottom)
        sigmas, lams = self._grids(bottom)
        self.scores_: Floats | None = None
        if self.loo is not None and len(sigmas) * len(lams) > 1:
            self.scores_ = np.array([self._row(top, bottom, sigma, lams) for sigma in sigmas])
            best = np.unravel_index(int(np.argmin(self.scores_)), self.scores_.shape)
            sigmas, lams = [sigmas[best[0]]], [lams[best[1]]]
        self.sigma_, self.lam_ = float(sigmas[0]), float(lams[0])
        self._solve(top, bottom)
        return self

    def predict(self, X: Any) -> Floats:
        """The ratio at any points."""
        points = _array(X, "X", least=0)
        blocks = [self._kernel(points[at : at + _BLOCK], self.sigma_) @ self.alpha_ for at in range(0, len(points), _BLOCK)]
        ratio: Floats = np.concatenate([np.empty(0), *blocks]) * self._scale
        return ratio

    def _centres(self, top: Floats, bottom: Floats) -> Floats:
        if isinstance(self.centers, str):
            rows = top if self.centers == "numerator" else bottom
            chosen: Floats = rows[chosen_rows(len(rows), self.n_centers)]
            return chosen
        return _array(self.centers, "centers", least=1)

    def _grids(self, bottom: Floats) -> tuple[list[float], list[float]]:
        sigmas, lams = _candidates(self.sigma, "sigma", _GRID), _candidates(self.lam, "lam", _GRID)
        if self.sigma == "cv":
            floor = _SMALLEST * median_distance(bottom)
            sigmas = sorted({max(sigma, floor) for sigma in sigmas})
        return sigmas, lams

    def _row(self, top: Floats, bottom: Floats, sigma: float, lams: list[float]) -> Floats:
        return loo_scores(self._kernel(bottom, sigma), self._kernel(top, sigma), lams, clip=self.loo == "exact")

    def _solve(self, top: Floats, bottom: Floats) -> None:
        values = self._kernel(bottom, self.sigma_)
        h = np.zeros(len(self.centers_))
        for at in range(0, len(top), _BLOCK):
            h += self._kernel(top[at : at + _BLOCK], self.sigma_).sum(axis=0)
        gram = values.T @ values / len(bottom) + self.lam_ * np.eye(len(h))
        self.alpha_: Floats = np.maximum(0.0, np.linalg.solve(gram, h / len(top)))  # Kanamori 2009, eq. 13
        raw = values @ self.alpha_
        total = float(raw.mean())
        self._scale = 1.0 / total if self.normalize and total > 0 else 1.0
        self.weights_: Floats = raw * self._scale

    def _kernel(self, points: Floats, sigma: float) -> Floats:
        """Kernel values by matrix products: quick, and precise enough where no guarantee hangs on them."""
        middle = self.centers_.mean(axis=0)
        a, c = points - middle, self.centers_ - middle
        squared = a @ c.T
        squared *= -2.0
        squared += (a * a).sum(axis=1)[:, None]
        squared += (c * c).sum(axis=1)[None, :]
        np.maximum(squared, 0.0, out=squared)
        squared *= -1.0 / (2.0 * sigma * sigma)
        return np.asarray(np.exp(squared, out=squared), dtype=np.float64)


def _candidates(given: Any, name: str, grid: Sequence[float]) -> list[float]:
    if isinstance(given, str):
        checks.one_of(("cv",), **{name: given})
        return list(grid)
    listed = list(given) if isinstance(given, list | tuple | np.ndarray) else [given]
    checks.require(len(listed) > 0, "a number, a list of numbers or 'cv'", **{name: given})
    for value in listed:
        checks.positive(**{name: value})
    return [float(value) for value in listed]


def _array(table: Any, name: str, *, least: int = 2) -> Floats:
    try:
        array = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be an array of numbers; it cannot be read as one.") from None
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.ndim != 2 or len(array) < least or array.shape[1] < 1:
        raise DataError(f"{name} must be a 2-D array with at least {least} rows; it has another shape.")
    if not np.isfinite(array).all():
        raise DataError(f"{name} must hold finite numbers only; at least one is not.")
    return np.ascontiguousarray(array)
