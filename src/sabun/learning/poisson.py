"""Who takes part in which step, with the events that the accountant sees: one object, so that they cannot differ.

Proved in poisson.proof.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.learning.stream import BATCH, Stream

__all__ = ["PoissonPlan"]

_UNIT = 1 << 32


@final
@dataclass(frozen=True, kw_only=True)
class PoissonPlan:
    """Each record takes part in each step with one probability, independently of everything else.

    Args:
        threshold: The probability in units of 2**-32, so that it is exact.
        steps: How many steps.

    Example:
        >>> PoissonPlan.of(sampling_rate=0.1, epochs=30).steps
        300
    """

    threshold: int
    steps: int

    def __post_init__(self) -> None:
        checks.whole(minimum=1, threshold=self.threshold, steps=self.steps)
        checks.require(self.threshold <= _UNIT, f"at most {_UNIT}", threshold=self.threshold)

    @classmethod
    def of(cls, *, sampling_rate: float, epochs: int) -> PoissonPlan:
        """The plan with that share of the records in a step, and each record in `epochs` steps on average."""
        threshold = min(_UNIT, max(1, round(sampling_rate * _UNIT)))
        return cls(threshold=threshold, steps=max(1, math.ceil(epochs / sampling_rate)))

    @property
    def probability(self) -> Fraction:
        """The probability, exactly."""
        return Fraction(self.threshold, _UNIT)

    def batch(self, n_rows: int, stream: Stream, step: int) -> NDArray[np.intp]:
        """The rows of one step, in order; empty batches are steps like all others."""
        if self.threshold == _UNIT:
            return np.arange(n_rows)
        drawn = np.frombuffer(stream.bytes(BATCH, step, 4 * n_rows), dtype="<u4")
        return np.flatnonzero(drawn < self.threshold)  # proof: independent-rows
