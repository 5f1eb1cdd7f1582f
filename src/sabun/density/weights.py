"""From a noisy mean embedding to nonnegative weights of mean one: post-processing, public inputs only.

Notation: P (N x k) public points in the feature space, m the noisy embedding, w the weights. For a penalty lam the weights
minimise |P^T w / N - m|^2 / 2 + lam mean (w - 1)^2 / 2 over w >= 0 with mean w = 1; their dual form is
w_i = max(0, 1 + nu + P_i a), where (a, nu) minimises mean w_i^2 / 2 - a m - nu + lam |a|^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sabun.density.kernel import Floats

__all__ = ["SIGNAL", "Calibration", "best_rank", "calibrate", "tuned"]

SIGNAL = 0.05
"""How far, per unit of public variance, a private mean is expected to lie from the public one (squared)."""

_STEPS = 60
_DOUBLINGS = 11
_ENOUGH = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """Weights with the dual variables that make them.

    Attributes:
        weights: One for each public row, >= 0, mean 1.
        slope: a.
        intercept: 1 + nu (for points from which the public mean was not subtracted).
        penalty: lam.
        freedom: The degrees of freedom the embedding was fitted with.
    """

    weights: Floats
    slope: Floats
    intercept: float
    penalty: float
    freedom: float

    def at(self, points: Floats) -> Floats:
        """The weight of any point in the feature space."""
        return np.maximum(0.0, self.intercept + points @ self.slope)


def best_rank(variances: Floats, noise: Floats) -> int:
    """The public rank with the least expected error.

    Args:
        variances: Variances of the public points along their principal axes, falling.
        noise: The variance of the noise in each coordinate when 1, 2, … coordinates are released.
    """
    signal = SIGNAL * np.maximum(variances, 0.0)
    dropped = signal.sum() - np.cumsum(signal)
    with np.errstate(invalid="ignore"):
        shrunk = [np.nan_to_num(signal[: k + 1] * v / (signal[: k + 1] + v)).sum() for k, v in enumerate(noise)]
    return int(np.argmin(np.array(shrunk) + dropped)) + 1


def calibrate(points: Floats, target: Floats, *, penalty: float, start: tuple[Floats, float] | None = None) -> Calibration:
    """The weights for one penalty, by Newton's method on the dual."""
    centre = points.mean(axis=0)
    return _calibrate(points - centre, target - centre, centre, penalty, start)


def tuned(points: Floats, target: Floats, *, noise: float, tau2: float) -> Calibration:
    """The weights for the penalty with the least estimated risk among lam0, 2 lam0, 4 lam0, …

    Args:
        points: P.
        target: m.
        noise: The variance of each coordinate of m.
        tau2: The variance of a query's part that the feature space does not hold.
    """
    centre = points.mean(axis=0)
    centred, aim = points - centre, target - centre
    penalty = tau2 / len(points) + noise / SIGNAL
    best: tuple[float, Calibration] | None = None
    start: tuple[Floats, float] | None = None
    for _ in range(_DOUBLINGS):
        found = _calibrate(centred, aim, centre, penalty, start)
        residual = centred.T @ found.weights / len(points) - aim
        risk = float(residual @ residual) + noise * (2 * found.freedom - len(aim))  # Stein's estimate
        risk += tau2 * float(found.weights @ found.weights) / len(points) ** 2
        if best is None or risk < best[0]:
            best = risk, found
        start = found.slope, found.intercept + float(centre @ found.slope) - 1.0
        penalty *= 2.0
    assert best is not None
    return best[1]


def _calibrate(
    points: Floats, target: Floats, centre: Floats, penalty: float, start: tuple[Floats, float] | None
) -> Calibration:
    """Damped Newton steps on centred points, which leave the problem as it is because mean w = 1."""
    rows, rank = points.shape
    slope, shift = (np.zeros(rank), 0.0) if start is None else start
    value, weights = _dual(points, target, penalty, slope, shift)
    for _ in range(_STEPS):
        gradient = np.append(points.T @ weights / rows - target + penalty * slope, weights.mean() - 1.0)
        if float(np.abs(gradient).max()) < _ENOUGH:
            break
        step = np.linalg.solve(_curvature(points[weights > 0], rows, penalty), gradient)
        size = 1.0
        for _ in range(40):
            trial = _dual(points, target, penalty, slope - size * step[:-1], shift - size * float(step[-1]))
            if trial[0] <= value - 1e-4 * size * float(gradient @ step) + 1e-16 * abs(value):
                break
            size /= 2
        slope, shift = slope - size * step[:-1], shift - size * float(step[-1])
        value, weights = trial
    freedom = _freedom(points[weights > 0], rows, penalty)
    total = float(weights.mean())
    weights = weights / total if total > 0 else np.ones(rows)
    intercept = 1.0 + shift - float(centre @ slope)
    return Calibration(weights=weights, slope=slope, intercept=intercept, penalty=penalty, freedom=freedom)


def _dual(points: Floats, target: Floats, penalty: float, slope: Floats, shift: float) -> tuple[float, Floats]:
    weights: Floats = np.maximum(0.0, 1.0 + shift + points @ slope)
    value = float(weights @ weights) / (2 * len(points)) - float(slope @ target) - shift + penalty / 2 * float(slope @ slope)
    return value, weights


def _curvature(active: Floats, rows: int, penalty: float) -> Floats:
    rank = active.shape[1]
    result = np.zeros((rank + 1, rank + 1))
    result[:rank, :rank] = active.T @ active / rows + penalty * np.eye(rank)
    result[:rank, rank] = result[rank, :rank] = active.sum(axis=0) / rows
    result[rank, rank] = len(active) / rows + 1e-12
    return result


def _freedom(active: Floats, rows: int, penalty: float) -> float:
    """tr S (S + lam)^-1 with S the centred second moment of the rows with weight."""
    if not len(active):
        return 0.0
    centred = active - active.mean(axis=0)
    moments = np.linalg.eigvalsh(centred.T @ centred / rows).clip(0.0)
    return float((moments / (moments + penalty)).sum())
