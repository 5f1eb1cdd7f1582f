"""The methods of `DensityRatio` as people type them: `--method`, its settings, a basis of columns and conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

from sabun import checks
from sabun.errors import ParameterError
from sabun.telling.terminal.columns import declared, listed, typed_bounds

if TYPE_CHECKING:
    from sabun.density.answers import Answer
    from sabun.density.kernel import Floats
    from sabun.density.settings import DensitySettings
    from sabun.records import FilePart, Schema

__all__ = [
    "Accept",
    "Basis",
    "Method",
    "MethodSettings",
    "basis_of",
    "interval_told",
    "read_columns",
    "typed_method",
]

Method: TypeAlias = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="rkhs|ji-elkan|ulsif-parametric|ulsif-a|ulsif-b|ulsif-c",
        help="rkhs (ours) or ji-elkan: epsilon, or epsilon and delta; ulsif-parametric, ulsif-a or ulsif-b (the paper's 3.1, "
        "A, B): epsilon, with a public number of rows; ulsif-c (its C): epsilon and delta = n_centers / rows, and it publishes "
        "n_centers private rows AS THEY ARE.",
    ),
]
MethodSettings: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--setting",
        help="A public setting of the method, name=value: n_centers=50, bandwidth=0.5 (or median), regularization=0.1, "
        "centers=FILE, tau2=0.5, clip_norm=2, basis_bounds=0:1; repeat it.",
    ),
]
Basis: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--basis", help="For ulsif-parametric or ji-elkan, one function: 1, a column, or 'age > 50'; repeat it."),
]
Accept: TypeAlias = Annotated[
    bool,
    typer.Option("--accept-publishing-raw-records", help="For ulsif-c, which refuses without: private rows are published."),
]

_TERM = re.compile(r"\s*(?P<column>.+?)\s*(?P<sign>>=|<=|==|=|>|<)\s*(?P<value>.+?)\s*")
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": lambda x, y: x >= y,
    "<=": lambda x, y: x <= y,
    "==": lambda x, y: x == y,
    "=": lambda x, y: x == y,
    ">": lambda x, y: x > y,
    "<": lambda x, y: x < y,
}


_About: TypeAlias = "tuple[list[str] | None, Schema | None]"
"""Plain columns by their names (all when None), or declared ones."""


def read_columns(columns: str | None, bounds: list[str] | None, schema: Path | None) -> _About:
    """The columns as they were typed; numbers need neither schema nor bounds."""
    if schema is None and not bounds:
        return None if columns is None else [name.strip() for name in columns.split(",")], None
    known = declared(schema, bounds)
    chosen = listed(columns, known)
    return None, known if chosen is None else known.select(chosen)


def typed_method(
    method: str,
    settings: Sequence[str] | None,
    basis: Sequence[str] | None,
    about: _About,
    public: FilePart,
    *,
    accept: bool,
) -> DensitySettings:
    """The method with its settings, each checked for whether the method has it.

    Args:
        method: Its name.
        settings: As `--setting` takes them.
        basis: As `--basis` takes it.
        about: What `read_columns` found.
        public: The public table, which names plain columns.
        accept: Whether private rows may be published.

    Raises:
        ParameterError: There is no such method, the method has no such setting, or a value cannot be read.
    """
    from sabun.density.settings import KINDS
    from sabun.records import open_unbounded

    checks.one_of(tuple(kind.method for kind in KINDS), method=method)
    kind = next(kind for kind in KINDS if kind.method == method)
    own = {field.name for field in fields(kind)}
    given: dict[str, Any] = {}
    if basis:
        names, known = about
        given["basis"] = basis_of(basis, names=() if known else names or open_unbounded(public).names, schema=known)
    if accept:
        given["accept_publishing_raw_records"] = True
    for text in settings or ():
        name, equals, value = (part.strip() for part in text.partition("="))
        typable = sorted(own & set(_READERS))
        if not equals or name not in typable or name in given:
            raise ParameterError(
                f"setting must look like name=value with one of {', '.join(typable)}, each once, for method {method!r}; "
                f"got {text!r:.60}."
            )
        given[name] = _READERS[name](value)
    for name in sorted(set(given) - own):
        raise ParameterError(f"{name} must be left out with method {method!r}, which does without. Drop the option.")
    return kind(**given)


def _number(name: str) -> Callable[[str], float]:
    def read(value: str) -> float:
        try:
            return float(value)
        except ValueError:
            raise ParameterError(f"{name} must be a number; got {value!r:.60}.") from None

    return read


def _whole(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ParameterError(f"n_centers must be a whole number; got {value!r:.60}.") from None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "n_centers": _whole,
    "bandwidth": lambda value: value if value == "median" else _number("bandwidth")(value),
    "tau2": _number("tau2"),
    "regularization": _number("regularization"),
    "clip_norm": _number("clip_norm"),
    "centers": Path,
    "basis_bounds": lambda value: typed_bounds(f"basis_bounds={value}", option="setting")[1],
}


def basis_of(terms: Sequence[str], *, names: Sequence[str], schema: Schema | None) -> Callable[[Floats], Any]:
    """A function of one record made from typed terms: constants, columns in their own units, conditions as 0 and 1.

    Args:
        terms: What was typed.
        names: The columns that a record has, in order.
        schema: What was declared about them; their numbers are then scaled and their labels spread.

    Raises:
        ParameterError: A term is none of these.

    Example:
        >>> basis_of(["1", "age", "age > 50"], names=["age"], schema=None)(np.array([60.0]))
        [1.0, 60.0, 1.0]
    """
    parts = [_plain(term, list(names)) if schema is None else _declared(term, schema) for term in terms]
    return lambda record: [part(record) for part in parts]


_Part: TypeAlias = "Callable[[Floats], float]"


def _constant(term: str) -> float | None:
    try:
        return float(term)
    except ValueError:
        return None


def _condition(term: str, names: Sequence[str]) -> tuple[str, Callable[[float, float], bool], str]:
    match = _TERM.fullmatch(term)
    if match is None or match["column"] not in names:
        raise ParameterError(f"basis must be a number, a column or a condition such as 'age > 50'; got {term!r:.60}.")
    return match["column"], _SIGNS[match["sign"]], match["value"].strip("'\"")


def _plain(term: str, names: list[str]) -> _Part:
    """A term about columns that are plain numbers."""
    if term in names:
        place = names.index(term)
        return lambda record: float(record[place])
    if (constant := _constant(term)) is not None:
        return lambda record: constant
    column, compare, value = _condition(term, names)
    place, limit = names.index(column), _number("the right side of a basis condition")(value)
    return lambda record: float(compare(float(record[place]), limit))


def _declared(term: str, schema: Schema) -> _Part:
    """A term about declared columns: limits are scaled by the rule that scales the cells, so that equal stays equal."""
    from sabun.records import NumberColumn

    numbers = {column.name: column for column in schema.columns if isinstance(column, NumberColumn)}
    if term in numbers:
        place, column = schema.features.index(term), numbers[term]
        low, high = (float(np.log1p(end)) if column.log1p else end for end in (column.lower, column.upper))

        def own(record: Floats) -> float:
            value = low + (float(record[place]) + 1.0) / 2.0 * (high - low)
            return float(np.expm1(value)) if column.log1p else value

        return own
    if (constant := _constant(term)) is not None:
        return lambda record: constant
    name, compare, value = _condition(term, schema.names)
    if name not in numbers:
        label, equal = f"{name}={value}", compare in (_SIGNS["="], _SIGNS["=="])
        checks.require(equal and label in schema.features, "'=' with a declared label, for a column of labels", basis=term)
        place = schema.features.index(label)
        return lambda record: float(record[place] > 0.0)
    limit, column = _number("the right side of a basis condition")(value), numbers[name]
    checks.require(column.lower <= limit <= column.upper, "a condition inside the column's bounds", basis=term)
    row = [limit if other == name else None for other in schema.names]
    place = schema.features.index(name)
    scaled = float(schema.design(schema.encode([row]))[0, place])
    return lambda record: float(compare(float(record[place]), scaled))


def interval_told(found: Answer) -> str:
    """In brackets behind an answer: where it lies, or why nobody knows."""
    if found.interval is None:
        how = " (--bounds COLUMN=LOW:HIGH)" if str(found.reason).endswith("declare bounds") else ""
        return f"no interval: {found.reason}{how}"
    if found.interval[0] == found.interval[1]:
        return f"{found.target}: a public number"
    low, high = found.measure.ends(*found.interval)
    return f"{found.confidence:.0%}, {found.target}: {low} to {high}"
