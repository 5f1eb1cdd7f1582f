"""The paper's interval bounds (20)-(26), corrected: how large one record's share of an update can be, given the weights.

They are validation only. As thresholds they would depend on the current weights, and the promise about one weight by itself
would fail; they are also two orders of magnitude wider than gradients are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sabun.learning.network import Floats, Network
from sabun.learning.ranges import Bound, Ranges

__all__ = ["compared", "update_intervals"]


def update_intervals(network: Network, weights: Floats, *, low: float = 0.0, high: float = 1.0) -> tuple[Floats, Floats]:
    """The least and the greatest value each coordinate of one record's gradient can take for inputs in [low, high].

    Notation: y lies in [max(min x, 0), max(max x, 0)] below the last layer, equation (21) with both ends cut at zero; the error
    at the last layer lies in [-1, 1], equation (22).

    Returns:
        Two flat vectors in the order of the weights.
    """
    views = network.layers(weights)
    below = [(np.full(network.sizes[0], low), np.full(network.sizes[0], high))]
    for matrix, bias in views[:-1]:
        least, most = _image(*below[-1], matrix, bias)
        below.append((np.maximum(least, 0.0), np.maximum(most, 0.0)))  # eq. 21
    lower, upper = np.empty(network.n_weights), np.empty(network.n_weights)
    error = (np.full(network.sizes[-1], -1.0), np.full(network.sizes[-1], 1.0))  # eq. 22
    places = list(zip(network.layers(lower), network.layers(upper), below, views, strict=True))
    for (matrix_low, bias_low), (matrix_high, bias_high), inputs, (matrix, _) in reversed(places):
        products = np.array([np.outer(y, d) for y in inputs for d in error])
        matrix_low[:], matrix_high[:] = products.min(axis=0), products.max(axis=0)
        bias_low[:], bias_high[:] = error
        # The derivative of the rectifier is 0 or 1, so 0 always belongs to the interval of the error below.
        least, most = _image(*error, matrix.T, np.zeros(matrix.shape[0]))
        error = (np.minimum(least, 0.0), np.maximum(most, 0.0))
    return lower, upper


def _image(least: Floats, most: Floats, matrix: Floats, bias: Floats) -> tuple[Floats, Floats]:
    """The interval of row @ matrix + bias over rows between two vectors."""
    positive, negative = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0)
    return least @ positive + most @ negative + bias, most @ positive + least @ negative + bias


def compared(network: Network, weights: Floats, *, threshold: Bound, batch_size: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """How a threshold compares with what updates can be, for inputs in [0, 1]; from the shape and released weights alone.

    Returns:
        Facts for a card: the mean width of one record's interval in each layer, the largest sum a batch can reach at these
        weights and at the public starting weights. Then warnings: a threshold that no batch can reach buys noise for nothing.
    """
    with np.errstate(all="ignore"):
        lower, upper = (np.nan_to_num(end) for end in update_intervals(network, weights))
        widths = [float(np.mean(high - low)) for low, high in zip(network.blocks(lower), network.blocks(upper), strict=True)]
        reach = {
            "largest_batch_sum": _reach(network, weights, batch_size),
            "largest_batch_sum_at_start": _reach(network, network.initial(), batch_size),
        }
    warnings: tuple[str, ...] = ()
    if isinstance(threshold, Ranges):
        threshold = max(abs(end) for end in (*threshold.weights, *threshold.biases))
    if threshold > reach["largest_batch_sum_at_start"]:
        warnings = (
            f"the threshold {threshold:g} is larger than any sum over a batch at the starting weights "
            f"({reach['largest_batch_sum_at_start']:.4g}): the noise is larger than it has to be. Choose a smaller threshold",
        )
    return {"mean_width_of_layers": [float(np.nan_to_num(width)) for width in widths]} | reach, warnings


def _reach(network: Network, weights: Floats, batch_size: int) -> float:
    """The largest size of a coordinate of the sum over a batch."""
    lower, upper = update_intervals(network, weights)
    return float(np.nan_to_num(batch_size * max(-lower.min(), upper.max())))
