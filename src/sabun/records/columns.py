"""What is publicly known about one column: its name and the values it may take."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np

from sabun import checks
from sabun.errors import BoundsError, ParameterError
from sabun.foreign import one_line
from sabun.records.cells import Cells, Floats, folded, label_positions, numbers
from sabun.records.dates import days, days_of, iso_of
from sabun.records.forms import PLAIN, FileFormat

__all__ = ["LONGEST_UNIT", "CategoryColumn", "Column", "NumberColumn"]

LONGEST_UNIT = 24
"""Characters of a unit, which stands beside every number."""


@dataclass(frozen=True, kw_only=True)
class Column(abc.ABC):
    """A column as everybody knows it before seeing a record. Made by `Column.number`, `Column.date` or `Column.category`."""

    name: str

    @staticmethod
    def number(
        name: str,
        *,
        lower: float | None = None,
        upper: float | None = None,
        bounds: tuple[float, float] | None = None,
        missing: float | None = None,
        log1p: bool = False,
        unit: str = "",
    ) -> NumberColumn:
        """Declares a column of numbers between two public bounds.

        Args:
            name: The column's name in the table.
            lower: Smallest value that is told apart; what lies below counts as `lower`. Never taken from the data.
            upper: Largest value that is told apart; what lies above counts as `upper`. Never taken from the data.
            bounds: Both at once, instead of `lower` and `upper`.
            missing: Public value that stands for a cell that holds no number; the middle of the bounds when left out.
            log1p: Whether `Schema.scaled` works on log(1 + value), for heavy-tailed columns; needs lower >= 0.
            unit: What its numbers are measured in, such as ``kg``, ``円`` or ``years``: shown beside them. It is part of the
                schema, so that a schema with another unit asks another question.

        Raises:
            BoundsError: A bound is absent, not finite, or the two are in the wrong order.

        Example:
            >>> Column.number("age", lower=0, upper=120).missing
            60.0
        """
        if bounds is not None:
            checks.require(lower is None and upper is None, "the only bounds when given", bounds=bounds)
            lower, upper = _pair(name, bounds)
        low, high = _bounds(name, lower, upper)
        middle = low + (high - low) / 2 if missing is None else missing
        return NumberColumn(name=name, lower=low, upper=high, missing=middle, log1p=log1p, unit=unit)

    @staticmethod
    def date(name: str, *, lower: str, upper: str, missing: str | None = None) -> NumberColumn:
        """Declares a column of dates: a number column that counts days since 1970-01-01.

        Args:
            name: The column's name in the table.
            lower: The first day that is told apart, such as ``2020-01-01``; what lies before counts as it.
            upper: The last one.
            missing: The day that stands for a cell that holds no date; the middle of the bounds when left out.

        Raises:
            BoundsError: A bound is no date, or the two are in the wrong order.

        Example:
            >>> Column.date("visit", lower="2020-01-01", upper="2020-12-31").encode(["2020-01-03", "2031/1/1"])
            array([18264., 18627.])
        """
        ends = [_day(name, end) for end in (lower, upper, missing) if end is not None]
        middle = (ends[0] + ends[1]) // 2 if len(ends) == 2 else ends[2]
        return NumberColumn(name=name, lower=ends[0], upper=ends[1], missing=middle, dates=True)

    @staticmethod
    def category(name: str, categories: Iterable[object], *, missing: object = None) -> CategoryColumn:
        """Declares a column of labels from a public list.

        Args:
            name: The column's name in the table.
            categories: Every label, in the order of their codes 0, 1, …: text, whole numbers or booleans. Never taken from
                the data.
            missing: The label that stands for null and for any cell outside the list. When left out such a cell has the
                extra code -1, which `Schema.one_hot` turns into a row of zeros ("none of these").

        Example:
            >>> Column.category("sex", ["F", "M"]).encode(["M", None, "F"])
            array([ 1., -1.,  0.])
        """
        checks.require(
            not isinstance(categories, str | bytes) and isinstance(categories, Iterable),
            "a list of labels",
            categories=categories,
        )
        label = None if missing is None else _label(missing)
        return CategoryColumn(name=name, categories=tuple(_label(item) for item in categories), missing=label)

    @property
    @abc.abstractmethod
    def features(self) -> tuple[str, ...]:
        """Names of the columns that `Schema.one_hot` makes of this one."""

    @abc.abstractmethod
    def encode(self, cells: Cells, *, keep_missing: bool = False, form: FileFormat = PLAIN) -> Floats:
        """Maps each cell by the public rule to one float64; never raises because of a cell.

        Args:
            cells: A one-dimensional array, a pyarrow array or a list.
            keep_missing: Leave NaN where the rule would put the public constant, for methods with a rule of their own.
            form: How texts write numbers.
        """

    @abc.abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON values."""

    @staticmethod
    def from_dict(mapping: Mapping[str, Any]) -> Column:
        """Reads what `to_dict` wrote, or less by hand: `missing`, `log1p`, `unit` may be left out; unknown keys are refused."""
        checks.require(isinstance(mapping, Mapping), "a JSON object", column=mapping)
        kinds: dict[Any, tuple[Callable[..., Column], set[str], set[str]]] = {
            "number": (Column.number, {"name", "lower", "upper"}, {"missing", "log1p", "unit"}),
            "date": (Column.date, {"name", "lower", "upper"}, {"missing"}),
            "category": (Column.category, {"name", "categories"}, {"missing"}),
        }
        kind = mapping.get("kind")
        checks.require(isinstance(kind, str) and kind in kinds, "'number', 'date' or 'category'", kind=kind)
        made, needed, optional = kinds[kind]
        found = {str(key) for key in mapping} - {"kind"}
        if kind == "number" and not {"lower", "upper"} <= found:
            _bounds(str(mapping.get("name")), mapping.get("lower"), mapping.get("upper"))
        rule = f"kind, {', '.join(sorted(needed))} (and {' or '.join(sorted(optional))} if wanted)"
        checks.require(needed <= found <= needed | optional, rule, **{f"keys of a {kind} column": sorted(map(str, mapping))})
        return made(**{key: value for key, value in mapping.items() if key != "kind"})


@final
@dataclass(frozen=True, kw_only=True)
class NumberColumn(Column):
    """Numbers between two public bounds; see `Column.number`."""

    lower: float
    upper: float
    missing: float
    log1p: bool = False
    dates: bool = field(default=False, repr=False)  # interrupted runs know a column by its repr, which must stay as it was
    unit: str = field(default="", repr=False)  # as `dates`

    def __post_init__(self) -> None:
        _check_name(self.name)
        checks.boolean(log1p=self.log1p, dates=self.dates)
        _check_unit(self.unit, dates=self.dates)
        low, high = _bounds(self.name, self.lower, self.upper)
        if self.log1p and not (low >= 0 and math.log1p(low) < math.log1p(high)):
            rule = "lower >= 0 and ends that log1p tells apart"
            raise BoundsError(f"bounds of log1p column {self.name!r} must have {rule}; got {(self.lower, self.upper)!r}.")
        if not (checks.is_number(self.missing) and low <= self.missing <= high):
            raise BoundsError(f"missing of column {self.name!r} must lie inside its bounds; got {self.missing!r}.")
        for name, value in (("lower", low), ("upper", high), ("missing", float(self.missing) + 0.0)):
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        if self.dates:
            ends = f"{iso_of(self.lower)} to {iso_of(self.upper)}, in days since 1970-01-01"
            return f"{one_line(self.name)}: a date from {ends}; unreadable cells count as {self.told_missing}"
        logs, unit = ", on a log scale" if self.log1p else "", f" {self.unit}" if self.unit else ""
        low, high = f"{self.lower:,.10g}", f"{self.upper:,.10g}"
        return (
            f"{one_line(self.name)}: a number from {low} to {high}{unit}{logs}; unreadable cells count as {self.told_missing}"
        )

    @property
    def told_missing(self) -> str:
        """What an empty cell counts as, and one that cannot be read, as people write it."""
        unit = f" {self.unit}" if self.unit else ""
        return iso_of(self.missing) if self.dates else f"{self.missing:,.10g}{unit}"

    @property
    def features(self) -> tuple[str, ...]:
        """The column's own name."""
        return (self.name,)

    def encode(self, cells: Cells, *, keep_missing: bool = False, form: FileFormat = PLAIN) -> Floats:
        """Numbers in their own units, inside the bounds; +inf is the upper one, -inf the lower, anything else `missing`."""
        values = self.read(cells, form=form)
        if not keep_missing:
            values = np.where(np.isnan(values), self.missing, values)
        return np.clip(values, self.lower, self.upper) + 0.0  # -0.0 and 0.0 are one value, whichever clip returned

    def read(self, cells: Cells, *, form: FileFormat = PLAIN) -> Floats:
        """The numbers, or days, as they stand; NaN where a cell holds none."""
        return days(cells, name=self.name) if self.dates else numbers(cells, name=self.name, form=form)

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON values."""
        bounds = {"lower": self.lower, "upper": self.upper, "missing": self.missing}
        if self.dates:
            return {"kind": "date", "name": self.name} | {end: iso_of(day) for end, day in bounds.items()}
        unit = {"unit": self.unit} if self.unit else {}  # digests of schemas without one stay as they were
        return {"kind": "number", "name": self.name, **bounds, "log1p": self.log1p} | unit


@final
@dataclass(frozen=True, kw_only=True)
class CategoryColumn(Column):
    """Labels from a public list; see `Column.category`."""

    categories: tuple[str, ...]
    missing: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        checks.require(isinstance(self.categories, tuple | list), "a list of labels", categories=self.categories)
        for label in self.categories:
            good = isinstance(label, str) and label != "" and label == _label(label) and label.isprintable()
            checks.require(good, "printable text without blanks around it", category=label)
        object.__setattr__(self, "categories", tuple(self.categories))
        advice = f"Column {self.name!r} needs at least one label, each once."
        checks.require(
            0 < len(set(self.categories)) == len(self.categories), "distinct labels", advice, categories=self.categories
        )
        good = self.missing is None or self.missing in self.categories
        checks.require(good, f"one of the categories of column {self.name!r} or None", missing=self.missing)

    def __str__(self) -> str:
        other = "none of these" if self.missing is None else repr(self.missing)
        return f"{one_line(self.name)}: one of {', '.join(map(repr, self.categories))}; anything else counts as {other}"

    @property
    def features(self) -> tuple[str, ...]:
        """One name for each label, such as ``sex=F``."""
        return tuple(f"{self.name}={label}" for label in self.categories)

    def encode(self, cells: Cells, *, keep_missing: bool = False, form: FileFormat = PLAIN) -> Floats:
        """The code of each cell's label; for a cell outside the list that of `missing`, or -1."""
        codes = label_positions(cells, self._position, name=self.name).astype(np.float64)
        if keep_missing:
            codes[codes < 0] = math.nan
        elif self.missing is not None:
            codes[codes < 0] = self.categories.index(self.missing)
        return codes

    def _position(self, text: str | None) -> int:
        if text is None:
            return -1
        exact, second = self._codes
        code = exact.get(text)
        return second.get(folded(text), -1) if code is None else code

    @cached_property
    def _codes(self) -> tuple[dict[str, int], dict[str, int]]:
        """Codes by exact text, and by folded text where just one label folds to it."""
        exact = {label: code for code, label in enumerate(self.categories)}
        spellings = [folded(label) for label in self.categories]
        times = Counter(spellings)
        second = {spelling: code for code, spelling in enumerate(spellings) if times[spelling] == 1}
        return exact, second

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON values."""
        return {"kind": "category", "name": self.name, "categories": list(self.categories), "missing": self.missing}


def _check_name(name: str) -> None:
    checks.text(name=name)
    whole = not any("\ud800" <= letter <= "\udfff" for letter in name)
    checks.require(whole, "valid Unicode text, without half a character", name=name)


def _check_unit(unit: object, *, dates: bool) -> None:
    good = isinstance(unit, str) and len(unit) <= LONGEST_UNIT and unit == unit.strip() and unit.isprintable()
    checks.require(good, f"at most {LONGEST_UNIT} printable characters, without blanks around them", unit=unit)
    checks.require(not (unit and dates), "left out for a column of dates, which counts days", unit=unit)


def _pair(name: str, bounds: object) -> tuple[Any, Any]:
    if not isinstance(bounds, tuple | list | np.ndarray) or len(bounds) != 2:
        raise BoundsError(f"bounds of column {name!r} must be a pair (lower, upper); got {bounds!r}.")
    return bounds[0], bounds[1]


def _bounds(name: str, lower: float | None, upper: float | None) -> tuple[float, float]:
    _check_name(name)
    if lower is None or upper is None:
        raise BoundsError(f"column {name!r} has no bounds. Bounds must not come from the data: pass bounds=(lower, upper).")
    if not (checks.is_number(lower) and checks.is_number(upper)):
        raise BoundsError(f"bounds of column {name!r} must be two numbers; got {(lower, upper)!r}.")
    try:
        low, high = float(lower) + 0.0, float(upper) + 0.0
    except OverflowError:
        low, high = math.nan, math.nan
    if not (low < high and math.isfinite(high - low)):
        rule = "finite, lower < upper and a finite distance apart"
        raise BoundsError(f"bounds of column {name!r} must be {rule}; got {lower!r} to {upper!r}.")
    return low, high


def _label(value: object) -> str:
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if not isinstance(value, str):
        raise ParameterError(f"category must be text, a whole number or a boolean; got {value!r}.")
    return value.strip(" \t\n\r\x0b\x0c")


def _day(name: str, text: object) -> float:
    day = days_of(text) if isinstance(text, str) else math.nan
    if math.isnan(day):
        raise BoundsError(f"bounds of date column {name!r} must be dates such as 2020-01-01; got {text!r:.40}.")
    return day
