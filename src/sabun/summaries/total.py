"""The sum of a column, by public groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sabun.privacy.amounts import AmountLike
from sabun.summaries.moment import Formula, Moment
from sabun.summaries.ruler import number
from sabun.summaries.sensitivity import of_sums
from sabun.summaries.statistic import Moments
from sabun.summaries.summary import Group, Summary, Terms

__all__ = ["Sum"]


@dataclass(kw_only=True, eq=False, repr=False)
class Sum(Summary):
    """The sum of a column of numbers, by group or under a condition.

    Guarantee: epsilon for all groups together (with a delta: epsilon and delta), intervals included. With M the larger of the
    bounds in size, every sum has noise for M under add-remove and for 2M under replace-one, where a person may leave one group
    for another; over all rows, under replace-one, for the distance of the bounds.

    Notation: a cell is clipped to its bounds and moved to the nearest public mark, at most 2**-20 of their distance away;
    "exact" means the sum of these. Whole numbers are on marks where the bounds are less than 500,000 apart.

    Args:
        column: A number column of the schema. Its unreadable cells count as the schema's `missing`.
        epsilon: As in `Count`, like all parameters below.
        delta: None or 0 for discrete Laplace noise; above 0 for discrete Gaussian noise.
        schema: What is publicly known about the columns.
        by: A column of labels: one sum for each that the schema declares.
        where: A public condition.
        relation: `replace-one` or `add-remove`; the ledger's when left out.
        confidence: How often an interval holds the exact sum, each by itself.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free.
        random_state: None for a private result; a whole number simulates.

    Attributes:
        sum_: The private sum; with `by`, sums by label.
        interval_: Bounds for the exact sum, likewise.
        guarantee_: What is promised.
        release_: The value with its guarantee.

    Example:
        >>> from sabun.records import Schema
        >>> schema = Schema.of_bounds({"visits": (0, 8)})
        >>> model = Sum(column="visits", epsilon=1000, schema=schema, random_state=1).fit([[1], [2], [99]])
        >>> round(model.sum_), model.guarantee_.simulated
        (11, True)
    """

    word = "sum"

    column: str
    delta: AmountLike | None = None

    def _recipe(self, terms: Terms) -> Moment:
        return Moment.of(terms, _FORMULA)


def _numbers(how: Moment, moments: Moments) -> list[int]:
    size, marks, _ = moments
    return [marks if how.public else size * how.ruler.first + marks]


def _answer(how: Moment, noisy: Sequence[int], rows: int, miss: float) -> Group:
    first, last = how.ruler.first, how.ruler.first + how.ruler.steps
    found, reach = noisy[0] + (rows * first if how.public else 0), how.noise.reach(miss)
    public_rows = how.terms.counted

    def possible(marks: int) -> float:
        least = rows * first if how.public else rows * min(first, 0) if public_rows else None if first < 0 else 0
        most = rows * last if how.public else rows * max(last, 0) if public_rows else None if last > 0 else 0
        marks = marks if least is None else max(marks, least)
        return number((marks if most is None else min(marks, most)) * how.ruler.step)

    return Group(possible(found), [possible(found - reach), possible(found + reach)])


def _extent(how: Moment, size: int) -> Fraction:
    return size * (how.ruler.steps if how.public else how.ruler.largest) * how.ruler.step


_FORMULA = Formula(change=of_sums, numbers=_numbers, answer=_answer, extent=_extent, divided=False)
