"""Linear models with pure epsilon: perturb the objective, solve it nearly, perturb the solution; proved in objective.proof.md.

Notation: z = (row, 1) / R with |z| <= 1; J(w) = sum_i log(1 + exp(-s_i w.z_i)) + (lambda / 2) |w|^2 + b.w, s_i = +1 or -1;
b has density exp(-epsilon_b |b| / 2). The exact minimiser is (epsilon_b + ln(1 + 1/(4 lambda)))-DP; the found point is within
gamma / lambda of it, and noise for twice that distance pays for the difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.errors import InternalError
from sabun.learning.network import Floats, Network
from sabun.learning.stream import NOISE, Stream
from sabun.learning.training import KEYSTREAM, Data, Problem, Progress, State, priced, promise
from sabun.privacy import Guarantee, plain
from sabun.privacy.certified import log_up, sqrt_up
from sabun.privacy.noise import Coin, Grid, spherical_laplace

__all__ = ["LEAST_REGULARISATION", "MOST_TILT", "ObjectivePerturbation"]

_OBJECTIVE_GRID = Grid(-20)
_OUTPUT_GRID = Grid(-24)
_SLACK = Fraction(1, 10**4)
_FARTHEST = 2.0**38
"""Solutions beyond are cut to it, which moves no two of them apart: the output's grid holds nothing larger."""
LEAST_REGULARISATION = Fraction(1, 1000)
"""Below it the minimum may lie so far out that floats no longer tell how near one is."""
MOST_TILT = 10**10
"""The largest noise in the objective whose rounding stays far below `_SLACK`."""
_OUTPUT_SHARE = Fraction(1, 20)
_MOST_STEPS = 200


@final
@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about; two classes, replace-one neighbours.
        network: A network without hidden layers, in which the result is handed over.
        regularisation: lambda above; None picks 4 at epsilon 1, more for smaller epsilon.
    """

    problem: Problem
    network: Network
    regularisation: Fraction

    @property
    def dimension(self) -> int:
        """How many numbers the noise has: weights with the bias."""
        return self.problem.features.width + 1

    @property
    def output_epsilon(self) -> Fraction:
        """What the noise on the solution costs."""
        return _OUTPUT_SHARE * self.problem.epsilon

    @property
    def objective_epsilon(self) -> Fraction:
        """What is left for the noise in the objective once curvature and output are paid."""
        return self.problem.epsilon - self.output_epsilon - log_up(1 + Fraction(1, 4) / self.regularisation)  # proof: curvature

    @property
    def objective_scale(self) -> Fraction:
        """Scale of the objective's noise in its grid: the gradient of one record moves by at most 2."""
        return 2 / (self.objective_epsilon * _OBJECTIVE_GRID.step)  # proof: gradient-moves-two

    @property
    def gamma(self) -> Fraction:
        """How far from zero the gradient of the ideal objective may be at the found point."""
        return _SLACK + sqrt_up(Fraction(self.dimension)) * _OBJECTIVE_GRID.step / 2  # proof: rounding-of-b

    @property
    def output_scale(self) -> Fraction:
        """Scale of the noise on the solution in its grid."""
        distance = 2 * self.gamma / self.regularisation / _OUTPUT_GRID.step + sqrt_up(Fraction(self.dimension))  # proof: strong
        return distance / self.output_epsilon

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {
            "rule": "objective",
            "objective_epsilon": str(self.objective_epsilon),
            "regularisation": str(self.regularisation),
            "output_epsilon": str(self.output_epsilon),
        }

    @property
    def guarantee(self) -> Guarantee:
        """The joint promise about all weights together; delta is zero."""
        return promise(
            self.problem,
            mechanism="objective perturbation with an approximate minimum (pure)",
            more=(
                "the gradient of the objective is evaluated in 64-bit floating point to within one part in 20,000",
                KEYSTREAM,
            ),
            epsilon=self.problem.epsilon,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {"sizes": list(self.network.sizes), "regularisation": self.regularisation, "n_public": self.problem.n_public}

    def first(self) -> State:
        """A model that knows nothing."""
        return State(step=0, weights=np.zeros(self.network.n_weights), velocity=np.empty(0))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """One step: draws the objective's noise, solves, draws the output's noise."""
        if start.step == 1:
            return
        data, coin = data.labelled(), stream.coin(NOISE, 0)
        heard = priced(progress, plain(self.problem.epsilon))
        heard(0.1, "solving")
        noisy = self._noisy(data, coin)
        heard(0.9, "solved")
        yield State(step=1, weights=self._spread(noisy), velocity=start.velocity)

    @np.errstate(all="ignore")  # a caller may have asked numpy to raise: that would speak of a row
    def _noisy(self, data: Data, coin: Coin) -> Floats:
        design = np.concatenate([data.rows, np.ones((len(data.rows), 1))], axis=1)
        norms = np.maximum(np.sqrt((design * design).sum(axis=1)) * (1 + 1e-12), self.problem.features.norm_bound)
        design /= norms[:, None]  # proof: unit-rows
        signs = np.where(data.labels == 1, 1.0, -1.0)
        drawn = spherical_laplace(self.objective_scale, dimension=self.dimension, coin=coin).astype(np.float64)
        tilt = drawn * float(_OBJECTIVE_GRID.step)
        found = np.clip(_minimum(design, signs, float(self.regularisation), tilt, float(_SLACK) / 2), -_FARTHEST, _FARTHEST)
        noise = spherical_laplace(self.output_scale, dimension=self.dimension, coin=coin).astype(np.float64)
        return np.asarray(
            np.ldexp(_OUTPUT_GRID.index(found).astype(np.float64) + noise, _OUTPUT_GRID.exponent)  # proof: output-noise
        )

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights."""
        return {"weights": last.weights}

    def _spread(self, solution: Floats) -> Floats:
        """The two-class network whose logit difference is the solution's."""
        scaled = solution / self.problem.features.norm_bound
        weights = np.zeros(self.network.n_weights)
        [(matrix, bias)] = self.network.layers(weights)
        matrix[:, 1], bias[1] = scaled[:-1], scaled[-1]
        return weights


def _minimum(design: Floats, signs: Floats, regularisation: float, tilt: Floats, tolerance: float) -> Floats:
    """A point where the gradient's norm is at most the tolerance, by Newton steps with backtracking."""
    point = np.zeros(design.shape[1])
    signed = design * signs[:, None]

    def height(at: Floats) -> float:
        return float(np.logaddexp(0.0, -(signed @ at)).sum() + at @ (0.5 * regularisation * at + tilt))

    for _ in range(_MOST_STEPS):
        miss = 1.0 / (1.0 + np.exp(np.clip(signed @ point, -700.0, 700.0)))
        gradient = regularisation * point + tilt - signed.T @ miss
        if math.sqrt(float(gradient @ gradient)) <= tolerance:  # proof: certified-solve
            return point
        curvature = (signed * (miss * (1.0 - miss))[:, None]).T @ signed
        curvature[np.diag_indices_from(curvature)] += regularisation
        step = np.linalg.solve(curvature, gradient)
        # Newton's step may be too long far from the minimum: it is halved until the height falls as it should. Near the minimum
        # heights differ by less than their rounding, hence the allowance; the gradient alone decides when to stop.
        share, start, fall = 1.0, height(point), float(gradient @ step)
        while share > 1e-10 and height(point - share * step) > start - 0.25 * share * fall + 1e-9 * abs(start):
            share /= 2
        point = point - share * step
    raise InternalError("the convex solver did not converge.")
