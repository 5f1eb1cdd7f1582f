"""Columns in which many public rows lie close together, in one place or several: weights hardly tell those rows apart."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from sabun.density.answers import Answer
from sabun.density.features import Features, chosen_rows
from sabun.density.kernel import Floats

__all__ = ["NOWHERE", "CrowdedWarning", "Crowding"]

_MIDDLE = 0.04
"""Standard deviations to a twelfth of the rows that differ, from the middle row, below which most lie close together. Uniform
0.147, normal 0.14, exponential 0.085, log-normal with sigma 1 0.053, with 1.25 0.034, with 1.5 0.021; three groups 0.022 where
each has a twentieth of the whole spread, 0.06 where it has a seventh; two values 2 and more, for equal rows do not count."""

_CROWDED = 0.02
"""The same from the row that a tenth of the rows have it closer than, for columns that pile up at one end. Normal 0.1,
exponential 0.05, log-normal with sigma 1 0.03, gamma with shape 0.7 0.027, with 0.5 0.01."""

_NEAREST, _LEAST = 12, 4
"""One in how many rows is gone to, and beyond how many at least: in a table of ten rows two are close by chance."""

_EQUAL = 1e-9
"""Standard deviations by which rows that are equal may differ once they were reckoned with."""

_ROWS = 400
"""Public rows that are compared, at most."""


class CrowdedWarning(UserWarning):
    """Many public rows lie close together in a column."""


@dataclass(frozen=True, kw_only=True)
class Crowding:
    """What the public table alone says about how far its rows can be told apart.

    Attributes:
        columns: Columns in which many rows lie close together, measured by the column's standard deviation.
        compared: All columns that the weights compare.
    """

    columns: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()

    @classmethod
    def of(cls, features: Features, points: Floats) -> Self:
        """Looks at the public points; labels are 0 and 1, which are never close together."""
        spread, some = points.std(axis=0), points[chosen_rows(len(points), _ROWS)]
        names = features.names if features.schema is None else features.schema.features
        found = tuple(name for j, name in enumerate(names) if _is_crowded(some[:, j], float(spread[j])))
        return cls(columns=found, compared=tuple(features.names))

    @property
    def advice(self) -> str | None:
        """What to do before anything is charged; None where there is nothing to say."""
        if not self.columns:
            return None
        return (
            f"Many public rows lie close together in {_listed(self.columns)}, measured by the column's standard deviation: "
            "weights hardly tell them apart, and answers about such a column may be far off and have no interval. Where it has "
            'a long tail, declare it on a log scale, by Column.number(…, log1p=True) or "log1p": true in the schema\'s file '
            "(numbers from 0 on, most of them above 1), or with closer bounds. Where it forms groups, such as latitudes of "
            "cities, compare the distance to the middle of its group in its place, and the groups as a category beside it."
        )

    @property
    def reason(self) -> str:
        """Why a question about such a column has no interval."""
        return (
            f"many public rows lie close together in {_listed(self.columns)}, measured by the column's standard deviation, and "
            "weights hardly tell them apart: when the weights are made, declare the column with log1p or closer bounds, or "
            "compare the distance to the middle of its group"
        )

    def withheld(self, found: Answer, asked: Collection[str] | None) -> Answer:
        """The answer without its interval, where the question is about such a column, or might be.

        Args:
            found: The answer.
            asked: The columns that the question names; None for a function, which may look at any. One that was not compared
                may go with a crowded column, within the crowd too.
        """
        safe = asked is not None and all(name in self.compared and name not in self.columns for name in asked)
        if not self.columns or safe or found.interval is None:
            return found
        return dataclasses.replace(found, interval=None, reason=self.reason)


NOWHERE = Crowding()
"""Where nobody looked, or nothing was found."""


def _is_crowded(column: Floats, spread: float) -> bool:
    """Whether most rows, or the most crowded tenth, have others closer by than rows of most columns do."""
    if np.ptp(column) <= _EQUAL * spread:
        return False
    reach = _reach(column / spread)
    return float(np.median(reach)) < _MIDDLE or float(np.quantile(reach, 0.1)) < _CROWDED


def _reach(column: Floats) -> Floats:
    """How far it is from each row to a twelfth of the rows that differ from it."""
    apart = np.sort(np.abs(column[:, None] - column), axis=1)
    differ = (apart > _EQUAL).sum(axis=1)
    beyond = np.minimum(np.maximum(differ // _NEAREST, _LEAST), differ - 1)
    found: Floats = apart[np.arange(len(column)), len(column) - differ + beyond]
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
