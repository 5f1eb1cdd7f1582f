"""Ordinary mini-batch training, the non-private reference; also the second half of methods that anonymise first or last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Floats, Network
from sabun.learning.ranges import Bound, Ranges
from sabun.learning.stream import BATCH, Stream
from sabun.learning.training import Data, Progress, one_thread, unheard

__all__ = ["DECAY", "PlainTraining"]

DECAY = 0.001
"""The paper's lambda."""


@final
@dataclass(frozen=True, kw_only=True)
class PlainTraining:
    """Settings of the paper's plain update: w <- w - a (sum of gradients + decay w) / B, equation (6).

    Args:
        network: What is trained.
        epochs: Passes over the rows.
        batch_size: B; the last batch of a pass may be smaller, the divisor stays B.
        learning_rate: a.
        decay: The paper's lambda; the effective decay is lambda / B. Biases do not decay.
        bound: Weights are cut to [-bound, bound], or each kind to its range, after each update; None leaves them.
    """

    network: Network
    epochs: int
    batch_size: int
    learning_rate: float
    decay: float = 0.0
    bound: Bound | None = None

    def run(self, data: Data, stream: Stream, *, progress: Progress = unheard, start: Floats | None = None) -> Floats:
        """Trained weights, from the public start or from earlier weights; NOT PRIVATE by themselves."""
        weights = self.network.initial() if start is None else start.copy()
        views = self.network.layers(weights)
        count = len(data.labels)
        for epoch in range(self.epochs):
            order = np.argsort(stream.words(BATCH, epoch, count))
            rows, labels = data.rows[order], data.labels[order]
            with one_thread():
                for at in range(0, count, self.batch_size):
                    self._step(views, weights, rows[at : at + self.batch_size], labels[at : at + self.batch_size])
            progress((epoch + 1) / self.epochs, f"epoch {epoch + 1} of {self.epochs}")
        return weights

    def _step(self, views: list[tuple[Floats, Floats]], weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> None:
        with np.errstate(all="ignore"):
            total = self.network.summed(self.network.activity(weights, rows, labels))
            if self.decay:
                for (matrix, _), (change, _) in zip(views, self.network.layers(total), strict=True):
                    change += self.decay * matrix
            weights -= self.learning_rate / self.batch_size * total
            if self.bound is not None:
                np.nan_to_num(weights, copy=False, nan=0.0)
                self._cut(self.bound, views, weights)

    @staticmethod
    def _cut(bound: Bound, views: list[tuple[Floats, Floats]], weights: Floats) -> None:
        if not isinstance(bound, Ranges):
            np.clip(weights, -bound, bound, out=weights)
            return
        for matrix, bias in views:
            np.clip(matrix, *bound.weights, out=matrix)
            np.clip(bias, *bound.biases, out=bias)
