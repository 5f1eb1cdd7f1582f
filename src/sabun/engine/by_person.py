"""Rows of persons that lie in several pieces: put together by their id, then collapsed, then counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar, cast, final

import numpy as np

from sabun.engine.statistic import Grouped, Met, Statistic, state_of
from sabun.records import Chunks, FileFormat, Persons, Schema, chunks
from sabun.records.cells import label_positions
from sabun.records.persons import spelt

__all__ = ["ByPerson", "by_person"]

State = TypeVar("State")

_ROWS = 1 << 18
"""Rows parted at a time."""


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
            where = label_positions(table.column(id), _Bucket(self.how.spelling, buckets), name=id)
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
        ParameterError: A rule does not fit its column.
    """
    bare = replace(how, table=None)
    state_of(statistic, replace(bare, table=chunks([])))
    return ByPerson(statistic=cast(OfTables[State], statistic), how=bare, form=form)  # whoever takes persons says what is read


class _Bucket:
    """The bucket of an id; -1 for none."""

    def __init__(self, spelling: str, buckets: int) -> None:
        self._spelling, self._buckets = spelling, buckets

    def __call__(self, text: str | None) -> int:
        plain = spelt(text, self._spelling)
        if not plain:
            return -1
        digest = hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self._buckets


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
