"""Fully connected networks in NumPy: forward, backward, per-example gradient norms without per-example gradients.

Notation (the paper's equations (1)-(6), corrected): layers 0..L, y0 = x; x_l = y_(l-1) W_l + b_l; y_l = max(x_l, 0) below L,
softmax at L; d_L = y_L - t (cross-entropy); d_l = 1[x_l > 0] (d_(l+1) W_(l+1)^T). The gradient of one example is the outer
product of (y_(l-1), 1) and d_l, so that its norms factorise: ||g||_2^2 = sum_l (||y_(l-1)||_2^2 + 1) ||d_l||_2^2, and the
same with L1.

Inside a pass the examples are columns, and a row of ones stands under each layer's inputs: bias and weights are then one
matrix, one product serves both, and what is done to each number runs along contiguous memory.
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

__all__ = ["Activity", "Floats", "Network", "Passes", "slope_of"]

Floats: TypeAlias = NDArray[np.float64]

_INITIAL = 20_180_525
"""Seed of the initial weights. They are public and the same for everybody, so no coin has to protect them."""


_LARGE = {np.dtype(np.float64): 1e140, np.dtype(np.float32): 1e16}


@final
@dataclass(frozen=True, kw_only=True)
class Activity:
    """What one pass over some examples leaves behind; one column for each example.

    Args:
        inputs: What flows into each layer, with a last row of ones.
        errors: The error that reaches it (d_l above).
    """

    inputs: tuple[Floats, ...]
    errors: tuple[Floats, ...]

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

    def blocks(self, weights: Floats) -> list[Floats]:
        """Views of the flat vector in which the bias is the last row of its matrix."""
        views, at = [], 0
        for inputs, outputs in itertools.pairwise(self.sizes):
            end = at + (inputs + 1) * outputs
            views.append(weights[at:end].reshape(inputs + 1, outputs))
            at = end
        return views

    def probabilities(self, weights: Floats, rows: Floats) -> Floats:
        """Class probabilities, one row for each example."""
        passes = Passes(self, len(rows), weights.dtype).read(weights)
        return np.ascontiguousarray(_softmax(passes.forward(passes.laid(rows))).T)

    def activity(self, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> Activity:
        """One forward pass, one backward pass; equations (1)-(3)."""
        passes = Passes(self, len(rows), weights.dtype).read(weights)
        return passes.both(passes.laid(rows), labels)

    @staticmethod
    def squared_norms(activity: Activity, lengths: Floats | None = None) -> Floats:
        """||g||_2^2 of each example's gradient; not finite where inputs are so large that squares could be lost.

        Args:
            activity: What the passes left.
            lengths: The `squared_lengths` of the rows, where they are known already.
        """
        sizes, backs = np.empty((2, len(activity.errors), activity.errors[0].shape[1]), dtype=activity.errors[0].dtype)
        for layer, (y, d) in enumerate(zip(activity.inputs, activity.errors, strict=True)):
            # A layer's gradient is the outer product y d': its length is |y| |d|, so it is never written out.
            if layer == 0 and lengths is not None:
                sizes[layer] = lengths
            else:
                np.einsum("ij,ij->j", y, y, out=sizes[layer])
            np.einsum("ij,ij->j", d, d, out=backs[layer])
        # Beside inputs so large, an error's square could vanish where its product with them does not.
        if not sizes.max(initial=0.0) <= _LARGE[sizes.dtype]:  # also where another example's is not a number
            sizes[sizes > _LARGE[sizes.dtype]] = np.inf
        return np.asarray((sizes * backs).sum(axis=0, dtype=np.float64))

    @staticmethod
    def squared_lengths(rows: Floats) -> Floats:
        """||(x, 1)||_2^2 of each row: the same at every step, so it need be worked out once only."""
        with np.errstate(all="ignore"):
            return np.asarray(np.einsum("ij,ij->i", rows, rows) + rows.dtype.type(1))

    @staticmethod
    def l1_norms(activity: Activity) -> Floats:
        """||g||_1 of each example's gradient."""
        total = np.zeros(activity.errors[0].shape[1])
        for y, d in zip(activity.inputs, activity.errors, strict=True):
            total += np.abs(y).sum(axis=0) * np.abs(d).sum(axis=0)
        return total

    def summed(self, activity: Activity) -> Floats:
        """The sum over examples of their gradients, flat; the sum of outer products, not the product of sums."""
        result = np.empty(self.n_weights, dtype=activity.errors[0].dtype)
        for block, y, d in zip(self.blocks(result), activity.inputs, activity.errors, strict=True):
            np.matmul(y, d.T, out=block)
        return result.astype(np.float64, copy=False)


@final
class Passes:
    """Forward and backward passes over a fixed number of examples, all in the same memory.

    Args:
        network: The shape.
        count: How many examples.
        kind: The type of number to compute in.
    """

    def __init__(self, network: Network, count: int, kind: np.dtype[Any]) -> None:
        self._network, self.kind = network, kind
        # Under each layer's inputs stays a row of ones, which meets the biases as the last row of their block.
        self._hidden = tuple(np.ones((size + 1, count), dtype=kind) for size in network.sizes[1:-1])
        self._errors = tuple(np.empty((size, count), dtype=kind) for size in network.sizes[1:])
        self._count = count

    def laid(self, rows: Floats) -> Floats:
        """At most that many rows as columns, zeros in the place of those that are missing, ones beneath."""
        columns = np.zeros((self._network.sizes[0] + 1, self._count), dtype=self.kind)
        columns[:-1, : len(rows)] = rows.T
        columns[-1] = 1.0
        return columns

    def read(self, weights: Floats) -> Passes:
        """With these weights from now on."""
        blocks = self._network.blocks(weights)
        # Products are faster when what is multiplied from the left lies row by row.
        self._ahead = [np.ascontiguousarray(block.T) for block in blocks]
        self._behind = [block[:-1] for block in blocks]
        return self

    def forward(self, columns: Floats) -> Floats:
        """The logits, a column for each example; to be read before the next pass."""
        found = np.matmul(self._ahead[0], columns, out=self._errors[0])
        for block, hidden, place in zip(self._ahead[1:], self._hidden, self._errors[1:], strict=True):
            np.maximum(found, 0.0, out=hidden[:-1])
            found = np.matmul(block, hidden, out=place)
        return found

    def both(self, columns: Floats, labels: NDArray[np.int64]) -> Activity:
        """What both passes leave behind; to be read before the next pass."""
        slope_of(self.forward(columns), labels)
        for layer in reversed(range(1, len(self._errors))):
            error = np.matmul(self._behind[layer], self._errors[layer], out=self._errors[layer - 1])
            error *= self._hidden[layer - 1][:-1] > 0.0
        return Activity(inputs=(columns, *self._hidden), errors=self._errors)


def slope_of(logits: Floats, labels: NDArray[np.int64]) -> None:
    """Puts in the place of the logits, a column for each example, the gradient of its cross-entropy there."""
    _softmax(logits)
    logits[labels, np.arange(len(labels))] -= 1.0


def _softmax(logits: Floats) -> Floats:
    """Probabilities in the place of logits."""
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits
