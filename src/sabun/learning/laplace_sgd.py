"""Training with pure epsilon: Poisson batches, L1-clipped gradients, discrete Laplace noise; see laplace_sgd.proof.md."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.learning.accounting import laplace_step_epsilon, sampled_laplace_epsilon
from sabun.learning.clipping import SENSITIVITY, ClippedSum, expected_piece
from sabun.learning.dpsgd import NUMERICS
from sabun.learning.network import Network
from sabun.learning.poisson import PoissonPlan
from sabun.learning.stream import COUNT, NOISE, Stream
from sabun.learning.training import KEYSTREAM, Data, Meter, Problem, Progress, State, promise
from sabun.privacy import Guarantee, plain
from sabun.privacy.noise import Grid, discrete_laplace

__all__ = ["LaplaceSgd"]

_COUNT_SHARE = Fraction(1, 50)
_GRID = Grid(-30)


@final
@dataclass(frozen=True, kw_only=True)
class LaplaceSgd:
    """One run, calibrated: everything here is public. Arguments as in `DpSgd`; the clip norm is an L1 norm."""

    problem: Problem
    network: Network
    plan: PoissonPlan
    clip_norm: float
    learning_rate: float
    momentum: float
    decay: float = field(default=0.0, repr=False)

    @property
    def target(self) -> Fraction:
        """The add-remove epsilon behind the stated one; a replacement is two steps."""
        return self.problem.epsilon / (1 if self.problem.relation == "add-remove" else 2)  # proof: restated

    @property
    def kind(self) -> np.dtype[Any]:
        """The type of number to sum gradients in."""
        return np.dtype(np.float64)

    @property
    def piece(self) -> int:
        """Rows worked on at a time, from public numbers."""
        return expected_piece(self.plan.probability, self.problem.n_public)

    @property
    def count_epsilon(self) -> Fraction:
        """What the noisy number of records costs where the true one is private."""
        return Fraction(0) if self.problem.n_public is not None else _COUNT_SHARE * self.target

    @property
    def step_epsilon(self) -> Fraction:
        """What one step would cost if everybody took part."""
        return laplace_step_epsilon(self.plan, self.target - self.count_epsilon)

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in grid steps: L1 sensitivity of the rounded sum over the step's epsilon."""
        return (math.ceil(SENSITIVITY / _GRID.step) + self.network.n_weights) / self.step_epsilon  # proof: rounded-l1

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {
            "rule": "sampled-laplace",
            "relation": self.problem.relation,
            "threshold": self.plan.threshold,
            "steps": self.plan.steps,
            "step_epsilon": str(self.step_epsilon),
            "count_epsilon": str(self.count_epsilon),
        }

    @property
    def guarantee(self) -> Guarantee:
        """The joint promise about all weights together; delta is zero."""
        return promise(
            self.problem,
            mechanism="L1-clipped SGD with discrete Laplace noise (Poisson sampling)",
            more=(NUMERICS, KEYSTREAM),
            epsilon=self.problem.epsilon,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {
            "sizes": list(self.network.sizes),
            "sampling_probability": self.plan.probability,
            "steps": self.plan.steps,
            "noise_scale": float(self.scale * _GRID.step),
            "clip_norm": self.clip_norm,
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "n_public": self.problem.n_public,
            **({"weight_decay": self.decay} if self.decay else {}),
        }

    def first(self) -> State:
        """Public starting weights, no velocity."""
        return State(step=0, weights=self.network.initial(), velocity=np.zeros(self.network.n_weights))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further step."""
        data, state = data.labelled(), start
        scale, divisor = self.scale, self._divisor(data, stream)
        clipped = ClippedSum(self.network, clip_norm=self.clip_norm, norm="l1", piece=self.piece)
        meter = Meter(progress, steps=self.plan.steps, spent=self.spent_after)
        while state.step < self.plan.steps:
            state = self._next(state, data, stream, clipped, scale, divisor)
            meter(state.step)
            yield state

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights; the velocity stays behind."""
        return {"weights": last.weights}

    def _next(self, state: State, data: Data, stream: Stream, clipped: ClippedSum, scale: Fraction, divisor: float) -> State:
        batch = self.plan.batch(len(data.labels), stream, state.step)
        total = clipped(state.weights, data.rows[batch], data.labels[batch])
        noise = discrete_laplace(scale, coin=stream.coin(NOISE, state.step), size=total.size)  # proof: noise
        noisy = np.ldexp((_GRID.index(total) + noise).astype(np.float64), _GRID.exponent)
        velocity = self.momentum * state.velocity + noisy / divisor
        rate = self.learning_rate * 0.5 * (1 + math.cos(math.pi * state.step / self.plan.steps))
        weights = state.weights - rate * velocity
        if self.decay:
            weights -= rate * self.decay * self.network.without_biases(state.weights)  # proof: decay
        return State(step=state.step + 1, weights=weights, velocity=velocity)

    def spent_after(self, step: int) -> str:
        """What the first steps cost by themselves, in words; the whole is charged before the first step all the same."""
        first = dataclasses.replace(self.plan, steps=step)
        spent = sampled_laplace_epsilon(first, self.step_epsilon) + self.count_epsilon
        return plain(spent if self.problem.relation == "add-remove" else 2 * spent)

    def noisy_count(self, data: Data, stream: Stream) -> int | None:
        """The number of labelled rows with noise, which is released; None where the number of records is public."""
        if self.problem.n_public is not None:
            return None
        noise = stream.once(COUNT, lambda coin: discrete_laplace(1 / self.count_epsilon, coin=coin))
        return max(1, int((data.labels >= 0).sum()) + noise)  # proof: noisy-count

    def _divisor(self, data: Data, stream: Stream) -> float:
        """The constant by which sums become means: from the public number of records, else from the noisy one."""
        return float(self.plan.probability) * (self.problem.n_public or self.noisy_count(data, stream) or 1)
