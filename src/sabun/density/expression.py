"""Questions in words: `mean(age)`, `mean(age > 50)`, `mean(sex = Female)`, also `mean(hours where sex = Female)`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from sabun.density.kernel import Floats
from sabun.errors import DataError, ParameterError

__all__ = ["Expression"]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "!=": operator.ne,
    "=": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_MEAN = re.compile(r"\s*mean\s*\((?P<what>.+?)(?:\s+where\s+(?P<where>.+))?\)\s*", re.DOTALL)
_CONDITION = re.compile(r"\s*(?P<column>.+?)\s*(?P<sign>>=|<=|!=|==|=|>|<)\s*(?P<value>.+?)\s*")


@dataclass(frozen=True, kw_only=True)
class Expression:
    """A mean of a column or of a condition, over all rows or those that meet another condition.

    Example:
        >>> Expression.read("mean(age > 50)").what
        'age > 50'
    """

    what: str
    where: str | None = None

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a question.

        Raises:
            ParameterError: It is none of the known forms.
        """
        match = _MEAN.fullmatch(text)
        if match is None:
            forms = "mean(age), mean(age > 50), mean(sex = Female) or mean(hours where sex = Female)"
            raise ParameterError(f"a question must look like {forms}; got {text!r}.")
        return cls(what=match["what"].strip(), where=match["where"])

    def values(self, table: Any) -> Floats:
        """One number for each row."""
        return _part(table, self.what)

    def is_share(self, table: Any) -> bool:
        """Whether it asks how many rows meet a condition, so that every answer lies between 0 and 1."""
        return self.what not in table.columns

    def rows(self, table: Any) -> Any:
        """Which rows count."""
        if self.where is None:
            return np.ones(len(table), dtype=np.bool_)
        if _CONDITION.fullmatch(self.where) is None:
            raise ParameterError(f"after 'where' must stand a condition such as sex = Female; got {self.where!r}.")
        return _part(table, self.where) > 0


def _part(table: Any, text: str) -> Floats:
    """A column, or a condition as 0 and 1; a column whose name looks like a condition is a column."""
    if text in table.columns:
        return _numbers(table[text], text)
    match = _CONDITION.fullmatch(text)
    if match is None or match["column"] not in table.columns:
        name = text if match is None else match["column"]
        raise DataError(f"the table has no column {name!r}.")
    column, value = table[match["column"]], match["value"].strip("'\"")
    sign = match["sign"].replace("==", "=")
    if column.dtype.kind in "biuf":
        return np.asarray(_COMPARE[sign](column, _number(value, text)), dtype=np.float64)
    if sign not in ("=", "!="):
        raise ParameterError(f"{match['column']!r} must be compared with = or !=, for it holds labels; got {text!r}.")
    same = column.notna() & (column.astype(str).str.strip() == value)  # a missing cell is no label called "None"
    return np.asarray(same if sign == "=" else ~same, dtype=np.float64)


def _number(value: str, text: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ParameterError(f"a number must stand on the right side, for the column holds numbers; got {text!r}.") from None


def _numbers(column: Any, name: str) -> Floats:
    if column.dtype.kind not in "biuf":
        raise DataError(f"column {name!r} must hold numbers; it holds labels. Ask for a share, such as mean({name} = X).")
    return np.asarray(column, dtype=np.float64)
