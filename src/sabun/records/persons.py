"""Several rows per person: each person's rows become one row, by a public rule for each column.

A row that comes out depends on its person's rows alone, to the last bit, and the order of persons is drawn anew from the
system's randomness: replacing a person replaces one row, and every promise for one row becomes one for the person.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.records.cells import Floats, folded, label_positions, numbers
from sabun.records.columns import CategoryColumn, Column, NumberColumn
from sabun.records.matrix import encoded
from sabun.records.schema import Schema
from sabun.records.tables import as_table, cells_of

__all__ = ["Persons", "collapsed", "persons", "spelt"]

_NUMBER_RULES = ("mean", "min", "max", "first", "last", "count")
_LABEL_RULES = ("mode", "any", "first", "last")
_SPELLINGS = ("text", "number")
_BITS = 32
"""Numbers are summed in steps of 2**-32 of the power of two above their bounds: whole numbers below 2**32 exactly."""

_FINEST = -1022
"""The exponent of the smallest step; below it a step could not be divided by."""

_DIGITS = re.compile(r"[+-]?[0-9]+")


@final
@dataclass(frozen=True, kw_only=True)
class Persons:
    """A table with several rows per person; made by `persons`.

    Attributes:
        table: Where the rows are; PRIVATE.
        id: The column that tells persons apart.
        rules: Rules by column; the others have `mean` (numbers) or `mode` (labels).
        spelling: How ids are read.
        order: The column that says what is first and last; None for the order of the rows.
    """

    table: Any = field(repr=False)
    id: str
    rules: tuple[tuple[str, str], ...]
    spelling: str
    order: str | None

    def facts(self) -> dict[str, Any]:
        """The public choices, as a release keeps them."""
        return {"id": self.id, "rules": dict(self.rules), "spelling": self.spelling, "order": self.order}

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What a promise made for persons takes for granted."""
        return (
            f"all rows of a person carry one {self.id!r}, and no two persons share one",
            f"rows without a {self.id!r} are left out",
        )

    def rule(self, column: Column) -> str:
        """The rule of a column.

        Raises:
            ParameterError: It has one that does not fit its kind.
        """
        known, usual = (_NUMBER_RULES, "mean") if isinstance(column, NumberColumn) else (_LABEL_RULES, "mode")
        found = dict(self.rules).get(column.name, usual)
        checks.require(found in known, f"one of {', '.join(known)} for column {column.name!r}", rule=found)
        return found

    def read(self, schema: Schema) -> tuple[str, ...]:
        """The columns of the table that are needed: a count of rows needs none of its own."""
        asked = [column.name for column in schema.columns if self.rule(column) != "count"]
        return tuple(dict.fromkeys([self.id, *asked, *([] if self.order is None else [self.order])]))


def persons(
    table: object, *, id: str, rules: Mapping[str, str] | None = None, spelling: str = "text", order: str | None = None
) -> Persons:
    """A table with several rows per person, to be given to `fit` in the place of a table with one row each.

    The number of rows becomes private; the number of persons takes its place. Questions of `sabun.summaries` take it; others
    refuse it.

    Args:
        table: As in `sabun.records.open_source`, with column names; or files that `sabun.engine.spread` counts in pieces.
        id: The column that tells persons apart. Rows without an id are left out.
        rules: How a person's cells of a column become one: ``mean``, ``min``, ``max``, ``first``, ``last`` or ``count`` (how
            many rows the person has) for numbers, ``mode`` (the earliest declared among the most frequent), ``any`` (the last
            declared label that occurs), ``first`` or ``last`` for labels. ``mean`` and ``mode`` when left out. Cells that hold
            nothing are passed over; where a person has no other, the column's `missing` stands for them.
        spelling: ``text``: ids are equal when their text is, apart from blanks around it and wide characters; ``number``: when
            they are the same whole number (``007`` is ``7``), and anything else is no id.
        order: A column of numbers that says which row is first; the order of the rows when left out. A row without such a
            number counts only where a person has no other.

    Raises:
        ParameterError: A rule or spelling is not known.

    Example:
        >>> import pyarrow as pa
        >>> from sabun.records import open_source
        >>> visits = pa.table({"patient": ["a", "b", "a"], "cost": [10.0, 40.0, 30.0]})
        >>> schema = Schema.of_bounds({"cost": (0, 100)})
        >>> source = open_source(persons(visits, id="patient"), schema=schema, by_person=True)
        >>> sorted(source.matrix().ravel().tolist())
        [20.0, 40.0]
    """
    checks.require(isinstance(id, str) and id != "", "the name of a column", id=id)
    checks.one_of(_SPELLINGS, spelling=spelling)
    checks.require(order is None or (isinstance(order, str) and order != ""), "the name of a column", order=order)
    checks.require(rules is None or isinstance(rules, Mapping), "a mapping from columns to rules", rules=rules)
    given = dict(rules or {})
    for rule in given.values():
        checks.one_of(tuple(dict.fromkeys(_NUMBER_RULES + _LABEL_RULES)), rule=rule)
    checks.require(id not in given, "about other columns than the id", rules=id)
    return Persons(table=table, id=id, rules=tuple(sorted(given.items())), spelling=spelling, order=order)


class _Kept(Protocol):
    """What is remembered of one column, one place for each person."""

    def add(self, who: NDArray[np.int64], cells: Floats, when: Floats, count: int) -> None: ...

    def result(self) -> Floats:
        """One cell for each person, NaN where nothing was said."""
        ...


@np.errstate(all="ignore")  # whoever made numpy raise would hear of a private cell
def collapsed(how: Persons, schema: Schema, chunks: Iterable[Any], *, keep_missing: bool) -> Floats:
    """One encoded row for each person, in an order drawn anew.

    Args:
        how: Id and rules.
        schema: Public facts about the columns.
        chunks: The rows, as tables.
        keep_missing: As in `Schema.encode`.
    """
    names = how.read(schema)
    read = [column for column in schema.columns if column.name in names]
    kept = {column.name: _kept(how.rule(column), column) for column in schema.columns}
    places: dict[str, int] = {}
    for chunk in chunks:
        table = as_table(chunk)
        who = label_positions(cells_of(table, names)[0], _Places(places, how.spelling), name=how.id)
        known = who >= 0
        # The table has more columns than those: encoded finds them by name.
        cells = encoded(read, table, keep_missing=True, form=schema.file) if read else np.zeros((len(who), 0))
        when = np.zeros(len(who)) if how.order is None else numbers(cells_of(table, names)[-1], name=how.order)
        columns = {column.name: cells[:, index] for index, column in enumerate(read)}
        for name, each in kept.items():
            of_column = columns.get(name, np.zeros(len(who)))
            each.add(who[known], of_column[known], when[known], len(places))
    found = [_filled(column, kept[column.name].result(), keep_missing) for column in schema.columns]
    matrix = np.column_stack([each[: len(places)] for each in found]) if places else np.empty((0, len(schema.columns)))
    return matrix[_shuffled(len(matrix))]


class _Places:
    """The place of an id, given in the order of first sight; -1 for none."""

    def __init__(self, places: dict[str, int], spelling: str) -> None:
        self._places, self._spelling = places, spelling

    def __call__(self, text: str | None) -> int:
        plain = spelt(text, self._spelling)
        return self._places.setdefault(plain, len(self._places)) if plain else -1


def spelt(text: str | None, spelling: str) -> str:
    """An id as it is compared; empty for none."""
    plain = "" if text is None else unicodedata.normalize("NFKC", text).strip()
    if spelling != "number" or not plain:
        return plain
    plain = folded(plain)
    if not _DIGITS.fullmatch(plain) or not plain.isascii():
        return ""
    sign = "-" if plain[0] == "-" and plain.strip("+-0") else ""
    return sign + (plain.lstrip("+-").lstrip("0") or "0")


def _shuffled(count: int) -> NDArray[np.int64]:
    """All places in an order that is uniformly random: sorted by 128 random bits each, so that no two are equal."""
    bits = np.frombuffer(os.urandom(16 * count), dtype="<u8").reshape(count, 2)
    return np.lexsort((bits[:, 0], bits[:, 1]))  # proof: random-order


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


def _filled(column: Column, cells: Floats, keep_missing: bool) -> Floats:
    """Inside the bounds, and with what the schema says where nothing was said."""
    if isinstance(column, NumberColumn):
        cells = np.clip(cells, column.lower, column.upper) + 0.0
    missing = np.nan if keep_missing else float(column.encode([None])[0])
    return np.where(np.isnan(cells), missing, cells)


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
        np.add.at(self._counts, (who[known], cells[known].astype(np.int64)), 1)
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
        rows = np.arange(len(who))
        order = np.lexsort((rows, when, who)) if self._last else np.lexsort((-rows, -when, who))
        # Written one after the other, the last one to be written stays: of each person the row that is wanted.
        who, cells, when = who[order], cells[order], when[order]
        ends = np.flatnonzero(np.append(who[1:] != who[:-1], True)) if len(who) else rows
        who, cells, when = who[ends], cells[ends], when[ends]
        better = when >= self._when[who] if self._last else when < self._when[who]
        better |= np.isnan(self._cell[who])
        self._cell[who[better]], self._when[who[better]] = cells[better], when[better]

    def result(self) -> Floats:
        return self._cell
