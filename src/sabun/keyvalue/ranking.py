"""Which keys are the most frequent, with probabilities: counts leave it open, and a list without doubts would hide that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.keyvalue.channel import Floats
from sabun.keyvalue.shrinkage import Posterior

__all__ = ["Ranking", "ranking_of"]

_DRAWS = 1500
_AT_ONCE = 1 << 22
_NEVER = 1e-4
"""A key that reaches the list less often than this is not drawn at all."""
_RELIABLE = 0.6
_CAVEAT = "The keys differ by little more than noise: probabilities between 0.3 and 0.95 may be far too high."


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Keys by how probably they are among the most frequent ones.

    Attributes:
        keys: The most probable ones first, as many as were asked for.
        probability: Of each, to be among that many most frequent keys; good to about .03 (1,500 draws).
        frequency: The estimate of each; NaN for a key without reports, which is drawn from what the others are like.
        weak: Whether the keys differ by little more than noise. The prior is learned from the same reports, and its own doubt
            is not in the probabilities: there they were seen to be up to .5 too high.
    """

    keys: tuple[str | int, ...]
    probability: tuple[float, ...]
    frequency: tuple[float, ...]
    weak: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        frequency = [None if math.isnan(f) else f for f in self.frequency]
        return {"key": list(self.keys), "probability": list(self.probability), "frequency": frequency, "weak": self.weak}

    def __str__(self) -> str:
        head = f"{'key':<16} {'frequency':>9}  among the {len(self.keys)} most frequent with probability"
        rows = zip(self.keys, self.frequency, self.probability, strict=True)
        lines = [f"{str(key)[:16]:<16} {'-' if math.isnan(f) else f'{f:.4f}':>9}  {p:.2f}" for key, f, p in rows]
        return "\n".join([head, *lines, *([_CAVEAT] if self.weak else [])])


def ranking_of(found: Posterior, keys: tuple[str | int, ...], k: int) -> Ranking:
    """The k keys that come first most often when frequencies are drawn from their posteriors.

    The draws are pseudo-random and the same every time: they protect nobody, for what they are made of is published.
    """
    probability = _probabilities(found, k)
    chosen = np.lexsort((-np.nan_to_num(found.frequency), -probability))[:k].tolist()
    return Ranking(
        keys=tuple(keys[place] for place in chosen),
        probability=tuple(float(probability[place]) for place in chosen),
        frequency=tuple(float(found.frequency[place]) for place in chosen),
        weak=k < len(keys) and _reliability(found) < _RELIABLE,
    )


def _reliability(found: Posterior) -> float:
    """How much of what keys differ by is seen: the variance between the estimates, as a share of that and their own."""
    known = ~np.isnan(found.frequency)
    if not known.any():
        return 0.0
    between, within = float(np.var(found.frequency[known])), float(np.mean(found.frequency_sd[known] ** 2))
    return between / max(between + within, 1e-300)


def _probabilities(found: Posterior, k: int) -> Floats:
    points, shares = np.insert(found.points, -1, 1.0, axis=1), np.insert(found.shares, -1, 0.0, axis=1)  # a jump before f = 1
    order = np.argsort(points, axis=1, kind="stable")
    points, reached = np.take_along_axis(points, order, axis=1), np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
    known = reached[:, -1] > 0.5  # others are those that no prior explains, and all of them where nobody has reported
    points = np.where(known[:, None], points, np.nan_to_num(found.frequency)[:, None])
    reached[~known] = 1.0
    reached[:, -1] = 1.0
    rows = np.arange(len(points))
    lowest, highest = (points[rows, (reached >= level).argmax(axis=1)] for level in (_NEVER, 1 - _NEVER))
    candidates = np.flatnonzero(highest >= np.sort(lowest)[-k])
    wins = np.zeros(len(points))
    dice = np.random.Generator(np.random.PCG64(0))
    some = max(1, _AT_ONCE // len(candidates))
    for begin in range(0, _DRAWS, some):
        drawn = _drawn(points[candidates], reached[candidates], dice.random((len(candidates), min(some, _DRAWS - begin))))
        first = np.argpartition(-drawn, min(k, len(candidates)) - 1, axis=0)[:k]
        wins[candidates] += np.bincount(first.ravel(), minlength=len(candidates))
    return wins / _DRAWS


def _drawn(points: Floats, reached: Floats, uniform: Floats) -> NDArray[np.float64]:
    """Frequencies with those distribution functions, even between two points; jumps at 0 and 1 stay such."""
    drawn = 1e-12 * uniform  # a toss between keys of which nobody holds any
    for row, (f, levels, chances) in enumerate(zip(points, reached, uniform, strict=True)):
        drawn[row] += np.interp(chances, levels, f, left=f[0])
    return drawn
