"""How well a private table fits its public schema, told to its owner alone: NOT PRIVATE, never a release.

A release says nothing about cells that do not fit, since whether they do is private. So a column in another unit, or a list of
labels with a misspelling, would be paid for in silence: this is where its owner looks first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError, ParameterError
from sabun.foreign import one_line, shown_width
from sabun.records.cells import Cells, label_positions
from sabun.records.columns import CategoryColumn, Column, NumberColumn
from sabun.records.forms import FileFormat
from sabun.records.ids import SPELLINGS, id_text, spelt
from sabun.records.schema import Schema
from sabun.records.sources import open_source
from sabun.records.tables import as_table, cells_of

__all__ = ["ColumnFit", "TableFit", "inspect_table"]

NOT_PRIVATE = "NOT PRIVATE: these counts are about your own rows. They are for your eyes; do not publish them."
_MANY = 0.1
_MANY_EMPTY = 0.01
"""From this share on empty cells are told with what they count as: with 4 % of them a mean had moved by 13 %."""
_ZEROS = re.compile(r"(?<![0-9.,])0+(?=[0-9])")


@final
@dataclass(kw_only=True)
class ColumnFit:
    """What a schema makes of one column's cells.

    Attributes:
        name: The column.
        kind: "number" or "category".
        rows: How many cells there are.
        empty: Cells without anything in them.
        unreadable: Cells with something that is no number; for a category column, labels outside its list.
        below: Numbers that are cut to the lower bound.
        above: Numbers that are cut to the upper bound.
        strange: The unreadable cells by their text, with how often it stands; never shown.
        missing: What an empty cell of numbers or dates counts as; empty for labels.
    """

    name: str
    kind: str
    rows: int = 0
    empty: int = 0
    unreadable: int = 0
    below: int = 0
    above: int = 0
    strange: Counter[str] = field(default_factory=Counter, repr=False)
    missing: str = ""

    @property
    def fitting(self) -> int:
        """Cells that are taken as they are."""
        return self.rows - self.empty - self.unreadable - self.below - self.above

    @property
    def verdict(self) -> str:
        """A word for the owner: "ok", "NO CELL FITS", or else "look here" for too many cells that do not fit, or are empty."""
        if self.rows and not self.fitting:
            return "NO CELL FITS"
        return "look here" if self.rows - self.fitting > _MANY * self.rows or self.many_empty else "ok"

    @property
    def many_empty(self) -> bool:
        """Whether so many numbers or dates are empty that what they count as shows in answers."""
        return bool(self.missing and self.empty and self.empty >= _MANY_EMPTY * self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The counts, without the labels."""
        names = ("name", "kind", "rows", "empty", "unreadable", "below", "above", "fitting", "verdict")
        return {name: getattr(self, name) for name in names} | {"missing": self.missing or None}


@final
@dataclass(frozen=True, kw_only=True)
class TableFit:
    """What a schema makes of a table; made by `inspect_table`. NOT PRIVATE.

    Attributes:
        rows: How many rows there are.
        columns: One entry for each declared column.
        repeated_ids: Rows whose id stood in an earlier row; None without ids.
        alike_ids: Ids that differ only in case or leading zeros, those of one group together; never shown.
        without_id: Rows that have none.
    """

    rows: int
    columns: tuple[ColumnFit, ...]
    repeated_ids: int | None = None
    alike_ids: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    without_id: int = 0

    def __str__(self) -> str:
        names = [one_line(column.name) for column in self.columns]
        width = max(len("column"), *map(shown_width, names))
        head = f"{'column':<{width}}  {'empty':>9}  {'unreadable':>10}  {'below':>9}  {'above':>9}  verdict"
        lines = [NOT_PRIVATE, f"{self.rows:,} rows.", head]
        for name, fit in zip(names, self.columns, strict=True):
            counts = (fit.empty, fit.unreadable, fit.below, fit.above)
            empty, unreadable, below, above = (f"{count:,}" for count in counts)
            if fit.kind == "category":  # its unreadable cells are labels outside the list; there are no bounds
                below = above = ""
            called = name + " " * (width - shown_width(name))
            lines.append(f"{called}  {empty:>9}  {unreadable:>10}  {below:>9}  {above:>9}  {fit.verdict}")
        lines += [self._emptiness(name, fit) for name, fit in zip(names, self.columns, strict=True) if fit.many_empty]
        if self.repeated_ids:
            lines.append(
                f"{self.repeated_ids:,} rows repeat an id: whoever has k rows is protected k times less, unless --id names the "
                "column when you ask: each person's rows then become one."
            )
        elif self.repeated_ids == 0:
            lines.append("No row repeats an id.")
        if self.without_id:
            lines.append(f"{self.without_id:,} rows have no id: with --id they are left out, and the promise says so.")
        if self.alike_ids:
            lines.append(
                f"Groups of ids that differ only in case or leading zeros: {len(self.alike_ids):,}. "
                "If one is of one person, that person is protected as several: write them alike first, or ask with --spelling "
                "caseless (upper and lower case) or --spelling number (leading zeros); this check takes them too."
            )
        return "\n".join(lines)

    def _emptiness(self, name: str, fit: ColumnFit) -> str:
        where = "" if self.repeated_ids is None else " where a person's other rows do not tell"
        share = f"{fit.empty / fit.rows:.0%}"
        return (
            f"{name}: {share} of the cells are empty, and count as {fit.missing}{where}. Declare a usual value that is "
            f"publicly known (--missing {name}=VALUE): the further away it is, the more it moves an answer."
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain JSON values."""
        columns = [fit.to_dict() for fit in self.columns]
        found = {"notice": NOT_PRIVATE, "rows": self.rows, "repeated_ids": self.repeated_ids, "columns": columns}
        return found if self.repeated_ids is None else found | {"without_id": self.without_id, "alike_ids": len(self.alike_ids)}

    def __reduce__(self) -> NoReturn:
        raise ParameterError(f"{NOT_PRIVATE} They must not be stored.")


def inspect_table(source: object, *, schema: Schema, ids: Sequence[object] | None = None, spelling: str = "text") -> TableFit:
    """Counts the cells of a table that do not fit its schema. NOT PRIVATE: for the owner, before any budget is spent.

    Args:
        source: As in `open_source`.
        schema: The public facts.
        ids: Whose row each one is, to find people with several rows.
        spelling: How ids are read, as in `persons`.

    Raises:
        ParameterError: The spelling is not known.
        DataError: The table does not fit the schema at all: a column is absent, or of a type that is refused.

    Example:
        >>> schema = Schema.of_bounds({"bmi": (10, 60)})
        >>> fit = inspect_table([["21,9"], [23.5], [300], [None]], schema=schema)
        >>> fit.columns[0].unreadable, fit.columns[0].above, fit.columns[0].verdict
        (1, 1, 'look here')
    """
    checks.one_of(SPELLINGS, spelling=spelling)
    fits = tuple(
        ColumnFit(name=column.name, kind=_kind(column), missing=column.told_missing if isinstance(column, NumberColumn) else "")
        for column in schema.columns
    )
    rows = 0
    opened = open_source(source, schema=schema)
    for chunk in opened.tables():
        table = as_table(chunk, width=len(fits))
        rows += len(table)
        for column, fit, cells in zip(schema.columns, fits, cells_of(table, schema.names), strict=True):
            _count(column, fit, cells, opened.form)
    if ids is not None and len(ids) != rows:
        raise DataError("ids must be as many as the rows; they are not.")
    known = [text for text in (spelt(id_text(each), spelling) for each in ids or ()) if text]
    repeated = None if ids is None else len(known) - len(set(known))
    without = 0 if ids is None else rows - len(known)
    return TableFit(rows=rows, columns=fits, repeated_ids=repeated, alike_ids=_alike(ids or (), spelling), without_id=without)


def _alike(ids: Sequence[object], spelling: str) -> tuple[tuple[str, ...], ...]:
    """Groups of ids that a person would take for one, and that are not compared as one anyway (as wide characters are)."""
    groups: dict[str, dict[str, str]] = {}
    for text in dict.fromkeys(map(id_text, ids)):
        if known := spelt(text, spelling):
            groups.setdefault(_ZEROS.sub("", known.casefold()), {}).setdefault(known, str(text))
    return tuple(tuple(group.values()) for group in groups.values() if len(group) > 1)


def _kind(column: Column) -> str:
    return "number" if isinstance(column, NumberColumn) else "category"


def _count(column: Column, fit: ColumnFit, cells: Cells, form: FileFormat) -> None:
    full = _full(column, cells, fit.name)
    fit.rows += len(full)
    fit.empty += int((~full).sum())
    if isinstance(column, NumberColumn):
        values = column.read(cells, form=form)
        fit.unreadable += (unreadable := int((np.isnan(values) & full).sum()))
        if unreadable:
            _note_strange(fit, cells, lambda texts: column.read(texts, form=form))
        fit.below += int((values < column.lower).sum())
        fit.above += int((values > column.upper).sum())
    elif isinstance(column, CategoryColumn):
        fit.unreadable += int((np.isnan(column.encode(cells, keep_missing=True)) & full).sum())
        _note_strange(fit, cells, lambda texts: column.encode(texts, keep_missing=True))


def _full(column: Column, cells: Cells, name: str) -> NDArray[np.bool_]:
    """Which cells have something in them; of a column that holds dates as dates, those that are dates."""
    try:
        return label_positions(cells, lambda text: int(bool(text)), name=name).astype(bool)
    except DataError:
        if not (isinstance(column, NumberColumn) and column.dates):
            raise
        return ~np.isnan(column.read(cells))


def _note_strange(fit: ColumnFit, cells: Cells, read: Callable[[list[Any]], NDArray[np.float64]]) -> None:
    """Counts the cells that are read as NaN by their text."""
    texts: dict[str, int] = {}
    places = label_positions(cells, lambda text: texts.setdefault(text, len(texts)) if text else -1, name=fit.name)
    known = ~np.isnan(read(list(texts))) if texts else np.empty(0, dtype=bool)
    times = np.bincount(places[places >= 0], minlength=len(texts))
    fit.strange.update({text: int(times[place]) for text, place in texts.items() if not known[place]})
