"""Fully connected networks in NumPy: forward, backward, per-example gradient norms without per-example gradients.

Notation (the paper's equations (1)-(6), corrected): layers 0..L, y0 = x; x_l = y_(l-1) W_l + b_l; y_l = max(x_l, 0) below L,
softmax at L; d_L = y_L - t (cross-entropy); d_l = 1[x_l > 0] (d_(l+1) W_(l+1)^T). The gradient of one example is the outer
product of (y_(l-1), 1) and d_l, so that its norms factorise: ||g||_2^2 = sum_l (||y_(l-1)||_2^2 + 1) ||d_l||_2^2, and the
same with L1.

Inside a pass the examples are columns, and a row of ones stands under each layer's inputs: bias and weights are then one
matrix, one product serves both, and what is done to each number runs along contiguous memory. Here a pass is written as the
equations are, in doubles; `passes` has those that training repeats.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.noise import seeded_coin

__all__ = ["Activity", "Floats", "Network", "slope_of"]

Floats: TypeAlias = NDArray[np.float64]

_INITIAL = 20_180_525
"""Seed of the initial weights. They are public and the same for everybody, so no coin has to protect them."""


_LARGE = 1e140


@final
@dataclass(frozen=True, kw_only=True)
class Activity:
    """What one pass over some examples leaves behind; one column for each example.

    Args:
        inputs: What flows into each layer, with a last row of ones.
        errors: The error that reaches it (d_l above).
    """

    inputs: tuple[NDArray[Any], ...]
    errors: tuple[NDArray[Any], ...]

    def scale(self, shares: Floats) -> None:
        """Multiplies each example's gradient by its share, in place; an error of zero is all it takes to leave one out."""
        for error in self.errors:
            error *= shares


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

    def without_biases(self, weights: Floats) -> Floats:
        """A copy in which biases are 0: what decays, and which coordinates are weights."""
        kept = weights.copy()
        for _, bias in self.layers(kept):
            bias[:] = 0.0
        return kept

    def blocks(self, weights: NDArray[Any]) -> list[NDArray[Any]]:
        """Views of the flat vector in which the bias is the last row of its matrix."""
        views, at = [], 0
        for inputs, outputs in itertools.pairwise(self.sizes):
            end = at + (inputs + 1) * outputs
            views.append(weights[at:end].reshape(inputs + 1, outputs))
            at = end
        return views

    def probabilities(self, weights: Floats, rows: Floats) -> Floats:
        """Class probabilities, one row for each example."""
        _, logits = self._forward(weights, rows)
        return np.ascontiguousarray(_softmax(logits).T)

    def activity(self, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> Activity:
        """One forward pass, one backward pass; equations (1)-(3)."""
        blocks, (inputs, found) = self.blocks(weights), self._forward(weights, rows)
        slope_of(found, labels)
        errors = [found]
        for block, flow in zip(blocks[:0:-1], inputs[:0:-1], strict=True):
            errors.append((block[:-1] @ errors[-1]) * (flow[:-1] > 0.0))
        return Activity(inputs=tuple(inputs), errors=tuple(reversed(errors)))

    def _forward(self, weights: Floats, rows: Floats) -> tuple[list[Floats], Floats]:
        """What flows into each layer, ones beneath, and the logits."""
        *hidden, last = self.blocks(weights)
        inputs = [_on_ones(rows.T)]
        for block in hidden:
            inputs.append(_on_ones(np.maximum(block.T @ inputs[-1], 0.0)))
        return inputs, last.T @ inputs[-1]

    @staticmethod
    def squared_norms(activity: Activity) -> Floats:
        """||g||_2^2 of each example's gradient; not finite where inputs are so large that squares could be lost."""
        # A layer's gradient is the outer product y d': its length is |y| |d|, so it is never written out.
        sizes, backs = (
            np.array([np.einsum("ij,ij->j", part, part) for part in parts]) for parts in (activity.inputs, activity.errors)
        )
        # Beside inputs so large, an error's square could vanish where its product with them does not.
        sizes[~(sizes <= _LARGE)] = np.inf
        return np.asarray((sizes * backs).sum(axis=0))

    @staticmethod
    def l1_norms(activity: Activity) -> Floats:
        """||g||_1 of each example's gradient."""
        total = np.zeros(activity.errors[0].shape[1])
        for y, d in zip(activity.inputs, activity.errors, strict=True):
            total += np.abs(y).sum(axis=0, dtype=np.float64) * np.abs(d).sum(axis=0, dtype=np.float64)
        return total

    def summed(self, activity: Activity) -> Floats:
        """The sum over examples of their gradients, flat; the sum of outer products, not the product of sums."""
        result = np.empty(self.n_weights)
        for block, y, d in zip(self.blocks(result), activity.inputs, activity.errors, strict=True):
            np.matmul(y, d.T, out=block)
        return result


def slope_of(logits: NDArray[Any], labels: NDArray[np.int64]) -> None:
    """Puts in the place of the logits, a column for each example, the gradient of its cross-entropy there."""
    _softmax(logits)
    logits[labels, np.arange(len(labels))] -= 1.0


def _softmax(logits: NDArray[Any]) -> NDArray[Any]:
    """Probabilities in the place of logits."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def _on_ones(columns: Floats) -> Floats:
    return np.concatenate([columns, np.ones((1, columns.shape[1]))])
