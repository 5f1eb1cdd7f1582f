"""What a private count will cost and how far off it may be, before any data is touched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.outliers.kissing import global_bound
from sabun.outliers.sensitivity import discounts_for
from sabun.outliers.setup import Amounts
from sabun.privacy.amounts import plain

__all__ = ["CountPlan", "plan_count"]

_RARE = 0.05
"""Outliers are rare by nature: a count that cannot see this share of the records is of little use."""


@dataclass(frozen=True, kw_only=True)
class CountPlan:
    """Expected errors of a count, from public facts alone.

    The error depends on the private table; it lies between the kindest table of this shape and the worst.

    Attributes:
        epsilon: What will be charged.
        delta: What will be charged.
        records: The number of records planned for.
        dimensions: The number of coordinates.
        kindest_error: Median error on a table that no record can change much.
        kindest_reach: Error that is not exceeded with the planned confidence, on such a table.
        worst_error: Median error on the worst table of this shape.
        confidence: The planned confidence.
        useful: Whether a twentieth of the records can be told from none at all, on a kind table.
    """

    epsilon: Fraction
    delta: Fraction
    records: int
    dimensions: int
    kindest_error: int
    kindest_reach: int
    worst_error: int
    confidence: float
    useful: bool

    def __str__(self) -> str:
        cost = f"epsilon {plain(self.epsilon)}" + (f", delta {plain(self.delta)}" if self.delta else "")
        lines = [
            f"A count over {self.records} records with {self.dimensions} coordinates costs {cost}.",
            f"Median error: {self.kindest_error} on a kind table, {self.worst_error} on the worst.",
            f"On a kind table the error stays below {self.kindest_reach} with probability {self.confidence:g}.",
        ]
        if not self.useful:
            lines.append("epsilon is too small to be useful here: a twentieth of the records could not be told from none.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return dataclasses.asdict(self) | {"epsilon": str(self.epsilon), "delta": str(self.delta)}


def plan_count(amounts: Amounts, *, n: int, d: int, k: int, relation: str, confidence: float) -> CountPlan:
    """The plan of a count for a table of n records with d coordinates."""
    checks.whole(minimum=1, n=n, d=d)
    public_n = n if relation == "replace-one" else None
    cap = global_bound(n=public_n, d=d, k=k, relation=relation)
    kindest, worst, reach = _errors(amounts, public_n, d, k, relation, cap, 1 - confidence) if cap else (0, 0, 0)
    return CountPlan(
        epsilon=amounts.epsilon,
        delta=amounts.delta,
        records=n,
        dimensions=d,
        kindest_error=min(kindest, n),
        kindest_reach=min(reach, n),
        worst_error=min(worst, n),
        confidence=confidence,
        useful=min(reach, n) <= _RARE * n or not cap,
    )


def _errors(amounts: Amounts, n: int | None, d: int, k: int, relation: str, cap: int, miss: float) -> tuple[int, int, int]:
    """Median on a kind table, median on the worst, reach on a kind table."""
    law = amounts.law
    if law is None:
        # Noise of the global mechanisms, and roughly of the paper's, has the same size for every table.
        scale = min(cap, 1 << 200) / float(amounts.epsilon)
        if amounts.delta:
            scale *= math.sqrt(2 * math.log(2 / float(amounts.delta)))
        return math.ceil(0.7 * scale), math.ceil(0.7 * scale), math.ceil(scale * -math.log(miss))
    discounts = discounts_for(n=n, d=d, k=k, beta=law.beta, relation=relation)
    step = 1 if relation == "replace-one" else 0
    least = max(w * min(cap, max(1, t + step)) for t, w in enumerate(discounts.numerators))
    kindest = float(discounts.value(least))
    worst = law.reach(float(cap), miss=0.5) if cap < 2**1000 else 2**1000
    return law.reach(kindest, miss=0.5), worst, law.reach(kindest, miss=miss)
