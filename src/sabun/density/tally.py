"""What is remembered of private records while they stream past: whole-number sums, merged in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.density.kernel import Floats
from sabun.errors import ParameterError

__all__ = ["Tally"]


class Tally:
    """Sums of a whole-number statistic over private points, with their count. NOT PRIVATE until noise is in it.

    Guarantee: the state is a sum of terms that depend on one record each, in exact arithmetic; so any order and any split into
    parts that are merged give the same state, bit for bit.
    """

    def __init__(self, measure: Callable[[Floats], NDArray[Any]], *, size: int, plan: str) -> None:
        self._measure = measure
        self.plan = plan
        self.sums: NDArray[Any] = np.zeros(size, dtype=object)
        self.count = 0

    def add(self, points: Floats) -> None:
        """Adds the records behind some points."""
        self.sums = self.sums + self._measure(points)
        self.count += len(points)

    def merge(self, other: Tally) -> None:
        """Adds what another tally of the same public plan has seen.

        Raises:
            ParameterError: The other one was made for another public table or other settings.
        """
        if other.plan != self.plan:
            raise ParameterError(
                "both parts must be prepared with the same public table and the same settings; got different ones. "
                "Call set_public with the same table on each part."
            )
        self.sums = self.sums + other.sums
        self.count += other.count

    def __repr__(self) -> str:
        return f"<Tally of {len(self.sums)} sums: NOT PRIVATE, keep it with the records>"
