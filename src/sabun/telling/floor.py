"""From how many records on a plan foretells more than noise, for whoever may not look how many there are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, final

__all__ = ["FEW", "MOST", "Floor"]

FEW, MOST = 100, 1_000_000
"""A question that is more than noise from the first number of records on goes on: with fewer nobody should ask at all. One
that needs more may be noise for a table that somebody has, and waits for a guess or a yes. With the second number the search
ends."""
_NOISE = "With {few} nothing but noise would be expected."
_NEAR = 1.01
"""How near the search comes; it is told with two digits."""


@final
@dataclass(frozen=True, kw_only=True)
class Floor:
    """The least number of records for which a plan is not vacuous, from public facts alone.

    Args:
        records: The number; None where `MOST` are too few.
        noise: A sentence that says what is to be expected with so `few`.
    """

    records: int | None
    noise: str = _NOISE

    @classmethod
    def of(cls, vacuous: Callable[[int], bool], *, least: int = 1, noise: str = _NOISE) -> Self:
        """By bisection, for noise counts for less the more records there are; `least` where as few are enough."""
        if not vacuous(least):
            return cls(records=least, noise=noise)
        if vacuous(MOST):
            return cls(records=None, noise=noise)
        low, high = least, MOST
        while high - low > 1 and high > _NEAR * low:
            middle = min(max(math.isqrt(low * high), low + 1), high - 1)
            low, high = (middle, high) if vacuous(middle) else (low, middle)
        return cls(records=high, noise=noise)

    @property
    def high(self) -> bool:
        """Whether it is so high that nobody should ask without having thought of it."""
        return self.records is None or self.records > FEW

    @property
    def fewer(self) -> str:
        """So many records would give noise; two digits, rounded up."""
        if self.records is None:
            return f"up to {MOST:,} records"
        unit: int = 10 ** max(0, len(str(self.records)) - 2)
        return f"fewer than about {-(-self.records // unit) * unit:,} records"

    def __str__(self) -> str:
        return f"{self.noise.format(few=self.fewer)} The number of yours is private, so it was not looked at."
