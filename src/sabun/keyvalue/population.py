"""Made-up people for simulations: who holds which keys with which values, in three flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sabun.errors import ParameterError
from sabun.keyvalue.channel import Floats

__all__ = ["People"]


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """Pairs of many people: person i holds `keys[starts[i]:starts[i + 1]]` (sorted, distinct) with those `values` in [-1, 1].

    Raises:
        ParameterError: The arrays do not fit together.

    Example:
        >>> people = People.of_table([[0.5, np.nan], [np.nan, np.nan]])
        >>> len(people), people.keys
        (2, array([0], dtype=int32))
    """

    starts: NDArray[np.int64]
    keys: NDArray[np.int32]
    values: Floats

    def __post_init__(self) -> None:
        for name, kind in (("starts", np.int64), ("keys", np.int32), ("values", np.float64)):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=kind))
        starts, keys, values = self.starts, self.keys, self.values
        fits = starts.ndim == keys.ndim == values.ndim == 1 and len(starts) >= 1 and len(keys) == len(values)
        if not fits or starts[0] != 0 or starts[-1] != len(keys) or np.any(np.diff(starts) < 0):
            raise ParameterError("starts must begin with 0, never fall and end with the number of pairs; it does not.")
        firsts = np.zeros(len(keys) + 1, dtype=bool)
        firsts[starts] = True
        if keys.size and (keys.min() < 0 or np.any((np.diff(keys) <= 0) & ~firsts[1:-1])):
            raise ParameterError("keys must be >= 0, sorted and distinct for each person; they are not.")
        if values.size and not (values.min() >= -1 and values.max() <= 1):
            raise ParameterError("values must be numbers in [-1, 1]; they are not.")

    @cached_property
    def places(self) -> NDArray[np.uint64]:
        """Where each value stands in its range, out of 2**32."""
        return ((self.values + 1) / 2 * 2.0**32).astype(np.uint64)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def of_table(cls, table: ArrayLike) -> Self:
        """One row per person, one column per key, NaN for a key that is not held."""
        matrix = np.asarray(table, dtype=float)
        if matrix.ndim != 2:
            raise ParameterError(f"table must have two dimensions; got {matrix.ndim}.")
        held = ~np.isnan(matrix)
        starts = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
        return cls(starts=starts, keys=np.nonzero(held)[1].astype(np.int32), values=matrix[held])

    def moments(self, keys: int) -> tuple[Floats, Floats]:
        """The true frequency and mean of each key; NaN for the mean of an unheld one."""
        holders = np.bincount(self.keys, minlength=keys)
        with np.errstate(divide="ignore", invalid="ignore"):
            return holders / len(self), np.bincount(self.keys, weights=self.values, minlength=keys) / holders
