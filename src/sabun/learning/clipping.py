"""Sums of gradients that no single example can move by more than one unit; proved in clipping.proof.md.

Notation: C is the clip norm; each example's gradient is scaled by min(1, C / ||g||) / C, so that its norm is at most 1.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Activity, Floats, Network

__all__ = ["PIECE", "SENSITIVITY", "clipped_sum"]

_Array = TypeVar("_Array", bound=NDArray[Any])

SENSITIVITY = 1 + Fraction(1, 10**6)
"""What one example can change in a sum, in units of the clip norm: one, with a margin for floating-point sums."""

_LARGEST = 1e150
PIECE = 512
"""Rows worked on at a time, always exactly so many: a row's arithmetic must not depend on how many rows are beside it."""


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
        for at in range(0, len(rows), PIECE):
            total += _piece(network, views, rows[at : at + PIECE], labels[at : at + PIECE], clip_norm, norm)
    return total


def _piece(
    network: Network,
    views: list[tuple[Floats, Floats]],
    rows: Floats,
    labels: NDArray[np.int64],
    clip_norm: float,
    norm: str,
) -> Floats:
    count = len(rows)
    activity = network.activity(views, _filled(rows), _filled(labels))  # proof: same-shape
    norms = network.l1_norms(activity) if norm == "l1" else np.sqrt(network.squared_norms(activity))
    sound = norms < _LARGEST  # proof: sound-rows
    sound[count:] = False  # proof: filling-counts-nothing
    if not sound.all():
        activity = _without(activity, sound)
    return network.weighted_sum(activity, np.where(sound, 1.0 / np.maximum(norms, clip_norm), 0.0))  # proof: share


def _filled(part: _Array) -> _Array:
    """The part with zeros up to `PIECE` rows: with another number of rows a library may round the same row differently."""
    if len(part) == PIECE:
        return part
    filled = np.zeros((PIECE, *part.shape[1:]), dtype=part.dtype)
    filled[: len(part)] = part
    return filled  # type: ignore[return-value]


def _without(activity: Activity, sound: NDArray[np.bool_]) -> Activity:
    """Zeros in the place of rows that do not count, which may hold infinities; the shape stays."""
    column = sound[:, None]

    def kept(parts: tuple[Floats, ...]) -> tuple[Floats, ...]:
        return tuple(np.where(column, part, part.dtype.type(0)) for part in parts)

    return Activity(inputs=kept(activity.inputs), errors=kept(activity.errors))
