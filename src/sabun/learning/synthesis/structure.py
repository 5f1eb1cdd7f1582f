"""Which column explains which: a tree over the columns, grown by the exponential mechanism; proved in structure.proof.md.

Notation: N_l(i, j) counts the records of class l in cells (a, b) of columns i and j; r, c, t are its row sums, column sums and
total. The score sum_l |N_l - r c' / t|_1 is how far columns i and j are from independent within the classes.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sabun.learning.synthesis.domain import Codes
from sabun.privacy.noise import Coin, bernoulli_exp, uniform_below

__all__ = ["SENSITIVITY", "grow_tree", "score"]

SENSITIVITY = {"add-remove": Fraction(4) + Fraction(1, 128), "replace-one": Fraction(8) + Fraction(1, 128)}
"""What one record can change in a rounded score: 4 (8 for a replacement), with a margin for the rounding."""

_UNIT = 1024


def score(
    left: NDArray[np.int64], right: NDArray[np.int64], labels: NDArray[np.int64], shape: tuple[int, int, int]
) -> Fraction:
    """The dependence of two columns within the classes, rounded to a multiple of 2**-10."""
    rows, columns, classes = shape
    index = (labels * rows + left) * columns + right
    counts = np.bincount(index, minlength=rows * columns * classes).reshape(classes, rows, columns).astype(np.float64)
    totals = np.maximum(counts.sum(axis=(1, 2), keepdims=True), 1.0)
    expected = counts.sum(axis=2, keepdims=True) * counts.sum(axis=1, keepdims=True) / totals
    return Fraction(round(float(np.abs(counts - expected).sum()) * _UNIT), _UNIT)  # proof: score-rounded


def grow_tree(
    codes: Codes,
    labels: NDArray[np.int64],
    sizes: tuple[int, ...],
    classes: int,
    *,
    epsilon: Fraction,
    relation: str,
    coin: Coin,
) -> list[tuple[int, int | None]]:
    """Columns in the order they join the tree, each with the earlier column that explains it (None for the first).

    Guarantee: epsilon-DP; each of the m - 1 draws costs epsilon / (m - 1).
    """
    inside, outside = [0], list(range(1, len(sizes)))
    tree: list[tuple[int, int | None]] = [(0, None)]
    each = epsilon / max(len(outside), 1)
    scores: dict[tuple[int, int], Fraction] = {}
    while outside:
        for child in outside:
            pair = (child, inside[-1])
            scores[pair] = score(codes[:, pair[0]], codes[:, pair[1]], labels, (sizes[pair[0]], sizes[pair[1]], classes))
        open_pairs = [(child, parent) for child in outside for parent in inside]
        child, parent = _exponential(open_pairs, scores, each / (2 * SENSITIVITY[relation]), coin)
        tree.append((child, parent))
        inside.append(child)
        outside.remove(child)
    return tree


def _exponential(
    pairs: list[tuple[int, int]], scores: dict[tuple[int, int], Fraction], rate: Fraction, coin: Coin
) -> tuple[int, int]:
    """A pair with probability exactly proportional to exp(rate score): proposals kept with exp(-rate (best - score))."""
    best = max(scores[pair] for pair in pairs)
    while True:
        pair = pairs[uniform_below(len(pairs), coin=coin)]
        if bernoulli_exp(rate * (best - scores[pair]), coin=coin):  # proof: rejection
            return pair
