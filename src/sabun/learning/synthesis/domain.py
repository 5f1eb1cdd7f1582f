"""A table cut into public cells: each column takes one of finitely many codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.learning.network import Floats
from sabun.privacy.noise import Coin
from sabun.records import NumberColumn, Schema

__all__ = ["Codes", "Domain", "value_at"]

Codes: TypeAlias = NDArray[np.int64]


@final
@dataclass(frozen=True, kw_only=True)
class Domain:
    """The public cells of a table.

    Args:
        schema: Bounds and categories.
        bins: Equal cells between the bounds of a number column (on the log scale for log1p columns).

    Example:
        >>> from sabun.records import Column
        >>> columns = [Column.number("age", lower=0, upper=80), Column.category("sex", ["F", "M"])]
        >>> domain = Domain(schema=Schema(columns=columns), bins=4)
        >>> domain.sizes, domain.codes(np.array([[79.0, 1.0], [10.0, -1.0]])).tolist()
        ((4, 3), [[3, 1], [0, 2]])
    """

    schema: Schema
    bins: int

    def __post_init__(self) -> None:
        checks.whole(minimum=2, bins=self.bins)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has; a category column without `missing` has one more, for "none of these"."""
        return tuple(
            self.bins if isinstance(column, NumberColumn) else len(column.features) + (column.missing is None)  # type: ignore[attr-defined]
            for column in self.schema.columns
        )

    def codes(self, matrix: Floats) -> Codes:
        """The cells of an encoded table, row by row."""
        unit = self.schema.scaled(matrix, to=(0.0, 1.0))
        result = np.empty(unit.shape, dtype=np.int64)
        for place, column in enumerate(self.schema.columns):
            values = unit[:, place]
            if isinstance(column, NumberColumn):
                result[:, place] = np.minimum((values * self.bins).astype(np.int64), self.bins - 1)
            else:
                result[:, place] = np.where(values < 0, self.sizes[place] - 1, values).astype(np.int64)
        return result

    def matrix(self, codes: Codes, *, coin: Coin) -> Floats:
        """An encoded table that falls into those cells; numbers are uniform inside their cell."""
        result = np.empty(codes.shape)
        for place, column in enumerate(self.schema.columns):
            if isinstance(column, NumberColumn):
                inside = coin.words(len(codes)).astype(np.float64) * 2.0**-64
                result[:, place] = value_at(column, (codes[:, place] + inside) / self.bins)
            else:
                outside = codes[:, place] >= len(column.features)
                result[:, place] = np.where(outside, -1, codes[:, place])
        return result

    def frame(self, matrix: Floats) -> dict[str, list[Any]]:
        """An encoded table as columns of plain values; None for "none of these"."""
        columns: dict[str, list[Any]] = {}
        for place, column in enumerate(self.schema.columns):
            if isinstance(column, NumberColumn):
                columns[column.name] = [float(f"{value:.6g}") for value in matrix[:, place]]
            else:
                labels = [*column.categories, None]  # type: ignore[attr-defined]
                columns[column.name] = [labels[int(code)] for code in matrix[:, place]]
        return columns


def value_at(column: NumberColumn, unit: Floats) -> Floats:
    """The number at that share of the way between the bounds."""
    if not column.log1p:
        return np.asarray(np.clip(column.lower + unit * (column.upper - column.lower), column.lower, column.upper))
    low, high = np.log1p(column.lower), np.log1p(column.upper)
    return np.asarray(np.clip(np.expm1(low + unit * (high - low)), column.lower, column.upper))
