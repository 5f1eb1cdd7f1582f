"""Which keys are the most frequent, with probabilities: counts leave it open, and a list without doubts would hide that."""

from __future__ import annotations

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


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Keys by how probably they are among the most frequent ones.

    Attributes:
        keys: The most probable ones first, as many as were asked for.
        probability: Of each, to be among that many most frequent keys; good to about .03 (1,500 draws).
        frequency: The estimate of each.
    """

    keys: tuple[str | int, ...]
    probability: tuple[float, ...]
    frequency: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"key": list(self.keys), "probability": list(self.probability), "frequency": list(self.frequency)}

    def __str__(self) -> str:
        head = f"{'key':<16} {'frequency':>9}  among the {len(self.keys)} most frequent with probability"
        rows = zip(self.keys, self.frequency, self.probability, strict=True)
        return "\n".join([head, *(f"{str(key)[:16]:<16} {f:>9.4f}  {p:.2f}" for key, f, p in rows)])


def ranking_of(found: Posterior, keys: tuple[str | int, ...], k: int) -> Ranking:
    """The k keys that come first most often when frequencies are drawn from their posteriors.

    The draws are pseudo-random and the same every time: they protect nobody, for what they are made of is published.
    """
    probability = _probabilities(found, k)
    frequency = np.nan_to_num(found.frequency)
    chosen = np.lexsort((-frequency, -probability))[:k].tolist()
    return Ranking(
        keys=tuple(keys[place] for place in chosen),
        probability=tuple(float(probability[place]) for place in chosen),
        frequency=tuple(float(frequency[place]) for place in chosen),
    )


def _probabilities(found: Posterior, k: int) -> Floats:
    points, shares = found.points, found.shares
    order = np.argsort(points, axis=1, kind="stable")
    points, reached = np.take_along_axis(points, order, axis=1), np.cumsum(np.take_along_axis(shares, order, axis=1), axis=1)
    known = reached[:, -1] > 0.5
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
    """Frequencies with those distribution functions, even between two points; a jump at 0 stays one."""
    drawn = 1e-12 * uniform  # a toss between keys of which nobody holds any
    for row, (f, levels, chances) in enumerate(zip(points, reached, uniform, strict=True)):
        drawn[row] += np.interp(chances, levels, f, left=f[0])
    return drawn
