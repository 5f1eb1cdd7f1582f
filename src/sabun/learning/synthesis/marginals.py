"""Noisy counts of cells, as probabilities to draw from; proved in marginals.proof.md."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Floats
from sabun.privacy.noise import Coin, discrete_gaussian, discrete_laplace

__all__ = ["conditional", "noisy_counts"]


def noisy_counts(
    cells: NDArray[np.int64], size: int, *, epsilon: Fraction, rho: Fraction, relation: str, coin: Coin
) -> tuple[NDArray[np.float64], float]:
    """How many records fall into each cell, with noise; the noise's standard deviation beside it.

    Guarantee: epsilon-DP by discrete Laplace noise, or rho-zCDP by discrete Gaussian noise when rho is not zero.
    """
    counts = np.bincount(cells, minlength=size).astype(np.int64)
    changed = 1 if relation == "add-remove" else 2  # proof: cells-changed
    if rho:
        variance = Fraction(changed) / (2 * rho)
        drawn = discrete_gaussian(variance, coin=coin, size=size)  # proof: gaussian-counts
        return (counts + drawn).astype(np.float64), math.sqrt(variance)
    scale = changed / epsilon
    drawn = discrete_laplace(scale, coin=coin, size=size)  # proof: laplace-counts
    return (counts + drawn).astype(np.float64), math.sqrt(2) * float(scale)


def conditional(noisy: Floats, deviation: float) -> Floats:
    """Probabilities of the last axis given the others, from noisy counts; post-processing.

    Each row is drawn towards the mean over its siblings (same first axis) by as much as noise makes it unsure: by the weight
    deviation sqrt(cells), in records.
    """
    positive = np.maximum(noisy, 0.0)
    siblings = positive.sum(axis=tuple(range(1, positive.ndim - 1)), keepdims=True) + 1e-9
    usual = siblings / siblings.sum(axis=-1, keepdims=True)
    pulled = positive + deviation * math.sqrt(positive.shape[-1]) * usual
    return np.asarray(pulled / pulled.sum(axis=-1, keepdims=True))
