"""The variance of a column, by public groups whose sizes are private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sabun.privacy.amounts import AmountLike
from sabun.summaries.mean import size_of
from sabun.summaries.moment import Formula, Moment
from sabun.summaries.quotient import spread_known_size, spread_share
from sabun.summaries.ruler import number
from sabun.summaries.sensitivity import of_moments
from sabun.summaries.statistic import Moments
from sabun.summaries.summary import Group, Summary, Terms

__all__ = ["Variance"]


@dataclass(kw_only=True, eq=False, repr=False)
class Variance(Summary):
    """The variance of a column of numbers (the mean square distance to the mean), by group or under a condition.

    Guarantee: epsilon for all groups together (with a delta: epsilon and delta), sizes and intervals included. With x the share
    of the way from the lower bound to the upper one, the sums of x^2, 2x(1 - x) and (1 - x)^2 get noise: together they are the
    size, so one person changes the three together by 1 at most, under replace-one by 2. Over all rows under replace-one the
    size is public, and two sums are enough.

    Edge cases: as in `Mean`. It is the variance of the rows there are, with n below the bar.

    Args:
        column: A number column of the schema. Its unreadable cells count as the schema's `missing`.
        epsilon: As in `Count`, like all parameters below.
        delta: None or 0 for discrete Laplace noise; above 0 for discrete Gaussian noise.
        schema: What is publicly known about the columns.
        by: A column of labels: one variance for each that the schema declares.
        where: A public condition.
        relation: `replace-one` or `add-remove`; the ledger's when left out.
        confidence: How often an interval holds the exact variance of the cells as they are read (see `Sum`), each by itself.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free.
        random_state: None for a private result; a whole number simulates.

    Attributes:
        variance_: The private variance, or None; with `by`, variances by label.
        interval_: Bounds for the exact variance, likewise.
        guarantee_: What is promised.
        release_: The value with its guarantee; with `sizes` where they are private.

    Example:
        >>> from sabun.records import Schema
        >>> schema = Schema.of_bounds({"age": (0, 100)})
        >>> model = Variance(column="age", epsilon=10000, schema=schema, random_state=1).fit([[40], [60]])
        >>> round(model.variance_)
        100
    """

    word = "variance"

    column: str
    delta: AmountLike | None = None

    def _recipe(self, terms: Terms) -> Moment:
        return Moment.of(terms, _FORMULA)


def _numbers(how: Moment, moments: Moments) -> list[int]:
    size, marks, squares = moments
    width = how.ruler.steps
    if how.public:
        centred = 2 * marks - size * width
        return [width * centred, 4 * squares - 4 * width * marks + size * width**2]
    return [squares, 2 * (width * marks - squares), size * width**2 - 2 * width * marks + squares]


def _answer(how: Moment, noisy: Sequence[int], rows: int, miss: float) -> Group:
    width = how.ruler.steps
    if how.public:
        share, size = spread_known_size(noisy[0], noisy[1], width, rows, how.noise, miss), None
    else:
        share = spread_share((noisy[0], noisy[1], noisy[2]), how.noise, miss)
        size = size_of(noisy, width**2, how.terms.most(rows))
    unit = (width * how.ruler.step) ** 2

    def at(part: float) -> float:
        return number(Fraction(part) * unit)

    return Group(None if share.found is None else at(share.found), [at(share.low), at(share.high)], size)


def _extent(how: Moment, size: int) -> Fraction:
    del size
    return (how.ruler.steps * how.ruler.step) ** 2 / 4


_FORMULA = Formula(change=of_moments, numbers=_numbers, answer=_answer, extent=_extent, squared=True)
