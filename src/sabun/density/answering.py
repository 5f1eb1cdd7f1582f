"""The questions that weights answer, for a program: `query` for a column or a function, `ask` for a question in words."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from sabun import checks
from sabun.asking import renamed
from sabun.density.answers import EARLIER, Answer, checked_bounds, column_values, must_name_columns
from sabun.density.crowding import NOWHERE, Crowding
from sabun.density.export import WEIGHT, without_weights
from sabun.density.features import Features
from sabun.density.figures import KINDS, Means, Weighted, answered, as_numbers, figure, measured
from sabun.density.inference import Inference
from sabun.density.kernel import Floats
from sabun.errors import DataError
from sabun.records import Column, NumberColumn
from sabun.release import Release

__all__ = ["Answering"]


class Answering(ABC):
    """What anybody can ask who has the weights; costs no privacy."""

    weights_: Floats
    release_: Release
    _table: Any
    _points: Floats
    _features: Features
    _crowding: Crowding = NOWHERE

    def mean(self, f: Any) -> Any:
        """The mean of f over the private table, estimated from the public one.

        Args:
            f: A function of the public table or of one row, a column's name or number, or one number for each public row.

        Returns:
            A float, or an array where f gives several numbers for each row.
        """
        self._must_be_fitted()
        values = self._values(f)
        found = self.weights_ @ values / self.weights_.sum()
        return float(found) if values.ndim == 1 else found

    @renamed(level="confidence")
    def query(
        self,
        f: Any,
        *,
        kind: str = "mean",
        at: float | None = None,
        where: Any = None,
        bounds: tuple[float, float] | None = None,
        ci: bool = True,
        confidence: float = 0.95,
        worst_case: bool = False,
    ) -> Answer | float:
        """The mean of f over the private table, or over those of its rows that meet a condition; or another figure.

        The interval rests on a smooth logarithm of the ratio; where the release leaves too much open there is none, and the
        answer says why. Without `bounds` it is about the covered rows, those on the public table's support.

        Args:
            f: As in `mean`, one number for each row.
            kind: "mean"; "share" or "count" of the rows for which f is 1 (not 0); "sum", which needs `bounds` for an interval;
                "median"; or "quantile".
            at: Which quantile, above 0 and below 1.
            where: As f; rows with a number above 0 count. All of them when left out.
            bounds: Public bounds (low, high) of f for every record. With them (and without `where`) the interval is for the
                whole table: uncovered rows may lie anywhere in between.
            ci: Whether an interval is wanted.
            confidence: How often an interval is meant to hold the exact answer.
            worst_case: Whether to search for an interval that needs no smoothness too; takes longer, and is wide.
        """
        self._must_be_fitted()
        _check(confidence)
        checks.one_of(KINDS, kind=kind)
        values, column = self._values(f), self._declared(f)
        checks.require(values.ndim == 1, "one number for each row", f="several numbers for each row")
        size = len(self._points)
        rows = np.ones(size, dtype=np.bool_) if where is None else column_values(where, self._table, size) > 0
        if kind != "count" and not (self.weights_ * rows).sum() > 0:
            raise DataError("where must hold for a public row with weight; it holds for none.")
        declared = None if bounds is None else checked_bounds(bounds, values)
        means = self.means if ci else self._estimates()
        found = figure(
            means, values, rows, kind=kind, at=at, confidence=float(confidence), bounds=declared, worst=worst_case and ci
        )
        if not ci:
            return found.estimate
        return self._crowding.withheld(dataclasses.replace(found, measure=measured(kind, column)), self._asked(f, where))

    def ask(
        self,
        question: str,
        *,
        bounds: Mapping[str, tuple[float, float]] | None = None,
        confidence: float = 0.95,
        worst_case: bool = False,
    ) -> dict[str, Answer]:
        """Answers a question in the words of `sabun density query`.

        Args:
            question: Such as "mean(hours where sex = F)", "count(age > 50 and not (sex = F))", "quantile(age, 0.9)" or
                "median(age) by sex".
            bounds: Public bounds (low, high) of columns, by name.
            confidence: How often an interval is meant to hold the exact answer, each by itself.
            worst_case: Whether to search for intervals that need no smoothness too.

        Returns:
            One answer; or one for each group and quantile, each under the question that asks for it alone.

        Raises:
            ParameterError: The question has none of the known forms.
            DataError: The table cannot answer it.

        Example:
            >>> from sabun.datasets import density_paper
            >>> from sabun.density import DensityRatio
            >>> tables = density_paper(random_state=0)
            >>> import pandas as pd
            >>> private, public = pd.DataFrame({"x": tables.private}), pd.DataFrame({"x": tables.public})
            >>> ratio = DensityRatio(epsilon=1.0, columns=["x"]).fit(private=private, public=public)
            >>> list(ratio.ask("quantiles(x, 0.25, 0.5)"))
            ['quantile(x, 0.25)', 'median(x)']
        """
        self._must_be_fitted()
        _check(confidence)
        limits = dict(bounds or {})
        schema = self._features.schema
        frame = as_numbers(without_weights(_frame(self._table, self._features.names), self.weights_), schema)
        must_name_columns(limits, list(map(str, frame.columns)))
        how: dict[str, Any] = {"limits": limits, "worst": worst_case, "schema": schema, "crowding": self._crowding}
        return answered(question, frame, self.means, confidence=confidence, **how)

    @property
    def crowding(self) -> Crowding:
        """What the public table says about how far its rows can be told apart."""
        return self._crowding

    def _asked(self, f: Any, where: Any) -> tuple[str, ...] | None:
        """The columns that a question is about; None where it is a function of its own."""
        parts = [f] if where is None else [f, where]
        if isinstance(self._table, np.ndarray):
            own = dict(enumerate(self._features.names)) if self._table.shape[1] == len(self._features.names) else {}
            names = [own.get(int(part)) if isinstance(part, int | np.integer) else None for part in parts]
        else:
            names = [part if isinstance(part, str) else None for part in parts]
        known = tuple(name for name in names if name is not None)
        return known if len(known) == len(parts) else None

    def _declared(self, f: Any) -> Column | None:
        """What was declared about a column that f names."""
        schema = self._features.schema
        return schema[f] if schema is not None and isinstance(f, str) and f in schema.names else None

    def _values(self, f: Any) -> Floats:
        """One number (or one row of numbers) for each public row; the days of a column of dates."""
        column = self._declared(f)
        if isinstance(column, NumberColumn) and column.dates and not isinstance(self._table, np.ndarray):
            return column.encode(_frame(self._table, self._features.names)[column.name].tolist())
        found = column_values(f, self._table, len(self._points))
        if isinstance(f, str) and f == WEIGHT and np.allclose(found, self.weights_):
            raise DataError(f"column {WEIGHT!r} must not be asked about: it holds the weights, no figure of a record.")
        return found

    @property
    def means(self) -> Means:
        """What knows means over the private rows, with their errors."""
        inference = self._inference()
        return Weighted(mass=self.weights_, reason=EARLIER, records=self._records()) if inference is None else inference

    def _estimates(self) -> Means:
        """The same answers without intervals, for every method."""
        inference = self._inference() if self._has_errors() else None
        settling = None if inference is None else inference.settling
        return Weighted(mass=self.weights_, reason="none was wanted", records=self._records(), settling=settling)

    def _records(self) -> int | None:
        """The number of private rows, where the release holds it."""
        found = self.release_.value.get("private_rows", self.release_.provenance.parameters.get("private_rows"))
        return None if found is None else round(float(found))

    @abstractmethod
    def _inference(self) -> Inference | None:
        """What the release says about errors; None for one of an earlier version."""

    @abstractmethod
    def _has_errors(self) -> bool:
        """Whether the method is one whose releases say something about errors."""

    @abstractmethod
    def _must_be_fitted(self) -> None:
        """Refuses questions before there are weights."""


def _check(confidence: float) -> None:
    checks.require(checks.is_number(confidence) and 0 < confidence < 1, "above 0 and below 1", confidence=confidence)


def _frame(table: Any, names: tuple[str, ...]) -> Any:
    """The public table as a pandas frame."""
    import pandas as pd

    if isinstance(table, np.ndarray):
        return pd.DataFrame(table, columns=list(names))
    return nw.from_native(table, eager_only=True).to_pandas()
