"""Expectation maximisation on counts: the paper's four states, and the three states that can be told apart.

The paper's model keeps <0,+> and <0,-> apart although a device draws them with a fair coin. Its matrix has rank 3, so counts
determine the frequency but not the mean: along (1, -1, -a/b, a/b) the likelihood does not change, and where the iteration ends
depends on where it starts. It is kept to reproduce the paper. Merging the two absent states gives a model with one optimum,
which `closed_form` finds without iterating.
"""

from __future__ import annotations

import numpy as np

from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["four_state_rows", "four_states", "iterate", "three_states"]


def four_state_rows(channel: Channel) -> Floats:
    """The paper's transition matrix: states <1,+>, <1,->, <0,+>, <0,-> by symbols +, -, nothing."""
    a, b, p = channel.a, channel.b, channel.p
    return np.array(
        [
            [a * p, a * (1 - p), 1 - a],
            [a * (1 - p), a * p, 1 - a],
            [b * p, b * (1 - p), 1 - b],
            [b * (1 - p), b * p, 1 - b],
        ]
    )


def four_states(
    channel: Channel, counts: Counts, *, iterations: int = 500, tolerance: float = 0.0, start: Floats | None = None
) -> Floats:
    """The paper's EM: shares of its four states after some iterations from a start (all 1/4 unless given)."""
    return iterate(four_state_rows(channel), counts, iterations=iterations, tolerance=tolerance, start=start)


def three_states(
    channel: Channel, counts: Counts, *, iterations: int = 500, tolerance: float = 0.0, start: Floats | None = None
) -> Floats:
    """EM of the identifiable model: shares of +, - and absent."""
    return iterate(channel.rows, counts, iterations=iterations, tolerance=tolerance, start=start)


def iterate(rows: Floats, counts: Counts, *, iterations: int, tolerance: float, start: Floats | None) -> Floats:
    """Repeats theta_i <- theta_i sum_z Q_iz c_z / (N (theta Q)_z), for all keys at once.

    Args:
        rows: States by symbols.
        counts: The counts.
        iterations: At most this many.
        tolerance: Stops once no share moved by more; 0 never stops early. A small move is no proof of being close.
        start: Shares to begin with, or None for equal ones.
    """
    seen = np.column_stack([counts.plus, counts.minus, counts.total - counts.plus - counts.minus]).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = seen / counts.total[:, None]
    first = np.full(len(rows), 1 / len(rows)) if start is None else np.asarray(start, dtype=float)
    theta = np.broadcast_to(first, (len(seen), len(rows))).copy()
    for _ in range(iterations):
        moved = theta * ((observed / (theta @ rows)) @ rows.T)
        step = np.nanmax(np.abs(moved - theta), initial=0.0)
        theta = moved
        if step <= tolerance:
            break
    return theta
