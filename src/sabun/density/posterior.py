"""The error of weighted means under the assumption that the logarithm of the ratio is smooth, in closed form.

Notation as in `smooth.py`, with w the share of each public row and T = sum w f the answer. To first order b has the posterior
covariance C = I - J^T (J J^T + I)^-1 J, where J = S^(-1/2) Cov_w(psi, F).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import linalg

from sabun.density.kernel import Floats
from sabun.density.smooth import Evidence

__all__ = ["Posterior"]

_MOST_LEVERAGE = 0.9
_FARTHEST = 50.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """The error of weighted means under the assumption that the logarithm of the ratio is smooth.

    Attributes:
        share: w.
        centred: Smooth features minus their weighted mean.
        pull: J.
        root: Factor of J J^T + I.
        design: The released coordinates with a constant, on which questions are regressed.
        moments: Factor of that regression's normal equations; the noise is its ridge.
        row_weights: What the square of a row's residual adds to the variance of an answer: private and public sampling.
        leverage: Of each row in that regression.
        residual: S^(-1/2) (m - P^T w).
    """

    share: Floats
    centred: Floats
    pull: Floats
    root: Any
    design: Floats
    moments: Any
    row_weights: Floats
    leverage: Floats
    residual: Floats

    @classmethod
    def of(cls, points: Floats, features: Floats, share: Floats, evidence: Evidence) -> Self:
        """Prepares for any number of questions; about as much work as one step of the fit."""
        centred = features - share @ features
        factor = linalg.cholesky(evidence.covariance(points, share), lower=True)
        pull = linalg.solve_triangular(factor, (points * share[:, None]).T @ centred, lower=True)
        # C would be q x q; by Woodbury only k x k has to be factored, and k released coordinates are few.
        inner = pull @ pull.T
        inner[np.diag_indices_from(inner)] += 1.0
        # Two samples err at once: private rows, n of them drawn with shares w, and public rows, each of which carries w_i.
        # What the released coordinates explain of a question is known from the release; only its residual counts.
        row_weights = share / evidence.rows + share**2
        design = np.hstack([np.ones((len(points), 1)), points - share @ points])
        normal = (design * row_weights[:, None]).T @ design
        ridge = np.full(len(normal), evidence.noise)
        ridge[0] = 0.0
        normal[np.diag_indices_from(normal)] += ridge + 1e-12 * np.trace(normal)  # so that rounding cannot make it singular
        moments = linalg.cho_factor(normal)
        leverage = row_weights * (design * linalg.cho_solve(moments, design.T).T).sum(axis=1)
        return cls(
            share=share,
            centred=centred,
            pull=pull,
            root=linalg.cho_factor(inner),
            design=design,
            moments=moments,
            row_weights=row_weights,
            leverage=np.minimum(leverage, _MOST_LEVERAGE),
            residual=linalg.solve_triangular(factor, evidence.mean - points.T @ share, lower=True),
        )

    def variance(self, directions: Floats) -> Floats:
        """The posterior variance of F b in each of some directions (rows)."""
        pulled = self.pull @ directions.T
        found: Floats = (directions**2).sum(axis=1) - (pulled * linalg.cho_solve(self.root, pulled)).sum(axis=0)
        return found.clip(0.0)

    @property
    def freedom(self) -> float:
        """How many of the released coordinates the weights follow: tr J J^T (J J^T + I)^-1."""
        rank = len(self.pull)
        return rank - float(np.trace(linalg.cho_solve(self.root, np.eye(rank))))

    @property
    def spread(self) -> float:
        """How far the log-ratio is open: the root of its mean posterior variance over the weighted rows."""
        return math.sqrt(float(self.share @ self.variance(self.centred)))

    def tilted(self, values: Floats, steps: float) -> tuple[float, float]:
        """The answer when the log-ratio is moved that many standard deviations along the direction that moves it most."""
        answer = float(self.share @ values)
        tilt = (self.share * (values - answer)) @ self.centred
        # Along C tilt the answer moves most for a log-ratio of given plausibility. The move is followed through the softmax,
        # not along its tangent: shares stay positive, and the two ends need not be equally far.
        along = tilt - self.pull.T @ linalg.cho_solve(self.root, self.pull @ tilt)
        length = math.sqrt(max(float(tilt @ along), 0.0))
        if length == 0.0:
            return answer, answer
        move = self.centred @ along * (steps / length)
        ends = []
        for sign in (-1.0, 1.0):
            grown = self.share * np.exp(np.clip(sign * move, -_FARTHEST, _FARTHEST))
            ends.append(float(grown @ values) / float(grown.sum()))
        return ends[0], ends[1]

    def errors(self, values: Floats) -> tuple[float, float, float]:
        """Standard errors of an answer: of the log-ratio, of sampling beside the released coordinates, of the weighted rows."""
        answer = float(self.share @ values)
        tilt = (self.share * (values - answer)) @ self.centred
        slope = linalg.cho_solve(self.moments, self.design.T @ (self.row_weights * values))
        # A row pulls the regression towards itself, so its residual is too small; as in jackknife standard errors (HC3).
        residual = (values - self.design @ slope) / (1 - self.leverage)
        plain = float(self.share @ (values - answer) ** 2) * float(self.share @ self.share)
        return math.sqrt(float(self.variance(tilt[None, :])[0])), math.sqrt(float(self.row_weights @ residual**2)), plain**0.5
