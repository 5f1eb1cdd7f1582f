"""Questions about the private table, answered with the weighted public one: post-processing only."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from sabun import checks
from sabun.asking.names import renamed
from sabun.density.kernel import Floats
from sabun.errors import DataError, ParameterError
from sabun.telling.measures import PLAIN, Measure

__all__ = [
    "COVERED",
    "EARLIER",
    "WHOLE",
    "Answer",
    "Interval",
    "checked_bounds",
    "column_values",
    "effective_size",
    "must_name_columns",
]

Interval = tuple[float, float]

Question = Callable[..., Any] | str | int | Any
"""A function of the table (or of one row), a column, or one number for each public row."""

WHOLE = "whole table"
COVERED = "covered rows"
"""What an answer is about: all private rows, or those that the public table can speak for."""

EARLIER = (
    "the release was made by an earlier version, which did not count the private rows off the public table's support; "
    "its noise alone says too little"
)
"""Why an old release gives no interval."""


@renamed(level="confidence")
@dataclass(frozen=True, kw_only=True)
class Answer:
    """An estimated figure of the private table: a mean, or a share, a count, a sum, a quantile.

    Attributes:
        estimate: The weighted mean over the public rows; the plain one where the weights move it by no more than they would
            move the mean of any numbers that they have nothing to do with. A quantile: of the weighted rows.
        weighted: The figure by the weights, whichever was taken; None where both are one.
        interval: Where the figure of the `target` lies at the stated confidence, if the logarithm of the ratio is smooth; None
            when no interval can be given.
        reason: Why there is no interval; None when there is one.
        target: "covered rows": the private rows on the public table's support. "whole table": all of them, where bounds were
            declared; the interval then allows the uncovered rows to lie anywhere within the bounds.
        uncovered: The share of private rows off the public support, estimated; None when it was not released.
        uncovered_interval: Where that share lies at the stated confidence, whatever the ratio is.
        worst_case: Where the mean of the target lies at the stated confidence, for any weights on the public rows that agree
            with the release; None when it was not asked for or says nothing.
        sampling_error: Standard error because both tables are samples.
        noise_error: Standard error because of what the noise and the number of released coordinates leave open.
        confidence: How often an interval is meant to hold; also under its older name `level`.
        measure: What the figure counts: units, or days that are told as dates.
    """

    estimate: float
    interval: tuple[float, float] | None
    weighted: float | None = None
    reason: str | None = None
    target: str = COVERED
    uncovered: float | None = None
    uncovered_interval: tuple[float, float] | None = None
    worst_case: tuple[float, float] | None = None
    sampling_error: float | None = None
    noise_error: float | None = None
    confidence: float
    measure: Measure = field(default=PLAIN, repr=False)

    def __str__(self) -> str:
        about = f"{self.shown} ({self.target})"
        if self.interval is None:
            told = f"{about}, no interval: {self.reason}"
        else:
            low, high = self.measure.ends(*self.interval)
            told = f"{about}, {self.confidence:.0%} interval {low} to {high}"
        if self.worst_case is not None:
            low, high = self.measure.ends(*self.worst_case)
            told += f", in the worst case {low} to {high}"
        if self.uncovered_interval is not None:
            least, most = self.uncovered_interval
            told += f"; {least:.1%} to {most:.1%} of the private rows are off the public table's support"
        return told

    @property
    def shown(self) -> str:
        """The estimate with as many digits as its interval leaves."""
        ends = (self.estimate, self.estimate) if self.interval is None else self.interval
        return self.measure.told(self.estimate, *ends)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the confidence also under its older name, a unit or dates where there are any."""
        told = {**dataclasses.asdict(self), "level": self.confidence}
        del told["measure"]
        told |= {"unit": self.measure.unit} if self.measure.unit else {}
        if self.measure.dates:
            ends = None if self.interval is None else list(self.measure.bare_ends(*self.interval))
            told["dates"] = {"estimate": self.measure.exactly(self.estimate), "interval": ends}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}


def effective_size(weights: Floats) -> float:
    """How many unweighted rows the weighted ones are worth: (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights @ weights))


def checked_bounds(bounds: Any, values: Floats) -> tuple[float, float]:
    """Declared bounds of a question, which must hold for the public rows too."""
    good = isinstance(bounds, list | tuple) and len(bounds) == 2 and all(checks.is_number(end) for end in bounds)
    good = good and math.isfinite(bounds[0]) and math.isfinite(bounds[1]) and bounds[0] <= bounds[1]
    checks.require(good, "a pair (low, high) of finite numbers with low <= high", bounds=bounds)
    low, high = float(bounds[0]), float(bounds[1])
    inside = low <= float(values.min()) and float(values.max()) <= high
    checks.require(inside, "such that every public row lies within", "Declare wider ones.", bounds=bounds)
    return low, high


def must_name_columns(limits: Iterable[str], names: Sequence[str]) -> None:
    """Refuses bounds of a column that the public table does not have."""
    for name in limits:
        if name not in names:
            advice = checks.offered(name, names)
            raise ParameterError(f"bounds must name a column of the table; got {name!r}. {advice}".rstrip())


def column_values(question: Question, table: Any, rows: int) -> Floats:
    """One number (or one row of numbers) for each public row.

    A function is first called with the whole table; if that does not give one result for each row, it is called with each row.
    """
    if callable(question):
        return _of_function(question, table, rows)
    if isinstance(question, str):
        return _numbers(_column(table, question), rows, f"column {question!r}")
    if isinstance(question, int | np.integer) and not isinstance(question, bool):
        array = _plain(table)
        checks.require(
            -array.shape[1] <= question < array.shape[1], f"a column number below {array.shape[1]}", column=int(question)
        )
        return _numbers(array[:, int(question)], rows, f"column {question}")
    return _numbers(question, rows, "the question")


def _of_function(function: Callable[..., Any], table: Any, rows: int) -> Floats:
    try:
        found = np.asarray(function(table), dtype=np.float64)
        if found.ndim in (1, 2) and len(found) == rows:
            return _numbers(found, rows, "the function's result")
    except Exception:  # the function may be meant for one row; if not, the next call says what is wrong
        found = np.empty(0)
    try:
        each = [np.asarray(function(row), dtype=np.float64) for row in _plain(table)]
    except Exception as problem:  # public rows only: the user may see everything
        raise ParameterError(
            f"the function must accept the public table or one of its rows; it raised {problem!r}."
        ) from problem
    return _numbers(np.array(each), rows, "the function's result")


def _column(table: Any, name: str) -> Any:
    if isinstance(table, np.ndarray):
        advice = "The public table is an array: give the column's number."
        raise ParameterError(f"column must be a whole number; got {name!r}. {advice}")
    frame = nw.from_native(table, eager_only=True)
    if name not in frame.columns:
        raise DataError(f"the public table has no column {name!r}. {checks.offered(name, frame.columns)}".rstrip())
    return frame[name].to_numpy()


def _plain(table: Any) -> Any:
    return table if isinstance(table, np.ndarray) else np.asarray(table)


def _numbers(found: Any, rows: int, what: str) -> Floats:
    try:
        numbers = np.asarray(found, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"{what} must hold numbers; it does not. For labels ask for a share: mean(lambda t: t['x'] == 'a')."
        ) from None
    numbers = numbers[:, 0] if numbers.ndim == 2 and numbers.shape[1] == 1 else numbers
    if numbers.ndim not in (1, 2) or len(numbers) != rows:
        raise DataError(f"{what} must give one number for each of the {rows} public rows; got shape {numbers.shape}.")
    if not np.isfinite(numbers).all():
        raise DataError(f"{what} must be finite for every public row; at least one number is not.")
    return numbers
