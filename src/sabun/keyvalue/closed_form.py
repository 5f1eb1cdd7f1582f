"""The exact constrained maximum-likelihood estimate of every key, in closed form; proved in closed_form.proof.md.

Notation: theta = (theta+, theta-, theta0) on the simplex; lambda = theta Q; the log-likelihood is sum_z c_z log lambda_z.
Inside the simplex the optimum is (c/N) Q^-1; otherwise it lies on an edge, where the score is a quadratic in one variable.
"""

from __future__ import annotations

import numpy as np

from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["falling_root", "maximum_likelihood"]

_FIRST, _SECOND = np.array([0, 1, 0]), np.array([2, 2, 1])
"""The edges of the simplex by their two corners."""


def maximum_likelihood(channel: Channel, counts: Counts) -> Floats:
    """The states' shares (+, -, absent) of each key that make the counts most likely; NaN without reports.

    Example:
        >>> channel = Channel(a=0.8, b=0.2, p=0.9)
        >>> maximum_likelihood(channel, Counts(plus=[400], minus=[100], total=[1000])).round(3)
        array([[0.484, 0.016, 0.5  ]])
    """
    seen = np.column_stack([counts.plus, counts.minus, counts.total - counts.plus - counts.minus]).astype(float)
    theta = _inside(channel, counts)
    outside = np.flatnonzero((theta < 0).any(axis=1))  # proof: interior
    if outside.size:
        theta[outside] = _on_the_border(channel, seen[outside])
    return theta


def _inside(channel: Channel, counts: Counts) -> Floats:
    some, difference = counts.shares
    f, g = (some - channel.b) / channel.gap, difference / channel.kappa
    return np.column_stack([(f + g) / 2, (f - g) / 2, 1 - f])


def _on_the_border(channel: Channel, seen: Floats) -> Floats:
    """The best point of the three edges: the likelihood is concave along each, so the one root within it is its optimum."""
    rows = channel.rows
    start, step = rows[_SECOND], rows[_FIRST] - rows[_SECOND]
    t = _optima(seen, start, step)
    reached = start + t[..., None] * step
    value = np.einsum("kz,kez->ke", seen, np.log(reached))
    edge = value.argmax(axis=1)  # proof: compare
    people = np.arange(len(seen))
    theta = np.zeros((len(seen), 3))
    theta[people, _FIRST[edge]] = t[people, edge]
    theta[people, _SECOND[edge]] = 1 - t[people, edge]
    return theta


def _optima(seen: Floats, u: Floats, v: Floats) -> Floats:
    """Where the score sum_z c_z v_z / (u_z + t v_z) vanishes along each edge, moved into [0, 1].

    Multiplied out, it is the quadratic below; each coefficient is linear in the counts.
    """
    # Multiplying by all three denominators leaves, beside each symbol's v_z, the product of the other two: its neighbours when
    # the three symbols stand in a ring.
    next_u, next_v = np.roll(u, -1, axis=1), np.roll(v, -1, axis=1)
    last_u, last_v = np.roll(u, 1, axis=1), np.roll(v, 1, axis=1)
    square = seen.sum(axis=1)[:, None] * v.prod(axis=1)  # proof: quadratic
    linear = seen @ (v * (next_u * last_v + last_u * next_v)).T
    constant = seen @ (v * next_u * last_u).T
    return falling_root(square, linear, constant)


def falling_root(square: Floats, linear: Floats, constant: Floats) -> Floats:
    """Where square t^2 + linear t + constant passes 0 downwards, moved into [0, 1]: the optimum of a concave likelihood."""
    root = np.sqrt(np.maximum(linear**2 - 4 * square * constant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Of the two textbook formulas, the one that does not cancel.
        t = np.where(linear > 0, -(linear + root) / (2 * square), 2 * constant / (root - linear))  # proof: falling
    return np.asarray(np.clip(np.nan_to_num(t, nan=0.0), 0.0, 1.0))
