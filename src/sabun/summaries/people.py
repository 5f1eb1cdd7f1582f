"""Whom a question is about: public groups and a public condition, applied to one encoded row at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.records import CHUNK_ROWS, CategoryColumn, Column, NumberColumn, Schema, has_names, open_source
from sabun.records.dates import days_of
from sabun.telling.measures import dates_of, units_of

__all__ = ["EVERYBODY", "Block", "People", "Where"]

Where: TypeAlias = Mapping[str, Any]
"""Columns with a range (low, high), None for no limit, or with a label or several."""

EVERYBODY = "all"
"""The name of the one group there is without `by`."""

_Range: TypeAlias = tuple[float, float]


class Block(NamedTuple):
    """Some rows, encoded: the number of each one's group (-1 for nobody asked about), and its cell."""

    groups: NDArray[np.int64]
    cells: NDArray[np.float64]


@final
@dataclass(frozen=True, kw_only=True)
class People:
    """Groups and condition of a question; public.

    Args:
        schema: What is declared about the table.
        column: The column that is summed up, or None for a count.
        by: The category column whose labels are the groups, or None for one group.
        where: Columns with the half-open ranges of encoded values that count, in order of name.
    """

    schema: Schema
    column: str | None
    by: str | None
    where: tuple[tuple[str, tuple[_Range, ...]], ...]

    @classmethod
    def of(cls, schema: object, *, column: object, by: object, where: object) -> Self:
        """Checks what was asked against what is declared.

        Raises:
            ParameterError: A column is not declared, is of the wrong kind, or a condition makes no sense.
        """
        checks.require(isinstance(schema, Schema), "a Schema", "Declare the columns first.", schema=schema)
        assert isinstance(schema, Schema)
        for name, value in (("column", column), ("by", by)):
            if value is not None:
                checks.column(schema.names, **{name: value})
        if by is not None:
            good = isinstance(schema[str(by)], CategoryColumn)
            labels = [column.name for column in schema.columns if isinstance(column, CategoryColumn)]
            advice = f"Groups are the labels that the schema declares. {checks.offered(None, labels)}".rstrip()
            checks.require(good, "a column of labels", advice, by=by)
        return cls(
            schema=schema,
            column=None if column is None else str(column),
            by=None if by is None else str(by),
            where=_conditions(schema, where),
        )

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, from the schema."""
        found = None if self.by is None else self.schema[self.by]
        return found.categories if isinstance(found, CategoryColumn) else (EVERYBODY,)

    @property
    def everybody(self) -> bool:
        """Whether each row of the table counts, in one group: the size of the group is then that of the table."""
        return self.by is None and not self.where

    @property
    def summed(self) -> NumberColumn:
        """The column that is summed up, which must hold numbers."""
        found = self.schema[str(self.column)]
        numbers = [column.name for column in self.schema.columns if isinstance(column, NumberColumn)]
        checks.require(
            isinstance(found, NumberColumn), "a column of numbers", checks.offered(None, numbers), column=self.column
        )
        assert isinstance(found, NumberColumn)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are looked at, each once."""
        used = (self.column, self.by, *(name for name, _ in self.where))
        return tuple(dict.fromkeys(name for name in used if name is not None)) or self.schema.names[:1]

    @property
    def labels(self) -> dict[str, dict[str, list[str]]]:
        """The labels that the condition takes, as a release keeps them: its facts hold codes, which nobody can read."""
        found = {
            name: [column.categories[round(low + 0.5)] for low, _ in ranges]
            for name, ranges in self.where
            if isinstance(column := self.schema[name], CategoryColumn)
        }
        return {"labels": found} if found else {}

    @property
    def dates(self) -> dict[str, list[str]]:
        """The columns among them whose numbers are days since 1970-01-01, as a release keeps them."""
        return dates_of({name: self.schema[name] for name in self.names})

    def blocks(self, source: object) -> Iterator[Block]:
        """The rows of a table, encoded; no cell can raise."""
        # Tables with names need the columns in question only; rows without names are told apart by their order.
        schema = self.schema.select(self.names) if has_names(source) else self.schema
        for matrix in open_source(source, schema=schema, by_person=True).partitions(rows=CHUNK_ROWS):
            yield self._block(matrix, schema.names)

    def _block(self, matrix: NDArray[np.float64], names: tuple[str, ...]) -> Block:
        def cells(name: str) -> NDArray[np.float64]:
            return matrix[:, names.index(name)]

        groups = np.zeros(len(matrix), dtype=np.int64) if self.by is None else cells(self.by).astype(np.int64)
        for name, ranges in self.where:
            inside = np.any([(low <= cells(name)) & (cells(name) < high) for low, high in ranges], axis=0)
            groups = np.where(inside, groups, -1)
        return Block(groups, np.zeros(len(matrix)) if self.column is None else cells(self.column))

    def sample(self) -> Block:
        """Made-up rows that go through every group and from one end of the column to the other."""
        rows = 1024
        cells = np.zeros(rows)
        if self.column is not None:
            declared = self.schema[self.column]
            low, high = (declared.lower, declared.upper) if isinstance(declared, NumberColumn) else (0.0, 1.0)
            cells = np.clip(low + (high - low) * (np.arange(rows) / (rows - 1)), low, high)
        return Block(np.arange(rows, dtype=np.int64) % (len(self.groups) + 1) - 1, cells)

    def facts(self) -> dict[str, Any]:
        """The public choices, as a release keeps them."""
        told = {name: [[_side(low), _side(high)] for low, high in ranges] for name, ranges in self.where}
        units = units_of({name: self.schema[name] for name in self.names})
        return {"column": self.column, "by": self.by, "groups": list(self.groups), "where": told} | units


def _side(end: float) -> float | None:
    return end if math.isfinite(end) else None


def _conditions(schema: Schema, where: object) -> tuple[tuple[str, tuple[_Range, ...]], ...]:
    if where is None:
        return ()
    checks.require(isinstance(where, Mapping) and len(where) > 0, "a mapping from columns to ranges or labels", where=where)
    assert isinstance(where, Mapping)
    for name in where:
        rule = f"about declared columns ({', '.join(map(repr, schema.names))})"
        checks.require(name in schema.names, rule, checks.meant(name, schema.names), where=name)
    return tuple((str(name), _ranges(schema[name], where[name])) for name in sorted(where))


def _ranges(column: Column, wanted: object) -> tuple[_Range, ...]:
    """Labels as ranges of their codes; a range as it is."""
    if isinstance(column, CategoryColumn):
        labels = [wanted] if isinstance(wanted, str) else list(wanted) if isinstance(wanted, list | tuple) else []
        strange = [str(label) for label in labels if str(label) not in column.categories]
        good = len(labels) > 0 and len(set(map(str, labels))) == len(labels) and not strange
        advice = checks.offered(next(iter(strange), None), column.categories)
        checks.require(good, f"labels of column {column.name!r}, each once", advice, where=wanted)
        return tuple((code - 0.5, code + 0.5) for code in sorted(column.categories.index(str(label)) for label in labels))
    rule = f"a pair (low, high) of numbers with low < high for column {column.name!r}, None for no limit"
    checks.require(isinstance(wanted, tuple | list) and len(wanted) == 2, rule, where=wanted)
    assert isinstance(wanted, tuple | list)
    if isinstance(column, NumberColumn) and column.dates:
        wanted = [days_of(end) if isinstance(end, str) else end for end in wanted]
        rule += ', or of dates such as "2026-03-01"'
    low, high = (-math.inf if wanted[0] is None else wanted[0]), (math.inf if wanted[1] is None else wanted[1])
    good = all(checks.is_number(end) and (end in (-math.inf, math.inf) or checks.is_finite(end)) for end in (low, high))
    checks.require(good and float(low) < float(high), rule, where=wanted)
    return ((float(low), float(high)),)
