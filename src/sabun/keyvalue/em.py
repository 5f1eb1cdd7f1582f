"""Expectation maximisation on counts: the paper's four states, and the three states that can be told apart.

The paper's model keeps <0,+> and <0,-> apart although a device draws them with a fair coin. Its matrix has rank 3, so counts
determine the frequency but not the mean: along (1, -1, -a/b, a/b) the likelihood does not change, and where the iteration ends
depends on where it starts. It is kept to reproduce the paper. Merging the two absent states gives a model with one optimum,
which `closed_form` finds without iterating.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sabun import checks
from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["STATES", "Iteration", "four_state_rows", "four_states", "iterate", "three_states"]

STATES = {"em": 4, "em3": 3}
"""How many states each of the two models has."""
_MOST = 1_000_000


@final
@dataclass(frozen=True, kw_only=True)
class Iteration:
    """How EM is run: post-processing of counts, so every choice costs nothing.

    Args:
        iterations: At most this many.
        eta: The paper's threshold: a key is done once none of its shares moved by more; 0 runs all iterations. A small move is
            no proof of being close.
        start: Shares of the states to begin with, above 0 and of sum 1; None for equal ones, as the paper has it. For `em`
            they are those of <1,+>, <1,->, <0,+>, <0,->, for `em3` of +, - and absent.

    Raises:
        ParameterError: One of them breaks its rule.

    Example:
        >>> Iteration(eta=1e-4, start=(0.4, 0.1, 0.25, 0.25)).eta
        0.0001
    """

    iterations: int = 500
    eta: float = 0.0
    start: Sequence[float] | None = None

    def __post_init__(self) -> None:
        checks.whole(minimum=1, iterations=self.iterations)
        checks.require(self.iterations <= _MOST, f"at most {_MOST}", iterations=self.iterations)
        checks.require(checks.is_number(self.eta) and 0 <= self.eta < 1, "at least 0 and below 1", eta=self.eta)
        if self.start is not None:
            listed = isinstance(self.start, Sequence) and not isinstance(self.start, str | bytes)
            good = listed and all(checks.is_number(share) and share > 0 for share in self.start)
            # A share of 0 stays 0 for ever: the start would then be the answer.
            checks.require(good and abs(sum(self.start) - 1) <= 1e-9, "shares above 0 whose sum is 1", start=self.start)

    def for_method(self, method: str) -> Iteration:
        """Itself, if the method iterates and has as many states as the start.

        Raises:
            ParameterError: It does not, or has another number.
        """
        checks.require(method in STATES, f"one of {', '.join(STATES)} where iterations, eta or start are given", method=method)
        if self.start is not None:
            checks.require(len(self.start) == STATES[method], f"{STATES[method]} shares for {method!r}", start=self.start)
        return self

    def to_dict(self) -> dict[str, Any]:
        """The facts that travel with an estimate."""
        return {
            "em_iterations": self.iterations,
            "em_eta": float(self.eta),
            "em_start": None if self.start is None else [float(share) for share in self.start],
        }


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


def four_states(channel: Channel, counts: Counts, how: Iteration | None = None) -> Floats:
    """The paper's EM: shares of its four states after some iterations from a start (all 1/4 unless given)."""
    return iterate(four_state_rows(channel), counts, how)


def three_states(channel: Channel, counts: Counts, how: Iteration | None = None) -> Floats:
    """EM of the identifiable model: shares of +, - and absent."""
    return iterate(channel.rows, counts, how)


def iterate(rows: Floats, counts: Counts, how: Iteration | None = None) -> Floats:
    """Repeats theta_i <- theta_i sum_z Q_iz c_z / (N (theta Q)_z), for all keys at once; each key stops by itself.

    Args:
        rows: States by symbols.
        counts: The counts.
        how: Start, number of iterations, threshold; None for the usual ones.
    """
    chosen = Iteration() if how is None else how
    seen = np.column_stack([counts.plus, counts.minus, counts.total - counts.plus - counts.minus]).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        observed = seen / counts.total[:, None]
    first = np.full(len(rows), 1 / len(rows)) if chosen.start is None else np.asarray(chosen.start, dtype=float)
    theta = np.broadcast_to(first, (len(seen), len(rows))).copy()
    going = np.arange(len(seen))
    for _ in range(chosen.iterations):
        before = theta[going]
        theta[going] = before * ((observed[going] / (before @ rows)) @ rows.T)
        # A key without reports is NaN from the first step on, and has nothing to wait for.
        going = going[np.abs(theta[going] - before).max(axis=1) > chosen.eta]
        if not going.size:
            break
    return theta
