"""Sums of gradients that no single example can move by more than one unit; proved in clipping.proof.md.

Notation: C is the clip norm; each example's gradient is scaled by min(1, C / ||g||) / C, so that its norm is at most 1.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Activity, Floats, Network

__all__ = ["SENSITIVITY", "clipped_sum"]

SENSITIVITY = 1 + Fraction(1, 10**6)
"""What one example can change in a sum, in units of the clip norm: one, with a margin for floating-point sums."""

_LARGEST = 1e150
_AT_ONCE = 2048
"""Rows worked on at a time so that they stay in the processor's cache; a matter of speed."""


def clipped_sum(
    network: Network,
    views: list[tuple[Floats, Floats]],
    rows: Floats,
    labels: NDArray[np.int64],
    *,
    clip_norm: float,
    norm: str = "l2",
) -> Floats:
    """The sum of clipped gradients over some rows, divided by the clip norm.

    Guarantee: adding or removing one row changes the result by at most `SENSITIVITY` in the named norm ("l2" or "l1").

    Edge cases: no rows give zeros; an example whose norm is not a number below 1e150 counts as zero.
    """
    total = np.zeros(network.n_weights)
    with np.errstate(all="ignore"):  # an overflow warning would speak of a private row
        for at in range(0, len(rows), _AT_ONCE):
            total += _piece(network, views, rows[at : at + _AT_ONCE], labels[at : at + _AT_ONCE], clip_norm, norm)
    return total


def _piece(
    network: Network,
    views: list[tuple[Floats, Floats]],
    rows: Floats,
    labels: NDArray[np.int64],
    clip_norm: float,
    norm: str,
) -> Floats:
    activity = network.activity(views, rows, labels)
    norms = network.l1_norms(activity) if norm == "l1" else np.sqrt(network.squared_norms(activity))
    sound = norms < _LARGEST  # proof: sound-rows
    if not sound.all():
        activity, norms = _without(activity, sound), norms[sound]
    return network.weighted_sum(activity, 1.0 / np.maximum(norms, clip_norm))  # proof: share


def _without(activity: Activity, sound: NDArray[np.bool_]) -> Activity:
    return Activity(inputs=tuple(y[sound] for y in activity.inputs), errors=tuple(d[sound] for d in activity.errors))
