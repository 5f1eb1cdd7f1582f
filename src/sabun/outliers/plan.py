"""What a private count will cost and how far off it may be, before any data is touched."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.asking import renamed
from sabun.outliers.kissing import global_bound
from sabun.outliers.sensitivity import discounts_for
from sabun.outliers.settings import Amounts
from sabun.privacy.amounts import plain

__all__ = ["CountPlan", "plan_count"]

_RARE = 0.05
"""Outliers are rare by nature: a count that cannot see this share of the records is of little use."""


@renamed(records="n_records")
@dataclass(frozen=True, kw_only=True)
class CountPlan:
    """Expected errors of a count, from public facts alone.

    The error depends on the private table; it lies between the kindest table of this shape and the worst.

    Attributes:
        epsilon: What will be charged.
        delta: What will be charged.
        n_records: The number of records planned for.
        dimensions: The number of coordinates.
        kindest_error: Median error on a table that no record can change much.
        kindest_reach: Error that is not exceeded with the planned confidence, on such a table.
        worst_error: Median error on the worst table of this shape.
        kindest_width: About how far the interval reaches up or down on a kind table; None where there is none.
        confidence: The planned confidence.
        useful: Whether a twentieth of the records can be told from none at all, on a kind table.
    """

    epsilon: Fraction
    delta: Fraction
    n_records: int
    dimensions: int
    kindest_error: int
    kindest_reach: int
    worst_error: int
    kindest_width: int | None
    confidence: float
    useful: bool

    @property
    def vacuous(self) -> bool:
        """Whether even on a kind table the interval covers about all there is: it then says nothing."""
        return self.kindest_width is not None and 2 * self.kindest_width >= self.n_records

    def __str__(self) -> str:
        cost = f"epsilon {plain(self.epsilon)}" + (f", delta {plain(self.delta)}" if self.delta else "")
        lines = [
            f"A count over {self.n_records} records with {self.dimensions} coordinates costs {cost}.",
            f"Median error: {self.kindest_error} at best (in a table where no record decides about others), "
            f"{self.worst_error} at worst.",
            f"At best the error stays below {self.kindest_reach} with probability {self.confidence:g}"
            + ("." if self.kindest_width is None else f", and the interval reaches about {self.kindest_width} up or down."),
        ]
        if self.vacuous:
            lines.append("epsilon is too small to be useful here: the interval would cover about everything that is possible.")
        elif not self.useful:
            lines.append("epsilon is too small to be useful here: a twentieth of the records could not be told from none.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the number of records under its older name too."""
        exact = {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        return dataclasses.asdict(self) | exact | {"records": self.n_records}


def plan_count(amounts: Amounts, *, n_records: int, dimensions: int, k: int, relation: str, confidence: float) -> CountPlan:
    """The plan of a count for a table of so many records with so many coordinates."""
    checks.whole(minimum=1, n_records=n_records, dimensions=dimensions)
    n, d = n_records, dimensions
    public_n = n if relation == "replace-one" else None
    cap = global_bound(n=public_n, d=d, k=k, relation=relation)
    nothing = (0, 0, 0, None)
    kindest, worst, reach, width = _errors(amounts, public_n, d, k, relation, cap, 1 - confidence) if cap else nothing
    return CountPlan(
        epsilon=amounts.epsilon,
        delta=amounts.delta,
        n_records=n,
        dimensions=d,
        kindest_error=min(kindest, n),
        kindest_reach=min(reach, n),
        worst_error=min(worst, n),
        kindest_width=None if width is None else min(width, n),
        confidence=confidence,
        useful=min(reach, n) <= _RARE * n or not cap,
    )


def _errors(
    amounts: Amounts, n: int | None, d: int, k: int, relation: str, cap: int, miss: float
) -> tuple[int, int, int, int | None]:
    """Median on a kind table, median on the worst, reach on a kind table, half the width of the interval there."""
    law = amounts.law
    if law is None:
        # Noise of the global mechanisms, and roughly of the paper's, has the same size for every table.
        scale = min(cap, 1 << 200) / float(amounts.epsilon)
        if amounts.delta:
            scale *= math.sqrt(2 * math.log(2 / float(amounts.delta)))
        reach = math.ceil(scale * -math.log(miss))
        return math.ceil(0.7 * scale), math.ceil(0.7 * scale), reach, None if amounts.method == "paper" else reach
    discounts = discounts_for(n=n, d=d, k=k, beta=law.beta, relation=relation)
    step = 1 if relation == "replace-one" else 0
    least = max(w * min(cap, max(1, t + step)) for t, w in enumerate(discounts.numerators))
    kindest = discounts.value(least)
    worst = law.reach(float(cap), miss=0.5) if cap < 2**1000 else 2**1000
    width = None if amounts.bar is None else amounts.bar.typical_width(kindest, tail=law.tail, miss=miss, cap=cap)
    return law.reach(float(kindest), miss=0.5), worst, law.reach(float(kindest), miss=miss), width
