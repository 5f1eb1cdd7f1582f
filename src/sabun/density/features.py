"""How a record becomes a point: public columns, public scales, one row at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sabun.density.kernel import Floats
from sabun.engine.by_person import here
from sabun.errors import DataError
from sabun.privacy.noise import seeded_coin
from sabun.records import CategoryColumn, Schema, open_source, open_unbounded

__all__ = ["Features", "chosen_rows", "median_distance", "named"]

_MOST_ROWS = 1000
"""Public rows looked at for the median distance."""

_LEAST_SPREAD = 0.05
"""A label that nearly every public record has must not outweigh all other columns."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """The map from records to points, made from the public table and its schema alone.

    Numbers are centred and divided by their standard deviation in the public table. A category becomes one 0/1 column for each
    label, divided by one common factor so that two random public records are as far apart in it as in a number. A record with a
    cell that is not finite is a point that is not finite.

    Attributes:
        names: The columns read.
        schema: What was declared about them, or None for plain numbers without bounds.
        centre: What is subtracted.
        scale: What is multiplied with afterwards.
    """

    names: tuple[str, ...]
    schema: Schema | None
    centre: Floats
    scale: Floats

    @classmethod
    def of(
        cls, public: object, *, schema: Schema | None, standardize: bool, columns: Sequence[str] | None = None
    ) -> tuple[Self, Floats]:
        """Learns the map from the public table; returns it with the public points."""
        raw = cls(names=(), schema=schema, centre=np.zeros(0), scale=np.zeros(0))
        source = raw._open(public, None if columns is None else tuple(columns))
        matrix = _finite(raw._spread(source.matrix()), source.names)
        centre, scale = np.zeros(matrix.shape[1]), np.ones(matrix.shape[1])
        if standardize:
            centre, scale = _moments(matrix, schema, source.names)
        made = cls(names=source.names, schema=schema, centre=centre, scale=scale)
        return made, made._placed(matrix)

    @property
    def width(self) -> int:
        """How many coordinates a point has."""
        return len(self.centre)

    def chunks(self, records: object, *, by_person: bool = False) -> Iterator[Floats]:
        """The points of a table, a piece at a time; its cells can neither raise nor warn."""
        for matrix in self._open(records, self.names, by_person=by_person).partitions():
            yield self._placed(self._spread(matrix))

    def points(self, records: object) -> Floats:
        """All points of a table at once."""
        return np.concatenate([np.empty((0, self.width)), *self.chunks(records)])

    def people(self, private: object) -> Floats:
        """The same of a whole private table, which may be one of persons with several rows each."""
        return np.concatenate([np.empty((0, self.width)), *self.chunks(private, by_person=True)])

    def _open(self, records: object, names: tuple[str, ...] | None, *, by_person: bool = False) -> Any:
        records = named(records)
        if self.schema is not None:
            return open_source(here(records, schema=self.schema), schema=self.schema, by_person=by_person)
        if names is not None and isinstance(records, np.ndarray) and records.ndim == 2 and records.shape[1] != len(names):
            raise DataError(f"a table must have the {len(names)} columns of the public one; got {records.shape[1]}.")
        return open_unbounded(records, columns=names)

    def _spread(self, matrix: Floats) -> Floats:
        return matrix if self.schema is None else self.schema.design(matrix)

    def _placed(self, matrix: Floats) -> Floats:
        with np.errstate(all="ignore"):  # a warning about an overflow would speak of a private cell
            return np.ascontiguousarray((matrix - self.centre) * self.scale)


def named(table: Any) -> Any:
    """The table with two dimensions and text as column names, which pandas does not ask for; anything else as it is."""
    if isinstance(table, np.ndarray):
        return table.reshape(-1, 1) if table.ndim == 1 else table
    if hasattr(table, "to_frame") and not hasattr(table, "columns"):
        name = table.name if isinstance(table.name, str) and table.name else "x0"
        return table.to_frame(name)
    if hasattr(table, "set_axis") and any(not isinstance(name, str) for name in table.columns):
        return table.set_axis([str(name) for name in table.columns], axis=1)
    return table


def chosen_rows(count: int, wanted: int) -> Any:
    """Public pseudo-random row numbers without repetition: the same table gives the same ones."""
    order = np.argsort(seeded_coin(count).words(count), kind="stable")
    return np.sort(order[: min(wanted, count)])


def median_distance(points: Floats) -> float:
    """The median Euclidean distance between two of at most 1000 rows; the mean, then 1, where that is zero."""
    some = points[chosen_rows(len(points), _MOST_ROWS)]
    squares = (some * some).sum(axis=1)
    squared = np.maximum(squares[:, None] + squares[None, :] - 2.0 * (some @ some.T), 0.0)
    distances = np.sqrt(squared[np.triu_indices(len(some), 1)])
    for guess in (float(np.median(distances)), float(distances.mean())):
        if guess > 1e-9 * (1.0 + float(np.sqrt(squares.max()))):
            return guess
    return 1.0


def _finite(matrix: Floats, names: tuple[str, ...]) -> Floats:
    """Refuses a public table that is too small or not finite, by the name of its column."""
    if len(matrix) < 2:
        raise DataError(f"the public table must have at least 2 rows; got {len(matrix)}.")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=0))
    if len(bad):
        name = names[bad[0]] if matrix.shape[1] == len(names) else str(bad[0])
        raise DataError(
            f"column {name!r} of the public table must hold finite numbers; at least one cell is not. "
            "Fill it in, leave the column out, or declare it in a schema."
        )
    return matrix


def _moments(matrix: Floats, schema: Schema | None, names: tuple[str, ...]) -> tuple[Floats, Floats]:
    with np.errstate(all="ignore"):
        centre, spread = matrix.mean(axis=0), matrix.std(axis=0)
    wild = np.flatnonzero(~np.isfinite(spread))
    if len(wild):
        raise DataError(f"column {names[wild[0]]!r} of the public table must have a finite variance. Rescale it.")
    start = 0
    for index, column in enumerate(names if schema is None else schema.columns):
        if isinstance(column, CategoryColumn):
            end = start + len(column.features)
            centre[start:end], spread[start:end] = 0.0, _label_spread(matrix[:, start:end])
            start = end
            continue
        if spread[start] <= 1e-12 * (1.0 + abs(centre[start])):
            spread[start] = 1.0
            warnings.warn(f"column {names[index]!r} is constant in the public table; it is not rescaled.", stacklevel=6)
        start += 1
    return centre, 1.0 / spread


def _label_spread(block: Floats) -> float:
    """The square root of half the mean squared distance between the labels of two public records."""
    shares = block.mean(axis=0)
    rest = 1.0 - shares.sum()
    return float(np.sqrt(max(1.0 - (shares**2).sum() - rest**2, _LEAST_SPREAD)))
