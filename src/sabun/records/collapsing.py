"""One row for each person, of all the rows that carry one id; proved in collapsing.proof.md.

A row that comes out depends on its person's rows alone, to the last bit, and the order of persons is drawn anew from the
system's randomness. What does not fit into memory waits in temporary files: a person is put together in one place or the other.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError
from sabun.records.cells import Cells, Floats, folded, label_positions, numbers
from sabun.records.columns import CategoryColumn, Column, NumberColumn
from sabun.records.dates import days
from sabun.records.forms import FileFormat
from sabun.records.matrix import encoded
from sabun.records.persons import Persons
from sabun.records.schema import Schema
from sabun.records.spilling import Spilled, Waiting
from sabun.records.tables import as_table, cells_of

__all__ = ["collapsed", "in_random_order", "spelt"]

_BITS = 32
"""Numbers are summed in steps of 2**-32 of the power of two above their bounds: whole numbers below 2**32 exactly."""

_FINEST = -1022
"""The exponent of the smallest step; below it a step could not be divided by."""

_LATER = -2
"""Places from here downwards are of persons who come later; -1 is nobody's."""

_BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f"
"""What `str.strip` takes from the ends of a plain text."""

_DIGITS = re.compile(r"[+-]?[0-9]+")


class _Kept(Protocol):
    """What is remembered of one column, one place for each person."""

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None:
        """Some rows: whose they are, their cells (none for a count), when they were; how many persons there are now."""
        ...

    def result(self) -> Floats:
        """One cell for each person, NaN where nothing was said."""
        ...


class _Piece(NamedTuple):
    """Some rows on their way to their persons. PRIVATE."""

    places: Callable[[_Places], NDArray[np.int64]]
    cells: Floats
    when: Floats


@np.errstate(all="ignore")  # whoever made numpy raise would hear of a private cell
def collapsed(how: Persons, schema: Schema, chunks: Iterable[Any]) -> Floats:
    """One encoded row for each person, in an order drawn anew.

    Args:
        how: Id and rules.
        schema: Public facts about the columns.
        chunks: The rows, as tables.
    """
    read = [column for column in schema.columns if how.rule(column) != "count"]
    parts = [*_put_together(how, schema, [column.name for column in read], _pieces(how, schema, read, chunks))]
    matrix = np.concatenate([np.empty((0, len(schema.columns))), *parts])
    return in_random_order(matrix)


def _pieces(how: Persons, schema: Schema, read: Sequence[Column], chunks: Iterable[Any]) -> Iterator[_Piece]:
    """The rows of a table, their cells encoded one by one."""
    names = how.read(schema)
    for chunk in chunks:
        table = as_table(chunk)
        ids, *_, last = cells_of(table, names)
        # The table has more columns than those: encoded finds them by name.
        cells = encoded(read, table, keep_missing=True, form=schema.file) if read else np.zeros((len(table), 0))
        when = np.zeros(len(table)) if how.order is None else _moments(last, name=how.order, form=schema.file)
        yield _Piece(partial(_placed, ids, how.id), cells, when)


def _placed(ids: Cells, name: str, places: _Places) -> NDArray[np.int64]:
    return label_positions(ids, places.__getitem__, name=name, ahead=places.admit)


def _put_together(how: Persons, schema: Schema, read: Sequence[str], pieces: Iterable[_Piece]) -> Iterator[Floats]:
    """Rows of persons, a few persons at a time where not all have room in memory; all rows of one in one place."""
    kept = {column.name: _kept(how.rule(column), column) for column in schema.columns}
    places = _Places(room=max(1, how.memory // _size(how, schema)), spelling=how.spelling)
    with Spilled(len(read)) as spilled:
        for who, cells, when in ((piece.places(places), piece.cells, piece.when) for piece in pieces):
            here, later = who >= 0, who <= _LATER
            columns = dict(zip(read, cells[here].T, strict=True))
            for name, each in kept.items():
                each.add(who[here], columns.get(name, np.empty(0)), when[here], places.count)
            if places.later:
                spilled.add(list(places.later), _LATER - who[later], cells[later], when[later])  # proof: one-place
                places.later.clear()
        count = places.count
        if count:
            yield np.column_stack([_filled(column, kept[column.name].result()[:count]) for column in schema.columns])
        del kept, places
        for part in spilled.parts():
            yield from _put_together(how, schema, read, map(_waited, part))


def _waited(rows: Waiting) -> _Piece:
    return _Piece(lambda places: np.array([*map(places.__getitem__, rows.keys)], dtype=np.int64), rows.cells, rows.when)


class _Places(dict[Hashable, int]):
    """The place of each person in the order of first sight, while there is room; the others' come later.

    An id is looked up as it is written, and worked out where it was not seen before: `_spelled` leaves its own results alone,
    so that every way to write an id leads to one place.
    """

    def __init__(self, *, room: int, spelling: str) -> None:
        self._room, self._plain = room, spelling == "text"
        self._spelled = partial(_spelled, spelling=spelling)
        self.count = 0
        self.later: dict[Hashable, int] = {}

    def __missing__(self, written: Hashable) -> int:
        key = self._spelled(written)
        if not key:
            return -1
        if key not in self:
            if self.count >= self._room:
                return _LATER - self.later.setdefault(key, len(self.later))
            self[key] = self.count
            self.count += 1
        self[written] = self[key]
        return self[key]

    def admit(self, written: list[Any]) -> None:
        """Gives places to new persons all at once, where their ids are plain texts; the same places as one by one."""
        new = [*dict.fromkeys(text for text in written if text not in self)]
        if None in new or not (text := "".join(new)).isascii() or any(blank in text for blank in _BLANKS):
            return
        if self._plain and "" not in new:
            fresh = new[: max(0, self._room - self.count)]
            self.update(zip(fresh, range(self.count, self.count + len(fresh)), strict=True))
            self.count += len(fresh)


def _spelled(text: Hashable, *, spelling: str) -> Hashable:
    """The one spelling of an id, or the digest that stands for one; nothing for what is none."""
    return spelt(text, spelling) if isinstance(text, str) else text


def spelt(text: str | None, spelling: str) -> str:
    """An id as it is compared; empty for none."""
    if text is None:
        return ""
    plain = text.strip() if text.isascii() else unicodedata.normalize("NFKC", text).strip()
    if spelling != "number" or not plain:
        return plain
    plain = folded(plain)
    if not _DIGITS.fullmatch(plain) or not plain.isascii():
        return ""
    sign = "-" if plain[0] == "-" and plain.strip("+-0") else ""
    return sign + (plain.lstrip("+-").lstrip("0") or "0")


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
    bits = np.frombuffer(os.urandom(16 * len(rows)), dtype="<u8").reshape(-1, 2)
    return rows[np.lexsort((bits[:, 0], bits[:, 1]))]  # proof: random-order


def _kept(rule: str, column: Column) -> _Kept:
    if isinstance(column, CategoryColumn) and rule == "mode":
        return _Mode(len(column.categories))
    if rule == "mean":
        assert isinstance(column, NumberColumn)
        return _Mean(column)
    if rule == "count":
        return _Count()
    if rule in ("first", "last"):
        return _Edge(last=rule == "last")
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

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None:
        self._best = _grown(self._best, count, np.nan)
        said = ~np.isnan(cells)
        (np.fmax if self._largest else np.fmin).at(self._best, who[said], cells[said])

    def result(self) -> Floats:
        return self._best


class _Mean:
    """Sums of whole steps: floats would depend on who else is in the same piece of the table."""

    def __init__(self, column: NumberColumn) -> None:
        largest = max(abs(column.lower), abs(column.upper))
        self._step = 2.0 ** max(int(np.frexp(largest)[1]) - _BITS, _FINEST)
        self._sum, self._said = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._low, self._high = _Extreme(largest=False), _Extreme(largest=True)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None:
        self._sum, self._said = _grown(self._sum, count, 0), _grown(self._said, count, 0)
        said = ~np.isnan(cells)
        np.add.at(self._sum, who[said], np.rint(cells[said] / self._step).astype(np.int64))  # proof: whole-steps
        np.add.at(self._said, who[said], 1)
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

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None:
        self._rows = _grown(self._rows, count, 0.0)
        np.add.at(self._rows, who, 1.0)

    def result(self) -> Floats:
        return self._rows


class _Mode:
    def __init__(self, labels: int) -> None:
        self._counts = np.empty((0, labels), dtype=np.int64)
        self._strange = np.empty(0)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None:
        self._counts, self._strange = _grown(self._counts, count, 0), _grown(self._strange, count, np.nan)
        known = cells >= 0
        flat = who[known] * self._counts.shape[1] + cells[known].astype(np.int64)
        np.add.at(self._counts.reshape(-1), flat, 1)  # a view: rows lie one after the other
        self._strange[who[cells == -1]] = -1.0

    def result(self) -> Floats:
        found = self._counts.argmax(axis=1).astype(np.float64)
        return np.where(self._counts.any(axis=1), found, self._strange[: len(found)])


class _Edge:
    """The first or the last cell that says something; of rows with the same `when`, the earlier or later one."""

    def __init__(self, *, last: bool) -> None:
        self._last = last
        self._cell, self._when = np.empty(0), np.empty(0)

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None:
        self._cell = _grown(self._cell, count, np.nan)
        self._when = _grown(self._when, count, -np.inf if self._last else np.inf)
        said = ~np.isnan(cells)
        # A row that does not say when is taken only where no other does.
        when = np.where(np.isnan(when), -np.inf if self._last else np.inf, when)
        who, cells, when = who[said], cells[said], when[said]
        if not self._last:
            who, cells, when = who[::-1], cells[::-1], when[::-1]
        # Among rows of one moment the order stays. Written one after the other, the last one stays: of each person the one.
        order = np.argsort(when if self._last else -when, kind="stable")
        ends = np.full(count, -1)
        ends[who[order]] = order
        ends = ends[ends >= 0]
        who, cells, when = who[ends], cells[ends], when[ends]
        better = when >= self._when[who] if self._last else when < self._when[who]
        better |= np.isnan(self._cell[who])
        self._cell[who[better]], self._when[who[better]] = cells[better], when[better]

    def result(self) -> Floats:
        return self._cell
