"""Section 4 of the density-ratio paper: how the noise in alpha depends on the penalty, the rows, epsilon and the basis.

The paper states O(b / (epsilon lambda n)) for the parametric model and method C, without an experiment. Here method B, which
is the parametric model with kernels at public rows, is run with its real noise, one quantity changed at a time.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.datasets import density_paper
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.features import chosen_rows
from sabun.density.kernel import GaussianKernel
from sabun.density.paper import fitted
from sabun.density.reproduction.trials import BLOCK, GRID, true_ratio
from sabun.density.settings import UlsifBSettings
from sabun.telling.reproduction import Figure, Table, drawn

__all__ = ["SWEEPS", "Point", "noise_figure", "noise_table", "run_sweeps", "slope"]

_BANDWIDTH = 0.5
_OWN_ROWS = 2000
_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Setting:
    penalty: float = 0.1
    rows: int = 2000
    epsilon: float = 1.0
    centres: int = 40

    @property
    def order(self) -> float:
        """b / (epsilon lambda n)."""
        return self.centres / (self.epsilon * self.penalty * self.rows)


SWEEPS: dict[str, tuple[str, tuple[float, ...], int]] = {
    "λ": ("penalty", (0.01, 0.1, 1.0, 10.0), -1),
    "n": ("rows", (500, 2000, 8000), -1),
    "ε": ("epsilon", (0.1, 1.0, 10.0), -1),
    "b": ("centres", (10, 20, 40), 1),
}
"""What is changed, over which values, and the exponent the paper gives it."""


@dataclass(frozen=True, kw_only=True)
class Point:
    """One setting: medians over the data sets.

    Attributes:
        swept: What was changed.
        value: To what.
        order: b / (epsilon lambda n).
        error: Typical (root mean square) error of a coordinate of alpha, before it is clipped at zero.
        largest_error: The largest of them.
        integrated: Relative integrated squared error of the released ratio, scaled to mean one.
        plain: The same without noise.
        largest: The largest coordinate of alpha without noise.
        uneven: Standard deviation over mean of alpha without noise: 0 when all basis functions count alike.
    """

    swept: str
    value: float
    order: float
    error: float
    largest_error: float
    integrated: float
    plain: float
    largest: float
    uneven: float


def run_sweeps(trials: int) -> list[Point]:
    """Every sweep, each point on so many data sets."""
    found: list[Point] = []
    for swept, (name, values, _) in SWEEPS.items():
        for value in values:
            setting = _Setting(**{name: type(getattr(_Setting(), name))(value)})
            own = 1000 * len(found)  # every point has noise of its own
            each = [_measured(setting, seed, coin=own + seed) for seed in range(trials)]
            middle = [statistics.median(column) for column in zip(*each, strict=True)]
            names = ("error", "largest_error", "integrated", "plain", "largest", "uneven")
            found.append(Point(swept=swept, value=value, order=setting.order, **dict(zip(names, middle, strict=True))))
    return found


def _measured(setting: _Setting, seed: int, *, coin: int) -> tuple[float, ...]:
    import warnings

    public, private = _data(seed, setting.rows)
    method = UlsifBSettings(n_centers=setting.centres, bandwidth=_BANDWIDTH, regularization=setting.penalty)
    ratio = DensityRatio(epsilon=setting.epsilon, method=method, standardize=False, random_state=coin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        ratio.fit(private=private, public=public)
    # What the paper analyses is the solution (18), before clipping (19): both follow from h, noisy or not.
    kernel = GaussianKernel.of(public[chosen_rows(len(public), setting.centres)].reshape(-1, 1), bandwidth=_BANDWIDTH)
    values = kernel.values(public.reshape(-1, 1))
    exact = kernel.values(private.reshape(-1, 1)).mean(axis=0)
    system = values.T @ values / len(values) + setting.penalty * np.eye(setting.centres)
    error = np.linalg.solve(system, np.asarray(ratio.release_["h"]) - exact)
    alpha = fitted(exact, values, penalty=setting.penalty)
    plain = kernel.values(BLOCK) @ alpha / (values @ alpha).mean()
    return (
        float(np.sqrt((error**2).mean())),
        float(np.abs(error).max()),
        _relative(ratio.predict(BLOCK)),
        _relative(plain),
        float(alpha.max()),
        float(alpha.std() / alpha.mean()),
    )


@cache
def _data(seed: int, rows: int) -> tuple[_Floats, _Floats]:
    public, first = density_paper(seed)
    more = [density_paper(seed + 1000 * place).private for place in range(1, math.ceil(rows / _OWN_ROWS))]
    return public, np.concatenate([first, *more])[:rows]


def _relative(curve: _Floats) -> float:
    density, true = np.exp(-0.5 * (GRID - 1.0) ** 2), true_ratio(GRID)
    return float((curve - true) ** 2 @ density) / float(true**2 @ density)


def slope(points: list[Point], swept: str) -> float:
    """The exponent of the error in what was changed, by least squares on logarithms."""
    own = [point for point in points if point.swept == swept]
    return float(np.polyfit(np.log([point.value for point in own]), np.log([point.error for point in own]), 1)[0])


def noise_table(points: list[Point]) -> Table:
    """Every point, with the measured exponents beside the paper's in the note."""
    rows = [
        (p.swept, p.value, p.order, p.error, p.error / p.order, p.largest_error, p.integrated, p.plain, p.largest, p.uneven)
        for p in points
    ]
    columns = (
        *("changed", "its value", "b/(ελn)", "error in a coordinate of α", "the same over b/(ελn)", "largest error in α"),
        *("relative ISE, scaled", "the same without noise", "largest α without noise", "unevenness of α without noise"),
    )
    exponents = ", ".join(f"{slope(points, swept):.2f} in {swept} (paper: {SWEEPS[swept][2]})" for swept in SWEEPS)
    usual = _Setting()
    note = (
        f"Method B, kernels of width {_BANDWIDTH:g}; otherwise λ = {usual.penalty:g}, n = {usual.rows}, ε = {usual.epsilon:g}, "
        f"b = {usual.centres}. Medians over the data sets. Errors are root mean squares over the coordinates. Measured "
        f"exponents: {exponents}."
    )
    return Table(name="section-4", title="Section 4: noise in α", columns=columns, rows=tuple(rows), note=note)


def noise_figure(points: list[Point]) -> Figure:
    """The error in alpha over b / (epsilon lambda n): a straight line of slope one if the paper is right."""

    def draw(axes: Any) -> None:
        for swept in SWEEPS:
            own = sorted((point.order, point.error) for point in points if point.swept == swept)
            axes.loglog([order for order, _ in own], [error for _, error in own], marker="o", label=f"{swept} changed")
        orders = [point.order for point in points]
        ends = np.array([min(orders), max(orders)])
        middle = statistics.median(point.error / point.order for point in points)
        axes.loglog(ends, middle * ends, color="0.6", linestyle="--", label="proportional")
        axes.set(xlabel="b / (ε λ n)", ylabel="error in a coordinate of α")
        axes.legend(frameon=False)

    note = "Ours: section 4 of the paper has no figure. Points on the dashed line follow the stated order exactly."
    return drawn(name="section-4", title="Section 4: noise in α, one quantity changed at a time", draw=draw, note=note)
