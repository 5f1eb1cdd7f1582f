"""Figures other than a mean, each from answers about means: how many, how much in all, which value a share lies below."""

from __future__ import annotations

import bisect
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.density.answers import WHOLE, Answer, Interval, checked_bounds
from sabun.density.crowding import NOWHERE, Crowding
from sabun.density.expression import Expression
from sabun.density.kernel import Floats
from sabun.density.settling import Settling
from sabun.errors import DataError, ParameterError
from sabun.records import Column, NumberColumn, Schema
from sabun.telling.measures import PLAIN, Measure

__all__ = ["KINDS", "Means", "Weighted", "answered", "as_numbers", "figure", "measured"]

KINDS = ("mean", "share", "count", "sum", "quantile", "median")
"""What can be asked of a column or a condition."""

_UNBOUNDED = "a sum takes in rows that are unlike any public one, and nothing says how large those are: declare bounds"
_OPEN = "even the {end} public value may lie on either side of it: declare bounds"


class Means(Protocol):
    """What knows means over the private rows, and how many private rows there are."""

    def answer(
        self, values: Floats, rows: NDArray[np.bool_], *, confidence: float, bounds: Interval | None, worst: bool
    ) -> Answer:
        """The mean of one number for each public row over the rows that count."""

    def size(self, confidence: float) -> tuple[float, Interval]:
        """The number of private rows, and where it lies."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighted:
    """Weights alone, which know nothing of their error.

    Attributes:
        mass: One weight for each public row.
        reason: Why no interval can be given.
        records: The number of private rows, where it is public.
        settling: What decides between the weighted mean and the plain one, where the coordinates behind the weights are known.
    """

    mass: Floats
    reason: str
    records: int | None = None
    settling: Settling | None = None

    def answer(
        self, values: Floats, rows: NDArray[np.bool_], *, confidence: float, bounds: Interval | None, worst: bool
    ) -> Answer:
        """The weighted mean, or what is settled."""
        del bounds, worst
        if self.settling is None:
            estimate, weighted = float(self.mass[rows] @ values[rows] / self.mass[rows].sum()), None
        else:
            estimate, weighted = self.settling.means(values, rows)
        return Answer(estimate=estimate, weighted=weighted, interval=None, reason=self.reason, confidence=confidence)

    def size(self, confidence: float) -> tuple[float, Interval]:
        """The public number of rows.

        Raises:
            ParameterError: The release does not hold it.
        """
        del confidence
        if self.records is None:
            raise ParameterError(
                f"the number of private rows must be known for a count or a sum; {self.reason}. Ask for a share or a mean."
            )
        return float(self.records), (float(self.records), float(self.records))


def figure(
    means: Means,
    values: Floats,
    rows: NDArray[np.bool_],
    *,
    kind: str,
    at: float | None = None,
    confidence: float,
    bounds: Interval | None,
    worst: bool = False,
) -> Answer:
    """One figure over the private rows.

    Args:
        means: What knows means.
        values: One number for each public row; 0 and 1 for a condition.
        rows: Which public rows count.
        kind: One of `KINDS`.
        at: Which quantile.
        confidence: How often an interval is meant to hold.
        bounds: Public bounds of the numbers, for every record.
        worst: Whether to search for an interval without smoothness too, where there is one.
    """
    checks.one_of(KINDS, kind=kind)
    if kind in ("quantile", "median"):
        level = 0.5 if kind == "median" else at
        checks.require(level is not None and checks.is_number(level) and 0 < level < 1, "above 0 and below 1", at=at)
        return _quantile(means, values, rows, level=float(level or 0.5), confidence=confidence, bounds=bounds)
    if kind in ("share", "count"):
        good = bool(((values == 0) | (values == 1)).all())
        checks.require(good, "a condition, 0 or 1 for each row", f="other numbers")
        bounds = (0.0, 1.0)
    if kind in ("count", "sum"):
        return _total(means, values, rows, confidence=confidence, bounds=bounds, worst=worst, counts=kind == "count")
    return means.answer(values, rows, confidence=confidence, bounds=bounds, worst=worst)


def _total(
    means: Means,
    values: Floats,
    rows: NDArray[np.bool_],
    *,
    confidence: float,
    bounds: Interval | None,
    worst: bool,
    counts: bool,
) -> Answer:
    """The sum over all private rows, of 0 where a row does not count: their number times a mean."""
    around = None if bounds is None else (min(bounds[0], 0.0), max(bounds[1], 0.0))
    records, (least, most) = means.size(confidence)
    # A number of rows that is itself noisy takes half of what may go wrong.
    each = confidence if least == most else (1 + confidence) / 2
    least, most = means.size(each)[1]
    found = means.answer(values * rows, np.ones(len(rows), dtype=np.bool_), confidence=each, bounds=around, worst=worst)

    def scaled(ends: Interval | None) -> Interval | None:
        if ends is None:
            return None
        (low, high) = ends
        return min(least * low, most * low), max(least * high, most * high)

    told = dataclasses.replace(
        found,
        estimate=records * found.estimate,
        weighted=None if found.weighted is None else records * found.weighted,
        interval=scaled(found.interval),
        worst_case=scaled(found.worst_case),
        sampling_error=None if found.sampling_error is None else records * found.sampling_error,
        noise_error=None if found.noise_error is None else records * found.noise_error,
        target=WHOLE,
        confidence=confidence,
    )
    if told.interval is not None and bounds is None:
        return dataclasses.replace(told, interval=None, worst_case=None, reason=_UNBOUNDED)
    return told


def _quantile(
    means: Means, values: Floats, rows: NDArray[np.bool_], *, level: float, confidence: float, bounds: Interval | None
) -> Answer:
    """The least value that a share of the private rows does not exceed.

    The interval holds the public values t for which the share of rows up to t may be the level: whether the true quantile is
    among them depends on the interval of one share alone, the one at that quantile, so it holds as often as that of a share.
    """
    marks = np.unique(values[rows])
    last = len(marks) - 1

    @functools.cache
    def share(place: int) -> Answer:
        return means.answer(
            (values <= marks[place]).astype(np.float64), rows, confidence=confidence, bounds=(0.0, 1.0), worst=False
        )

    def first(reaches: Callable[[Answer], bool]) -> int:
        """The first mark whose share reaches the level in that sense; the last one where none before it does."""
        return bisect.bisect_left(range(last), True, key=lambda place: reaches(share(place)))

    middle = first(lambda found: _weighted(found) >= level)
    told = share(max(0, min(middle, last - 1)))
    estimate = float(marks[middle])
    if told.interval is None:
        return dataclasses.replace(told, estimate=estimate, weighted=None, noise_error=None, sampling_error=None)
    below = first(lambda found: _interval(found)[1] >= level) - 1
    above = first(lambda found: _interval(found)[0] >= level)
    reason = None
    low, high = float(marks[max(below, 0)]), float(marks[above])
    if below < 0:
        low, reason = (min(bounds[0], low), reason) if bounds is not None else (low, _OPEN.format(end="least"))
    if above == last:
        high, reason = (max(bounds[1], high), reason) if bounds is not None else (high, _OPEN.format(end="largest"))
    return dataclasses.replace(
        told,
        estimate=estimate,
        weighted=None,
        interval=None if reason else (min(low, estimate), max(high, estimate)),
        reason=reason,
        noise_error=None,
        sampling_error=None,
        worst_case=None,
    )


def _all(means: Means, confidence: float) -> Answer:
    """The number of all private rows; of the public ones nothing is needed."""
    records, ends = means.size(confidence)
    return Answer(estimate=records, interval=ends, target=WHOLE, confidence=confidence)


def _interval(found: Answer) -> Interval:
    return (0.0, 1.0) if found.interval is None else found.interval


def _weighted(found: Answer) -> float:
    return found.estimate if found.weighted is None else found.weighted


def as_numbers(frame: Any, schema: Schema | None) -> Any:
    """The frame with the cells of declared numbers and dates as the weights were made with: numbers inside their bounds."""
    for column in () if schema is None else schema.columns:
        if isinstance(column, NumberColumn) and column.name in frame.columns:
            frame = frame.assign(**{column.name: column.encode(frame[column.name].tolist())})
    return frame


def measured(kind: str, column: Column | None) -> Measure:
    """What a figure of a column counts; shares and counts are plain numbers."""
    measure = Measure.of(column)
    return {"count": PLAIN, "share": PLAIN, "sum": measure.apart}.get(kind, measure)


def answered(
    question: str,
    table: Any,
    means: Means,
    *,
    confidence: float,
    limits: dict[str, Interval],
    worst: bool = False,
    schema: Schema | None = None,
    crowding: Crowding = NOWHERE,
) -> dict[str, Answer]:
    """The answers to a question in words, each under the question that asks for it alone.

    Args:
        question: Such as "median(age where sex = F)" or "count(age > 50) by region".
        table: The public table, as a pandas frame.
        means: What knows means.
        confidence: How often an interval is meant to hold.
        limits: Public bounds of columns.
        worst: Whether to search for intervals without smoothness too.
        schema: What was declared about the columns, for units and dates.
        crowding: What the public table says about how far its rows can be told apart.

    Raises:
        ParameterError: The question has none of the known forms.
        DataError: The table cannot answer it.
    """
    read = Expression.read(question, tuple(map(str, table.columns)))
    single = read.by is None and len(read.at) < 2
    found = {}
    dates = [column.name for column in (() if schema is None else schema.columns) if Measure.of(column).dates]
    for one in read.singles(table, dates=dates):
        if one.kind == "count" and not one.what and one.where is None:
            found[question] = _all(means, confidence)
            continue
        values, rows = one.values(table), one.rows(table)
        if one.kind != "count" and not rows.any():
            raise DataError("no public row with weight meets the condition.")
        if not np.isfinite(values[rows]).all():
            raise DataError(
                f"{one.what!r} must be a number in every public row that counts; at least one cell is empty. Ask about "
                "the others, such as mean(cost where cost > 0), or compare the column when the weights are made (--columns)."
            )
        declared = limits.get(one.what) if not one.is_share(table) else None
        told = figure(
            means,
            np.where(rows, values, 0.0),
            rows,
            kind=one.kind,
            at=one.at[0] if one.at else None,
            confidence=confidence,
            bounds=(0.0, 1.0) if one.is_share(table) else declared and checked_bounds(declared, values[rows]),
            worst=worst,
        )
        column = None if schema is None or one.what not in schema.names or one.is_share(table) else schema[one.what]
        told = dataclasses.replace(told, measure=measured(one.kind, column))
        found[question if single else str(one)] = crowding.withheld(told, one.columns_asked(table))
    return found
