"""Public choices about a table: none is lost on the way, and what differs in one is something else."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from sabun.records import Column, FileFormat, FilePart, Schema, open_source, persons
from sabun.records.forms import PLAIN

FORM = FileFormat(encoding="cp932", separator=";", decimal=",", thousands=" ", sheet="2026")
SCHEMA = Schema(columns=(Column.number("age", lower=0, upper=120), Column.category("sex", ["F", "M"])), file=FORM)

MADE: dict[str, Callable[[Schema], Schema]] = {
    "select": lambda schema: schema.select(schema.names),
    "replacing": lambda schema: schema.replacing(schema.columns[0]),
    "from_dict": lambda schema: Schema.from_dict(schema.to_dict()),
    "from_json": lambda schema: Schema.from_json(schema.to_json()),
}
FROM_ELSEWHERE = {"load": "a file, which holds what `to_text` says", "of_bounds": "bounds"}


def test_every_way_to_make_a_schema_of_another_is_tried() -> None:
    found = {name for name, thing in inspect.getmembers(Schema) if inspect.isroutine(thing) and _gives_a_schema(thing)}
    assert found == MADE.keys() | FROM_ELSEWHERE.keys()


def _gives_a_schema(thing: Any) -> bool:
    try:
        return inspect.signature(thing).return_annotation in ("Schema", "Self")
    except (TypeError, ValueError):  # a property that is kept, or a function of C
        return False


@pytest.mark.parametrize("way", MADE)
def test_a_schema_made_of_another_keeps_what_was_not_changed(way: str) -> None:
    for field in dataclasses.fields(Schema):
        assert getattr(MADE[way](SCHEMA), field.name) == getattr(SCHEMA, field.name), field.name


@pytest.mark.parametrize("part", FORM.parts)
def test_what_a_file_says_of_itself_stands_above_what_is_declared_and_nothing_else_does(part: str) -> None:
    own = dataclasses.replace(PLAIN, said=frozenset({part}), **{part: FORM.parts[part]})
    other = FileFormat(encoding="utf-16", separator="|", decimal=",", thousands="'", sheet="other")
    assert own.over(other).parts == other.parts | {part: FORM.parts[part]}
    assert own.over(other).said == {part}
    assert dataclasses.replace(own, said=None).over(other).parts == own.parts


OTHERWISE: dict[str, Any] = {"id": "patient", "rules": {"age": "max"}, "spelling": "number", "order": "day"}
NO_CHOICE = {"table", "memory"}
"""What is asked about, and what cannot change any result."""


@pytest.mark.parametrize("choice", [name for name in inspect.signature(persons).parameters if name not in NO_CHOICE])
def test_persons_that_are_put_together_in_another_way_are_told_apart(choice: str) -> None:
    plain = persons(None, id="who")
    other = persons(None, **({"id": "who"} | {choice: OTHERWISE[choice]}))
    assert plain.facts() != other.facts(), "a repeated question is known by these facts"
    assert plain.terms != other.terms
    assert persons(None, id="who", memory=1).facts() == plain.facts()


def test_a_part_of_a_file_is_the_rows_of_its_groups_alone(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"age": [float(row) for row in range(9)]}), tmp_path / "t.parquet", row_group_size=3)
    schema = Schema.of_bounds({"age": (0, 120)})
    for groups in (None, (0,), (2,), (0, 2), ()):
        part = FilePart(path=tmp_path / "t.parquet", groups=groups)
        wanted = [3 * group + row for group in (range(3) if groups is None else groups) for row in range(3)]
        assert open_source(part, schema=schema).matrix().ravel().tolist() == wanted
