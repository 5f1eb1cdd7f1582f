"""What is publicly known about a table: the only door through which private records come in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self, final

from sabun import checks
from sabun.errors import BoundsError, DataError, ParameterError
from sabun.foreign import parse_json
from sabun.records.cells import Floats
from sabun.records.columns import CategoryColumn, Column, NumberColumn
from sabun.records.forms import PLAIN, FileFormat
from sabun.records.matrix import encoded, one_hot, scaled

__all__ = ["Schema"]

_FORMAT = "sabun-schema-1"


@final
@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public facts about a table, fixed before anybody looks at a record.

    Nothing is ever inferred: a number column without bounds is an error. Encoding maps each record by itself, so two tables
    that differ in one record give matrices of one shape that differ in that row alone, and no cell can raise an error
    or a warning.

    Edge cases:
        | cell | number column | category column |
        |---|---|---|
        | null, NaN, empty, text that is no number, any other object | `missing` | `missing`, else code -1 |
        | below `lower`, -inf | `lower` | |
        | above `upper`, +inf, beyond float64 | `upper` | |
        | whole number beyond 2**53 | nearest float64, then clipped | its digits are the label |
        | True, False (or that text) | 1, 0, then clipped | the label ``true``, ``false`` in any case |
        | ``1.0`` for the label ``1`` | | that label, unless ``1.0`` is a label too |
        | text with blanks around it | blanks ignored | blanks ignored |
        | label outside the list | | `missing`, else code -1 |

    Args:
        columns: The declared columns, in order.
        file: How the table's texts are written, where it is no plain file.

    Example:
        >>> schema = Schema(columns=[Column.number("age", lower=0, upper=100), Column.category("sex", ["F", "M"])])
        >>> matrix = schema.encode([[130, "M"], [None, "?"]])
        >>> matrix
        array([[100.,   1.],
               [ 50.,  -1.]])
        >>> schema.design(matrix)
        array([[1., 0., 1.],
               [0., 0., 0.]])
        >>> schema.features
        ('age', 'sex=F', 'sex=M')
    """

    columns: tuple[Column, ...]
    file: FileFormat = field(default=PLAIN, repr=False)  # as `dates` of a column

    def __post_init__(self) -> None:
        checks.require(isinstance(self.columns, list | tuple), "a list of columns", columns=self.columns)
        for column in self.columns:
            good = isinstance(column, NumberColumn | CategoryColumn)
            checks.require(good, "made by Column.number, Column.date or Column.category", column=column)
        names = [column.name for column in self.columns]
        checks.require(0 < len(set(names)) == len(names), "distinct names of at least one column", columns=names)
        object.__setattr__(self, "columns", tuple(self.columns))
        checks.require(isinstance(self.file, FileFormat), "a FileFormat", file=self.file)

    @classmethod
    def of_bounds(cls, bounds: Mapping[str, Any] | Sequence[Any], *, missing: Mapping[str, float] | None = None) -> Self:
        """Declares number columns only, by their bounds.

        Args:
            bounds: Pairs (lower, upper) by name, or a list of pairs for columns that will be called x0, x1, …
            missing: Public constants by name; the middle of the bounds for columns not named.

        Raises:
            BoundsError: A column has no bounds, or impossible ones.

        Example:
            >>> Schema.of_bounds({"age": (0, 120), "bmi": (10, 60)}, missing={"bmi": 25}).names
            ('age', 'bmi')
        """
        if bounds is None:
            raise BoundsError("bounds must be declared. Bounds must not come from the data: pass bounds=(lower, upper).")
        named = bounds if isinstance(bounds, Mapping) else {f"x{index}": pair for index, pair in enumerate(bounds)}
        constants = dict(missing or {})
        unknown = sorted(set(constants) - set(named))
        checks.require(not unknown, "given for declared columns only", missing=unknown)
        return cls(columns=tuple(Column.number(n, bounds=p, missing=constants.get(n)) for n, p in named.items()))

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns of `design` and `one_hot`."""
        return tuple(feature for column in self.columns for feature in column.features)

    @property
    def width(self) -> int:
        """How many columns `design` and `one_hot` give."""
        return len(self.features)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the canonical JSON text."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def __getitem__(self, name: str) -> Column:
        return self.select([name]).columns[0]

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of some columns, in the order asked for."""
        known = {column.name: column for column in self.columns}
        asked = [names] if isinstance(names, str) else list(names)
        for name in asked:
            checks.column(known, column=name)
        return Schema(columns=tuple(known[name] for name in asked), file=self.file)

    def replacing(self, *columns: Column) -> Schema:
        """The schema with some columns declared anew under their old names."""
        self.select([column.name for column in columns])
        new = {column.name: column for column in columns}
        return Schema(columns=tuple(new.get(column.name, column) for column in self.columns), file=self.file)

    def encode(self, chunk: object, *, keep_missing: bool = False) -> Floats:
        """Maps a table in memory to one float64 column for each declared one.

        Args:
            chunk: A 2-D array or list of rows (columns in the schema's order), or a pandas, polars or pyarrow frame (columns
                found by name, others ignored). For a schema of one column also a series, a 1-D array or a list of cells.
            keep_missing: Leave NaN where the public constant would stand, for methods with a rule of their own.

        Returns:
            A matrix with numbers in their own units inside their bounds and labels as codes; without NaN unless asked for.

        Raises:
            DataError: The table's kind, shape, column names or column types do not fit. Never because of a cell.
        """
        return encoded(self.columns, chunk, keep_missing=keep_missing, form=self.file)

    def scaled(self, matrix: Floats, *, to: tuple[float, float] = (-1.0, 1.0)) -> Floats:
        """Maps the number columns of an encoded matrix from their bounds onto `to`; log1p columns after log(1 + value)."""
        return scaled(self.columns, matrix, to=to)

    def one_hot(self, matrix: Floats) -> Floats:
        """Spreads the codes of an encoded (or scaled) matrix over one 0/1 column for each label; code -1 is a row of zeros."""
        return one_hot(self.columns, matrix)

    def design(self, matrix: Floats, *, to: tuple[float, float] = (-1.0, 1.0)) -> Floats:
        """The encoded matrix scaled, then spread: `width` columns, all of them inside public limits."""
        return self.one_hot(self.scaled(matrix, to=to))

    def to_dict(self) -> dict[str, Any]:
        """The declaration as plain JSON values."""
        file = self.file.to_dict()
        return {"format": _FORMAT, "columns": [column.to_dict() for column in self.columns]} | ({"file": file} if file else {})

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote; unknown or absent keys are refused."""
        checks.require(isinstance(mapping, Mapping), "a JSON object", schema=mapping)
        found = sorted(str(key) for key in mapping if key != "file")
        advice = f'Write {{"format": "{_FORMAT}", "columns": [...]}}.'
        checks.require(
            found == ["columns", "format"], "columns, format (and file if wanted)", advice, **{"keys of a schema": found}
        )
        checks.require(mapping["format"] == _FORMAT, repr(_FORMAT), format=mapping["format"])
        checks.require(isinstance(mapping["columns"], list | tuple), "a list of columns", columns=mapping["columns"])
        file = FileFormat.from_dict(mapping.get("file", {}))
        return cls(columns=tuple(Column.from_dict(column) for column in mapping["columns"]), file=file)

    def to_json(self) -> str:
        """Canonical JSON: sorted keys, no blanks, equal text for equal schemas."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads canonical or hand-written JSON; a key that stands twice is refused."""
        return cls.from_dict(parse_json(text, what="a schema", error=ParameterError))

    def to_text(self) -> str:
        """The schema as JSON that people can read."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Writes the schema as JSON that people can read."""
        Path(path).write_text(self.to_text(), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads a schema file.

        Raises:
            DataError: There is no such file, or it is no UTF-8 text.
            ParameterError: It declares something impossible.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except OSError:
            raise DataError(f"schema file {str(path)!r} cannot be read. Check its name.") from None
        except UnicodeDecodeError:
            raise DataError(f"schema file {str(path)!r} must be UTF-8 text.") from None
        return cls.from_json(text)
