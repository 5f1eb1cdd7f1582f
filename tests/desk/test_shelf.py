"""Which schema is whose: tables of one name with two endings are two tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from sabun.desk.shelf import Item, Shelf
from sabun.records import Column, Schema


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    (tmp_path / "people.csv").write_text("age,sex\n30,F\n")
    return Shelf(tmp_path)


def table(shelf: Shelf, name: str) -> Item:
    return next(one for one in shelf.tables() if one.name == name)


def declare(shelf: Shelf, name: str, *columns: str) -> None:
    schema = Schema(columns=tuple(Column.number(column, lower=0, upper=120) for column in columns))
    shelf.schema_for(table(shelf, name)).write_text(schema.to_text())


def declared(shelf: Shelf, name: str) -> tuple[str, ...] | None:
    found = shelf.declared(table(shelf, name))
    return None if found is None else found.names


def test_a_table_alone_has_the_schema_that_the_command_writes(shelf: Shelf) -> None:
    declare(shelf, "people.csv", "age")
    assert (shelf.folder / "people.schema.json").exists()
    assert declared(shelf, "people.csv") == ("age",)


def test_two_tables_of_one_name_have_schemas_of_their_own(shelf: Shelf) -> None:
    (shelf.folder / "people.tsv").write_text("age\theight\n30\t180\n")
    declare(shelf, "people.csv", "age")
    assert declared(shelf, "people.tsv") is None, "what was said of one is not said of the other"
    declare(shelf, "people.tsv", "height")
    assert declared(shelf, "people.csv") == ("age",)
    assert declared(shelf, "people.tsv") == ("height",)
    (shelf.folder / "people.tsv").unlink()
    assert declared(shelf, "people.csv") == ("age",), "alone again, it keeps its own"


def test_a_table_that_comes_later_takes_nothing_away(shelf: Shelf) -> None:
    declare(shelf, "people.csv", "age", "sex")
    (shelf.folder / "people.tsv").write_text("age,height\n30,180\n")
    assert declared(shelf, "people.csv") == ("age", "sex")
    assert declared(shelf, "people.tsv") is None, "it has other columns"
    (shelf.folder / "people.csv.gz").write_bytes(b"")
    declare(shelf, "people.csv", "age")
    assert Schema.load(shelf.folder / "people.schema.json").names == ("age", "sex"), "it may be another's, and stays"
    assert declared(shelf, "people.csv") == ("age",)


def test_the_name_of_a_schema_is_no_other_table_s(shelf: Shelf) -> None:
    (shelf.folder / "people.tsv").write_text("age\n30\n")
    (shelf.folder / "people.csv.csv").write_text("age\n30\n")
    places = [shelf.schema_for(one) for one in shelf.tables()]
    assert len(set(places)) == len(places) == 3
