"""Fully connected networks in NumPy: forward, backward, per-example gradient norms without per-example gradients.

Notation (the paper's equations (1)-(6), corrected): layers 0..L, y0 = x; x_l = y_(l-1) W_l + b_l; y_l = max(x_l, 0) below L,
softmax at L; d_L = y_L - t (cross-entropy); d_l = 1[x_l > 0] (d_(l+1) W_(l+1)^T). The gradient of one example is the outer
product y_(l-1) d_l^T, so that its norms factorise: ||g||_2^2 = sum_l (||y_(l-1)||_2^2 + 1) ||d_l||_2^2, and the same with L1.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.noise import seeded_coin

__all__ = ["Activity", "Floats", "Network"]

Floats: TypeAlias = NDArray[np.float64]

_INITIAL = 20_180_525
"""Seed of the initial weights. They are public and the same for everybody, so no coin has to protect them."""


@final
@dataclass(frozen=True, kw_only=True)
class Activity:
    """What one pass over some rows leaves behind: the inputs of each layer; the error that reaches it (d_l above)."""

    inputs: tuple[Floats, ...]
    errors: tuple[Floats, ...]


@final
@dataclass(frozen=True, kw_only=True)
class Network:
    """The shape of a network; weights are one flat vector, W_1, b_1, W_2, b_2, …

    Args:
        sizes: Numbers of inputs, hidden units of each hidden layer, classes.

    Example:
        >>> Network(sizes=(105, 32, 32, 32, 2)).n_weights
        5570
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        checks.require(len(self.sizes) >= 2, "at least inputs and classes", sizes=self.sizes)
        for size in self.sizes:
            checks.whole(minimum=1, size=size)

    @cached_property
    def n_weights(self) -> int:
        """How many numbers are released: weights with biases."""
        return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(self.sizes))

    def layers(self, weights: Floats) -> list[tuple[Floats, Floats]]:
        """Views (W_l, b_l) into the flat vector."""
        views, at = [], 0
        for inputs, outputs in itertools.pairwise(self.sizes):
            end = at + inputs * outputs
            views.append((weights[at:end].reshape(inputs, outputs), weights[end : end + outputs]))
            at = end + outputs
        return views

    def initial(self) -> Floats:
        """Public starting weights: uniform with variance 2 / inputs (He 2015), zero biases; a linear model starts at zero."""
        weights = np.zeros(self.n_weights)
        if len(self.sizes) == 2:
            return weights
        coin = seeded_coin(_INITIAL)
        for matrix, _ in self.layers(weights):
            words = coin.words(matrix.size).astype(np.float64) * 2.0**-63 - 1.0
            matrix[:] = words.reshape(matrix.shape) * np.sqrt(6.0 / matrix.shape[0])
        return weights

    def logits(self, weights: Floats, rows: Floats) -> Floats:
        """The last layer before the softmax."""
        return self._forward(self.layers(weights), rows)[-1]

    def probabilities(self, weights: Floats, rows: Floats) -> Floats:
        """Class probabilities."""
        return _softmax(self.logits(weights, rows))

    def activity(self, views: Sequence[tuple[Floats, Floats]], rows: Floats, labels: NDArray[np.int64]) -> Activity:
        """One forward pass, one backward pass; equations (1)-(3)."""
        *inputs, logits = self._forward(views, rows)
        error = _softmax(logits)
        error[np.arange(len(error)), labels] -= 1.0
        errors = [error]
        for layer in range(len(views) - 1, 0, -1):
            error = error @ views[layer][0].T
            error *= inputs[layer] > 0.0
            errors.append(error)
        return Activity(inputs=tuple(inputs), errors=tuple(reversed(errors)))

    def _forward(self, views: Sequence[tuple[Floats, Floats]], rows: Floats) -> list[Floats]:
        inputs = [rows]
        for matrix, bias in views[:-1]:
            hidden = inputs[-1] @ matrix
            hidden += bias
            inputs.append(np.maximum(hidden, 0.0, out=hidden))
        matrix, bias = views[-1]
        return [*inputs, inputs[-1] @ matrix + bias]

    @staticmethod
    def squared_norms(activity: Activity) -> Floats:
        """||g||_2^2 of each example's gradient."""
        total = np.zeros(len(activity.errors[0]))
        for y, d in zip(activity.inputs, activity.errors, strict=True):
            size = np.einsum("ij,ij->i", y, y)
            size += 1.0
            size *= np.einsum("ij,ij->i", d, d)
            total += size
        return total

    @staticmethod
    def l1_norms(activity: Activity) -> Floats:
        """||g||_1 of each example's gradient."""
        total = np.zeros(len(activity.errors[0]))
        for y, d in zip(activity.inputs, activity.errors, strict=True):
            total += (np.abs(y).sum(axis=1) + 1.0) * np.abs(d).sum(axis=1)
        return total

    def weighted_sum(self, activity: Activity, shares: Floats) -> Floats:
        """The sum over examples of share times gradient, flat; the sum of outer products, not the product of sums."""
        kind = activity.errors[0].dtype
        result = np.empty(self.n_weights, dtype=kind)
        column = shares.astype(kind, copy=False)[:, None]
        for (matrix, bias), y, d in zip(self.layers(result), activity.inputs, activity.errors, strict=True):
            weighted = d * column
            np.matmul(y.T, weighted, out=matrix)
            np.matmul(column[:, 0], d, out=bias)
        return result.astype(np.float64, copy=False)

    def example_gradients(self, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> Floats:
        """One flat gradient for each example, written out; for tests, since it needs rows times weights of memory."""
        views = self.layers(weights)
        return np.array(
            [self.weighted_sum(self.activity(views, rows[i : i + 1], labels[i : i + 1]), np.ones(1)) for i in range(len(rows))]
        ).reshape(len(rows), self.n_weights)


def _softmax(logits: Floats) -> Floats:
    exponents = np.exp(logits - logits.max(axis=1, keepdims=True))
    exponents /= exponents.sum(axis=1, keepdims=True)
    return np.asarray(exponents)
