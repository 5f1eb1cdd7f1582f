"""The counterexample to the learning paper's Theorem 4, run many times and counted.

One layer, two classes, thresholds 1, one pass, step size 1. The first batch holds the target (all ones) with its label and
an all-zero row of the first class; each later batch holds two small equal rows, one of each class. The event, fixed in advance:
every update of the first bias was cut to +1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.noise import Coin, seeded_coin

__all__ = ["EPSILON", "Count", "counted"]

EPSILON = 0.5
_SMALL = 0.05
_BLOCK = 250


class Count(NamedTuple):
    """How often the event happened with the label that theory says makes it likelier, and with the other label."""

    batches: int
    inputs: int
    runs: int
    likelier: int
    rarer: int

    @property
    def log_ratio(self) -> float:
        """The estimated loss of one bias by itself."""
        return math.log(max(self.likelier, 1) / max(self.rarer, 1))

    @property
    def lower(self) -> float:
        """A lower bound on the loss with 99 % confidence (Clopper-Pearson for both counts)."""
        from scipy.special import betaincinv

        low = betaincinv(self.likelier, self.runs - self.likelier + 1, 0.005) if self.likelier else 0.0
        high = betaincinv(self.rarer + 1, max(self.runs - self.rarer, 1e-9), 0.995)
        return math.log(low / high) if low > 0 else -math.inf

    @property
    def limit(self) -> float:
        """What the loss tends to for many inputs; for one batch the gradient of the bias moves by 1 of its range of 2."""
        return max((self.batches - 1) * EPSILON - EPSILON / 2, EPSILON / 2)


def counted(*, batches: int, inputs: int, runs: int) -> Count:
    """Runs the counterexample on both labels."""
    coin = seeded_coin(batches)
    # The first batch by itself favours class 1; every later batch pulls the other way, and harder.
    labels = (1, 0) if batches == 1 else (0, 1)
    likelier, rarer = (
        sum(int(_hits(label, batches, inputs, min(_BLOCK, runs - at), coin).sum()) for at in range(0, runs, _BLOCK))
        for label in labels
    )
    return Count(batches=batches, inputs=inputs, runs=runs, likelier=likelier, rarer=rarer)


def _hits(label: int, batches: int, inputs: int, runs: int, coin: Coin) -> NDArray[np.bool_]:
    """In which runs every update of the first bias was cut to +1."""
    # At zero weights both classes have probability 1/2, so the target's error is 1/2 less its label, in both columns.
    error = np.array([0.5 - (label == 0), 0.5 - (label == 1)], dtype=np.float32)
    weights = -_noisy(error, (runs, inputs, 2), coin)
    update = _noisy(error + np.array([-0.5, 0.5], dtype=np.float32), (runs, 2), coin)
    bias, hits = -update, update[:, 0] == 1.0
    for _ in range(batches - 1):
        logits = _SMALL * weights.sum(axis=1) + bias
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        total = 2 * share / share.sum(axis=1, keepdims=True) - 1  # two equal rows, one of each class
        weights -= _noisy(_SMALL * total[:, None, :], weights.shape, coin)
        update = _noisy(total, bias.shape, coin)
        bias -= update
        hits &= update[:, 0] == 1.0
    return np.asarray(hits)


def _noisy(total: NDArray[np.float32], shape: tuple[int, ...], coin: Coin) -> NDArray[np.float32]:
    """Cut, Laplace noise for the range, cut again; single precision is enough to count with."""
    size = math.prod(shape)
    words = coin.words(-(-size // 2)).view(np.uint32)[:size]
    uniform = (words.astype(np.float32) * np.float32(2.0**-31) - 1) * np.float32(1 - 2.0**-23)
    noise = np.copysign(np.log1p(-np.abs(uniform)), uniform).reshape(shape)
    noise *= np.float32(2 / EPSILON)
    noise += np.clip(total, -1, 1)
    return np.asarray(np.clip(noise, -1, 1, out=noise))
