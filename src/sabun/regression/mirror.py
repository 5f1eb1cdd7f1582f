"""Ways to weigh candidate coefficient vectors by how well they do on the home organisation's own data.

Notation: loss[t, m] = (y_t - x_t beta_m)**2. Mirror averaging (Juditsky, Rigollet, Tsybakov 2008; eq. 10 of the paper)
averages, over t,
the weights proportional to exp(-(loss[0, m] + ... + loss[t, m]) / tau). All weights here depend on raw data: NOT PRIVATE
for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.noise import seeded_coin
from sabun.regression.design import Floats

__all__ = ["CONVENTIONS", "best_weights", "mirror_weights", "stacking_weights", "theory_tau"]

CONVENTIONS = ("jrt", "paper")
_BLOCK = 2048
_STEPS = 500


def theory_tau(coef_bound: float) -> float:
    """The least temperature for which the oracle inequality is proved on bounded data: 2 (1 + B)**2 in scaled units."""
    return 2 * (1 + coef_bound) ** 2


def mirror_weights(losses: Floats, *, tau: float, convention: str = "jrt", permutations: int = 1) -> Floats:
    """Mirror-averaging weights of the candidates.

    Args:
        losses: One row for each home record, one column for each candidate.
        tau: Temperature, above zero; large ones give equal weights, small ones choose the best candidate.
        convention: `jrt` averages the weights *before* each record, the first of them equal (the version for which the bound
            holds); `paper` those *after* each record, eq. (10) as printed.
        permutations: The order of records matters a little; with more than 1, that many fixed orders are averaged.

    Example:
        >>> mirror_weights(np.array([[0.0, 1.0], [0.0, 1.0]]), tau=1e9).round(3)
        array([0.5, 0.5])
    """
    checks.positive(tau=tau)
    checks.one_of(CONVENTIONS, convention=convention)
    checks.whole(minimum=1, permutations=permutations)
    if permutations == 1:
        return _mirror(losses, float(tau), convention)
    orders = (np.argsort(seeded_coin(seed).words(len(losses)), kind="stable") for seed in range(permutations))
    return np.asarray(sum(_mirror(losses[order], float(tau), convention) for order in orders) / permutations)


def _mirror(losses: Floats, tau: float, convention: str) -> Floats:
    count, candidates = losses.shape
    equal = np.full(candidates, 1 / candidates)
    if count == 0:
        return equal
    # Running sums of losses, block by block: candidates lie along the rows, so that each sum runs through memory in order, and
    # the last column of a block is what the next one starts from.
    total, sums = np.zeros(candidates), np.zeros(candidates)
    for start in range(0, count, _BLOCK):
        block = np.multiply(losses[start : start + _BLOCK].T, -1 / tau, order="C")
        block[:, 0] += sums
        np.cumsum(block, axis=1, out=block)
        block -= block.max(axis=0)  # weights do not change when all sums move together
        sums = block[:, -1].copy()
        np.exp(block, out=block)
        share = 1 / block.sum(axis=0)
        total += block @ share
    # The weights before each record are those after the one before it: an equal start comes in, the last ones go out.
    if convention == "jrt":
        total += equal - block[:, -1] * share[-1]
    return np.asarray(total / count)


def stacking_weights(predictions: Floats, targets: Floats) -> Floats:
    """Weights on the simplex with the least squared error (accelerated projected gradient)."""
    gram, right = predictions.T @ predictions, predictions.T @ targets
    step = 1 / max(float(np.linalg.norm(gram, 2)), 1e-12)
    # Nesterov's steps: the gradient is taken a little beyond the weights, in the direction they last moved.
    weights = momentum = np.full(len(right), 1 / len(right))
    speed = 1.0
    for _ in range(_STEPS):
        moved = _onto_simplex(momentum - step * (gram @ momentum - right))
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        momentum = moved + (speed - 1) / faster * (moved - weights)
        weights, speed = moved, float(faster)
    return weights


def best_weights(losses: Floats) -> Floats:
    """All weight on the candidate with the least total loss."""
    weights = np.zeros(losses.shape[1])
    weights[int(np.argmin(losses.sum(axis=0)))] = 1.0
    return weights


def _onto_simplex(point: Floats) -> Floats:
    """The nearest vector of nonnegative weights that add up to 1."""
    # The nearest vector is the point less one number, cut off at 0; that number is the excess over 1 of those that stay,
    # shared among them, and they stay while they are larger than it.
    ordered = np.sort(point)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(point) + 1)
    last: NDArray[np.int64] = np.flatnonzero(ordered > excess)
    return np.asarray(np.maximum(point - excess[last[-1]], 0.0))
