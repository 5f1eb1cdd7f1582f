"""The paper's LearningFirst: train within bounds, then add noise to each weight; proved in learning_first.proof.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.learning.network import Network
from sabun.learning.plain_training import DECAY, PlainTraining
from sabun.learning.ranges import Part, Ranges, noisy_within, parts_of
from sabun.learning.stream import NOISE, Stream
from sabun.learning.training import KEYSTREAM, Data, Problem, Progress, State, priced, promise
from sabun.privacy import Guarantee
from sabun.privacy.noise import Grid

__all__ = ["LearningFirst"]

_GRID = Grid(-20)


@final
@dataclass(frozen=True, kw_only=True)
class LearningFirst:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about; replace-one neighbours.
        training: Plain training with a bound, or ranges, for the weights.
        weight_epsilon: What each weight costs by itself (the paper's epsilon).
    """

    problem: Problem
    training: PlainTraining
    weight_epsilon: Fraction

    @property
    def network(self) -> Network:
        """What is trained."""
        return self.training.network

    @property
    def parts(self) -> tuple[Part, ...]:
        """Which range each weight has, in grid steps."""
        return parts_of(0.0 if self.training.bound is None else self.training.bound, self.network, _GRID)

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {"rule": "weight-noise", "n_weights": self.network.n_weights, "epsilon": str(self.weight_epsilon)}

    @property
    def guarantee(self) -> Guarantee:
        """Each weight by itself; beside it the joint figure, which is tight."""
        return promise(
            self.problem,
            mechanism="LearningFirst (noise on trained weights)",
            more=(KEYSTREAM,),
            epsilon=self.weight_epsilon,
            scope="per-parameter",
            joint_epsilon=self.network.n_weights * self.weight_epsilon,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {
            "sizes": list(self.network.sizes),
            "epochs": self.training.epochs,
            "batch_size": self.training.batch_size,
            "learning_rate": self.training.learning_rate,
            **self._bounds,
            "weight_epsilon": self.weight_epsilon,
            "n_public": self.problem.n_public,
            **({} if self.training.decay == DECAY else {"weight_decay": self.training.decay}),
        }

    @property
    def _bounds(self) -> Mapping[str, Any]:
        bound = self.training.bound
        if isinstance(bound, Ranges):
            return {"weight_range": list(bound.weights), "bias_range": list(bound.biases)}
        return {"weight_bound": bound}

    def first(self) -> State:
        """Public starting weights."""
        return State(step=0, weights=self.network.initial(), velocity=np.empty(0))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """One step: trains, cuts each weight to its range, adds noise, cuts again."""
        if start.step == 1:
            return
        trained = self.training.run(data.labelled(), stream, progress=priced(progress, "0"))
        coin = stream.coin(NOISE, 0)
        noisy = noisy_within(trained, self.parts, _GRID, epsilon=self.weight_epsilon, coin=coin)  # proof: noise
        yield State(step=1, weights=noisy, velocity=start.velocity)

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights."""
        return {"weights": last.weights}
