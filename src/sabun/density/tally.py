"""What is remembered of private records while they stream past: whole-number sums, merged in any order."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.density.kernel import Floats
from sabun.errors import ParameterError

__all__ = ["NOT_PRIVATE", "Tally", "must_match"]

NOT_PRIVATE = "NOT PRIVATE: sums of private records without noise; keep them with the records"


class Tally:
    """Sums of a whole-number statistic over private points, with their count. NOT PRIVATE until noise is in it.

    Guarantee: the state is a sum of terms that depend on one record each, in exact arithmetic; so any order and any split into
    parts that are merged give the same state, bit for bit. No batch of records is in the state twice: each batch has a random
    name, copies keep it, and tallies that share one are not merged.
    """

    def __init__(self, measure: Callable[[Floats], NDArray[Any]], *, size: int, plan: str) -> None:
        self._measure = measure
        self.plan = plan
        self.sums: NDArray[Any] = np.zeros(size, dtype=object)
        self.count = 0
        self.batches: frozenset[bytes] = frozenset()
        self.note = NOT_PRIVATE  # so that whoever opens a pickle reads it

    def add(self, points: Floats) -> None:
        """Adds the records behind some points."""
        sums = self._measure(points)
        self.sums = self.sums + sums
        self.count += len(points)
        # An empty tally may be copied to many places, each of which adds records of its own.
        self.batches = self.batches or frozenset((os.urandom(16),))

    def fresh(self) -> Tally:
        """An empty tally of the same plan."""
        return Tally(self._measure, size=len(self.sums), plan=self.plan)

    def merged(self, other: Tally) -> Tally:
        """A new tally of what both have seen; these two stay as they are.

        Raises:
            ParameterError: The other one was made for another public table or other settings, or is a copy.
        """
        must_match(self.plan == other.plan)
        if self.batches & other.batches:
            raise ParameterError(
                "both parts must hold different records; got a copy of a part that is counted already. "
                "Merge each part once, and copy an estimator only before records were added."
            )
        result = self.fresh()
        result.sums = self.sums + other.sums
        result.count = self.count + other.count
        result.batches = self.batches | other.batches
        return result

    def __repr__(self) -> str:
        return f"<Tally of {len(self.sums)} sums: NOT PRIVATE, keep it with the records>"


def must_match(same: bool) -> None:
    """Refuses parts whose sums do not mean the same."""
    if not same:
        raise ParameterError(
            "both parts must be prepared with the same public table and the same settings; got different ones. "
            "Call set_public with the same table on each part."
        )
