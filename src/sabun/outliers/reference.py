"""A public table of the same kind as the private one: what it foretells about the error of a count.

Notation: q and S, the number of outliers and its smooth bound; N records in the reference, n in the private table.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.asking import Forecast
from sabun.errors import DataError
from sabun.outliers.error_bar import Tail
from sabun.outliers.points import places_of, read_table
from sabun.outliers.sensitivity import measure, outlier_degrees
from sabun.privacy.noise import seeded_coin
from sabun.records import Persons, Schema, has_names

__all__ = ["Reference", "Seen"]

_DRAWS = 5
_NEARLY = 1.25
_SLOW = 20_000
"""From so many records on, one draw must do."""
_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Of the number of outliers, as far as it is known."""
_APART = 2.0
"""From this factor on between the forecasts with the fewest and the most outliers, both are told."""
_FAR_LARGER = 10
"""Tables of more than so many times the reference's records would be nearly all repetition: every record has its twins, and S
comes out small. With 80 records for 4,000 a plan said 0 where the median error was 1 to 5."""


@final
@dataclass(frozen=True, kw_only=True)
class Seen:
    """What tables of one size, like the reference, look like; public.

    Args:
        counts: q at its levels `_LEVELS`: so far the reference leaves it open how many outliers such a table has.
        bounds: S of some tables drawn from it.
        assumed: In words, for a forecast.
        smaller: S of smaller tables drawn from it, where those of this size would be nearly all repetition; else None.
        supposed: In words, what is assumed with that S.
    """

    counts: tuple[int, ...]
    bounds: tuple[float, ...]
    assumed: tuple[str, ...]
    smaller: float | None = None
    supposed: str = ""

    @property
    def bound(self) -> float:
        """The S in the middle; the one of smaller tables where that is larger."""
        return max(sorted(self.bounds)[len(self.bounds) // 2], self.smaller or 0.0)

    def forecasts(self, quantity: str, tail: Tail, n: int) -> tuple[Forecast, ...]:
        """The error of a count with noise of that law, which is cut off at none and at all n records.

        Noise downwards ends at none, so where there are few outliers their number is about the error. If the reference does not
        tell it to a factor of two, one figure would be a guess: then an optimistic and a pessimistic forecast; the same where
        the reference is far smaller than the table, and hardly tells S.
        """

        def forecast(counts: tuple[int, ...], *more: str, bounds: tuple[float, ...] = self.bounds) -> Forecast:
            def exceeds(x: float) -> float:
                return float(np.mean([_exceeded(x, q, s, n, tail) for q in counts for s in bounds]))

            return Forecast.of_tail(quantity, exceeds, (*self.assumed, *more), top=float(n))

        ends = [
            forecast((q,), f"it has {words} {q} outliers")
            for q, words in zip(self.counts[::4], ("only", "as many as"), strict=True)
        ]
        if self.smaller is not None:
            most = f"it has as many as {self.counts[-1]} outliers"
            return ends[0], forecast(self.counts[-1:], most, self.supposed, bounds=(self.bound,))
        if ends[1].middle + 0.5 > _APART * (ends[0].middle + 0.5) and ends[0].high <= ends[1].high:
            return tuple(ends)
        return (forecast(self.counts),)


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
        """Reads it, as the private table will be read; where it names its columns, only those that are asked about.

        Raises:
            DataError: It is no table of this kind, or has no rows.
        """
        if schema is not None and columns is not None and has_names(table) and not isinstance(table, Persons):
            schema, columns = schema.select([schema.names[at] for at in places_of(columns, schema.names, declared=True)]), None
        _, points = read_table(table, schema=schema, columns=columns)
        if not len(points):
            raise DataError("like must have at least one row; got none.")
        return cls(points=points, radius=radius, cover=cover)

    def seen(self, n: int, *, k: int, beta: Fraction, relation: str) -> Seen:
        """What tables of n records, drawn from this one, look like."""
        checks.whole(minimum=1, n_records=n)

        def bounds(size: int) -> tuple[float, ...]:
            how: dict[str, Any] = {"k": k, "radius": self.radius, "beta": beta, "cover": self.cover, "relation": relation}
            return tuple(float(measure(table, **how)[1]) for table in self._drawn(size))

        held = len(self.points)
        most = _FAR_LARGER * held
        drawn = "" if self._alike(n) else f", of which {n} were drawn" + (" with repetition" if n > held else "")
        return Seen(
            counts=self._outliers(n, k),
            bounds=bounds(n),
            assumed=(f"the table is like the reference of {held} records{drawn}",),
            smaller=max(*bounds(held), *bounds(most)) if n > most else None,
            supposed=f"its records sit together as among {most} drawn with repetition",
        )

    def _outliers(self, n: int, k: int) -> tuple[int, ...]:
        """Levels of the number of outliers among n records.

        Tables drawn with repetition do not tell it: twins keep each other company. A record with c neighbours here has about
        c n/N there, of which fewer than k make it an outlier. Half a record more is counted as one: what the reference has not
        seen at all. The sum is known as well as so many equal ones among the records would be.
        """
        from scipy import stats  # slow to import

        held = len(self.points)
        degrees = outlier_degrees(self.points, radius=self.radius)
        if n > _NEARLY * held:
            alone = stats.poisson.cdf(k - 1, (degrees + 0.5) * n / held)
        else:
            alone = stats.binom.cdf(k - 1, degrees, min(1.0, n / held))
        total, squares = float(alone.sum()) + 0.5, float((alone**2).sum()) + 0.5
        size = total**2 / squares
        levels = stats.nbinom.ppf(_LEVELS, size, size / (size + total * n / held))
        return tuple(min(n, int(level)) for level in levels)

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
