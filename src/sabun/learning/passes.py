"""The passes of a network over a fixed number of examples, in memory that is used again; proved in passes.proof.md.

Notation: that of `network`. The passes are made in 32 bits, whose products take half the time; a gradient is what they leave,
no more and no less. What is summed is the same numbers in the type of the sums, and norms are those of what is summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sabun.learning.network import Activity, Floats, Network, slope_of

__all__ = ["Passes", "singles", "squared_lengths"]

_Singles: TypeAlias = NDArray[np.float32]


@final
class Passes:
    """Forward and backward passes over a fixed number of examples; each of them is computed by itself.

    Args:
        network: The shape.
        count: How many examples.
        kind: The type of number to sum in.
    """

    def __init__(self, network: Network, count: int, kind: DTypeLike) -> None:
        from sabun.learning import columnwise  # imports numba, for which nobody should wait in vain

        self._network, self._count, self._kind, self._loops = network, count, np.dtype(kind), columnwise
        # Under each layer's inputs stays a row of ones, which meets the biases as the last row of their block.
        self._hidden = [np.ones((size + 1, count), dtype=np.float32) for size in network.sizes[1:-1]]
        self._errors = [np.empty((size, count), dtype=np.float32) for size in network.sizes[1:]]
        # What is multiplied for the sums, in their type; layers take turns in the same memory, so that it stays near.
        self._inputs_summed = _in_turns([size + 1 for size in network.sizes[:-1]], count, kind)
        self._errors_summed = _in_turns(network.sizes[1:], count, kind)
        self._squares = np.empty((2, len(self._errors), count))

    def laid(self, rows: NDArray[Any]) -> _Singles:
        """At most that many rows as columns, zeros in the place of those that are missing, ones beneath."""
        columns = np.zeros((self._network.sizes[0] + 1, self._count), dtype=np.float32)
        columns[:-1, : len(rows)] = singles(rows).T
        columns[-1] = 1.0
        return columns

    def read(self, weights: Floats) -> Passes:
        """With these weights from now on."""
        blocks = self._network.blocks(singles(weights))
        self._ahead = [np.ascontiguousarray(block.T) for block in blocks]
        self._behind = [np.ascontiguousarray(block[:-1]) for block in blocks]
        return self

    def both(self, columns: _Singles, labels: NDArray[np.int64]) -> Activity:
        """What both passes leave behind, in 32 bits; to be read before the next pass."""
        flow: _Singles = columns
        for block, hidden in zip(self._ahead, self._hidden, strict=False):
            self._loops.product(block, flow, hidden[:-1])  # proof: by-itself
            self._loops.rectify(hidden[:-1])
            flow = hidden
        error = self._errors[-1]
        self._loops.product(self._ahead[-1], flow, error)
        slope_of(error, labels)
        for layer in reversed(range(len(self._hidden))):
            self._loops.product(self._behind[layer + 1], error, self._errors[layer])
            error = self._errors[layer]
            self._loops.zero_unless(error, self._hidden[layer][:-1])
        return Activity(inputs=(columns, *self._hidden), errors=tuple(self._errors))

    def squared_norms(self, activity: Activity, lengths: Floats | None) -> Floats:
        """||g||_2^2 of each example's gradient.

        Args:
            activity: What `both` left.
            lengths: The `squared_lengths` of the rows, where they are known already.
        """
        sizes, backs = self._squares
        self._squares[:] = 0.0
        # A layer's gradient is the outer product y d': its length is |y| |d|, so it is never written out.
        for layer, (y, d) in enumerate(zip(activity.inputs, activity.errors, strict=True)):
            if layer == 0 and lengths is not None:
                sizes[0] = lengths
            else:
                self._loops.add_squares(y, sizes[layer])
            self._loops.add_squares(d, backs[layer])
        return np.asarray((sizes * backs).sum(axis=0))  # proof: outer

    def summed(self, activity: Activity, shares: Floats) -> Floats:
        """The sum over examples of their gradients, each times its share, flat."""
        total = np.empty(self._network.n_weights, dtype=self._kind)
        for block, (inputs, errors) in zip(self._network.blocks(total), self.factors(activity, shares), strict=True):
            np.matmul(inputs, errors.T, out=block)
        return total.astype(np.float64, copy=False)

    def factors(self, activity: Activity, shares: Floats) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Layer by layer what is multiplied for the sums, in their type; each is gone when the next is asked for."""
        shares = shares.astype(self._kind, copy=False)
        for layer, (y, d) in enumerate(zip(activity.inputs, activity.errors, strict=True)):
            inputs, errors = self._inputs_summed[layer], self._errors_summed[layer]
            np.copyto(inputs, y)  # proof: very-numbers
            self._loops.scale(d, shares, errors)
            yield inputs, errors


def singles(numbers: NDArray[Any]) -> _Singles:
    """The numbers in 32 bits, row by row in memory; infinite where too large, and nothing is said of somebody's number."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(numbers, dtype=np.float32)  # proof: row-by-row


def _in_turns(heights: Sequence[int], count: int, kind: DTypeLike) -> list[NDArray[Any]]:
    """A place for each layer, all of them the same one."""
    place = np.empty(max(heights) * count, dtype=kind)
    return [place[: height * count].reshape(height, count) for height in heights]


def squared_lengths(rows: NDArray[Any]) -> Floats:
    """||(x, 1)||_2^2 of each row as the passes read it: the same at every step, so it need be worked out once only."""
    short = singles(rows)
    with np.errstate(all="ignore"):
        return np.asarray(np.einsum("ij,ij->i", short, short, dtype=np.float64) + 1.0)
