"""Questions in words: `mean(age)`, `count(age > 50 and sex = F)`, `median(hours where not (sex = F or age < 18)) by region`."""

from __future__ import annotations

import dataclasses
import math
import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.density.export import WEIGHT
from sabun.density.kernel import Floats
from sabun.errors import DataError, ParameterError
from sabun.records import CategoryColumn, Schema
from sabun.records.dates import days_of, iso_of

__all__ = ["FORMS", "Expression", "first_question"]

FORMS = (
    "mean(age)",
    "mean(hours where sex = F)",
    "share(age > 50 and not (sex = F or sex = M))",
    "count(age > 50)",
    "sum(hours)",
    "median(age)",
    "quantile(age, 0.9)",
    "mean(age) by sex",
)
"""A question of each kind."""

Rows = NDArray[np.bool_]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_KINDS = ("mean", "share", "count", "sum", "median", "quantile", "quantiles")
_OPENING = re.compile(rf"\s*({'|'.join(sorted(_KINDS, key=len, reverse=True))})\s*\(")
_BY = re.compile(r"\s*(?:group\s+)?by\s+(?P<by>.+?)\s*", re.DOTALL)
_CONDITION = re.compile(r"\s*(?P<column>.+?)\s*(?P<sign>>=|<=|!=|==|=|>|<)\s*(?P<value>.+?)\s*", re.DOTALL)
_QUOTED = re.compile(r"""(?<![^\s(=<>,])(?P<mark>['"]).*?(?P=mark)(?=[\s),=<>!]|$)""", re.DOTALL)
_RESERVED = re.compile(r"[(),]|\b(?:and|or|not|where|by)\b")
_WORDS = {"true": 1.0, "false": 0.0}
_ADVICE = " Names and labels that hold 'and', 'or' or brackets go in quotation marks."
_MOST_GROUPS = 50
_DEEPEST = 200


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A question about a table: a figure of a column or of a condition, over all rows or those that meet another condition.

    Attributes:
        kind: "mean", "share", "count", "sum" or "quantile".
        what: The column or the condition; empty for the number of all rows.
        where: A condition on the rows that count.
        by: A column that parts the table into groups.
        at: Which quantiles, each above 0 and below 1.
        columns: Names of columns that hold words or signs of the language, and are names all the same.

    Example:
        >>> Expression.read("median(age where sex = F)").at
        (0.5,)
    """

    kind: str
    what: str
    where: str | None = None
    by: str | None = None
    at: tuple[float, ...] = ()
    columns: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str, columns: Sequence[str] = ()) -> Self:
        """Reads a question.

        Args:
            text: The question.
            columns: The names of the table's columns.

        Raises:
            ParameterError: It is none of the known forms.
        """
        special = tuple(sorted((name for name in columns if _RESERVED.search(name)), key=len, reverse=True))
        plain = _plain(text, special)
        opening = _OPENING.match(plain)
        end = None if opening is None else _closing(plain, opening.end() - 1)
        rest = "" if end is None else plain[end + 1 :]
        by = _BY.fullmatch(rest)
        if opening is None or end is None or (rest.strip() and by is None):
            ends = "The least and the largest value are single records: ask for a quantile such as quantile(age, 0.99)."
            advice = f" {ends}" if re.match(r"\s*(?:min|max)", text) else ""
            raise ParameterError(f"a question must look like {', '.join(FORMS[:-1])} or {FORMS[-1]}; got {text!r}.{advice}")
        inside, shown = plain[opening.end() : end], text[opening.end() : end]
        found = _at_word(inside, "where")
        what, where = (shown, None) if found is None else (shown[: found[0]], shown[found[1] :].strip())
        kind, at = opening[1], tuple[float, ...]()
        if kind in ("median", "quantile", "quantiles"):
            what, at = (what, (0.5,)) if kind == "median" else _levels(what, inside[: len(what)], text)
            kind = "quantile"
        if not what.strip() and kind != "count":
            raise ParameterError(f"between the brackets must stand a column or a condition; got {text!r}.")
        group = None if by is None else _unquoted(text[end + 1 :][slice(*by.span("by"))])
        return cls(kind=kind, what=_unquoted(what.strip()), where=where, by=group, at=at, columns=special)

    def values(self, table: Any) -> Floats:
        """One number for each row."""
        if not self.what:
            return np.ones(len(table))
        if self.what in table.columns and self.kind not in ("share", "count"):
            return _numbers(table, self.what)
        return self._condition(table, self.what).astype(np.float64)

    def is_share(self, table: Any) -> bool:
        """Whether it is about a condition, so that every number lies between 0 and 1."""
        return self.kind in ("share", "count") or self.what not in table.columns

    def rows(self, table: Any) -> Rows:
        """Which rows count."""
        return np.ones(len(table), dtype=np.bool_) if self.where is None else self._condition(table, self.where)

    def columns_asked(self, table: Any) -> frozenset[str]:
        """The columns that it is about, of those of the table."""
        named: set[str] = set() if self.by is None else {self.by}
        if self.what in table.columns and self.kind not in ("share", "count"):
            named.add(self.what)
        elif self.what:
            named |= self._named(table, self.what)
        return frozenset(named if self.where is None else named | self._named(table, self.where))

    def singles(self, table: Any, *, dates: Collection[str] = ()) -> list[Self]:
        """The questions with one answer each that it stands for: one for each quantile of each group.

        Args:
            table: The public table.
            dates: Columns whose numbers are days, and stand in a question as dates.
        """
        groups = [self] if self.by is None else [self._within(label) for label in self._labels(table, dates)]
        return [dataclasses.replace(one, at=(level,)) for one in groups for level in self.at] if self.at else groups

    def __str__(self) -> str:
        what = f"{self.what}, {self.at[0]:g}" if self.at and self.at != (0.5,) else self.what
        where = "" if self.where is None else f"{' ' if what else ''}where {self.where}"
        kind = "median" if self.at == (0.5,) else self.kind
        return f"{kind}({what}{where})" + ("" if self.by is None else f" by {self.by}")

    def _labels(self, table: Any, dates: Collection[str]) -> list[str]:
        """The values of the column that parts the rows, from the public table."""
        if self.by not in table.columns:
            raise DataError(_no_column(str(self.by), table))
        column = table[self.by].dropna()
        values = sorted(set(column.tolist() if column.dtype.kind in "biuf" else _texts(column)))
        shown = iso_of if self.by in dates else _shown
        found = [value if isinstance(value, str) else shown(value) for value in values]
        if len(found) > _MOST_GROUPS:
            advice = f"Ask for ranges instead, such as mean(x where {self.by} < 10)."
            raise ParameterError(
                f"a column to group by must have at most {_MOST_GROUPS} values; {self.by!r} has more. {advice}"
            )
        return found

    def _within(self, label: str) -> Self:
        group = f"{self.by} = {_as_label(label)}"
        if self.kind == "count" and not self.what and self.where is None:
            return dataclasses.replace(self, what=group, by=None)
        mine = f"({self.where})" if self.where is not None and re.search(r"\bor\b", self.where) else self.where
        return dataclasses.replace(self, where=group if mine is None else f"{mine} and {group}", by=None)

    def _condition(self, table: Any, text: str, depth: int = 0) -> Rows:
        """Rows that meet a condition: `or` binds least, then `and`, then `not`."""
        word, parts = self._taken_apart(text, depth)
        if word is None:
            return _compared(table, parts[0], part=depth > 0)
        found = [self._condition(table, part, depth + 1) for part in parts]
        if word == "not":
            return ~found[0]
        return np.asarray({"or": np.logical_or, "and": np.logical_and}[word].reduce(found), dtype=np.bool_)

    def _named(self, table: Any, text: str, depth: int = 0) -> set[str]:
        """The columns that a condition compares."""
        word, parts = self._taken_apart(text, depth)
        if word is None:
            return {_comparison(table, parts[0], part=depth > 0)[0]}
        return set().union(*(self._named(table, part, depth + 1) for part in parts))

    def _taken_apart(self, text: str, depth: int) -> tuple[str | None, tuple[str, ...]]:
        """The word that binds least, with what it joins; without one, a single comparison."""
        text = text.strip()
        plain = _plain(text, self.columns)
        if depth > _DEEPEST:
            raise ParameterError(f"a condition must have at most {_DEEPEST} parts; got more.")
        for word in ("or", "and"):
            if (found := _at_word(plain, word)) is not None:
                return word, (text[: found[0]], text[found[1] :])
        if (denied := re.match(r"not\b", plain)) is not None:
            return "not", (text[denied.end() :],)
        if plain.startswith("(") and _closing(plain, 0) == len(plain) - 1:
            return "and", (text[1:-1],)
        return None, (text,)


def first_question(table: Any, names: Sequence[str], schema: Schema | None) -> str:
    """A question to begin with: the mean of the first column of numbers, else the share of a label of the first column.

    Args:
        table: The public table: only of a label that it holds can weights tell the share.
        names: The columns that were compared; without a schema all hold numbers.
        schema: What was declared about them.
    """
    labelled = {} if schema is None else {one.name: one for one in schema.columns if isinstance(one, CategoryColumn)}
    numbers = [name for name in names if name not in labelled]
    if numbers:
        return f"mean({numbers[0]})"
    held, declared = set(_texts(table[names[0]].dropna())), labelled[names[0]].categories
    return f"share({names[0]} = {_as_label(next((label for label in declared if label in held), declared[0]))})"


def _plain(text: str, names: Sequence[str]) -> str:
    """The text with blanks for what is quoted and for names that hold words of the language: equally long."""
    for name in names:
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "\0" * len(name), text)
    return _QUOTED.sub(lambda found: "\0" * len(found[0]), text)


def _closing(plain: str, opening: int) -> int | None:
    """Where the bracket is closed that opens there."""
    depth = 0
    for place in range(opening, len(plain)):
        depth += (plain[place] == "(") - (plain[place] == ")")
        if depth == 0:
            return place
    return None


def _at_word(plain: str, word: str) -> tuple[int, int] | None:
    """Where a word of the language first stands outside all brackets."""
    for found in re.finditer(rf"(?<![^\s)]){word}(?![^\s(])", plain):
        if plain.count("(", 0, found.start()) == plain.count(")", 0, found.start()):
            return found.span()
    return None


def _levels(what: str, plain: str, text: str) -> tuple[str, tuple[float, ...]]:
    """The column and the quantiles of `age, 0.25, 0.5`."""
    place = plain.find(",")
    levels = () if place < 0 else tuple(map(_float, what[place + 1 :].split(",")))
    if not levels or not all(level is not None and 0 < level < 1 for level in levels):
        raise ParameterError(
            f"a quantile must be asked for with numbers between 0 and 1, as in quantile(age, 0.9); got {text!r}."
        )
    return what[:place], tuple(level for level in levels if level is not None)


def _comparison(table: Any, text: str, *, part: bool) -> tuple[str, str, str]:
    """The column, the sign and the value of a single comparison."""
    match = next((found for name in _names(table, text) if (found := _beginning(name, text)) is not None), None)
    match, advice = match or _CONDITION.fullmatch(text), _ADVICE if part else ""
    if match is None and text in table.columns:
        raise ParameterError(f"a condition must look like age > 50 or sex = Female; got {text!r}.{advice}")
    if match is None or _unquoted(match["column"]) not in table.columns:
        raise DataError(f"{_no_column(text if match is None else _unquoted(match['column']), table)}{advice}")
    return _unquoted(match["column"]), match["sign"].replace("==", "="), _unquoted(match["value"])


def _compared(table: Any, text: str, *, part: bool) -> Rows:
    """A single comparison of a column with a number or a label."""
    name, sign, value = _comparison(table, text, part=part)
    column, advice = table[name], _ADVICE if part else ""
    if column.dtype.kind in "biuf":
        right = _WORDS.get(value.lower()) if column.dtype.kind == "b" else None
        return np.asarray(_COMPARE[sign](_numbers(table, name), _number(value, text) if right is None else right))
    if sign not in ("=", "!="):
        raise ParameterError(f"{name!r} must be compared with = or !=, for it holds labels; got {text!r}.")
    same = column.notna() & (_texts(column) == value)  # a missing cell is no label called "None"
    if not same.any():
        # Most often a misspelling; and of a label that it lacks a public table can tell nothing, least of all 0.
        instead = checks.offered(value, dict.fromkeys(_texts(column.dropna())))
        why = f"no public row has {name!r} = {value!r}, so that weights say nothing about it."
        raise DataError(f"{why} {instead}".rstrip() + advice)
    return np.asarray(same if sign == "=" else ~same, dtype=np.bool_)


def _names(table: Any, text: str) -> list[str]:
    """Columns whose names begin a text, the longest first: a name may hold a sign itself."""
    return sorted((str(name) for name in table.columns if text.startswith(str(name))), key=len, reverse=True)


def _beginning(name: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(rf"(?P<column>{re.escape(name)})\s*(?P<sign>>=|<=|!=|==|=|>|<)\s*(?P<value>.+?)\s*", text, re.DOTALL)


def _texts(column: Any) -> Any:
    """The labels of a column as they are compared."""
    return column.astype(str).str.strip()


def _shown(value: float) -> str:
    """A number that is read as the same one; a word for a truth."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else str(value)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _as_label(label: str) -> str:
    """A label as it stands in a question: in quotation marks where it would not be read as one."""
    plain = label and not _RESERVED.search(label) and label == _unquoted(label)
    return label if plain else _quoted(label)


def _quoted(label: str) -> str:
    return f'"{label}"' if "'" in label else f"'{label}'"


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _number(value: str, text: str) -> float:
    if (found := _float(value)) is not None and not math.isnan(found):
        return found
    if math.isnan(day := days_of(value)):
        raise ParameterError(f"a number or a date must stand on the right side, for the column holds numbers; got {text!r}.")
    return day


def _no_column(name: str, table: Any) -> str:
    """The table is the public one, so that its names may be told."""
    others = [other for other in map(str, table.columns) if other != WEIGHT]
    return f"the table has no column {name!r}. {checks.offered(name, others)}".rstrip()


def _numbers(table: Any, name: str) -> Floats:
    column = table[name]
    if column.dtype.kind not in "biuf":
        numbers = [str(other) for other, kind in table.dtypes.items() if kind.kind in "biuf" and other != WEIGHT]
        others = f" {checks.offered(None, numbers)}".rstrip()
        raise DataError(
            f"column {name!r} must hold numbers in every row; at least one cell is a text (1,234 is one). "
            f"Compare it when the weights are made (--columns), or ask for a share, such as share({name} = X).{others}"
        )
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
