"""From a table to the matrix a network reads: record by record, by public rules alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.engine.by_person import here
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.learning.network import Floats
from sabun.records import CategoryColumn, Column, NumberColumn, Persons, Schema, open_source, open_unbounded
from sabun.records.cells import folded
from sabun.release.tree import Frozen

__all__ = [
    "LARGEST",
    "Features",
    "Labels",
    "classes_of_target",
    "must_not_be_input",
    "persons_schema",
    "read_persons",
    "typed_as_numbers",
]

LARGEST = 1e6
_MOST_READ = 100
_TEXTLESS = "biufc"
_TWINS = {"0": "false", "1": "true"}
"""The same two labels, as numbers and as booleans."""


@final
@dataclass(frozen=True, kw_only=True)
class Features:
    """How rows of a table become inputs.

    With a schema: numbers scaled from their public bounds onto [0, 1] (log1p columns on a log scale), labels spread over 0/1
    columns. Without one: plain numbers, NaN as 0, clipped to a million either way.

    Args:
        schema: The public facts, or None for plain numbers.
        names: Column names; for plain numbers x0, x1, … or those of the frame.
    """

    schema: Schema | None
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: object, schema: Schema | None) -> Features:
        """The features of a table under a schema, or of a table of plain numbers.

        Raises:
            BoundsError: A column holds text and there is no schema that lists its categories.
        """
        if schema is not None:
            return cls(schema=schema, names=schema.names)
        _must_be_numbers(table)
        return cls(schema=None, names=open_unbounded(table).names)

    @property
    def width(self) -> int:
        """How many inputs the network has."""
        return len(self.names) if self.schema is None else self.schema.width

    @property
    def bounded(self) -> NDArray[np.bool_]:
        """Which inputs are numbers between public bounds: none without a schema; the inputs of a label are not."""
        if self.schema is None:
            return np.zeros(self.width, dtype=np.bool_)
        kinds = [[False] * len(c.categories) if isinstance(c, CategoryColumn) else [True] for c in self.schema.columns]
        return np.array([kind for part in kinds for kind in part])

    @property
    def norm_bound(self) -> float:
        """A public bound on the Euclidean norm of (row, 1) under a schema: each declared column adds at most 1."""
        return float(np.sqrt(len(self.names) + 1.0))

    def rows(self, table: object) -> Floats:
        """The matrix of inputs.

        Raises:
            DataError: The table's shape, names or column types do not fit. Never because of a cell.
        """
        if self.schema is not None:
            return self.inputs(open_source(table, schema=self.schema).matrix())
        _must_be_numbers(table)
        source = open_unbounded(table)
        if len(source.names) != len(self.names):
            raise DataError(f"X must have {len(self.names)} columns, as in fit; got {len(source.names)}.")
        return np.clip(np.nan_to_num(source.matrix(), nan=0.0), -LARGEST, LARGEST)

    def inputs(self, encoded: Floats) -> Floats:
        """The matrix of inputs of a table that was already encoded under the schema."""
        return encoded if self.schema is None else self.schema.design(encoded, to=(0.0, 1.0))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"schema": None if self.schema is None else self.schema.to_dict(), "names": list(self.names)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Features:
        """Reads what `to_dict` wrote."""
        schema = record.get("schema")
        return cls(schema=None if schema is None else Schema.from_dict(schema), names=tuple(record.get("names", ())))


@final
@dataclass(frozen=True, kw_only=True)
class Labels:
    """The public list of classes.

    Args:
        classes: As the caller writes them: text, whole numbers or booleans.
        declared: Whether the caller named them; otherwise they were taken from y, which the guarantee then says.
    """

    classes: tuple[Any, ...]
    declared: bool

    def __post_init__(self) -> None:
        checks.require(len(self.classes) >= 2, "at least two distinct labels", classes=self.classes)
        self._column()

    @classmethod
    def of(cls, y: object, classes: Sequence[Any] | None) -> Labels:
        """The declared classes, or the distinct labels of y.

        Raises:
            DataError: No classes were declared, and y holds fewer than two, or labels that cannot be classes.
            ParameterError: No declared class can stand in a column of the type that y has.
        """
        if classes is not None:
            labels = cls(classes=tuple(_plain(label) for label in classes), declared=True)
            labels._must_meet(y)
            return labels
        found = sorted(
            {_plain(label) for label in _cells(y) if not _is_missing(label)}, key=lambda label: (str(type(label)), label)
        )
        if any(isinstance(label, float) for label in found):  # whole ones are whole numbers by now
            raise DataError(
                "y must hold labels that are text, whole numbers or booleans; numbers with fractions are continuous, an "
                "Unknown label type: a classifier has no use for them. Turn them into classes first."
            ) from None
        if len(found) < 2:
            raise DataError("y must hold at least two classes, not one class. Name the public list of labels (classes).")
        if len(found) > _MOST_READ:
            raise DataError(
                f"y must hold at most {_MOST_READ} different labels where no list of them is given: more look like names or "
                "numbers of people, and all of them would be published. Name the public list of labels (classes)."
            )
        try:
            labels = cls(classes=tuple(found), declared=False)
            Frozen({"classes": labels.classes})  # they are released with the model: what no file can hold has to show now
            return labels
        except ParameterError:  # its words would show a private label
            raise DataError(
                "y must hold labels that are text, whole numbers or booleans, each written in one way. "
                "Name the public list of labels (classes)."
            ) from None

    def codes(self, y: object) -> NDArray[np.int64]:
        """The position of each row's label in the list, -1 for a label outside it; each is looked up by itself.

        False and True also stand for 0 and 1 where these two are the classes, and the other way round.
        """
        cells = _cells(y)
        codes = self._column().encode(cells)
        if (twin := self._twin()) is not None:
            codes = np.where(codes < 0, twin.encode(cells), codes)
        return codes.astype(np.int64)

    def array(self) -> NDArray[Any]:
        """The classes as scikit-learn wants them."""
        return np.array(self.classes)

    def _column(self) -> CategoryColumn:
        return Column.category("y", self.classes)

    def _twin(self) -> CategoryColumn | None:
        """The classes 0 and 1 as booleans, or booleans as numbers; None for other classes."""
        spelled = [folded(label) for label in self._column().categories]
        for other in (_TWINS, {boolean: number for number, boolean in _TWINS.items()}):
            if set(spelled) == set(other):
                return Column.category("y", [other[label] for label in spelled])
        return None

    def _must_meet(self, y: object) -> None:
        """Refuses classes that no column of y's type can hold: every row would be left out. A type is public, values are not.

        Text may spell anything, cells of type object and of lists may be anything: of them nothing is said.
        """
        kind = _kind_of(y)
        if kind == "booleans":
            met = bool((self.codes(np.array([False, True])) >= 0).any())
        elif kind == "numbers":
            found = [number for label in self._column().categories if not math.isnan(number := _number(label))]
            met = self._twin() is not None or (bool(found) and bool((self.codes(np.array(found)) >= 0).any()))
        else:
            return
        advice = "Name them as y has them, or turn y into the names."
        checks.require(met, f"labels that y can hold, a column of {kind}", advice, classes=self.classes)


def classes_of_target(column: Column, classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """The public list of labels of a target that a schema declares: the given one, else the declared categories.

    Raises:
        ParameterError: The column is declared a number and no list is given: its values would be published as names of classes.
            Or a class of the list is one that the column, as declared, cannot hold: nobody would be in it.
    """
    if isinstance(column, CategoryColumn):
        listed = column.categories if classes is None else tuple(classes)
        holds, declares = column.encode(list(listed), keep_missing=True) >= 0, f"the categories {', '.join(column.categories)}"
    elif classes is None:
        raise ParameterError(
            f"target must be a column of categories; the schema declares {column.name!r} a number, and its values would be "
            "published as names of classes. Declare its categories, or name the public list of labels (classes)."
        )
    else:
        assert isinstance(column, NumberColumn)
        listed = tuple(classes)
        values = column.encode(list(listed), keep_missing=True)
        holds = np.array([value == _number(label) for value, label in zip(values, listed, strict=True)])
        declares = f"numbers from {column.lower:g} to {column.upper:g}"
    for label, good in zip(listed, holds, strict=True):
        rule = f"labels that the schema declares for {column.name!r}: {declares}"
        checks.require(bool(good), rule, "Correct the list or the schema.", classes=label)
    return listed


def read_persons(
    people: Persons, target: object, *, schema: Schema | None, classes: Sequence[Any] | None
) -> tuple[Floats, NDArray[np.int64]]:
    """The encoded inputs of persons with several rows each, and the position of each one's label in the list, -1 outside it.

    Both come out of one reading, in the one order that is drawn for them.

    Raises:
        DataError: There is no schema, or the table lacks a column.
        ParameterError: The target is no name of a column, or the list of labels is not public.
    """
    checks.require(isinstance(target, str), "the name of the target's column in the table of persons", y=type(target).__name__)
    whole = persons_schema(str(target), schema=schema, classes=classes)
    encoded = open_source(here(people, schema=whole), schema=whole, by_person=True).matrix()
    return encoded[:, :-1], encoded[:, -1].astype(np.int64)


def persons_schema(target: str, *, schema: Schema | None, classes: Sequence[Any] | None) -> Schema:
    """What is declared about a table that holds inputs and labels.

    Raises:
        DataError: Nothing is.
        ParameterError: The list of labels is not public, or the target is an input.
    """
    if schema is None:
        raise DataError("a table with several rows per person must have a schema, which says what its columns hold; got none.")
    checks.require(classes is not None, "the public list of labels for persons", classes=classes)
    checks.require(target not in schema.names, "no input", "Leave it out of the schema.", y=target)
    return Schema(columns=(*schema.columns, Column.category(target, classes or ())), file=schema.file)


def must_not_be_input(y: object, schema: Schema | None) -> None:
    """Refuses labels that carry the name of an input, as a column taken out of a frame does; names are public.

    Raises:
        ParameterError: The schema declares the target among the inputs.
    """
    name = getattr(y, "name", None)
    if schema is not None and isinstance(name, str) and name in schema.names:
        raise ParameterError(
            f"schema must declare the inputs alone; got the target {name!r} among them. Leave it out: "
            "schema.select([name for name in schema.names if name != target])."
        )


def _number(label: Any) -> float:
    try:
        return float(label)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _kind_of(y: object) -> str | None:
    """Whether a column or an array is typed as booleans or as numbers; None for other types, and for what has none."""
    framed: Any = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(framed, nw.DataFrame) and len(framed.columns) == 1:
        framed = framed.get_column(framed.columns[0])
    if isinstance(framed, nw.Series):
        kind = framed.dtype
        return "booleans" if kind == nw.Boolean else "numbers" if kind.is_numeric() else None
    letter = y.dtype.kind if isinstance(y, np.ndarray) else ""
    return "booleans" if letter == "b" else "numbers" if letter in ("i", "u", "f") else None


def _cells(y: object) -> NDArray[Any]:
    cells = np.asarray(y)
    if cells.ndim == 2 and cells.shape[1] == 1:
        cells = cells[:, 0]
    if cells.ndim != 1:
        raise DataError(f"y must have one dimension; got {cells.ndim}.")
    return cells


def _plain(label: Any) -> Any:
    value = label.item() if isinstance(label, np.generic) else label
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_missing(label: Any) -> bool:
    return label is None or label != label


def typed_as_numbers(table: object) -> bool:
    """Whether the columns of a frame of narwhals, or an array, are typed as numbers or booleans: True for what has no types."""
    if isinstance(table, nw.DataFrame):
        return all(kind.is_numeric() or kind == nw.Boolean for kind in table.schema.values())
    return not isinstance(table, np.ndarray) or table.dtype.kind in _TEXTLESS


def _must_be_numbers(table: object) -> None:
    """Refuses text columns without a schema: by the columns' types, which are public."""
    framed: Any = nw.from_native(table, eager_only=True, pass_through=True)
    if not typed_as_numbers(framed):
        raise BoundsError(
            "schema must list the categories of columns that hold text; got none. Categories must not come from the data: "
            "pass schema=Schema(columns=[Column.category(...), Column.number(...), ...])."
        )
