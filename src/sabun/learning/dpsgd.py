"""DP-SGD: Poisson batches, clipped gradients, Gaussian noise on a grid; proved in dpsgd.proof.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.learning.accounting import Target, halved, noise_multiplier, spent_after, training_events
from sabun.learning.clipping import expected_piece
from sabun.learning.gaussian import rounded_gaussian
from sabun.learning.network import Floats, Network
from sabun.learning.poisson import PoissonPlan
from sabun.learning.shards import row_sums
from sabun.learning.stream import COUNT, Stream
from sabun.learning.training import KEYSTREAM, Data, Meter, Problem, Progress, State, promise
from sabun.privacy import Guarantee
from sabun.privacy.events import Event
from sabun.privacy.noise import discrete_laplace

__all__ = ["NUMERICS", "DpSgd"]

_COUNT_SHARE = Fraction(1, 50)

NUMERICS = (
    "sums of gradients are computed in 64-bit floating point; their rounding stays below one part in a million of the clip "
    "norm for batches of up to a million rows, provided that whatever is computed of a row before rows are added up (products, "
    "squares and scaled numbers by compiled code, maxima, exponentials, sums and lengths by NumPy) comes out the same wherever "
    "the row stands, whatever the other rows hold (tried before each run on made-up rows of its shapes)"
)

SINGLE = (
    "sums of gradients are computed in 32-bit floating point; the proof does not cover their rounding, nor compiled code or "
    "NumPy computing a row differently by its place (tried before each run on made-up rows of its shapes)"
)


@final
@dataclass(frozen=True, kw_only=True)
class DpSgd:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about.
        network: What is trained.
        plan: Who takes part in which step.
        clip_norm: The norm C to which each example's gradient is cut.
        learning_rate: Of the mean clipped gradient in units of C; falls to zero along a cosine.
        momentum: Share of the last update that is kept.
        precision: "double", which the proof covers, or "single", whose sums take half of the time.
        decay: Weights, not biases, shrink by learning_rate * decay in each step.
        shards: In how many parts, one after the other or side by side, a batch is summed.
    """

    problem: Problem
    network: Network
    plan: PoissonPlan
    clip_norm: float
    learning_rate: float
    momentum: float
    precision: str = "double"
    decay: float = field(default=0.0, repr=False)
    shards: int = field(default=1, repr=False)

    @property
    def kind(self) -> np.dtype[Any]:
        """The type of number to sum gradients in."""
        return np.dtype(np.float64 if self.precision == "double" else np.float32)

    @property
    def piece(self) -> int:
        """Rows worked on at a time, from public numbers."""
        return expected_piece(self.plan.probability, self.problem.n_public, shards=self.shards)

    @property
    def count_epsilon(self) -> Fraction:
        """What the noisy number of records costs where the true one is private."""
        return Fraction(0) if self.problem.n_public is not None else _COUNT_SHARE * self.target.epsilon

    @property
    def target(self) -> Target:
        """The add-remove promise behind the stated one."""
        if self.problem.relation == "add-remove":
            return Target(epsilon=self.problem.epsilon, delta=self.problem.delta)
        return halved(self.problem.epsilon, self.problem.delta)  # proof: restated

    @property
    def multiplier(self) -> Fraction:
        """Standard deviation of the noise in units of the clip norm."""
        return noise_multiplier(self.plan, self.target, self.count_epsilon)

    @property
    def events(self) -> tuple[Event, ...]:
        """What the accountant sees, under add-remove neighbours."""
        return training_events(self.plan, self.multiplier, self.count_epsilon)

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        events = [event.to_dict() for event in self.events]
        return {
            "rule": "sampled-gaussian",
            "relation": self.problem.relation,
            "events": events,
            "delta": str(self.problem.delta),
        }

    @property
    def guarantee(self) -> Guarantee:
        """The joint promise about all weights together."""
        return promise(
            self.problem,
            mechanism="DP-SGD (Poisson sampling, Gaussian noise rounded to a grid)",
            more=(NUMERICS if self.precision == "double" else SINGLE, KEYSTREAM),
            epsilon=self.problem.epsilon,
            delta=self.problem.delta,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {
            "sizes": list(self.network.sizes),
            "sampling_probability": self.plan.probability,
            "steps": self.plan.steps,
            "noise_multiplier": self.multiplier,
            "clip_norm": self.clip_norm,
            "learning_rate": self.learning_rate,
            "momentum": self.momentum,
            "precision": self.precision,
            "n_public": self.problem.n_public,
            **({"weight_decay": self.decay} if self.decay else {}),
            **({"shards": self.shards} if self.shards > 1 else {}),
        }

    def first(self) -> State:
        """Public starting weights, no velocity."""
        return State(step=0, weights=self.network.initial(), velocity=np.zeros(self.network.n_weights))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further step."""
        data, state = data.labelled(), start
        multiplier = float(self.multiplier)
        divisor = self._divisor(data, stream)
        summed = row_sums(
            self.network,
            data.rows,
            data.labels,
            clip_norm=self.clip_norm,
            piece=self.piece,
            kind=self.kind,
            shards=self.shards,
            crew=data.crew,
        )
        meter = Meter(progress, steps=self.plan.steps, spent=self.spent_after)
        while state.step < self.plan.steps:
            batch = self.plan.batch(len(data.labels), stream, state.step)
            state = self._next(state, summed(state.weights, batch), stream, multiplier, divisor)
            meter(state.step)
            yield state

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights; the velocity stays behind."""
        return {"weights": last.weights}

    def noisy_count(self, data: Data, stream: Stream) -> int | None:
        """The number of labelled rows with noise, which is released; None where the number of records is public."""
        if self.problem.n_public is not None:
            return None
        noise = stream.once(COUNT, lambda coin: discrete_laplace(1 / self.count_epsilon, coin=coin))
        return max(1, int((data.labels >= 0).sum()) + noise)  # proof: noisy-count

    def _divisor(self, data: Data, stream: Stream) -> float:
        """The constant by which sums become means: from the public number of records, else from the noisy one."""
        return float(self.plan.probability) * (self.problem.n_public or self.noisy_count(data, stream) or 1)

    def _next(self, state: State, total: Floats, stream: Stream, multiplier: float, divisor: float) -> State:
        noisy = rounded_gaussian(total, sigma=multiplier, stream=stream, step=state.step)  # proof: noise
        velocity = self.momentum * state.velocity + noisy / divisor
        rate = self.learning_rate * 0.5 * (1 + math.cos(math.pi * state.step / self.plan.steps))
        weights = state.weights - rate * velocity
        if self.decay:
            weights -= rate * self.decay * self.network.without_biases(state.weights)  # proof: decay
        return State(step=state.step + 1, weights=weights, velocity=velocity)

    def spent_after(self, step: int) -> str:
        """What the first steps cost by themselves, in words; the whole is charged before the first step all the same."""
        return spent_after(step, self.events, self.target, self.problem.relation)
