"""Rows of persons that lie in several pieces: put together by their id, then collapsed, then counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from sabun.engine.statistic import Elsewhere, Grouped, Met, Statistic, state_of
from sabun.errors import DataError
from sabun.records import Chunks, FileFormat, Persons, Schema, chunks, open_source
from sabun.records.cells import Floats
from sabun.records.collapsing import in_random_order
from sabun.records.ids import IdKeys
from sabun.records.persons import Collapsed

__all__ = ["ByPerson", "PersonRows", "by_person", "here"]

State = TypeVar("State")

_ROWS = 1 << 18
"""Rows parted at a time."""

_SECRET, _FACTORS = b"buckets", np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], dtype=np.uint64)
"""No secret at all: workers must agree. Who shares a bucket with whom cannot change any result."""


class OfTables(Statistic[State], Protocol):
    """A `Statistic` that says which columns of a table it looks at."""

    @property
    def schema(self) -> Schema:
        """What is declared about them."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class ByPerson:
    """How persons' rows meet; a `Grouped`. A person's bucket depends on the id alone, and rows keep their order.

    Args:
        statistic: What is counted once each person has one row.
        how: Id and rules; its table is left out.
        form: How texts in the files are written; None for as the schema says.
    """

    statistic: OfTables[Any]
    how: Persons
    form: FileFormat | None

    buckets = None
    everyone = False
    in_order = True

    def parted(self, number: int, source: Any, buckets: int) -> Iterator[Sequence[bytes]]:
        """The rows of a piece that have an id, as arrow's own bytes; of the columns that are needed, and no others."""
        del number
        schema, id = self.statistic.schema, self.how.id
        for table in source.written(schema.file).chunks(self.how.read(schema), rows=_ROWS):
            where = _buckets(table.column(id), self.how, buckets)
            order = np.argsort(where, kind="stable")
            ordered = _taken(table, order)
            ends = np.searchsorted(where[order], np.arange(buckets + 1))
            yield [_packed(ordered[low:high]) for low, high in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]

    def state(self, met: Met) -> Any:
        """The state of the persons of one bucket."""
        table = Chunks(pieces=lambda: map(_unpacked, met.rows), form=self.form)
        return state_of(self.statistic, replace(self.how, table=table))


def by_person(statistic: Statistic[State], how: Persons, *, form: FileFormat | None) -> Grouped[State]:
    """Persons in pieces, refused at once where the statistic takes none.

    Raises:
        DataError: It takes one row per person only.
        ParameterError: A rule does not fit its column, or there is no such column.
    """
    bare = replace(how, table=None)
    state_of(statistic, replace(bare, table=chunks([])))
    counted = cast(OfTables[State], statistic)  # whoever takes persons says what is read
    names = how.table.names(counted.schema.file) if isinstance(how.table, Elsewhere) else None
    if names is not None:
        how.check(names, counted.schema.names)
    return ByPerson(statistic=counted, how=bare, form=form)


def here(table: Any, *, schema: Schema | None) -> Any:
    """Persons whose rows lie in pieces, brought here as one row each in an order drawn anew; anything else as it is.

    Raises:
        DataError: As `sabun.engine.shuffle.shuffled`.
    """
    if schema is None or not (isinstance(table, Persons) and isinstance(table.table, Elsewhere)):
        return table
    statistic = PersonRows(schema=schema)
    rows = statistic.whole(state_of(statistic, table))
    return replace(table, table=Collapsed(schema=schema, rows=in_random_order(rows)))


@final
@dataclass(frozen=True, kw_only=True)
class PersonRows:
    """One row for each person, as a bag without an order; a `Statistic`, for rooms that need the rows themselves.

    Args:
        schema: What is declared about the columns.
    """

    schema: Schema

    @property
    def name(self) -> str:
        """What is kept."""
        return "rows of persons"

    def blocks(self, source: Any) -> Iterator[Floats]:
        """Encoded rows, some at a time."""
        return open_source(source, schema=self.schema, by_person=True).partitions()

    def zero(self) -> list[Floats]:
        """Nobody."""
        return []

    def add(self, state: list[Floats], block: Floats) -> list[Floats]:
        """With the persons of a block."""
        return [*state, block]

    def merge(self, left: list[Floats], right: list[Floats]) -> list[Floats]:
        """Both together."""
        return left + right

    def whole(self, state: list[Floats]) -> Floats:
        """All rows as one array."""
        return np.concatenate([np.empty((0, len(self.schema.columns))), *state])

    def pack(self, state: list[Floats]) -> bytes:
        """As bytes: rows in order of their bits, so that equal bags give equal bytes."""
        bits = self.whole(state).view("<i8")
        return bits[np.lexsort(bits.T)].tobytes()

    def unpack(self, content: bytes) -> list[Floats]:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        width = len(self.schema.columns)
        if len(content) % (8 * width):
            raise DataError("rows must be bytes that the same statistic packed; they are not.")
        return [np.frombuffer(content, dtype="<f8").reshape(-1, width).astype(np.float64)]

    def sample(self) -> Floats:
        """Made-up rows."""
        return np.arange(3.0 * len(self.schema.columns)).reshape(3, -1)


def _buckets(column: Any, how: Persons, buckets: int) -> NDArray[np.int64]:
    """The bucket of each row's id, the same on every worker; -1 for none."""
    keys = IdKeys(how.spelling, secret=_SECRET).of(column, name=how.id)
    mixed = keys[:, 0] * _FACTORS[0] + keys[:, 1] * _FACTORS[1] >> np.uint64(32)
    return np.where(keys.any(axis=1), (mixed % np.uint64(buckets)).astype(np.int64), -1)


def _taken(table: Any, order: Any) -> Any:
    import pyarrow as pa

    plain = [
        pa.field(field.name, pa.large_string() if pa.types.is_string_view(field.type) else field.type) for field in table.schema
    ]
    return table.cast(pa.schema(plain)).take(pa.array(order))  # arrow cannot take from a view of texts


def _packed(table: Any) -> bytes:
    import pyarrow as pa

    if not len(table):
        return b""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return bytes(out.getvalue())


def _unpacked(content: bytes) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(content).read_all()
