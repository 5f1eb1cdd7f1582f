"""How many coordinates of the embedding to release, and which weights to make of them."""

from __future__ import annotations

import numpy as np

from sabun.density.kernel import Floats
from sabun.density.posterior import Posterior
from sabun.density.smooth import Evidence, Fit, fitted

__all__ = ["FLATTEST", "MOST_OPEN", "best_rank", "chosen"]

MOST_OPEN = 1.25
"""Above this root mean posterior variance of the log-ratio (a factor of 3.5) no interval is given."""

_FLATTER = (0.25, 0.0625, 0.015625, 0.00390625)
"""Shares of the prior's variance that are tried where the release says little."""
FLATTEST = _FLATTER[-1]

_SIGNAL = 0.05
"""How far, per unit of public variance, a private mean is expected to lie from the public one (squared)."""


def best_rank(variances: Floats, noise: Floats) -> int:
    """The public rank with the least expected error.

    Args:
        variances: Variances of the public points along their principal axes, falling.
        noise: The variance of the noise in each coordinate when 1, 2, … coordinates are released.
    """
    signal = _SIGNAL * np.maximum(variances, 0.0)
    dropped = signal.sum() - np.cumsum(signal)
    with np.errstate(invalid="ignore"):
        shrunk = [np.nan_to_num(signal[: k + 1] * v / (signal[: k + 1] + v)).sum() for k, v in enumerate(noise)]
    return int(np.argmin(np.array(shrunk) + dropped)) + 1


def chosen(points: Floats, features: Floats, evidence: Evidence) -> tuple[Fit, float]:
    """Smooth weights, and how far the log-ratio is open.

    Where it is open too far for intervals, noise alone would make the weights uneven; there the flattest prior is taken that
    Stein's estimate of the risk prefers.
    """
    best = fitted(points, features, evidence)
    posterior = Posterior.of(points, features, best.share, evidence)
    opened = posterior.spread
    if opened <= MOST_OPEN:
        return best, opened
    least = _risk(best, posterior)
    for share in _FLATTER:
        found = fitted(points, features * share**0.5, evidence)
        risk = _risk(found, Posterior.of(points, features * share**0.5, found.share, evidence))
        if risk < least:
            least, best = risk, Fit(share=found.share, slope=found.slope * share**0.5, converged=found.converged)
    return best, opened


def _risk(fit: Fit, posterior: Posterior) -> float:
    """Stein's estimate, in units of the error of each coordinate and up to a constant."""
    return float(posterior.residual @ posterior.residual) + 2 * posterior.freedom
