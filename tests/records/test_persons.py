"""Several rows per person: one row each, that depends on nobody else."""

from __future__ import annotations

import datetime
import math
import os
import stat
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from sabun.errors import DataError, LedgerError, ParameterError
from sabun.ledger import Ledger
from sabun.records import Column, Persons, Schema, chunks, open_source, persons
from sabun.summaries import Mean

SCHEMA = Schema(
    columns=[
        Column.number("age", lower=0, upper=120),
        Column.number("cost", lower=-5, upper=1000, missing=0),
        Column.number("visits", lower=0, upper=50),
        Column.category("state", ["well", "ill", "dead"]),
        Column.category("ward", ["a", "b"], missing="b"),
    ]
)
RULES = {"age": "last", "visits": "count", "state": "any"}
Row = dict[str, Any]


def rows_of(table: Persons, *, schema: Schema) -> Any:
    return open_source(table, schema=schema, by_person=True).matrix()


def table(rows: list[Row]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["who", "age", "cost", "state", "ward"])
    return frame.astype({"who": object, "state": object, "ward": object})


def made_up(rng: np.random.Generator, who: object, count: int) -> list[Row]:
    odd = [math.nan, math.inf, -math.inf, 1e308, -0.0, 0.1, 7.0]
    return [
        {
            "who": who,
            "age": float(rng.choice(odd)) if rng.random() < 0.3 else float(rng.integers(0, 130)),
            "cost": float(rng.choice(odd)) if rng.random() < 0.3 else float(rng.normal(100, 500)),
            "state": rng.choice(["well", "ill", "dead", "?", None]),
            "ward": rng.choice(["a", "b", None]),
        }
        for _ in range(count)
    ]


def by_hand(rows: list[Row]) -> list[float]:
    """The row of one person, in exact fractions."""

    def said(name: str) -> list[float]:
        return [row[name] for row in rows if row[name] is not None and not math.isnan(row[name])]

    ages = [min(max(age, 0.0), 120.0) for age in said("age")]
    costs = [min(max(cost, -5.0), 1000.0) for cost in said("cost")]
    mean = float(sum(map(Fraction, costs)) / len(costs)) if costs else 0.0
    states = [["well", "ill", "dead"].index(row["state"]) for row in rows if row["state"] in ("well", "ill", "dead")]
    strange = [-1.0] if any(row["state"] == "?" for row in rows) else []
    wards = Counter(row["ward"] for row in rows if row["ward"] is not None)
    ward = float(wards.get("b", 0) > wards.get("a", 0)) if wards else 1.0
    state = float(max(states)) if states else (strange or [-1.0])[0]
    return [ages[-1] if ages else 60.0, mean, float(min(len(rows), 50)), state, ward]


def sorted_rows(matrix: Any) -> list[tuple[float, ...]]:
    return sorted(map(tuple, np.asarray(matrix).tolist()))


def test_each_person_has_the_row_worked_out_by_hand() -> None:
    rng = np.random.default_rng(1)
    people = {f"p{number}": made_up(rng, f"p{number}", int(rng.integers(1, 9))) for number in range(200)}
    rows = [row for each in people.values() for row in each]
    mixed = [rows[place] for place in rng.permutation(len(rows))]
    expected = sorted(tuple(by_hand([row for row in mixed if row["who"] == who])) for who in people)
    found = sorted_rows(rows_of(persons(table(mixed), id="who", rules=RULES), schema=SCHEMA))
    assert np.asarray(found) == pytest.approx(np.asarray(expected), abs=1e-6)
    exact = [index for index in range(5) if index != 1]  # all but the means, which are rounded to steps
    assert [tuple(row[i] for i in exact) for row in found] == [tuple(row[i] for i in exact) for row in expected]


def test_counting_alone_reads_nothing_but_the_ids() -> None:
    schema = Schema(columns=[Column.number("visits", lower=0, upper=50)])
    frame = pd.DataFrame({"who": ["a", "b", "a", None]})
    found = rows_of(persons(frame, id="who", rules={"visits": "count"}), schema=schema)
    assert sorted(found.ravel()) == [1, 2]


@pytest.mark.parametrize("count", [1, 2, 50, 10_000])
def test_replacing_a_person_replaces_one_row_and_moves_no_bit_of_the_others(count: int) -> None:
    rng = np.random.default_rng(count)
    others = [row for number in range(60) for row in made_up(rng, number, int(rng.integers(1, 20)))]
    one, another = made_up(rng, "me", 3), made_up(rng, "somebody else", count)
    tables = []
    for mine in (one, another):
        rows = others + mine
        tables.append(table([rows[place] for place in rng.permutation(len(rows))]))
    before, after = (Counter(sorted_rows(rows_of(persons(each, id="who", rules=RULES), schema=SCHEMA))) for each in tables)
    # The others' last ages depend on the order of their own rows, which the shuffle changed: compare without them.
    plain = [Counter((row[1:]) for row in each.elements()) for each in (before, after)]
    assert before.total() == after.total() == 61
    assert (plain[0] - plain[1]).total() <= 1
    assert (plain[1] - plain[0]).total() <= 1


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_pieces_of_any_size_give_the_same_rows(size: int) -> None:
    rng = np.random.default_rng(5)
    rows = [row for number in range(40) for row in made_up(rng, number, 5)]
    frame = table([rows[place] for place in rng.permutation(len(rows))])
    whole = sorted_rows(rows_of(persons(frame, id="who", rules=RULES), schema=SCHEMA))
    pieces = chunks([frame.iloc[start : start + size] for start in range(0, len(frame), size)])
    assert sorted_rows(rows_of(persons(pieces, id="who", rules=RULES), schema=SCHEMA)) == whole


def test_the_order_of_persons_is_drawn_anew_and_is_not_that_of_the_table() -> None:
    frame = pa.table({"who": list(range(400)), "age": [float(number % 100) for number in range(400)]})
    schema = Schema.of_bounds({"age": (0, 120)})
    orders = [rows_of(persons(frame, id="who"), schema=schema).ravel().tolist() for _ in range(2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != frame["age"].to_pylist()


def test_one_source_read_twice_shows_one_order() -> None:
    frame = pa.table({"who": list(range(300)), "age": [float(number) for number in range(300)]})
    source = open_source(persons(frame, id="who"), schema=Schema.of_bounds({"age": (0, 400)}), by_person=True)
    assert np.array_equal(source.matrix(), np.concatenate(list(source.partitions(rows=7))))


@pytest.mark.parametrize(
    ("spelling", "ids", "count"),
    [
        ("text", ["a", " a ", "Ａ", "A", None, "", "  "], 2),
        ("caseless", ["a", " A ", "Ａ", "straße", "STRASSE", "B", None, ""], 3),
        ("number", ["7", "007", "+7", "7.0", "７", "-7", "x", "7.5", None, "0", "-0"], 3),
        ("text", [1, 1.0, True, math.nan], 2),
    ],
)
def test_ids_are_read_as_declared(spelling: str, ids: list[Any], count: int) -> None:
    frame = pd.DataFrame({"who": pd.Series(ids, dtype=object), "age": [30.0] * len(ids)})
    schema = Schema.of_bounds({"age": (0, 120)})
    assert len(rows_of(persons(frame, id="who", spelling=spelling), schema=schema)) == count


def test_first_and_last_follow_the_declared_column() -> None:
    frame = pa.table({"who": ["a"] * 4, "day": [3, 1, 2, 3], "age": [33.0, 11.0, 22.0, 34.0]})
    schema = Schema.of_bounds({"age": (0, 120)})

    def age(rule: str, order: str | None) -> float:
        return float(rows_of(persons(frame, id="who", rules={"age": rule}, order=order), schema=schema)[0, 0])

    assert [age("first", None), age("last", None), age("first", "day"), age("last", "day")] == [33.0, 34.0, 11.0, 34.0]


def test_whole_means_are_whole() -> None:
    frame = pa.table({"who": ["a", "a", "b", "b"], "age": [40.0, 42.0, 41.0, 41.0]})
    assert rows_of(persons(frame, id="who"), schema=Schema.of_bounds({"age": (0, 120)})).ravel().tolist() == [41.0, 41.0]


def test_a_question_about_persons_is_asked_like_any_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    who = rng.integers(0, 2000, 10_000)
    file = tmp_path / "visits.parquet"
    parquet.write_table(pa.table({"who": who, "cost": rng.uniform(0, 100, 10_000), "other": who}), file)
    schema = Schema.of_bounds({"cost": (0, 100)})
    asked = Mean(column="cost", epsilon=10, schema=schema).fit(persons(file, id="who"))
    assert asked.release_.provenance.parameters["records"] == len(set(who.tolist()))
    assert asked.mean_ == pytest.approx(50, abs=3)


def test_what_makes_no_sense_is_refused_before_a_row_is_read() -> None:
    frame = pa.table({"who": ["a"], "age": [1.0], "ward": ["a"]})
    ages = Schema.of_bounds({"age": (0, 120)})
    with pytest.raises(ParameterError, match="rule must be one of"):
        persons(frame, id="who", rules={"age": "median"})
    with pytest.raises(ParameterError, match=r"rule must be one of mode, any, first, last for column 'ward'"):
        rows_of(persons(frame, id="who", rules={"ward": "mean"}), schema=SCHEMA.select(["ward"]))
    with pytest.raises(ParameterError, match="spelling must be one of"):
        persons(frame, id="who", spelling="any")
    with pytest.raises(DataError, match="no column 'nobody'"):
        rows_of(persons(frame, id="nobody"), schema=ages)
    with pytest.raises(ParameterError, match="rules must be about columns of the table"):
        rows_of(persons(frame, id="who", rules={"wrad": "mode"}), schema=ages)
    with pytest.raises(DataError, match="must have column names; got an array"):
        rows_of(persons(np.zeros((3, 2)), id="x0"), schema=Schema.of_bounds({"x1": (0, 1)}))
    with pytest.raises(ParameterError, match="id must be no declared column"):
        rows_of(persons(frame, id="age"), schema=ages)


def test_a_release_says_how_persons_were_collapsed_and_a_retry_with_another_rule_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": np.repeat(np.arange(50), 2), "a": np.tile([0.2, 0.8], 50)})
    book = Ledger.create(tmp_path / "book", name="book", unit="patient", epsilon=9)

    def ask(rule: str) -> Mean:
        asked = Mean(column="a", epsilon=1, schema=Schema.of_bounds({"a": (0, 1)}), ledger=book, retry_key="monday")
        return asked.fit(persons(frame, id="id", rules={"a": rule}))

    first = ask("max")
    assert first.release_.provenance.parameters["persons"]["rules"] == {"a": "max"}
    assert "rows without a 'id' are left out" in first.guarantee_.assumptions
    assert "each patient has at most one row" not in first.guarantee_.assumptions
    assert ask("max").mean_ == first.mean_
    with pytest.raises((ParameterError, LedgerError)):
        ask("min")
    assert len(book.entries()) == 1


@pytest.mark.parametrize(("cell", "bounds"), [(5e-324, (0, 1e10)), (1e-316, (0, 1e-315)), (1e308, (-8e307, 8e307))])
def test_no_cell_can_make_numpy_raise(cell: float, bounds: tuple[float, float]) -> None:
    frame = pa.table({"id": ["p", "p"], "a": [cell, 0.0]})
    with np.errstate(all="raise"):
        assert len(rows_of(persons(frame, id="id"), schema=Schema.of_bounds({"a": bounds}))) == 1


def test_a_row_that_does_not_say_when_counts_only_alone() -> None:
    frame = pa.table({"who": ["a", "a", "b"], "day": [None, 5, None], "age": [33.0, 11.0, 22.0]})
    schema = Schema.of_bounds({"age": (0, 120)})
    for rule in ("first", "last"):
        found = rows_of(persons(frame, id="who", rules={"age": rule}, order="day"), schema=schema)
        assert sorted(found.ravel().tolist()) == [11.0, 22.0]


@pytest.mark.parametrize("memory", [1, 5_000, 1 << 30])
def test_rows_that_wait_on_disk_give_the_same_persons(memory: int) -> None:
    rng = np.random.default_rng(8)
    names = [*range(40), "Ａ", " 007 ", "x", "\ud800"]  # half a character cannot be written down as text
    rows = [row for name in names for row in made_up(rng, name, 5)]
    mixed = table([rows[place] for place in rng.permutation(len(rows))])
    pieces = chunks([mixed.iloc[start : start + 17] for start in range(0, len(mixed), 17)])
    whole = rows_of(persons(mixed, id="who", rules=RULES), schema=SCHEMA)
    parted = rows_of(persons(pieces, id="who", rules=RULES, memory=memory), schema=SCHEMA)
    assert len(whole) == len(names)
    assert Counter(row.tobytes() for row in parted) == Counter(row.tobytes() for row in whole)


def test_files_of_waiting_rows_are_the_owners_alone_and_gone_after_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made, opened = tempfile.TemporaryFile, list[Any]()

    def heard(*given: Any, **named: Any) -> Any:
        opened.append(made(*given, **named))
        return opened[-1]

    monkeypatch.setattr(tempfile, "TemporaryFile", heard)
    frame = pa.table({"who": list(range(50)), "age": [1.0] * 50})
    modes = list[int]()

    def failing() -> Any:
        yield frame
        modes.extend(stat.S_IMODE(os.fstat(file.fileno()).st_mode) for file in opened)
        raise DataError("the second piece cannot be read.")

    ages = Schema.of_bounds({"age": (0, 120)})
    with pytest.raises(DataError, match="second piece"):
        rows_of(persons(failing(), id="who", memory=1), schema=ages)
    assert modes
    assert all(mode & 0o077 == 0 for mode in modes)
    assert all(file.closed for file in opened)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_without_a_word_about_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    frame = pa.table({"who": list(range(50)), "age": [1.0] * 50})
    with pytest.raises(DataError, match=r"temporary files must fit into .*TMPDIR") as found:
        rows_of(persons(frame, id="who", memory=1), schema=Schema.of_bounds({"age": (0, 120)}))
    assert "50" not in str(found.value).replace(tempfile.gettempdir(), "")


@pytest.mark.parametrize(
    "cells",
    [
        [datetime.date(2024, 3, 3), datetime.date(2024, 3, 1), datetime.date(2024, 3, 2), None],
        ["2024-03-03", "2024/3/1", "2024年3月2日", "some day"],
        ["20240303", "20240301", "20240302", ""],
        pd.to_datetime(["2024-03-03", "2024-03-01", "2024-03-02", None]),
        pd.array(
            [datetime.datetime(2024, 3, 3), datetime.datetime(2024, 3, 1), datetime.datetime(2024, 3, 2), None], dtype=object
        ),
    ],
)
def test_first_and_last_follow_dates_too(cells: Any) -> None:
    frame = pd.DataFrame({"who": ["a"] * 4, "day": cells, "age": [33.0, 11.0, 22.0, 44.0]})
    for rule, age in (("first", 11.0), ("last", 33.0)):
        found = rows_of(persons(frame, id="who", rules={"age": rule}, order="day"), schema=Schema.of_bounds({"age": (0, 120)}))
        assert found.tolist() == [[age]]


def test_persons_once_read_keep_their_order_and_are_asked_as_they_were_declared() -> None:
    rng = np.random.default_rng(3)
    rows = table([row for number in range(40) for row in made_up(rng, number, 3)])
    held, count = open_source(persons(rows, id="who", rules=RULES), schema=SCHEMA, by_person=True).held()
    assert count == 40
    assert isinstance(held, Persons)
    whole = rows_of(held, schema=SCHEMA)
    assert np.array_equal(rows_of(held, schema=SCHEMA.select(["ward", "age"])), whole[:, [4, 0]])
    with pytest.raises(ParameterError, match="declared as they were when the persons were read"):
        rows_of(held, schema=Schema.of_bounds({"age": (0, 60)}))


@pytest.mark.parametrize("spelling", ["text", "number"])
@pytest.mark.parametrize("memory", [1, 2_000, 1 << 30])
def test_ids_taken_many_at_a_time_are_the_same_persons_as_one_by_one(spelling: str, memory: int) -> None:
    groups = [
        ["a", "b", "a", "c"],
        ["d", " a", "b"],
        ["7", "007", "d", "x"],
        ["Ａ", None, "", "a\x1c", "e"],
        ["7.0", "e", "8", "+8"],
    ]
    texts = [text for group in groups for text in group]
    cost = [float(number) for number in range(len(texts))]
    schema = Schema.of_bounds({"cost": (0, 100)})

    def found(ids: Any) -> list[float]:
        table = chunks([ids(group, cost[sum(map(len, groups[:place])) :][: len(group)]) for place, group in enumerate(groups)])
        return sorted(rows_of(persons(table, id="who", spelling=spelling, memory=memory), schema=schema).ravel().tolist())

    many = found(lambda group, cells: pa.table({"who": pa.array(group, pa.large_string()), "cost": cells}))
    single = found(lambda group, cells: pd.DataFrame({"who": pd.Series(group, dtype=object), "cost": cells}))
    assert many == single
    zeros = pa.table({"who": pa.array([0.0, -0.0, 0.0]), "cost": [1.0, 2.0, 3.0]})
    assert len(rows_of(persons(zeros, id="who", spelling=spelling, memory=memory), schema=schema)) == 1
    assert len(single) == (12 if spelling == "text" else 2)


def test_a_promise_says_how_ids_are_read_and_a_wrong_rule_is_asked_back_about() -> None:
    frame = pa.table({"who": ["a", "A"], "age": [30.0, 40.0]})
    schema = Schema.of_bounds({"age": (0, 120)})
    without = persons(frame, id="who", spelling="caseless")
    assert "carry one 'who', whatever its case, and no two persons share one" in without.assumptions[0]
    assert rows_of(without, schema=schema).tolist() == [[35.0]]
    with pytest.raises(
        ParameterError, match=r"rules must be about columns of the table; got \['agee'\]\. Did you mean 'age'\?"
    ):
        open_source(persons(frame, id="who", rules={"agee": "max"}), schema=schema, by_person=True)
