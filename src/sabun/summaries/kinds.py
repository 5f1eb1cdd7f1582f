"""The six questions: the word of each, with what its answers are called in a release."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from sabun.release import Release
from sabun.summaries.laws import Noise
from sabun.telling.floor import FEW
from sabun.telling.language import said
from sabun.telling.measures import PLAIN, Measure, labels_in, measure_in
from sabun.telling.reading import Unfit, has, number_at, numbers_at, pair_at, text_at, texts_at

__all__ = ["ANSWERS", "PARTS", "condition_in", "drowned", "measured", "parts_in"]

ANSWERS: Mapping[str, str] = MappingProxyType(
    {
        "count": "counts",
        "sum": "sums",
        "mean": "means",
        "variance": "variances",
        "histogram": "counts",
        "quantiles": "quantiles",
    }
)

PARTS: Mapping[str, str] = MappingProxyType({"histogram": "bins", "quantiles": "shares"})
"""Questions with several answers for each group, with the fact that names them."""


_HIDDEN: Mapping[str, int] = MappingProxyType({"mean": 2, "variance": 3})
"""Questions whose answer noise can hide, with how many noisy numbers add up to a size."""


def measured(what: str, release: Release) -> Measure:
    """What an answer counts: what its column does, or rows; a mean or a quantile of dates is a date."""
    column = measure_in(release, release.provenance.parameters.get("column"))
    return {"mean": column, "quantiles": column, "sum": column.apart, "variance": column.squared}.get(what, PLAIN)


def parts_in(what: str, release: Release) -> tuple[str, ...]:
    """What the answers of one group are about: shares, or bins with their unit, or between dates."""
    facts = release.provenance.parameters
    named, column = texts_at(facts, PARTS[what]), measure_in(release, facts.get("column"))
    if what != "histogram" or not has(facts, "edges"):
        return named
    if not column.dates:
        ends = [f"{edge:.12g}" for edge in numbers_at(facts, "edges", size=len(named) + 1)]
        return tuple(column.beside(said("{low} to {high}", low=low, high=high)) for low, high in pairwise(ends))
    # A bin begins with the first day that is in it: bins of one width begin within a day.
    starts = [column.exactly(math.ceil(edge)) for edge in numbers_at(facts, "edges", size=len(named) + 1)]
    return tuple(said("{low} to {high}", low=low, high=high) for low, high in pairwise(starts))


def drowned(what: str, release: Release) -> bool:
    """Whether noise could hide more than `FEW` people: then nobody knows whether a group that it hides is small.

    Read off what a mean or a variance publishes; of a file that does not say so, False.
    """
    facts, intervals = release.provenance.parameters, release.value.get("intervals")
    if what not in _HIDDEN or not isinstance(intervals, Mapping) or not has(facts, "noise", "step", "confidence", "mechanism"):
        return False
    # Where nothing can be told an interval is all that the bounds allow: R of a mean, R²/4 of a variance.
    whole = max((high - low for low, high in (pair_at(intervals, name) for name in intervals)), default=0.0)
    step, miss, numbers = number_at(facts, "step"), 1 - number_at(facts, "confidence"), _HIDDEN[what]
    size: Any = facts["noise"]  # a fraction may lie beyond every float
    scale = size if isinstance(size, Fraction) else number_at(facts, "noise")
    if not (0 < whole < math.inf and 0 < scale < math.inf and 0 < step < math.inf and 0 < miss < 1):
        return False
    person = whole / step if what == "mean" else 4 * whole / step / step
    law = Noise(gaussian="Gaussian" in text_at(facts, "mechanism"), size=Fraction(scale))
    return numbers * law.reach(miss, numbers=numbers) > FEW * person


def condition_in(release: Release) -> str:
    """The condition in words: labels, dates, numbers with their unit; empty where there is none."""
    where = release.provenance.parameters.get("where")
    if not (isinstance(where, Mapping) and where):
        return ""

    def words(name: str, pairs: Any) -> str:
        ranges = labels_in(release, name) or [measure_in(release, name).within(*pair) for pair in pairs]
        return f"{name} {said(' or ').join(ranges)}"

    try:
        return said(" and ").join(words(name, pairs) for name, pairs in where.items())
    except (TypeError, ValueError):
        raise Unfit("where") from None
