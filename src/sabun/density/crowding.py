"""Columns in which most public rows lie close together, beside a few far away: weights hardly tell those rows apart."""

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

_CLOSE = 1 / 3
"""Standard deviations between two rows that differ, in the middle, below which they lie close together. Normal 0.95, uniform
1.0, exponential 0.7, log-normal with sigma 1 0.46, with 1.25 0.32, with 1.5 0.2; a rare yes 4 and more, for equal rows do
not count. Of log-normal columns with sigma 1.5, one beside another, intervals of the share above the public 10 % quantile held
6 times of 100."""

_ROWS = 400
"""Public rows that are compared, at most."""


class CrowdedWarning(UserWarning):
    """Most public rows lie close together in a column."""


@dataclass(frozen=True, kw_only=True)
class Crowding:
    """What the public table alone says about how far its rows can be told apart.

    Attributes:
        columns: Columns in which most rows lie close together, measured by the column's standard deviation.
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
            f"Most public rows lie close together in {_listed(self.columns)}, measured by the column's standard deviation: "
            "weights hardly tell them apart, and answers about such a column may be far off and have no interval. Declare it "
            'on a log scale, by Column.number(…, log1p=True) or "log1p": true in the schema\'s file (numbers from 0 on, most '
            "of them above 1), or with closer bounds."
        )

    @property
    def reason(self) -> str:
        """Why a question about such a column has no interval."""
        return (
            f"most public rows lie close together in {_listed(self.columns)}, measured by the column's standard deviation, and "
            "weights hardly tell them apart: declare the column with log1p or closer bounds when the weights are made"
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
    """Whether two rows that differ are closer together, in the middle, than most columns' are."""
    apart = np.abs(column[:, None] - column)[np.triu_indices(len(column), 1)]
    apart = apart[apart > 0]
    return bool(len(apart)) and float(np.median(apart)) < _CLOSE * spread


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
