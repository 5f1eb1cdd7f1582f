"""A public table of the same kind as the private one: what it foretells about the error of a count.

Notation: q and S, the number of outliers and its smooth bound, worked out on the reference as the mechanism would.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.asking import Forecast
from sabun.errors import DataError
from sabun.outliers.error_bar import Tail
from sabun.outliers.points import read_table
from sabun.outliers.sensitivity import measure
from sabun.privacy.noise import seeded_coin
from sabun.records import Schema

__all__ = ["Reference", "Seen"]

_DRAWS = 5
_NEARLY = 1.25
_SLOW = 20_000
"""From so many records on, one draw must do."""


@final
@dataclass(frozen=True, kw_only=True)
class Seen:
    """What tables of one size, drawn from the reference, look like; public.

    Args:
        counts: q of each.
        bounds: S of each.
        assumed: In words, for a forecast.
    """

    counts: tuple[int, ...]
    bounds: tuple[float, ...]
    assumed: tuple[str, ...]

    @property
    def bound(self) -> float:
        """The S in the middle."""
        return sorted(self.bounds)[len(self.bounds) // 2]

    def forecast(self, quantity: str, tail: Tail, n: int) -> Forecast:
        """The error of a count with noise of that law, which is cut off at none and at all n records."""

        def exceeds(x: float) -> float:
            return float(np.mean([_exceeded(x, q, s, n, tail) for q, s in zip(self.counts, self.bounds, strict=True)]))

        return Forecast.of_tail(quantity, exceeds, self.assumed, top=float(n))


def _exceeded(x: float, count: int, bound: float, n: int, tail: Tail) -> float:
    """P(|cut off count - count| > x): noise upwards ends at n, noise downwards at 0."""
    beyond = float(tail(np.array([max(x, 0.5) / bound]))[0])  # noise is rounded: below a half there is none
    return beyond * ((x < n - count) + (x < count)) / 2


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Reference:
    """A public table of the same kind as the private one.

    Args:
        points: Its records, in the coordinates in which distances are measured.
        radius: The public radius.
        cover: How records in one ball are bounded.
    """

    points: NDArray[np.float64]
    radius: float
    cover: str

    @classmethod
    def of(
        cls, table: object, *, schema: Schema | None, columns: tuple[int | str, ...] | None, radius: float, cover: str
    ) -> Self:
        """Reads it, as the private table will be read.

        Raises:
            DataError: It is no table of this kind, or has no rows.
        """
        _, points = read_table(table, schema=schema, columns=columns)
        if not len(points):
            raise DataError("like must have at least one row; got none.")
        return cls(points=points, radius=radius, cover=cover)

    def seen(self, n: int, *, k: int, beta: Fraction, relation: str) -> Seen:
        """What tables of n records, drawn from this one, look like."""
        checks.whole(minimum=1, n_records=n)
        measured = [
            measure(table, k=k, radius=self.radius, beta=beta, cover=self.cover, relation=relation) for table in self._drawn(n)
        ]
        held = len(self.points)
        drawn = "" if self._alike(n) else f", of which {n} were drawn" + (" with repetition" if n > held else "")
        return Seen(
            counts=tuple(count for count, _ in measured),
            bounds=tuple(float(bound) for _, bound in measured),
            assumed=(f"the table is like the reference of {held} records{drawn}",),
        )

    def _alike(self, n: int) -> bool:
        """Whether tables of n records are as large as this one, or nearly: repetitions would bring in twins for nothing."""
        return len(self.points) <= n <= _NEARLY * len(self.points)

    def _drawn(self, n: int) -> list[NDArray[np.float64]]:
        """Tables of that size; always the same ones, for all of this is public."""
        coin, held = seeded_coin(0), len(self.points)
        if self._alike(n):
            return [self.points]
        tables = []
        for _ in range(_DRAWS if n < _SLOW else 1):
            if n > held:
                rows = (coin.words(n) % np.uint64(held)).astype(np.int64)
            else:
                rows = np.argsort(coin.words(held), kind="stable")[:n]
            tables.append(self.points[rows])
        return tables
