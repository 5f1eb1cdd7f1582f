"""Which keys are the most frequent, with probabilities: counts leave it open, and a list without doubts would hide that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.foreign import fitted, padded
from sabun.keyvalue.channel import Channel, Counts, Floats
from sabun.keyvalue.kernels import draw_kernel
from sabun.keyvalue.shrinkage import Posterior, posterior_of

__all__ = ["Ranking", "ranking_of"]

_DRAWS = 1500
_AT_ONCE = 1 << 22
_NEVER = 1e-4
"""A key that reaches the list less often than this is not drawn at all."""
_RELIABLE = 0.6
"""Below, what keys are like is learned too badly for a probability: of keys nearly alike far too much was said."""
_BLURRED = 0.5
"""By how many standard deviations of its own reports each drawn frequency is moved.

A prior that is learned from the same reports spreads keys that are equal by about as much; without this, of keys said to be
among the first with .4 to .6 a fifth too few were.
"""
_CAVEAT = "The keys differ by little more than noise: reports do not say how probable each place in the list is."


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Keys by how probably they are among the most frequent ones.

    Attributes:
        keys: The most probable ones first, as many as were asked for.
        probability: Of each, to be among that many most frequent keys, NaN in a weak list; good to about .03 (1,500 draws).
        frequency: The estimate of each; NaN for a key without reports, which is drawn from what the others are like.
        weak: Whether the keys differ by little more than noise. What they are like is then learned too badly for probabilities;
            the list is still the best guess, in order.
    """

    keys: tuple[str | int, ...]
    probability: tuple[float, ...]
    frequency: tuple[float, ...]
    weak: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        probability, frequency = (
            [None if math.isnan(one) else one for one in some] for some in (self.probability, self.frequency)
        )
        return {"key": list(self.keys), "probability": probability, "frequency": frequency, "weak": self.weak}

    def __str__(self) -> str:
        head = f"{'key':<16} {'frequency':>9}  among the {len(self.keys)} most frequent with probability"
        rows = zip(self.keys, self.frequency, self.probability, strict=True)
        lines = [f"{padded(fitted(str(key), 16), 16)} {_told(f, 4):>9}  {_told(p, 2)}" for key, f, p in rows]
        return "\n".join([head, *lines, *([_CAVEAT] if self.weak else [])])


def _told(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def ranking_of(channel: Channel, counts: Counts, keys: tuple[str | int, ...], k: int) -> Ranking:
    """The k keys that come first most often when frequencies are drawn from their posteriors.

    The draws are pseudo-random and the same every time: they protect nobody, for what they are made of is published.
    """
    found = posterior_of(channel, counts)
    probability = _probabilities(found, k, _BLURRED * _noise(channel, counts))
    chosen = np.lexsort((-np.nan_to_num(found.frequency), -probability))[:k].tolist()
    weak = k < len(keys) and _reliability(found) < _RELIABLE
    return Ranking(
        keys=tuple(keys[place] for place in chosen),
        probability=tuple(math.nan if weak else float(probability[place]) for place in chosen),
        frequency=tuple(float(found.frequency[place]) for place in chosen),
        weak=weak,
    )


def _noise(channel: Channel, counts: Counts) -> Floats:
    """The standard deviation of a frequency by the key's own reports; none where there are none."""
    total = np.maximum(counts.total, 1)
    s = (counts.plus + counts.minus + 0.5) / (total + 1)
    return np.where(counts.total > 0, np.sqrt(s * (1 - s) / total) / channel.gap, 0.0)


def _reliability(found: Posterior) -> float:
    """How much of what keys differ by is seen: the variance between the estimates, as a share of that and their own."""
    known = ~np.isnan(found.frequency)
    if not known.any():
        return 0.0
    between, within = float(np.var(found.frequency[known])), float(np.mean(found.frequency_sd[known] ** 2))
    return between / max(between + within, 1e-300)


def _probabilities(found: Posterior, k: int, blur: Floats) -> Floats:
    """How often each key is among the first k when frequencies are drawn and moved by normal noise of that size."""
    points, shares = np.insert(found.points, -1, 1.0, axis=1), np.insert(found.shares, -1, 0.0, axis=1)  # a jump before f = 1
    order = np.argsort(points, axis=1, kind="stable")
    points, reached = np.take_along_axis(points, order, axis=1), np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
    known = reached[:, -1] > 0.5  # others are those that no prior explains, and all of them where nobody has reported
    points = np.where(known[:, None], points, np.nan_to_num(found.frequency)[:, None])
    reached[~known] = 1.0
    reached[:, -1] = 1.0
    rows = np.arange(len(points))
    lowest, highest = (points[rows, (reached >= level).argmax(axis=1)] for level in (_NEVER, 1 - _NEVER))
    candidates = np.flatnonzero(highest + 4 * blur >= np.sort(lowest - 4 * blur)[-k])
    wins = np.zeros(len(points))
    dice = np.random.Generator(np.random.PCG64(0))
    some, draw = max(1, _AT_ONCE // len(candidates)), draw_kernel()
    points, reached, moved = points[candidates], reached[candidates], blur[candidates, None]
    for begin in range(0, _DRAWS, some):
        size = (len(candidates), min(some, _DRAWS - begin))
        drawn = dice.random(size)
        draw(points, reached, drawn)  # jumps at 0 and 1 stay such
        drawn += moved * dice.normal(size=size)
        first = np.argpartition(-drawn, min(k, len(candidates)) - 1, axis=0)[:k]
        wins[candidates] += np.bincount(first.ravel(), minlength=len(candidates))
    return wins / _DRAWS
