"""An interval that holds for every set of weights which agrees with the release: no smoothness is assumed.

Notation: psi_i public row i in the released coordinates, f_i the question there, v_i >= 0 how many of the private rows (as a
share of all) stand at it, m and q the released embedding and covered share, R the length that the noise stays within.

If c + b psi_i <= f_i for all i, then the covered mean is at least c - t for every t with b m + t q >= R sqrt(|b|^2 + a t^2),
a = 1, or 2 when the number of rows is noisy too. For sum v_i (f_i - c + t) >= sum v_i (b psi_i + t), which is (b, t) times the
true vector (sum v psi, sum v), and that differs from (b, t) (m, q) by at most R times that length. Every b gives a valid
bound, so a search that stops early only widens the interval.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from sabun.density.kernel import Floats

__all__ = ["worst_case"]

_SOFT = (0.3, 0.1, 0.03, 0.01)
_STEPS = 60


def worst_case(
    points: Floats, values: Floats, *, embedding: Floats, covered: float, radius: float, counts: bool
) -> tuple[float, float] | None:
    """The least and the largest covered mean of f that some weights on the public rows and some noise allow.

    Args:
        points: psi.
        values: f.
        embedding: m.
        covered: q.
        radius: R.
        counts: Whether the number of private rows is noisy too.

    Returns:
        The interval; None where even the covered share is lost in the noise.
    """
    extra = 2.0 if counts else 1.0
    if covered <= radius * math.sqrt(extra):
        return None
    size = float(values.std())
    if size == 0.0:
        return float(values[0]), float(values[0])
    centre = float(values.mean())
    ends = [_least(points, sign * (values - centre) / size, embedding, covered, radius, extra) for sign in (1.0, -1.0)]
    return centre + size * ends[0], centre - size * ends[1]


def _least(points: Floats, values: Floats, embedding: Floats, covered: float, radius: float, extra: float) -> float:
    # The exact minimum over the rows has kinks that stop a descent; a soft one is hardened step by step, each from the last.
    # Whatever slope comes out, `_bound` is exact for it: the search decides how wide the interval is, not whether it holds.
    slope = np.zeros(points.shape[1])
    best = float(values.min())
    for soft in _SOFT:
        found = optimize.minimize(
            _loss,
            slope,
            args=(points, values, embedding / covered, radius / covered, soft),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": _STEPS},
        )
        slope = np.nan_to_num(found.x)
        best = max(best, _bound(slope, points, values, embedding, covered, radius, extra))
    return best


def _loss(slope: Floats, points: Floats, values: Floats, mean: Floats, radius: float, soft: float) -> tuple[float, Floats]:
    """Minus the bound with a soft minimum over the rows, with its gradient."""
    gap = (points @ slope - values) / soft
    top = float(gap.max())
    grown = np.exp(gap - top)
    length = math.sqrt(float(slope @ slope) + 1e-12)
    value = soft * (top + math.log(float(grown.mean()))) - float(slope @ mean) + radius * length
    return value, points.T @ (grown / grown.sum()) - mean + radius / length * slope


def _bound(
    slope: Floats, points: Floats, values: Floats, embedding: Floats, covered: float, radius: float, extra: float
) -> float:
    """c - t with the smallest t that the slope allows."""
    height = float((values - points @ slope).min())
    along, squared = float(slope @ embedding), float(slope @ slope)
    # The larger root t of (b m + t q)^2 = R^2 (|b|^2 + a t^2): from there on b m + t q is large enough, and it is the first
    # such t. `lead` is above 0, for q > R sqrt(a).
    lead = covered**2 - extra * radius**2
    least = (radius * math.sqrt(max(0.0, extra * along**2 + lead * squared)) - covered * along) / lead
    return height - least
