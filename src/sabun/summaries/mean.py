"""The mean of a column, by public groups whose sizes are private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sabun.privacy.amounts import AmountLike
from sabun.summaries.moment import Formula, Moment
from sabun.summaries.quotient import mean_share
from sabun.summaries.ruler import number
from sabun.summaries.sensitivity import of_sides
from sabun.summaries.statistic import Moments
from sabun.summaries.summary import Group, Summary, Terms

__all__ = ["Mean", "size_of"]


@dataclass(kw_only=True, eq=False, repr=False)
class Mean(Summary):
    """The mean of a column of numbers, by group or under a condition.

    Guarantee: epsilon for all groups together (with a delta: epsilon and delta), sizes and intervals included. Over all rows
    under replace-one, the size is public and one noisy sum is enough. Otherwise two noisy sums are drawn for each group, of the
    distances to the lower bound and to the upper one: together they are the size times the distance of the bounds, so one
    person changes both together by no more than one of them alone. Under replace-one a person may leave one group for another,
    and the noise is for twice that.

    Edge cases: where the noisy size cannot be told from 0 the mean is None ("too few to tell") and its interval is all that
    is possible. Noisy sizes are released too, for nothing.

    Args:
        column: A number column of the schema. Its unreadable cells count as the schema's `missing`.
        epsilon: As in `Count`, like all parameters below.
        delta: None or 0 for discrete Laplace noise; above 0 for discrete Gaussian noise.
        schema: What is publicly known about the columns.
        by: A column of labels: one mean for each that the schema declares.
        where: A public condition.
        relation: `replace-one` or `add-remove`; the ledger's when left out.
        confidence: How often an interval holds the exact mean of the cells as they are read (see `Sum`), each by itself.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free.
        random_state: None for a private result; a whole number simulates.

    Attributes:
        mean_: The private mean, or None; with `by`, means by label.
        interval_: Bounds for the exact mean, likewise.
        guarantee_: What is promised.
        release_: The value with its guarantee; with `sizes` where they are private.

    Example:
        >>> from sabun.records import Schema
        >>> schema = Schema.of_bounds({"age": (0, 100)})
        >>> model = Mean(column="age", epsilon=1000, schema=schema, random_state=1).fit([[20], [30], [999]])
        >>> round(model.mean_, 1)
        50.0
    """

    word = "mean"

    column: str
    delta: AmountLike | None = None

    def _recipe(self, terms: Terms) -> Moment:
        return Moment.of(terms, _FORMULA)


def size_of(noisy: Sequence[int], unit: int, top: int) -> int:
    """The size of a group whose noisy numbers add up to so many units for each person."""
    return min(max(round(Fraction(sum(noisy), unit)), 0), top)


def _numbers(how: Moment, moments: Moments) -> list[int]:
    size, marks, _ = moments
    return [marks] if how.public else [marks, size * how.ruler.steps - marks]


def _answer(how: Moment, noisy: Sequence[int], rows: int, miss: float) -> Group:
    ruler = how.ruler
    if how.public:
        found, reach = noisy[0], how.noise.reach(miss)
        marks = [
            min(max(Fraction(each, rows), Fraction(0)), Fraction(ruler.steps)) for each in (found, found - reach, found + reach)
        ]
        mean, low, high = (number(ruler.at(mark)) for mark in marks)
        return Group(mean, [low, high])
    share = mean_share(noisy[0], noisy[1], how.noise, miss)

    def at(part: float) -> float:
        return number(ruler.at(Fraction(part) * ruler.steps))

    size = size_of(noisy, ruler.steps, how.terms.most(rows))
    return Group(None if share.found is None else at(share.found), [at(share.low), at(share.high)], size)


def _extent(how: Moment, size: int) -> Fraction:
    del size
    return how.ruler.steps * how.ruler.step


_FORMULA = Formula(change=of_sides, numbers=_numbers, answer=_answer, extent=_extent)
