"""Weights whose logarithm is a smooth function of the record: post-processing of the released embedding.

Notation: P (N x k) public rows in the released feature space, m the noisy mean embedding of the covered private rows with error
covariance S, F (N x q) smooth features of the public rows. A log-ratio F b with b ~ N(0, I) is a Gaussian process; the weights
w = softmax(F b) are those of the b that maximises the posterior, i.e. minimises |S^(-1/2) (m - P^T w)|^2 / 2 + |b|^2 / 2.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from sabun.density.features import chosen_rows, median_distance
from sabun.density.kernel import Floats

__all__ = ["Evidence", "Fit", "Smoothness", "fitted"]

_LANDMARKS = 400
_MOST_FEATURES = 150
_CUT = 1e-7
_BLOCK = 4096
_STEPS = 60
_HALVINGS = 12
_ENOUGH = 1e-3
_ROUGH = 0.14
"""Variance allowed in each coordinate because the public table is a sample, times (1 / effective rows)^1.5. Chosen so that
fifty public rows are not fitted too closely; with a thousand it hardly matters."""

_STEP, _SPIKE = 0.25, 0.5
"""Prior variances of steps in single columns (a rule decides who is in a table) and of values that many rows share (no hours,
no income). Without them 95 % intervals of the shares beside a step held 20 %, beside a spike 0 %; they cost 5 % of length.
Waves have .09: intervals hold up to +-.8 in the logarithm (`benchmarks/density_waves.py`). With 1 those of shares would be a
quarter longer, and not all hold at +-1.2."""

_MANY = 0.05

_EVEN = 0.5
"""The `tau2` for which the prior is taken as it stands."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Smoothness:
    """What a log-ratio is expected to look like: linear and quadratic trends, smooth waves; in single columns also waves, steps
    and values that stand apart.

    Made from public points alone. The kernel of the Gaussian process is a1 z.z' + a2 (z.z')^2 + .25 rbf(width) +
    .09 rbf(width / 2) + min(1, 4 / D) sum_j (.09 rbf_j(.5) + .25 exp(-|z_j - z_j'|) + .5 [z_j = z_j' shared by 5 %]), where z
    is the standardised point, bent to stay within 3 standard deviations, and D the number of coordinates.

    Attributes:
        centre: Subtracted from a point.
        scale: Multiplied with afterwards.
        landmarks: Bent public points, L x D.
        width: Of the smooth waves.
        waves: Coordinates with waves of their own: those with more than two public values.
        mix: From kernel values with the landmarks to features, L x q.
        mean: Mean of the features over the public rows.
    """

    centre: Floats
    scale: Floats
    landmarks: Floats
    width: float
    waves: tuple[int, ...]
    mix: Floats
    mean: Floats

    @classmethod
    def of(cls, points: Floats, *, tau2: float) -> Self:
        """Nyström features from at most 400 public rows; larger `tau2` makes the log-ratio flatter."""
        with np.errstate(all="ignore"):
            centre, spread = points.mean(axis=0), points.std(axis=0)
        scale = np.where(spread > 1e-12 * (1.0 + np.abs(centre)), 1.0 / np.maximum(spread, 1e-300), 0.0)
        bent = _bent(points, centre, scale)
        landmarks = bent[chosen_rows(len(bent), _LANDMARKS)]
        waves = tuple(j for j in range(bent.shape[1]) if (np.unique(landmarks[:, j]).size) > 2)
        raw = cls(
            centre=centre,
            scale=scale,
            landmarks=landmarks,
            width=median_distance(bent),
            waves=waves,
            mix=np.eye(len(landmarks)),
            mean=np.zeros(len(landmarks)),
        )
        gram = raw._kernel(landmarks)
        # Centred, for a constant in the log-ratio does not change the weights and would only take a feature away.
        gram = gram - gram.mean(axis=0)
        gram = gram - gram.mean(axis=1)[:, None]
        size = len(gram)
        low = max(0, size - _MOST_FEATURES)
        values, vectors = linalg.eigh((gram + gram.T) / 2, subset_by_index=(low, size - 1))
        kept = values > _CUT * max(values[-1], 1e-300)
        mix = vectors[:, kept] / np.sqrt(values[kept]) * (_EVEN / tau2) ** 0.5
        made = cls(
            centre=centre, scale=scale, landmarks=landmarks, width=raw.width, waves=waves, mix=mix, mean=np.zeros(mix.shape[1])
        )
        mean = made.features(points).mean(axis=0)
        return cls(centre=centre, scale=scale, landmarks=landmarks, width=raw.width, waves=waves, mix=mix, mean=mean)

    def features(self, points: Floats) -> Floats:
        """F for any points."""
        return self._combined(points, self.mix) - self.mean

    def tilt(self, slope: Floats) -> tuple[Floats, float]:
        """F b as coefficients of the landmarks, which do not depend on how the features are turned, and a constant."""
        return self.mix @ slope, -float(self.mean @ slope)

    def log_ratio(self, points: Floats, tilt: Floats) -> Floats:
        """The function with those coefficients, without the constant."""
        return self._combined(points, tilt[:, None])[:, 0]

    def _combined(self, points: Floats, matrix: Floats) -> Floats:
        result = np.empty((len(points), matrix.shape[1]))
        for start in range(0, len(points), _BLOCK):
            bent = _bent(points[start : start + _BLOCK], self.centre, self.scale)
            result[start : start + _BLOCK] = self._kernel(bent) @ matrix
        return result

    def _kernel(self, bent: Floats) -> Floats:
        columns = self.landmarks.shape[1]
        inner = bent @ self.landmarks.T
        squares = (bent**2).sum(axis=1)[:, None] + (self.landmarks**2).sum(axis=1)[None, :] - 2 * inner
        # rbf(width / 2) is rbf(width) to the fourth power: one exp and some squarings give both kernels.
        wide = np.exp(squares.clip(0.0) / (-8 * self.width**2))  # the fourth root of rbf(width)
        wide *= wide
        wide *= wide
        found: Floats = min(1.0, 6 / columns) * inner + 0.245 * min(1.0, 6 / columns) ** 2 * inner**2 + 0.25 * wide
        wide *= wide
        wide *= wide
        found += 0.09 * wide
        single = min(1.0, 4 / columns)
        for j, often in zip(self.waves, self._often, strict=True):
            apart = np.abs(bent[:, j, None] - self.landmarks[None, :, j])
            found += single * (0.09 * np.exp(-2 * apart**2) + _STEP * np.exp(-apart) + _SPIKE * ((apart == 0) & often))
        return found

    @functools.cached_property
    def _often(self) -> list[NDArray[np.bool_]]:
        """For each coordinate with waves: which landmarks have a value that many share."""
        found = []
        for j in self.waves:
            _, place, counts = np.unique(self.landmarks[:, j], return_inverse=True, return_counts=True)
            found.append(counts[place] >= _MANY * len(self.landmarks))
        return found


def _bent(points: Floats, centre: Floats, scale: Floats) -> Floats:
    with np.errstate(all="ignore"):
        bent: Floats = 3 * np.tanh((points - centre) * scale / 3)
    return np.nan_to_num(bent)


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """The released embedding of the covered private rows with the size of its error.

    Attributes:
        mean: m, the mean embedding of the covered rows.
        noise: Variance of the noise in each coordinate of m.
        ratio: How much the noise in the number of covered rows adds along m, in units of `noise`.
        rows: The number of covered private rows.
    """

    mean: Floats
    noise: float
    ratio: float
    rows: float

    def covariance(self, points: Floats, share: Floats) -> Floats:
        """S: noise, what a sample of that many rows differs from its population, and a little for the public sample."""
        centred = points - share @ points
        found = (centred * share[:, None]).T @ centred / self.rows
        found += self.noise * self.ratio * np.outer(self.mean, self.mean)
        found[np.diag_indices_from(found)] += self.noise + _ROUGH * float(share @ share) ** 1.5
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """Smooth weights.

    Attributes:
        share: One for each public row, >= 0, sum 1.
        slope: b.
        converged: Whether the last step was small.
    """

    share: Floats
    slope: Floats
    converged: bool


def fitted(points: Floats, features: Floats, evidence: Evidence) -> Fit:
    """Gauss-Newton steps with a halving line search; the sampling part of S is refreshed on the way."""
    slope = np.zeros(features.shape[1])
    converged = False
    # S depends on the weights, which depend on S. Fixed within a run the aim is one function, which each step must improve;
    # the second run starts at the answer of the first, with the S that belongs to it.
    for _ in range(2):
        slope, converged = _ascend(points, features, evidence, slope)
    return Fit(share=_softmax(features @ slope), slope=slope, converged=converged)


def _ascend(points: Floats, features: Floats, evidence: Evidence, slope: Floats) -> tuple[Floats, bool]:
    share = _softmax(features @ slope)
    root = linalg.cholesky(evidence.covariance(points, share), lower=True)
    white = linalg.solve_triangular(root, points.T, lower=True).T
    aim = linalg.solve_triangular(root, evidence.mean, lower=True)
    residual = aim - white.T @ share
    value = float(residual @ residual + slope @ slope)
    for _ in range(_STEPS):
        # The slope of the softmax is the covariance under the shares: d(P^T w) = Cov_w(P, F) db. So the step is a ridge
        # regression of the residual on J, solved in k instead of q dimensions.
        pull = (white * share[:, None]).T @ features - np.outer(white.T @ share, share @ features)
        inner = pull @ pull.T
        inner[np.diag_indices_from(inner)] += 1.0
        step = pull.T @ linalg.cho_solve(linalg.cho_factor(inner), residual + pull @ slope) - slope
        gain = float(np.sqrt(np.mean((features @ step) ** 2)))
        size = 1.0
        for _ in range(_HALVINGS):
            trial = slope + size * step
            share_t = _softmax(features @ trial)
            residual_t = aim - white.T @ share_t
            value_t = float(residual_t @ residual_t + trial @ trial)
            if value_t < value:
                break
            size /= 2
        else:
            return slope, gain < 10 * _ENOUGH  # no shorter step helps: at the bottom, or stuck above it
        slope, share, residual, value = trial, share_t, residual_t, value_t
        if gain * size < _ENOUGH:
            return slope, size > 0.4  # a step that had to be cut short is small for another reason
    return slope, False


def _softmax(values: Floats) -> Floats:
    grown = np.exp(values - values.max())
    result: Floats = grown / grown.sum()
    return result
