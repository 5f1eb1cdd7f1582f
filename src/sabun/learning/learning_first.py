"""The paper's LearningFirst: train within bounds, then add noise to each weight; proved in learning_first.proof.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.learning.network import Network
from sabun.learning.plain_training import PlainTraining
from sabun.learning.stream import NOISE, Stream
from sabun.learning.training import KEYSTREAM, Data, Problem, Progress, State, priced, promise
from sabun.privacy import Guarantee
from sabun.privacy.noise import Grid, discrete_laplace

__all__ = ["LearningFirst"]

_GRID = Grid(-20)


@final
@dataclass(frozen=True, kw_only=True)
class LearningFirst:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about; replace-one neighbours.
        training: Plain training with a weight bound.
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
    def steps(self) -> int:
        """The weight bound in grid steps."""
        return int(_GRID.index(self.training.bound or 0.0))

    @property
    def scale(self) -> Fraction:
        """Scale of the noise in grid steps: the whole range of a weight over its epsilon."""
        return 2 * self.steps / self.weight_epsilon  # proof: full-range

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
            "weight_bound": self.training.bound,
            "weight_epsilon": self.weight_epsilon,
            "n_public": self.problem.n_public,
        }

    def first(self) -> State:
        """Public starting weights."""
        return State(step=0, weights=self.network.initial(), velocity=np.empty(0))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """One step: trains, cuts each weight to the bound, adds noise, cuts again."""
        if start.step == 1:
            return
        trained = _GRID.index(self.training.run(data.labelled(), stream, progress=priced(progress, "0")))
        inside = np.clip(trained, -self.steps, self.steps)  # proof: cut-before-noise
        noise = discrete_laplace(self.scale, coin=stream.coin(NOISE, 0), size=inside.size)
        noisy = np.clip((inside + noise).astype(np.float64), -self.steps, self.steps)  # proof: cut-after-noise
        yield State(step=1, weights=np.ldexp(noisy, _GRID.exponent), velocity=start.velocity)

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights."""
        return {"weights": last.weights}
