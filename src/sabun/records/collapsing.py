"""One row for each person, of all the rows that carry one id; proved in collapsing.proof.md.

A row that comes out depends on its person's rows alone, to the last bit, and the order of persons is drawn anew from the
system's randomness. What does not fit into memory waits in temporary files: a person is put together in one place or the other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.cells import Cells, Floats, numbers
from sabun.records.columns import CategoryColumn, Column, NumberColumn
from sabun.records.dates import days
from sabun.records.forms import FileFormat
from sabun.records.ids import IdKeys, Keys, numbered
from sabun.records.matrix import encoded
from sabun.records.persons import Persons
from sabun.records.schema import Schema
from sabun.records.spilling import Rows, Spilled
from sabun.records.tables import as_table, cells_of

__all__ = ["collapsed", "in_random_order"]

_BITS = 32
"""Numbers are summed in steps of 2**-32 of the power of two above their bounds: whole numbers below 2**32 exactly."""

_FINEST = -1022
"""The exponent of the smallest step; below it a step could not be divided by."""

_BATCH = 1 << 19
"""Rows that are looked up at a time, where there is room; cannot change any result."""


class _Kept(Protocol):
    """What is remembered of one column, one place for each person."""

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats | None, count: int) -> None:
        """Some rows: whose they are, their cells (none for a count), when they were; how many persons there are now."""
        ...

    def result(self) -> Floats:
        """One cell for each person, NaN where nothing was said."""
        ...


@np.errstate(all="ignore")  # whoever made numpy raise would hear of a private cell
def collapsed(how: Persons, schema: Schema, chunks: Iterable[Any], *, placed: bool = True) -> Floats:
    """One encoded row for each person, in an order drawn anew.

    Args:
        how: Id and rules.
        schema: Public facts about the columns.
        chunks: The rows, as tables.
        placed: Whether their order says anything. That of a database may change with what others have written there.
    """
    read = [column for column in schema.columns if how.rule(column) != "count"]
    pieces = _identified(how, schema, read, chunks)
    parts = [*_put_together(how, schema, [column.name for column in read], pieces, placed=placed)]
    matrix = np.concatenate([np.empty((0, len(schema.columns))), *parts])
    return in_random_order(matrix)


def _identified(how: Persons, schema: Schema, read: Sequence[Column], chunks: Iterable[Any]) -> Iterator[Rows]:
    """The rows of a table that have an id, their cells encoded one by one."""
    names, ids = how.read(schema), IdKeys(how.spelling)
    for chunk in chunks:
        table = as_table(chunk)
        found = cells_of(table, names)  # the id alone where every rule counts rows
        keys = ids.of(found[0], name=how.id)
        # The table has more columns than those: encoded finds them by name.
        cells = encoded(read, table, keep_missing=True, form=schema.file) if read else np.zeros((len(keys), 0))
        when = None if how.order is None else _moments(found[-1], name=how.order, form=schema.file)
        rows, known = Rows(keys, cells, when), (keys[:, 0] | keys[:, 1]) != 0
        yield rows if known.all() else rows.where(known)  # proof: left-out


def _put_together(
    how: Persons, schema: Schema, read: Sequence[str], pieces: Iterable[Rows], *, placed: bool
) -> Iterator[Floats]:
    """Rows of persons, a few persons at a time where not all have room in memory; all rows of one in one place."""
    kept = {column.name: _kept(how.rule(column), column, placed=placed) for column in schema.columns}
    places = _Places(room=max(1, how.memory // _size(how, schema)))
    with Spilled(len(read)) as spilled:
        for rows, who in _placed(pieces, places, most=how.memory // (16 * (len(read) + 3))):
            here = who < places.room
            if not here.all():
                spilled.add(rows, np.flatnonzero(~here))  # proof: one-place
                rows, who = rows.where(here), who[here]
            columns = dict(zip(read, rows.cells.T, strict=True))
            for name, each in kept.items():
                each.add(who, columns.get(name, np.empty(0)), rows.when, places.count)
        count = places.count
        if count:
            yield np.column_stack([_filled(column, kept[column.name].result()[:count]) for column in schema.columns])
        del kept, places
        for part in spilled.parts():
            yield from _put_together(how, schema, read, part, placed=placed)


def _placed(pieces: Iterable[Rows], places: _Places, *, most: int) -> Iterator[tuple[Rows, NDArray[np.int64]]]:
    """The same rows with the places of their persons.

    Looking some up takes as long as there are persons: about as many rows are looked up together.
    """
    held, count = list[Rows](), 0
    for rows in pieces:
        held.append(rows)
        count += len(rows.keys)
        if count >= min(max(_BATCH, places.count), most):
            yield from zip(held, places.of([each.keys for each in held]), strict=True)
            held, count = [], 0
    yield from zip(held, places.of([each.keys for each in held]), strict=True)


class _Places:
    """The place of each person in the order of first sight, while there is room; from there on are the others'."""

    def __init__(self, *, room: int) -> None:
        self.room, self._keys = room, np.empty((0, 2), dtype=np.uint64)

    @property
    def count(self) -> int:
        """How many persons have a place."""
        return len(self._keys)

    def of(self, pieces: Sequence[Keys]) -> list[NDArray[np.int64]]:
        """The places of rows; new persons get theirs."""
        whole = np.concatenate([self._keys, *pieces])
        who, first = numbered(whole)
        ends = np.cumsum([self.count, *map(len, pieces)])
        self._keys = whole[first[: self.room]]
        return np.split(who[: ends[-1]], ends[:-1])[1:]


def _moments(cells: Cells, *, name: str, form: FileFormat) -> Floats:
    """When a row was: a number, or else the day of a date; NaN for a cell that is neither. By the type of a column, by cell."""
    try:
        found = numbers(cells, name=name, form=form)
    except DataError:  # a column of dates: its type says so
        return days(cells, name=name)
    return np.where(np.isnan(found), days(cells, name=name), found)


def _size(how: Persons, schema: Schema) -> int:
    """About how many bytes a person takes until all rows are read; arrays that grow have room for twice as many."""
    labels = [len(c.categories) if isinstance(c, CategoryColumn) and how.rule(c) == "mode" else 3 for c in schema.columns]
    return 200 + 16 * sum(1 + each for each in labels)


def in_random_order(rows: Floats) -> Floats:
    """The same rows in an order that is uniformly random: sorted by 128 fresh bits each, so that no two are equal."""
    bits = np.frombuffer(os.urandom(16 * len(rows)), dtype=np.uint64).reshape(2, -1)
    order = np.argsort(bits[1])
    if not np.diff(bits[1][order]).all():  # the other half decides; that takes longer, and is hardly ever needed
        order = np.lexsort(bits)
    return rows[order]  # proof: random-order


def _kept(rule: str, column: Column, *, placed: bool) -> _Kept:
    if isinstance(column, CategoryColumn) and rule == "mode":
        return _Mode(len(column.categories))
    if rule == "mean":
        assert isinstance(column, NumberColumn)
        return _Mean(column)
    if rule == "count":
        return _Count()
    if rule in ("first", "last"):
        return _Edge(last=rule == "last", placed=placed)
    return _Extreme(largest=rule in ("max", "any"))


def _filled(column: Column, cells: Floats) -> Floats:
    """Inside the bounds, and with what the schema says where nothing was said."""
    if isinstance(column, NumberColumn):
        cells = np.clip(cells, column.lower, column.upper) + 0.0
    return np.where(np.isnan(cells), float(column.encode([None])[0]), cells)


def _grown(array: NDArray[Any], count: int, fill: float) -> NDArray[Any]:
    if len(array) >= count:
        return array
    larger = np.full((max(count, 2 * len(array)), *array.shape[1:]), fill, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


class _Extreme:
    def __init__(self, *, largest: bool) -> None:
        self._largest, self._best = largest, np.empty(0)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats | None, count: int) -> None:
        self._best = _grown(self._best, count, np.nan)
        (np.fmax if self._largest else np.fmin).at(self._best, who, cells)  # which pass over what says nothing

    def result(self) -> Floats:
        return self._best


class _Mean:
    """Sums of whole steps: floats would depend on who else is in the same piece of the table."""

    def __init__(self, column: NumberColumn) -> None:
        largest = max(abs(column.lower), abs(column.upper))
        self._step = 2.0 ** max(int(np.frexp(largest)[1]) - _BITS, _FINEST)
        self._sum, self._said = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._low, self._high = _Extreme(largest=False), _Extreme(largest=True)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats | None, count: int) -> None:
        self._sum, self._said = _grown(self._sum, count, 0), _grown(self._said, count, 0)
        said = ~np.isnan(cells)
        steps = np.rint(np.where(said, cells, 0.0) / self._step).astype(np.int64)
        np.add.at(self._sum, who, steps)  # proof: whole-steps
        np.add.at(self._said, who, said.astype(np.int64))
        self._low.add(who, cells, when, count)
        self._high.add(who, cells, when, count)

    def result(self) -> Floats:
        low, high = self._low.result(), self._high.result()
        size = min(len(low), len(self._sum))
        with np.errstate(all="ignore"):
            mean = self._sum[:size] / self._said[:size] * self._step
        # One value, however often, stays as it was written: a bin's edge must not be missed by rounding.
        return np.where(low[:size] == high[:size], low[:size], np.clip(mean, low[:size], high[:size]))


class _Count:
    def __init__(self) -> None:
        self._rows = np.empty(0)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats | None, count: int) -> None:
        self._rows = _grown(self._rows, count, 0.0)
        np.add.at(self._rows, who, 1.0)

    def result(self) -> Floats:
        return self._rows


class _Mode:
    def __init__(self, labels: int) -> None:
        self._counts = np.empty((0, labels), dtype=np.int64)
        self._strange = np.empty(0)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats | None, count: int) -> None:
        self._counts, self._strange = _grown(self._counts, count, 0), _grown(self._strange, count, np.nan)
        known = cells >= 0
        flat = who[known] * self._counts.shape[1] + cells[known].astype(np.int64)
        np.add.at(self._counts.reshape(-1), flat, 1)  # a view: rows lie one after the other
        self._strange[who[cells == -1]] = -1.0

    def result(self) -> Floats:
        found = self._counts.argmax(axis=1).astype(np.float64)
        return np.where(self._counts.any(axis=1), found, self._strange[: len(found)])


class _Edge:
    """The first or the last cell that says something; of rows with the same `when`, the earlier or later one.

    Where places say nothing, of rows with the same `when` the smallest or largest cell.
    """

    def __init__(self, *, last: bool, placed: bool) -> None:
        self._last, self._never, self._placed = last, -np.inf if last else np.inf, placed
        self._cell, self._when, self._row = np.empty(0), np.empty(0), np.empty(0, dtype=np.int64)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats | None, count: int) -> None:
        self._cell, self._when = _grown(self._cell, count, np.nan), _grown(self._when, count, self._never)
        said = ~np.isnan(cells)
        # A row that does not say when is taken only where no other does.
        times = np.zeros(len(cells)) if when is None else np.where(np.isnan(when), self._never, when)
        rows = np.flatnonzero(said)[:: 1 if self._last else -1]
        who, cells, times = who[rows], cells[rows], times[rows]
        if when is not None:
            who, cells, times = self._best(who, cells, times, count)
        better = times >= self._when[who] if self._last else times < self._when[who]
        if not self._placed:  # proof: no-place
            held, same = self._cell[who], times == self._when[who]
            better = np.where(same, cells > held if self._last else cells < held, better)
        if not self._last or when is not None:
            better |= np.isnan(self._cell[who])
        # Written one after the other, the last one stays: of each person the one that is wanted.
        self._cell[who[better]], self._when[who[better]] = cells[better], times[better]

    def _best(self, who: NDArray[np.int64], cells: Floats, times: Floats, count: int) -> tuple[Any, Floats, Floats]:
        """Of each person the one row that is wanted; among rows of one moment the order stays."""
        self._row = _grown(self._row, count, 0)
        sign = 1 if self._last else -1
        order = np.argsort(sign * times, kind="stable") if self._placed else np.lexsort((sign * cells, sign * times))
        self._row[who[order]] = order
        chosen = self._row[who] == np.arange(len(who))
        return who[chosen], cells[chosen], times[chosen]

    def result(self) -> Floats:
        return self._cell
