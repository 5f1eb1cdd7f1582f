"""The paper's AnonymizedLearning: noise on each coordinate of each batch update; proved in anonymized_learning.proof.md.

Reading R1 of the paper: the sum over the batch is cut to the thresholds, noise is added, the result is cut again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.accounting import joint_of_updates
from sabun.learning.network import Floats, Network
from sabun.learning.ranges import Bound, Part, Ranges, noisy_within, parts_of
from sabun.learning.stream import BATCH, NOISE, Stream
from sabun.learning.training import KEYSTREAM, Data, Meter, Problem, Progress, State, promise
from sabun.privacy import Guarantee, plain
from sabun.privacy.noise import Grid

__all__ = ["AnonymizedLearning"]

_GRID = Grid(-24)


@final
@dataclass(frozen=True, kw_only=True)
class AnonymizedLearning:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about; replace-one neighbours, the number of records is public.
        network: What is trained.
        epochs: Passes over the records; each record is in exactly one batch of a pass.
        batch_size: Records in a batch; the divisor of the update.
        learning_rate: Of the mean update.
        threshold: Sums are cut to [-threshold, threshold], or to ranges of their own for weights and for biases; public
            constants, never taken from weights or data.
        update_epsilon: The paper's epsilon.
        decay: The paper's lambda: weights, not biases, shrink by learning_rate * decay / batch_size in each step.
    """

    problem: Problem
    network: Network
    epochs: int
    batch_size: int
    learning_rate: float
    threshold: Bound
    update_epsilon: Fraction
    decay: float = field(default=0.0, repr=False)

    @property
    def batches(self) -> int:
        """Batches in one pass."""
        return -(-(self.problem.n_public or 1) // self.batch_size)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Which range the sum of each coordinate is cut to, in grid steps."""
        return parts_of(self.threshold, self.network, _GRID)

    @property
    def pass_epsilon(self) -> Fraction:
        """What one pass costs a coordinate by itself: each record is in one batch of it."""
        return self.update_epsilon / self.epochs  # proof: range-times-passes

    @property
    def joint_epsilon(self) -> Fraction:
        """What all weights together really cost."""
        return joint_of_updates(
            n_weights=self.network.n_weights, epsilon=self.update_epsilon, epochs=self.epochs, delta=self.problem.delta
        )

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {
            "rule": "noisy-updates",
            "n_weights": self.network.n_weights,
            "epsilon": str(self.update_epsilon),
            "epochs": self.epochs,
            "batches": self.batches,
            "delta": str(self.problem.delta),
        }

    @property
    def guarantee(self) -> Guarantee:
        """What is true: each weight costs min(P, batches) epsilon by itself, not epsilon; all together the joint figure."""
        name = "AnonymizedLearning (noise on batch updates)"
        alone = min(self.network.n_weights, self.batches) * self.update_epsilon  # proof: one-weight
        if self.joint_epsilon <= alone or self.problem.delta > 0:
            amounts: dict[str, Any] = {"epsilon": self.joint_epsilon, "delta": self.problem.delta}
        else:
            amounts = {"epsilon": alone, "scope": "per-parameter", "joint_epsilon": self.joint_epsilon}
        return promise(self.problem, mechanism=name, more=(KEYSTREAM,), **amounts)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {
            "sizes": list(self.network.sizes),
            "epochs": self.epochs,
            "batch_size": self.batch_size,
            "learning_rate": self.learning_rate,
            **self._thresholds,
            "update_epsilon": self.update_epsilon,
            "n_public": self.problem.n_public,
            **({"weight_decay": self.decay} if self.decay else {}),
        }

    @property
    def _thresholds(self) -> Mapping[str, Any]:
        if isinstance(self.threshold, Ranges):
            return {"update_range": list(self.threshold.weights), "bias_update_range": list(self.threshold.biases)}
        return {"threshold": self.threshold}

    def first(self) -> State:
        """Public starting weights."""
        return State(step=0, weights=self.network.initial(), velocity=np.empty(0))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """The state after each further batch; the batches are drawn without looking at the records."""
        state, parts = start, self.parts
        meter = Meter(progress, steps=self.epochs * self.batches, spent=self.spent_after)
        for epoch in range(start.step // self.batches, self.epochs):
            order = np.argsort(stream.words(BATCH, epoch, len(data.labels)))  # proof: blind-batches
            # A resumed run enters its first pass in the middle; every later one begins where a pass begins, at 0.
            for batch in range(state.step % self.batches, self.batches):
                members = order[batch * self.batch_size : (batch + 1) * self.batch_size]
                update = self._noisy(self._sum(state.weights, data, members), parts, stream, state.step)
                if self.decay:
                    update += self.decay * self.network.without_biases(state.weights)  # proof: decay
                weights = state.weights - self.learning_rate / self.batch_size * update
                state = State(step=state.step + 1, weights=weights, velocity=state.velocity)
                meter(state.step)
                yield state

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights."""
        return {"weights": last.weights}

    def spent_after(self, step: int) -> str:
        """What the passes begun so far cost all weights together, in words; the whole is charged before the first one."""
        passes = -(-step // self.batches)
        return plain(
            joint_of_updates(
                n_weights=self.network.n_weights,
                epsilon=self.update_epsilon * passes / self.epochs,
                epochs=passes,
                delta=self.problem.delta,
            )
        )

    def _sum(self, weights: Floats, data: Data, members: NDArray[np.intp]) -> Floats:
        with np.errstate(all="ignore"):
            labels = data.labels[members]
            activity = self.network.activity(weights, data.rows[members], labels)
            activity.scale((labels >= 0).astype(np.float64))  # proof: unlabelled-stay
            total = self.network.summed(activity)
        return np.nan_to_num(total, nan=0.0)

    def _noisy(self, total: Floats, parts: Sequence[Part], stream: Stream, step: int) -> Floats:
        return noisy_within(total, parts, _GRID, epsilon=self.pass_epsilon, coin=stream.coin(NOISE, step))  # proof: cut-sum
