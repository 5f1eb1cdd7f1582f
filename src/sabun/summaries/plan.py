"""What a plain answer will cost and how far off it may be, before any data is touched."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sabun.asking import Forecast
from sabun.notebook import Rich
from sabun.privacy.amounts import plain
from sabun.telling.words import number

__all__ = ["SummaryPlan"]


@final
@dataclass(frozen=True, kw_only=True)
class SummaryPlan(Rich):
    """Expected errors of one answer, from public facts alone; with groups, of a group of average size.

    Attributes:
        question: Such as "mean".
        epsilon: What will be charged, once for all groups.
        delta: What will be charged.
        relation: Between which tables it holds.
        n_records: The number of records planned for.
        groups: How many groups share the table.
        reach: Half the width of the interval, about; where there are two forecasts, at worst.
        confidence: The planned confidence.
        unit: What errors and interval are measured in.
        forecasts: The error to expect; an optimistic and a pessimistic one where it depends on the table.
        most: How far apart two answers can be in the kindest table.
    """

    question: str
    epsilon: Fraction
    delta: Fraction
    relation: str
    n_records: int
    groups: int
    reach: float
    confidence: float
    unit: str
    forecasts: tuple[Forecast, ...]
    most: float

    @property
    def size(self) -> int:
        """How many records a group has, about."""
        return max(self.n_records // self.groups, 1)

    @property
    def usual_error(self) -> float:
        """The middle of the forecast; of the pessimistic one where there are two."""
        return self.forecasts[-1].middle

    @property
    def vacuous(self) -> bool:
        """Whether even at best one answer in ten is off by half of all that is possible, or more."""
        return 2 * min(one.high for one in self.forecasts) >= self.most

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before the charge, beside the forecasts: what errors in ranks mean."""
        if self.unit != "ranks":
            return ()
        size, ranks = f"{self.size:,}", number(self.usual_error, 3)
        low, high = self._at(self.usual_error)
        return (
            f"A rank is a place in the order of the values: of {size} rows, a value for 0.5 that is {ranks} ranks off stands "
            f"between {low} and {high}.",
        )

    def _at(self, ranks: float) -> tuple[str, str]:
        """Of which quantiles a value is that may be so many ranks off the median."""
        off = min(ranks / self.size, 0.5)
        return f"{0.5 - off:.3g}", f"{0.5 + off:.3g}"

    def __str__(self) -> str:
        cost = f"epsilon {plain(self.epsilon)}" + (f", delta {plain(self.delta)}" if self.delta else "")
        each = f", {self.groups} groups of about {self.size} each" if self.groups > 1 else ""
        lines = [
            f"{self.question} over {self.n_records} records{each} costs {cost} ({self.relation}).",
        ]
        two = len(self.forecasts) > 1
        for end, one in zip(("best", "worst"), self.forecasts, strict=False):
            told = f"At {end}: {one}" if two else f"Error{str(one).removeprefix('error')}"
            lines.append(f"{told} (if {'; '.join(one.assumed)})." if one.assumed else f"{told}.")
        lines += self.remarks
        ends = " (at 0.5: from {} to {})".format(*self._at(self.reach)) if self.unit == "ranks" else ""
        lines.append(
            f"The interval reaches about {number(self.reach, 3)} up or down{' at worst' if two else ''}{ends}, and holds the "
            f"exact answer with probability {self.confidence:g}."
        )
        if self.vacuous:
            lines.append("epsilon is too small here: even at best one answer in ten is off by half of all that is possible.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        told = {"epsilon": str(self.epsilon), "delta": str(self.delta), "vacuous": self.vacuous}
        foretold = {"forecasts": [one.to_dict() for one in self.forecasts], "usual_error": self.usual_error}
        return dataclasses.asdict(self) | told | foretold
