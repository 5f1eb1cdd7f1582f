"""How the numbers of one column are written: beside their unit, or as dates. Every place that shows one asks here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, final

from sabun.records.columns import LONGEST_UNIT, Column, NumberColumn
from sabun.release import Release
from sabun.telling.language import phrase, said
from sabun.telling.rounding import between, day, days_between, give_or_take, rounded
from sabun.telling.words import number, tidy

__all__ = ["PLAIN", "Measure", "dates_of", "labels_in", "measure_in", "units_of"]

_UNITS = tuple(map(phrase, ("days", "weeks", "months", "years", "hours", "minutes", "seconds", "yen")))
"""Units that pages in other languages have a word for; any other stays as it was declared."""

_DAYS = "days"


@final
@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a number counts; public.

    Args:
        unit: Its unit; empty where none was declared.
        dates: Whether it is the number of a day, counted from 1970-01-01.

    Example:
        >>> Measure(unit="kg").told(62.31, 61.02, 63.55), Measure(unit="kg").ends(61.02, 63.55)
        ('62.3 kg', ('61.0', '63.6 kg'))
        >>> Measure(dates=True).told(20175.4, 20163.0, 20187.0), Measure(dates=True).apart.off(11.4)
        ('2025-03-28', '12 days')
    """

    unit: str = ""
    dates: bool = False

    @classmethod
    def of(cls, column: Column | None) -> Self:
        """How the numbers of a declared column are written."""
        return cls(unit=column.unit, dates=column.dates) if isinstance(column, NumberColumn) else cls()

    @property
    def apart(self) -> Measure:
        """How far two of them are apart: two dates are so many days."""
        return Measure(unit=_DAYS) if self.dates else self

    @property
    def squared(self) -> Measure:
        """What their squares count."""
        return Measure(unit=f"{self.apart.word}²") if self.apart.unit else PLAIN

    def per(self, step: Measure) -> Measure:
        """What a number counts that says how much of this goes with one of that."""
        if not step.apart.unit:
            return self.apart
        goes = said("{unit} per {step}", unit=self.apart.word, step=step.apart.single) if self.apart.unit else None
        return Measure(unit=goes or said("per {step}", step=step.apart.single))

    @property
    def word(self) -> str:
        """The unit in the language that is spoken."""
        return said(self.unit) if self.unit in _UNITS else self.unit

    @property
    def single(self) -> str:
        """The unit of one."""
        return self.unit.removesuffix("s") if self.unit in _UNITS and self.word == self.unit else self.word

    def bare(self, value: float, low: float, high: float) -> str:
        """An estimate with the digits that its interval leaves; for a table, whose heading has the unit."""
        return day(value) if self.dates else rounded(value, low, high)

    def bare_ends(self, low: float, high: float) -> tuple[str, str]:
        """The ends of an interval, rounded outwards."""
        return (days_between if self.dates else between)(low, high)

    def bare_exactly(self, value: float) -> str:
        """A number that has no error, such as a bound."""
        return day(value) if self.dates else number(value)

    def exactly(self, value: float) -> str:
        """The same with its unit."""
        return self.beside(self.bare_exactly(value))

    def told(self, value: float, low: float, high: float) -> str:
        """An estimate with its unit."""
        return self.beside(self.bare(value, low, high))

    def ends(self, low: float, high: float) -> tuple[str, str]:
        """The ends of an interval; the unit stands behind the second."""
        least, most = self.bare_ends(low, high)
        return least, self.beside(most)

    def within(self, low: float | None, high: float | None) -> str:
        """What a condition takes: from its lower end on, and not its upper one.

        Raises:
            ValueError: It has neither, so that everybody meets it.
        """
        if low is None and high is None:
            raise ValueError
        if self.dates:
            words = ("from {low} on", "before {high}", "from {low} on and before {high}")
        else:
            words = ("at least {low}", "below {high}", "from {low} to below {high}")
        text = words[0] if high is None else words[1] if low is None else words[2]
        first = "" if low is None else self.bare_exactly(low) if high is not None else self.exactly(low)
        return said(text, low=first, high="" if high is None else self.exactly(high))

    def off(self, error: float) -> str:
        """An error with its unit."""
        return self.apart.beside(give_or_take(error))

    def named(self, words: str) -> str:
        """The heading of a column of a table, or of an axis, with the unit behind it."""
        return said("{words} ({unit})", words=words, unit=self.word) if self.unit else words

    def beside(self, digits: str) -> str:
        """Digits, however they were written, with the unit behind them."""
        if not self.unit or self.dates:
            return digits
        return f"{digits} {self.single if digits == '1' else self.word}"


PLAIN = Measure()
"""Numbers of which nothing was declared."""


def units_of(columns: Mapping[str, Column | None]) -> dict[str, dict[str, str]]:
    """The units of some columns as a release keeps them among its facts; nothing where none was declared.

    Nothing is added there: keys under which a repeated question is free are digests of these facts.
    """
    found = {name: unit for name, column in columns.items() if (unit := Measure.of(column).unit)}
    return {"units": found} if found else {}


def dates_of(columns: Mapping[str, Column | None]) -> dict[str, list[str]]:
    """The columns whose numbers are days as a release keeps them beside its results; nothing where none is."""
    found = [name for name, column in columns.items() if Measure.of(column).dates]
    return {"dates": found} if found else {}


def measure_in(release: Release, column: object) -> Measure:
    """How a release says that the numbers of a column are written, whatever somebody put into the file."""
    units: Any = release.provenance.parameters.get("units")
    unit = units.get(column) if isinstance(units, Mapping) and isinstance(column, str) else None
    dates = release.value.get("dates")
    dated = isinstance(dates, list | tuple) and column in dates
    return Measure(unit=tidy(unit)[:LONGEST_UNIT] if isinstance(unit, str) and not dated else "", dates=dated)


def labels_in(release: Release, column: str) -> tuple[str, ...]:
    """The labels that a condition takes of a column; none of numbers, nor where an earlier version kept codes."""
    labels = release.value.get("labels")
    found = labels.get(column) if isinstance(labels, Mapping) else None
    return tuple(map(tidy, found)) if isinstance(found, tuple) and all(isinstance(one, str) for one in found) else ()
