"""Questions about the private table, answered with the weighted public one: post-processing only."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import narwhals as nw
import numpy as np

from sabun import checks
from sabun.density.kernel import Floats
from sabun.errors import DataError, ParameterError

__all__ = ["Answer", "answer", "column_values", "effective_size"]

Question = Callable[..., Any] | str | int | Any
"""A function of the table (or of one row), a column, or one number for each public row."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """An estimated mean over the private table.

    Attributes:
        estimate: The weighted mean over the public rows.
        interval: Where the mean lies at the stated level, if the public table covers the private one.
        sampling_error: Standard error because the public table is a sample.
        noise_error: Standard error because of the noise that protects the private records.
        shrinkage: How much further from the unweighted answer the mean would lie if noise had not been a reason for even
            weights; the interval reaches there too.
        level: Of the interval.
    """

    estimate: float
    interval: tuple[float, float]
    sampling_error: float
    noise_error: float
    shrinkage: float
    level: float

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.estimate:.6g}, {self.level:.0%} interval {low:.6g} to {high:.6g} "
            f"(standard error {self.sampling_error:.2g} from the public sample, {self.noise_error:.2g} from the noise; "
            "what lies outside the public table's support is not covered)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "estimate": self.estimate,
            "interval": list(self.interval),
            "sampling_error": self.sampling_error,
            "noise_error": self.noise_error,
            "shrinkage": self.shrinkage,
            "level": self.level,
        }


def effective_size(weights: Floats) -> float:
    """How many unweighted rows the weighted ones are worth: (sum w)^2 / sum w^2."""
    return float(weights.sum() ** 2 / (weights @ weights))


def answer(values: Floats, weights: Floats, *, level: float, noise_error: float = 0.0, shrinkage: float = 0.0) -> Answer:
    """The weighted mean of one number for each public row, with its interval."""
    checks.require(checks.is_number(level) and 0 < level < 1, "above 0 and below 1", level=level)
    share = weights / weights.sum()
    estimate = float(share @ values)
    sampling = math.sqrt(float(share @ (values - estimate) ** 2) / effective_size(weights))
    reach = NormalDist().inv_cdf((1 + level) / 2) * math.hypot(sampling, noise_error)
    interval = (estimate + min(shrinkage, 0.0) - reach, estimate + max(shrinkage, 0.0) + reach)
    return Answer(
        estimate=estimate,
        interval=interval,
        sampling_error=sampling,
        noise_error=noise_error,
        shrinkage=shrinkage,
        level=level,
    )


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
        raise DataError(f"the public table has no column {name!r}.")
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
