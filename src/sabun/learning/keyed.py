"""One encoded row for each person, with the person's id beside it: for owners who predict or measure on rows of their own.

`persons` forgets ids and draws an order, as a release needs it. Here nothing is released: each row carries the number of its
person through the same collapse, and the rows are put back by it. NOT PRIVATE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from sabun.errors import DataError
from sabun.learning.network import Floats
from sabun.records import Column, FilePart, Persons, Schema, chunks, open_source, open_unbounded
from sabun.records.ids import id_texts, spelt
from sabun.telling.terminal.asked import AskedPersons

__all__ = ["Keyed", "as_trained", "keyed"]


class Keyed(NamedTuple):
    """Persons in the order of first sight. PRIVATE.

    Args:
        ids: Each one's id, as it was written first.
        rows: Each one's encoded row.
        left_out: Rows that have no id.
    """

    ids: list[str]
    rows: Floats
    left_out: int

    def __repr__(self) -> str:
        return "<Keyed>"  # what it holds is private


def as_trained(asked: AskedPersons, facts: Any, schema: Schema) -> AskedPersons:
    """What was said about persons; where nothing was, as the model's release says that they were made in training.

    Args:
        asked: The options.
        facts: What the release has under `persons`; None for a model of single rows.
        schema: The columns that are read.
    """
    if asked.id is None or not isinstance(facts, Mapping):
        return asked
    trained, order = facts.get("rules"), facts.get("order")
    usual = {name: rule for name, rule in trained.items() if name in schema.names} if isinstance(trained, Mapping) else {}
    rules = usual | dict(asked.rules)
    how: dict[str, Any] = {"spelling": str(facts.get("spelling", "text"))}
    if isinstance(order, str) and {"first", "last"} & set(rules.values()):
        how["order"] = order
    return AskedPersons(id=asked.id, rules=tuple(rules.items()), how=tuple((how | dict(asked.how)).items()))


def keyed(table: FilePart, asked: AskedPersons, schema: Schema) -> Keyed:
    """The persons of a table, read once.

    Raises:
        ParameterError: A rule or spelling is not known, or the id is a declared column.
        DataError: The table cannot be read, or lacks a column.
    """
    how: Persons = asked.table(table)
    open_source(how, schema=schema, by_person=True)  # refuses what it would refuse in training
    mark = "person"
    while mark in (*schema.names, *how.read(schema)):
        mark += "'"
    seen, ids, pieces, left_out = dict[str, int](), list[str](), list[Any](), 0
    for piece in open_unbounded(table, columns=how.read(schema)).tables():
        texts = id_texts(piece.column(how.id), name=how.id)
        places = []
        for text in texts:
            name = spelt(text, how.spelling)
            if name and name not in seen:
                seen[name] = len(ids)
                ids.append(str(text).strip())
            places.append(float(seen.get(name, -1)))
        left_out += places.count(-1.0)
        pieces.append(piece.append_column(mark, pa.array(places, pa.float64())))
    if not ids:
        raise DataError(f"the table must have a person: a row with something under {how.id!r}; it has none.")
    number = Column.number(mark, lower=0, upper=len(ids), missing=0)
    whole = Schema(columns=(*schema.columns, number), file=schema.file)
    marked = replace(how, table=replace(chunks(pieces), form=table.form), rules=(*how.rules, (mark, "max")))
    rows = open_source(marked, schema=whole, by_person=True).matrix()
    return Keyed(ids, rows[rows[:, -1].argsort(), :-1], left_out)
