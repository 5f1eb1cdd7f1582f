"""What a private count will cost and how far off it may be, before any data is touched."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sabun import checks
from sabun.asking import Forecast, renamed
from sabun.notebook import Rich
from sabun.outliers.error_bar import ErrorBar, Tail
from sabun.outliers.kissing import global_bound, region_bound
from sabun.outliers.ladder import Discounts
from sabun.outliers.laws import Law
from sabun.outliers.reference import Reference
from sabun.outliers.sensitivity import discounts_for, region_discounts
from sabun.outliers.settings import Amounts
from sabun.outliers.vector import PowerVector
from sabun.privacy.amounts import plain

__all__ = ["ChoicePlan", "CountPlan", "plan_choice", "plan_count", "plan_regions"]

_ERROR = "error of the count, in records"
_EACH = "error of each region's count, in records"
_LACKED = "outliers that the chosen columns have fewer than the best, in records"
_KIND = "no record decides about others"
_WORST = "one record decides about as many others as it ever can"

_LARGEST_BOUND = 1 << 200
"""Beyond this, far above every count, a bound is not told apart."""

_RARE = 0.05
"""Outliers are rare by nature: a count that cannot see this share of the records is of little use."""


@renamed(records="n_records")
@dataclass(frozen=True, kw_only=True)
class CountPlan(Rich):
    """Expected errors of a count, from public facts alone.

    The error depends on the private table; it lies between the kindest table of this shape and the worst. A public table of
    the same kind tells where.

    Attributes:
        epsilon: What will be charged.
        delta: What will be charged.
        n_records: The number of records planned for.
        dimensions: The number of coordinates.
        kindest_error: Median error on a table that no record can change much.
        kindest_reach: Error that is not exceeded with the planned confidence, on such a table.
        worst_error: Median error on the worst table of this shape.
        kindest_width: About how far the interval reaches up or down on a kind table; None where there is none.
        worst_width: The same on the worst table of this shape.
        swing: Where the interval's length is drawn: in eight of ten runs it is at most so many times the usual one, and at
            least that part of it.
        confidence: The planned confidence.
        useful: Whether a twentieth of the records can be told from none at all, on a kind table.
        forecasts: The error to expect in a table like the reference, at best and at worst where the number of its outliers
            decides and is not known well; without a reference, on a kind table and on the worst.
        expected_width: About how far the interval reaches in a table like the reference; None without one.
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
    forecasts: tuple[Forecast, ...]
    expected_width: int | None = None
    worst_width: int | None = None
    swing: float | None = None

    @property
    def vacuous(self) -> bool:
        """Whether the interval covers about all there is, on a table like the reference or else a kind one: it says nothing."""
        width = self.kindest_width if self.expected_width is None else self.expected_width
        return 2 * (self.forecasts[0].high if width is None else width) >= self.n_records

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know before the charge, beside the forecasts: how far the interval reaches, and how far that varies."""
        if self.kindest_width is None or self.worst_width is None:
            return ()
        if self.kindest_width == self.worst_width:
            told = [f"The interval reaches about {self.kindest_width} up or down."]
        else:
            best, worst = self.kindest_width, self.worst_width
            told = [f"The interval reaches about {best} up or down at best, about {worst} at worst."]
        if self.expected_width is not None:
            told.append(f"In a table like the reference it reaches about {self.expected_width}.")
        if self.swing is not None:
            low, high = f"{1 / self.swing:.2g}", f"{self.swing:.2g}"
            told.append(
                f"Its length is drawn too: in eight of ten runs it is {low} to {high} times the usual one of that table."
            )
        return tuple(told)

    def __str__(self) -> str:
        cost = f"epsilon {plain(self.epsilon)}" + (f", delta {plain(self.delta)}" if self.delta else "")
        even = self.kindest_error == self.worst_error
        errors = f"{self.kindest_error} at best (in a table where no record decides about others), {self.worst_error} at worst"
        lines = [
            f"A count over {self.n_records} records with {self.dimensions} coordinates costs {cost}.",
            f"Median error: {f'{self.kindest_error}, whatever the table holds' if even else errors}.",
            f"{'The' if even else 'At best the'} error stays below {self.kindest_reach} with probability {self.confidence:g}.",
        ]
        if self.expected_width is not None:
            ends = "; or, with the most outliers it may have, ".join(map(str, self.forecasts))
            lines.append(f"In a table like the reference, {ends}.")
        lines += self.remarks
        if self.vacuous:
            what = "the error may be" if self.kindest_width is None else "the interval would cover"
            lines.append(f"epsilon is too small to be useful here: {what} about everything that is possible.")
        elif not self.useful:
            lines.append("epsilon is too small to be useful here: a twentieth of the records could not be told from none.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the number of records under its older name too."""
        exact = {"epsilon": str(self.epsilon), "delta": str(self.delta)}
        told = {"vacuous": self.vacuous, "forecasts": [one.to_dict() for one in self.forecasts]}
        return dataclasses.asdict(self) | exact | told | {"records": self.n_records}


def plan_count(
    amounts: Amounts,
    *,
    n_records: int,
    dimensions: int,
    k: int,
    relation: str,
    confidence: float,
    reference: Reference | None = None,
) -> CountPlan:
    """The plan of a count for a table of so many records with so many coordinates, like the reference where there is one."""
    checks.whole(minimum=1, n_records=n_records, dimensions=dimensions)
    n, d, miss = n_records, dimensions, 1 - confidence
    public_n = n if relation == "replace-one" else None
    cap = global_bound(n=public_n, d=d, k=k, relation=relation)
    kindest, worst, reach = _errors(amounts, public_n, d, k, relation, cap, miss) if cap else (0, 0, 0)
    widths = _widths(amounts, public_n, d, k, relation, cap, miss) if cap else None
    expected = None
    if not cap:  # every record is an outlier, whatever the table
        forecasts: tuple[Forecast, ...] = (Forecast(quantity=_ERROR, low=0, middle=0, high=0, assumed=()),)
    elif amounts.law is None:  # noise of one size for every table
        scale = _global_scale(amounts, cap)
        forecasts = (Forecast.of_tail(_ERROR, lambda x: math.exp(-x / scale), (), top=float(n)),)
    elif reference is not None:
        seen = reference.seen(n, k=k, beta=amounts.law.beta, relation=relation)
        forecasts = seen.forecasts(_ERROR, amounts.law.tail, n)
        if amounts.bar is not None:
            found = amounts.bar.typical_width(Fraction(seen.bound), tail=amounts.law.tail, miss=miss, cap=cap)
            expected = min(found, n)
    else:
        kind = _kindest_of(amounts.law, public_n, d, k, relation, cap)
        forecasts = _at_best_and_worst(_ERROR, amounts.law.tail, kind, cap, n)
    return CountPlan(
        epsilon=amounts.epsilon,
        delta=amounts.delta,
        n_records=n,
        dimensions=d,
        kindest_error=min(kindest, n),
        kindest_reach=min(reach, n),
        worst_error=min(worst, n),
        kindest_width=None if widths is None else min(widths[0], n),
        confidence=confidence,
        useful=min(reach, n) <= _RARE * n or not cap,
        forecasts=forecasts,
        expected_width=expected,
        worst_width=None if widths is None else min(widths[1], n),
        swing=None if amounts.bar is None or not cap else amounts.bar.swing(),
    )


def plan_regions(
    law: PowerVector, bar: ErrorBar | None, *, epsilon: Fraction, n_records: int, dimensions: int, k: int, confidence: float
) -> CountPlan:
    """The plan of counts by region, each by itself."""
    checks.whole(minimum=1, n_records=n_records, dimensions=dimensions)
    n, miss = n_records, 1 - confidence
    cap = region_bound(n=n, d=dimensions, k=k)
    kind = _kindest_bound(region_discounts(n=n, d=dimensions, k=k, beta=law.beta), cap, slope=2, base=2)
    best, worst = _at_best_and_worst(_EACH, law.tail, kind, cap, n)
    reach = math.ceil(float(kind) / float(law.theta) * math.expm1(-math.log(miss) / law.exponent))
    widths = None if bar is None else _typical_widths(bar, kind, tail=law.tail, miss=miss, cap=cap)
    return CountPlan(
        epsilon=epsilon,
        delta=Fraction(0),
        n_records=n,
        dimensions=dimensions,
        kindest_error=min(math.ceil(best.middle), n),
        kindest_reach=min(reach, n),
        worst_error=min(math.ceil(worst.middle), n),
        kindest_width=None if widths is None else min(widths[0], n),
        confidence=confidence,
        useful=min(reach, n) <= _RARE * n,
        forecasts=(best, worst),
        worst_width=None if widths is None else min(widths[1], n),
        swing=None if bar is None else bar.swing(),
    )


@dataclass(frozen=True, kw_only=True)
class ChoicePlan(Rich):
    """What a choice between sets of columns can see, from public facts alone.

    Attributes:
        epsilon: What will be charged.
        n_records: The number of records planned for.
        subspaces: How many sets of columns there are to choose from.
        forecasts: How many outliers more the best set must have to be chosen, at best and at worst.
    """

    epsilon: Fraction
    n_records: int
    subspaces: int
    forecasts: tuple[Forecast, ...]

    @property
    def vacuous(self) -> bool:
        """Whether a set in which every record is an outlier could be missed for one without any, in one run of ten."""
        return self.forecasts[0].high >= self.n_records

    def __str__(self) -> str:
        lines = [f"A choice of {self.subspaces} for {self.n_records} records costs epsilon {plain(self.epsilon)}."]
        lines += [f"At {end}: {one}." for end, one in zip(("best", "worst"), self.forecasts, strict=True)]
        if self.vacuous:
            lines.append("epsilon is too small to be useful here: all records could not be told from none.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        told = {"vacuous": self.vacuous, "forecasts": [one.to_dict() for one in self.forecasts]}
        return {"epsilon": str(self.epsilon), "n_records": self.n_records, "subspaces": self.subspaces} | told


def plan_choice(*, epsilon: Fraction, n_records: int, subspaces: int, dimensions: int, k: int) -> ChoicePlan:
    """The plan of a choice between so many sets of at most so many coordinates."""
    checks.whole(minimum=1, n_records=n_records, dimensions=dimensions)
    cap = max(global_bound(n=n_records, d=dimensions, k=k), 1)

    def exceeds(lacked: float, rungs: Callable[[float], float]) -> float:
        # A set whose score is g below the best survives its toss with probability e^(-epsilon g / 2), and comes before the
        # best in half of the orders; at most all of the others are like it.
        return min(1.0, (subspaces - 1) / 2 * math.exp(-float(epsilon) * rungs(lacked) / 2))

    def kind(lacked: float) -> float:
        """Rungs of 1, 2, 3, … records, as many as fit."""
        return (math.sqrt(8 * lacked + 1) - 1) / 2

    def worst(lacked: float) -> float:
        return lacked / min(cap, n_records)

    ends = ((kind, _KIND), (worst, _WORST))
    forecasts = [Forecast.of_tail(_LACKED, partial(exceeds, rungs=rungs), (of,), top=float(n_records)) for rungs, of in ends]
    return ChoicePlan(epsilon=epsilon, n_records=n_records, subspaces=subspaces, forecasts=tuple(forecasts))


def _kindest_bound(discounts: Discounts, cap: int, *, slope: int, base: int) -> Fraction:
    """The smooth bound of a table in which no record decides about others: t steps away, slope t + base do."""
    return discounts.value(max(w * min(cap, max(1, slope * t + base)) for t, w in enumerate(discounts.numerators)))


def _at_best_and_worst(quantity: str, tail: Tail, kind: Fraction, cap: int, n: int) -> tuple[Forecast, Forecast]:
    """What is foretold of a table nobody knows."""

    def forecast(bound: float, assumed: str) -> Forecast:
        return Forecast.of_tail(quantity, lambda x: float(tail(np.array([x / bound]))[0]), (assumed,), top=float(n))

    return forecast(float(kind), _KIND), forecast(float(min(cap, _LARGEST_BOUND)), _WORST)


def _global_scale(amounts: Amounts, cap: int) -> float:
    """Of the global mechanisms' noise, and roughly of the paper's."""
    scale = min(cap, _LARGEST_BOUND) / float(amounts.epsilon)
    return scale * math.sqrt(2 * math.log(2 / float(amounts.delta))) if amounts.delta else scale


def _errors(amounts: Amounts, n: int | None, d: int, k: int, relation: str, cap: int, miss: float) -> tuple[int, int, int]:
    """Median on a kind table, median on the worst, reach on a kind table."""
    law = amounts.law
    if law is None:
        scale = _global_scale(amounts, cap)
        return math.ceil(0.7 * scale), math.ceil(0.7 * scale), _global_reach(amounts, cap, miss)
    kindest = _kindest_of(law, n, d, k, relation, cap)
    worst = law.reach(float(cap), miss=0.5) if cap < 2**1000 else 2**1000
    return law.reach(float(kindest), miss=0.5), worst, law.reach(float(kindest), miss=miss)


def _widths(amounts: Amounts, n: int | None, d: int, k: int, relation: str, cap: int, miss: float) -> tuple[int, int] | None:
    """Half the width of the usual interval on a kind table and on the worst; None where there is no interval."""
    law = amounts.law
    if law is None:
        reach = _global_reach(amounts, cap, miss)
        return None if amounts.method == "paper" else (reach, reach)
    if amounts.bar is None:
        return None
    return _typical_widths(amounts.bar, _kindest_of(law, n, d, k, relation, cap), tail=law.tail, miss=miss, cap=cap)


def _typical_widths(bar: ErrorBar, kind: Fraction, *, tail: Tail, miss: float, cap: int) -> tuple[int, int]:
    at_worst = Fraction(min(cap, _LARGEST_BOUND))
    kindest, worst = (bar.typical_width(bound, tail=tail, miss=miss, cap=cap) for bound in (kind, at_worst))
    return kindest, worst


def _kindest_of(law: Law, n: int | None, d: int, k: int, relation: str, cap: int) -> Fraction:
    discounts = discounts_for(n=n, d=d, k=k, beta=law.beta, relation=relation)
    return _kindest_bound(discounts, cap, slope=1, base=int(relation == "replace-one"))


def _global_reach(amounts: Amounts, cap: int, miss: float) -> int:
    return math.ceil(_global_scale(amounts, cap) * -math.log(miss))
