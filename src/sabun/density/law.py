"""How far the noise of a release can reach: quantiles of its law, for intervals."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from scipy import optimize, special, stats

__all__ = ["NoiseLaw"]

_PIECES = 2000


@dataclass(frozen=True, kw_only=True)
class NoiseLaw:
    """The law of the noise in a released vector.

    Notation: pure noise has density proportional to exp(-|z| / s) in `dimension` coordinates. It is sqrt(V) times a standard
    normal vector with V ~ Gamma((dimension + 1) / 2, 2 s^2); so each coordinate has variance (dimension + 1) s^2, and the
    radius is Gamma(dimension, s).

    Attributes:
        sd: Standard deviation of each coordinate.
        dimension: The number of coordinates.
        pure: Whether it is K-norm noise; Gaussian noise otherwise.
    """

    sd: float
    dimension: int
    pure: bool

    def reach(self, level: float) -> float:
        """What one coordinate (or one direction) stays within, at that level."""
        if not self.pure:
            return self.sd * NormalDist().inv_cdf((1 + level) / 2)
        quantile: float = _marginal_quantile(self.dimension, level)
        return self.sd * quantile

    def radius(self, level: float) -> float:
        """What the length of the whole noise vector stays within, at that level."""
        if not self.pure:
            return self.sd * float(np.sqrt(stats.chi2.ppf(level, self.dimension)))
        scale = self.sd / math.sqrt(self.dimension + 1)
        return scale * float(stats.gamma.ppf(level, self.dimension))


@functools.lru_cache(maxsize=256)
def _marginal_quantile(dimension: int, level: float) -> float:
    """Of the size of one coordinate of pure noise, in units of its standard deviation."""
    shape = (dimension + 1) / 2
    spread = np.sqrt(stats.gamma.ppf((np.arange(_PIECES) + 0.5) / _PIECES, shape) / shape)

    def missed(reach: float) -> float:
        return float(2 * special.ndtr(-reach / spread).mean()) - (1 - level)

    return float(optimize.brentq(missed, 0.0, 1000.0))
