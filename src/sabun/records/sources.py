"""Private records from wherever they are kept, as float64 matrices in pieces of any size."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, final

import numpy as np

from sabun import checks
from sabun.errors import DataError
from sabun.records.cells import Floats
from sabun.records.collapsing import collapsed
from sabun.records.databases import DatabaseTable, is_database
from sabun.records.files import FilePart
from sabun.records.forms import PLAIN, FileFormat
from sabun.records.matrix import encoded, unbounded
from sabun.records.persons import Collapsed, Persons
from sabun.records.schema import Schema
from sabun.records.tables import Table, as_table, check_columns, is_relation, names_in

__all__ = ["CHUNK_ROWS", "Chunks", "Source", "chunks", "has_names", "open_source", "open_unbounded", "read", "stored"]

CHUNK_ROWS = 65_536
"""Rows worked on at a time unless told otherwise; a matter of memory and speed that cannot change any result."""

Stored: TypeAlias = FilePart | DatabaseTable
"""What has columns by name, and is read in chunks."""

_ROWS_AT_ONCE = 1 << 20


@final
@dataclass(frozen=True, kw_only=True)
class Chunks:
    """A table that comes in pieces; made by `chunks`.

    Args:
        pieces: Makes a new stream.
        form: How texts in it write numbers; None for as the schema says.
    """

    pieces: Callable[[], Iterator[Any]]
    form: FileFormat | None = None

    @property
    def once(self) -> bool:
        """Whether it can be read only once: a generator."""
        return isinstance(self.pieces, _Once)


def chunks(pieces: Iterable[Any] | Callable[[], Iterable[Any]]) -> Chunks:
    """Says that something is a stream of tables (or file names), one after the other.

    Args:
        pieces: A list or other collection, a function that makes a new stream at each call, or a generator (which can be read
            once).

    Example:
        >>> schema = Schema.of_bounds({"age": (0, 120)})
        >>> read(chunks([[[30.0], [40.0]], [[50.0]]]), schema=schema).ravel()
        array([30., 40., 50.])
    """
    if callable(pieces):
        return Chunks(pieces=lambda: iter(pieces()))
    checks.require(
        isinstance(pieces, Iterable) and not isinstance(pieces, str | bytes), "a stream of tables", chunks=type(pieces).__name__
    )
    if not isinstance(pieces, Iterator):
        return Chunks(pieces=lambda: iter(pieces))
    return Chunks(pieces=_Once(pieces))


@final
@dataclass(frozen=True, kw_only=True)
class Source:
    """A private table that can be read from the start as often as needed, in bounded memory.

    Attributes:
        names: The columns of the matrices it gives.
        schema: What was declared about them; None for `open_unbounded`.
        keep_missing: Whether NaN stands for missing cells instead of the public constant.
        origin: Where the records are.
        form: How texts in it write numbers.
    """

    names: tuple[str, ...]
    schema: Schema | None
    keep_missing: bool
    origin: Table | Chunks | Stored | Persons = field(repr=False)
    form: FileFormat = PLAIN
    _once: dict[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def partitions(self, *, rows: int = CHUNK_ROWS) -> Iterator[Floats]:
        """Yields the encoded records in order, `rows` at a time (fewer in the last piece).

        Args:
            rows: How many at a time. A matter of memory only: the pieces put together are the same to the last bit.

        Raises:
            DataError: The table does not fit the declared columns; for files also in the middle, see the room's README.
        """
        checks.whole(minimum=1, rows=rows)
        return _resized(self._matrices(rows), rows)

    def matrix(self) -> Floats:
        """All encoded records as one array of shape (records, columns)."""
        pieces = list(self._matrices(_ROWS_AT_ONCE))
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty((0, len(self.names))), *pieces])

    def tables(self, *, rows: int = CHUNK_ROWS) -> Iterator[Any]:
        """Yields the records as they are, as tables of about that many rows; for their owner."""
        if isinstance(self.origin, Persons):
            raise DataError("a table of persons must be read as encoded rows; its own rows belong to nobody yet.")
        return _stream(self.origin, self.names, rows, self.form)

    def held(self) -> tuple[Chunks | Persons, int]:
        """The records as they are, or one row for each person, read once and kept, with how many there are; for their owner."""
        if isinstance(self.origin, Persons):
            assert self.schema is not None
            rows = self.matrix()
            return replace(self.origin, table=Collapsed(schema=self.schema, rows=rows)), len(rows)
        pieces = list(self.tables())
        return Chunks(pieces=lambda: iter(pieces), form=self.form), sum(map(len, pieces))

    def _persons(self, how: Persons, schema: Schema) -> Floats:
        """One row for each person; read once, for each reading would draw another order."""
        if isinstance(how.table, Collapsed):
            return how.table.rows[:, [how.table.schema.names.index(name) for name in schema.names]]
        if "rows" not in self._once:
            names = how.read(schema)
            table = _settled(how.table, names, self.form)
            placed = _has_order(how.table)
            stream = _stream(table, names, CHUNK_ROWS, self.form, in_order=placed and how.by_order(schema))
            self._once["rows"] = collapsed(how, replace(schema, file=self.form), stream, placed=placed)
        return self._once["rows"]

    def _matrices(self, rows: int) -> Iterator[Floats]:
        if isinstance(self.origin, Persons):
            assert self.schema is not None
            yield self._persons(self.origin, self.schema)
            return
        for chunk in self.tables(rows=rows):
            if self.schema is None:
                yield unbounded(self.names, chunk, form=self.form)
            else:
                yield encoded(self.schema.columns, chunk, keep_missing=self.keep_missing, form=self.form)


def open_source(source: object, *, schema: Schema, keep_missing: bool = False, by_person: bool = False) -> Source:
    """Opens a private table under a public schema.

    Args:
        source: A 2-D array or list of rows (columns in the schema's order); a list of dicts; a pandas, polars or pyarrow frame,
            a lazy frame of polars, a relation of DuckDB; the name or URL of a text file (.csv, .tsv, also packed), a workbook
            (.xlsx), a .parquet file or a folder of them; a table of a database (``postgresql://host/name::table``); columns
            are found by name, others ignored. Or a stream of any of these: a generator, or something wrapped in `chunks`.
        schema: The public facts; nothing is inferred.
        keep_missing: As in `Schema.encode`.
        by_person: Whether `persons` are taken. Their rows come in an order of their own, all at once: whoever takes them must
            not put other rows beside them, must read them once, and must state their assumptions.

    Returns:
        The source. Names and shapes of tables and files are checked now, streams when they are read.

    Raises:
        DataError: There is no such file, or the table does not fit the schema.

    Example:
        >>> schema = Schema.of_bounds({"age": (0, 120)})
        >>> source = open_source(np.array([[30.0], [-5.0], [np.nan]]), schema=schema)
        >>> [piece.ravel().tolist() for piece in source.partitions(rows=2)]
        [[30.0, 0.0], [60.0]]
    """
    checks.require(isinstance(schema, Schema), "a Schema", schema=schema)
    checks.boolean(keep_missing=keep_missing)
    if isinstance(source, Persons):
        if not by_person:
            raise DataError("a table with several rows per person is not taken here. Collapse it to one row per person first.")
        checks.require(not keep_missing, "False for persons", keep_missing=keep_missing)
        how = _of_persons(source, schema)
        form = _form(how.table, schema.file)
        return Source(names=schema.names, schema=schema, keep_missing=keep_missing, origin=how, form=form)
    origin = _settled(source, schema.names, schema.file)
    return Source(names=schema.names, schema=schema, keep_missing=keep_missing, origin=origin, form=_form(origin, schema.file))


def open_unbounded(source: object, *, columns: Sequence[str] | None = None) -> Source:
    """Opens a private table of plain numbers, for the methods whose guarantee needs no bounds.

    A cell that holds no number is NaN and infinities stay; a method that opens a table this way must say what it does with
    them.

    Args:
        source: As in `open_source`.
        columns: Names of the columns wanted; all of them when left out (for streams they must be given).
    """
    if columns is not None:
        checks.require(
            not isinstance(columns, str) and len(set(columns)) == len(columns) > 0, "distinct names", columns=columns
        )
    if isinstance(source, Persons):
        raise DataError("a table with several rows per person must have a schema, which says what its columns hold; got none.")
    origin = _settled(source, columns, PLAIN)
    names = _all_names(origin) if columns is None else tuple(columns)
    if not names:
        raise DataError("a table must have at least one column; got none.")
    return Source(names=names, schema=None, keep_missing=True, origin=origin, form=_form(origin, PLAIN))


def has_names(source: object) -> bool:
    """Whether the columns of a source are found by name, so that those not wanted need not be read."""
    return isinstance(source, str | os.PathLike | DatabaseTable | Persons) or hasattr(source, "columns")


def read(source: object, *, schema: Schema) -> Floats:
    """All records of a source, encoded under the schema; short for ``open_source(...).matrix()``."""
    return open_source(source, schema=schema).matrix()


class _Once:
    """A generator's pieces, which a second reading cannot have again."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._pieces: Iterator[Any] | None = pieces

    def __call__(self) -> Iterator[Any]:
        if self._pieces is None:
            raise DataError("a generator can be read once, and it was. To read twice, pass chunks(function that makes it).")
        pieces, self._pieces = self._pieces, None
        return pieces


def stored(source: object) -> Stored | None:
    """A file or database's table by its name or URL, or as it is; None for anything else."""
    if isinstance(source, DatabaseTable):
        return source
    if is_database(source):
        return DatabaseTable.of(str(source))
    return FilePart.of(source) if isinstance(source, str | os.PathLike) else None


def _has_order(source: object) -> bool:
    """Whether rows lie in an order; a database hands them out as it likes."""
    return not (isinstance(source, DatabaseTable) or is_database(source) or is_relation(source))


def _form(source: object, declared: FileFormat) -> FileFormat:
    """How texts are written: as a file says itself, else as declared."""
    found = source if isinstance(source, Chunks) else stored(source)
    return declared if found is None or found.form is None else found.form.over(declared)


def _settled(source: object, names: Sequence[str] | None, form: FileFormat) -> Table | Chunks | Stored:
    """The source as one of three kinds, refused at once where that does not depend on records."""
    kept = stored(source)
    if kept is not None:
        kept = kept.written(form)
        kept.check(names or ())
        return kept
    if isinstance(source, Chunks):
        return source
    if isinstance(source, Iterator):
        return chunks(source)
    table = as_table(source, width=None if names is None else len(names), names=names)
    check_columns(table, names or ())
    return table


def _of_persons(how: Persons, schema: Schema) -> Persons:
    """The same, refused at once where that does not depend on records."""
    checks.require(how.id not in schema.names, "no declared column; it is not used but for telling persons apart", id=how.id)
    if isinstance(how.table, Collapsed):
        same = all(column in how.table.schema.columns for column in schema.columns)
        checks.require(same, "declared as they were when the persons were read", "Read the table again.", columns=schema.names)
        return how
    settled = _settled(how.table, how.read(schema), schema.file)
    if isinstance(settled, np.ndarray):
        raise DataError("a table with several rows per person must have column names; got an array.")
    if not isinstance(settled, Chunks):
        how.check(_all_names(settled), schema.names)
    if not _has_order(how.table) and how.by_order(schema):
        rule = "a column for the rules first and last; rows of a database have no order of their own"
        checks.require(how.order is not None, rule, order=how.order)
    return how


def _all_names(source: Table | Chunks | Stored) -> tuple[str, ...]:
    checks.require(not isinstance(source, Chunks), "given for a stream of tables", columns=None)
    if isinstance(source, FilePart | DatabaseTable):
        return source.names()
    assert not isinstance(source, Chunks)
    return names_in(source)


def _stream(
    source: Table | Chunks | Stored, names: Sequence[str], rows: int, form: FileFormat, *, in_order: bool = False
) -> Iterator[Any]:
    """The tables of a source, each of at most about `rows` rows; refused where their order matters and there is none."""
    if isinstance(source, FilePart | DatabaseTable):
        yield from source.chunks(names, rows=rows)
    elif isinstance(source, Chunks):
        for piece in source.pieces():
            if in_order and not _has_order(piece):
                raise DataError(
                    "a stream of tables must have an order for the rules first and last; rows of a database have none."
                )
            yield from _stream(_settled(piece, names, form), names, rows, form, in_order=in_order)
    else:
        for start in range(0, len(source), rows):
            yield source[start : start + rows]


def _resized(matrices: Iterator[Floats], rows: int) -> Iterator[Floats]:
    """The same records in pieces of exactly `rows`, the last one excepted."""
    held: list[Floats] = []
    count = 0
    for matrix in matrices:
        while count + len(matrix) >= rows:
            cut = rows - count
            yield np.concatenate([*held, matrix[:cut]]) if held else matrix[:cut]
            held, count, matrix = [], 0, matrix[cut:]
        if len(matrix):
            held.append(matrix)
            count += len(matrix)
    if held:
        yield np.concatenate(held)
