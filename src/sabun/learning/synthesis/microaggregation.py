"""One reading of the paper's first step: means of groups of alike records, with noise; proved in microaggregation.proof.md.

Notation: records are put into one total order, cut into groups of k; replacing a record changes one member per group at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.learning.network import Floats
from sabun.learning.synthesis.domain import value_at
from sabun.privacy.noise import Coin, Grid, discrete_laplace
from sabun.records import NumberColumn, Schema

__all__ = ["Microaggregation"]

_GRID = Grid(-10)


@final
@dataclass(frozen=True, kw_only=True)
class Microaggregation:
    """Settings of one synthesis: everything here is public; replace-one neighbours, a public number of records.

    Args:
        schema: Bounds and categories.
        classes: How many labels.
        epsilon: For the whole.
        group_size: k.
        n_records: How many records there are.
    """

    schema: Schema
    classes: int
    epsilon: Fraction
    group_size: int
    n_records: int

    def __post_init__(self) -> None:
        checks.whole(minimum=1, group_size=self.group_size, n_records=self.n_records)

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return -(-self.n_records // self.group_size)

    @property
    def members(self) -> NDArray[np.int64]:
        """How many records each group has: k, and what is left for the last one."""
        return np.diff(np.minimum(np.arange(self.groups + 1) * self.group_size, self.n_records))

    @property
    def record_steps(self) -> int:
        """How far two records can be apart in L1, in grid steps: 1 for a number, 2 for a category, 2 for the label."""
        apart = sum(1 if isinstance(column, NumberColumn) else 2 for column in self.schema.columns) + 2
        return int(apart / _GRID.step)  # proof: record-distance

    @property
    def scale(self) -> Fraction:
        """Scale of the noise on the sums of groups, in grid steps."""
        # A record that moves in the order shifts all between its old and its new place by one: each group hands one member
        # on to the next, so all of them may change, each by one record.
        return self.groups * self.record_steps / self.epsilon  # proof: one-member-each

    def account(self) -> dict[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {"rule": "parts", "pure": [str(self.epsilon)], "rho": "0", "delta": "0"}

    def means(self, rows: Floats, labels: NDArray[np.int64], *, coin: Coin) -> tuple[Floats, NDArray[np.int64]]:
        """One noisy mean for each group with the label most of it seems to have."""
        spread = np.zeros((len(rows), rows.shape[1] + self.classes), dtype=np.int64)
        spread[:, : rows.shape[1]] = _GRID.index(rows)
        known = np.flatnonzero(labels >= 0)
        spread[known, rows.shape[1] + labels[known]] = int(1 / _GRID.step)
        order = np.lexsort(spread.T[::-1])  # proof: total-order
        sums = np.zeros((self.groups, spread.shape[1]), dtype=np.int64)
        np.add.at(sums, np.arange(len(rows)) // self.group_size, spread[order])
        noise = discrete_laplace(self.scale, coin=coin, size=sums.size).reshape(sums.shape)  # proof: noise
        noisy = (sums + noise).astype(np.float64) * float(_GRID.step) / self.members[:, None]
        inputs = np.clip(noisy[:, : rows.shape[1]], 0.0, 1.0)
        return inputs, np.asarray(noisy[:, rows.shape[1] :].argmax(axis=1), dtype=np.int64)

    def records(self, means: Floats) -> Floats:
        """The anonymised table: each record replaced by the mean of its group, encoded under the schema.

        A category is the one with the largest share in the group, or "none of these" where that is larger than any.
        """
        table, at = np.empty((self.groups, len(self.schema.columns))), 0
        for place, column in enumerate(self.schema.columns):
            shares = means[:, at : at + len(column.features)]
            at += len(column.features)
            if isinstance(column, NumberColumn):
                table[:, place] = value_at(column, shares[:, 0])
            else:
                others = 1 - shares.sum(axis=1)
                most = shares.argmax(axis=1)
                outside = (column.missing is None) & (others > shares.max(axis=1))  # type: ignore[attr-defined]
                table[:, place] = np.where(outside, -1, most)
        return np.repeat(table, self.members, axis=0)
