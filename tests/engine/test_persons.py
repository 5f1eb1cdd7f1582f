"""Several rows per person, in several pieces: they meet before they are collapsed, whoever counts."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from engine.worlds import visits
from sabun.engine import cut, spread, state_of
from sabun.engine.by_person import PersonRows, by_person, here
from sabun.engine.counting import Counting, Numbered, Report
from sabun.engine.engines import Serial
from sabun.engine.pieces import plan_of
from sabun.engine.process_engine import Processes
from sabun.engine.shuffle import Parted, Shuffle, shuffled
from sabun.errors import DataError, ParameterError
from sabun.ledger import Ledger
from sabun.records import Persons, Schema, persons
from sabun.summaries import Mean
from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler
from sabun.summaries.statistic import PowerSums

SCHEMA = Schema.of_bounds({"cost": (0, 100), "visits": (0, 50)})
RULES = {"visits": "count"}


def recipe(column: str = "cost") -> PowerSums:
    people = People.of(SCHEMA, column=column, by=None, where={"visits": (0, 4)})
    return PowerSums(people=people, ruler=Ruler.of(people.summed))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return visits(tmp_path_factory.mktemp("persons") / "visits")


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder for temporary files, in which nothing may stay."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def in_buckets(how: Persons, pieces: Any, buckets: int, engine: Any = None) -> Any:
    statistic = recipe()
    return shuffled(engine or Serial(), by_person(statistic, how, form=None), pieces, buckets=buckets)


@pytest.mark.parametrize("rule", ["mean", "min", "max", "first", "last"])
@pytest.mark.parametrize("order", [None, "day"])
def test_persons_in_pieces_are_those_of_the_table(table: Path, rule: str, order: str | None) -> None:
    how = persons(table, id="who", rules=RULES | {"cost": rule}, order=order)
    truth = state_of(recipe(), how)
    assert truth.rows == 148
    for rows, buckets in ((50, 1), (50, 7), (1000, 11)):
        assert in_buckets(how, cut(table, rows=rows), buckets) == truth


def test_a_person_is_one_wherever_the_rows_lie(tmp_path: Path) -> None:
    """Neighbours differ in all rows of one person, over all files: one row of the sums differs, by what one row can."""
    before = visits(tmp_path / "one")
    after = visits(tmp_path / "other")
    for file in sorted(after.iterdir()):
        rows = parquet.read_table(file).to_pydict()
        rows["cost"] = [1e300 if who == "p7" else cost for who, cost in zip(rows["who"], rows["cost"], strict=True)]
        rows = {name: [*cells, *cells[:1] * 20] for name, cells in rows.items()}
        rows["who"][-20:] = ["p7"] * 20
        parquet.write_table(pa.table(rows), file)
    how = [persons(spread(where), id="who", rules={"visits": "count"}) for where in (before, after)]
    one, other = (state_of(PowerSums(people=PEOPLE, ruler=Ruler.of(PEOPLE.summed)), each) for each in how)
    marks = Ruler.of(PEOPLE.summed).count
    assert one.rows == other.rows == 148
    assert 0 < abs(one.groups[0][1] - other.groups[0][1]) < marks
    alone = [state_of(PowerSums(people=PEOPLE, ruler=None), persons(where, id="who")) for where in (before, after)]
    assert alone[0] == alone[1]


PEOPLE = People.of(SCHEMA, column="cost", by=None, where=None)


@given(cuts=st.lists(st.integers(0, 60), max_size=4), buckets=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_any_cut_and_any_number_of_buckets_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], buckets: int, seed: int
) -> None:
    where = tmp_path_factory.mktemp("cut")
    rng = np.random.default_rng(seed)
    whole = pa.table({"who": rng.integers(0, 12, 60), "cost": rng.integers(0, 100, 60)})
    edges = [0, *sorted(cuts), 60]
    for number, (low, high) in enumerate(pairwise(edges)):
        parquet.write_table(whole[low:high], where / f"{number}.parquet")
    how = persons(whole, id="who", rules=RULES | {"cost": "last"})
    assert in_buckets(how, cut(where), buckets) == state_of(recipe(), how)


@pytest.mark.parametrize("spelling", ["text", "caseless", "number"])
def test_one_id_in_many_spellings_goes_to_one_bucket(tmp_path: Path, spelling: str) -> None:
    """Each file writes the ids in a way of its own: were they parted as they are written, a person would be several."""
    ways = ["{}", "00{}", " {} ", "+{}", "{}.0", "{}　"] if spelling == "number" else ["{}", " {}", "{} ", "　{}"]
    for number, way in enumerate(ways):
        rows = {"who": [way.format(who) for who in range(1, 31)], "cost": [float(number)] * 30}
        parquet.write_table(pa.table(rows), tmp_path / f"{number}.parquet")
    wide = str.maketrans("0123456789", "０１２３４５６７８９")
    rows = {"who": [str(who).translate(wide) for who in range(1, 31)], "cost": [9.0] * 30}
    parquet.write_table(pa.table(rows), tmp_path / "wide.parquet")
    how = persons(tmp_path, id="who", spelling=spelling, rules={"visits": "count"})
    statistic = PersonRows(schema=SCHEMA)
    truth = statistic.pack(state_of(statistic, how))
    assert len(truth) == 30 * 2 * 8
    for buckets in (1, 2, 7):
        met = shuffled(Serial(), by_person(statistic, how, form=None), cut(tmp_path), buckets=buckets)
        assert statistic.pack(met) == truth


def test_a_release_about_persons_is_that_of_the_table_and_says_so(table: Path) -> None:
    def ask(source: Any) -> Any:
        return Mean(column="cost", schema=SCHEMA, epsilon=1, random_state=3).fit(source).release_

    plain, pieces = ask(persons(table, id="who")), ask(persons(spread(table, engine="serial"), id="who"))
    assert pieces.value == plain.value
    assert pieces.provenance.parameters == plain.provenance.parameters
    assert pieces.guarantee == plain.guarantee


def test_a_rule_about_no_column_is_refused_in_pieces_as_in_the_table(table: Path, tmp_path: Path) -> None:
    """A misspelt rule would be paid for in silence: the column would have the usual one."""
    book = Ledger.create(tmp_path / "book", name="book", epsilon=1, unit="person")
    question = Mean(column="cost", schema=SCHEMA, epsilon=1, ledger=book)
    for source in (table, spread(table)):
        with pytest.raises(
            ParameterError, match=r"rules must be about columns of the table; got \['costt'\]\. Did you mean 'cost'\?"
        ):
            question.fit(persons(source, id="who", rules=RULES | {"costt": "max"}))
    assert book.entries() == ()


def test_texts_are_read_as_the_file_or_the_schema_says(tmp_path: Path) -> None:
    from sabun.records import FileFormat, FilePart

    (tmp_path / "a.csv").write_text("who;cost\n1;3,5\n2;4,5\n1;5,5\n")
    form = FileFormat(separator=";", decimal=",")
    schema = Schema.of_bounds({"cost": (0, 100)})
    for declared, source in (
        (schema, FilePart(path=tmp_path / "a.csv", form=form)),
        (Schema(columns=schema.columns, file=form), tmp_path / "a.csv"),
    ):
        people = People.of(declared, column="cost", by=None, where=None)
        sums = PowerSums(people=people, ruler=Ruler.of(people.summed))
        assert state_of(sums, persons(spread(source), id="who")) == state_of(sums, persons(source, id="who"))


def test_rows_of_persons_come_home_as_a_bag(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sabun.engine.shuffle._BUCKET", 1000)  # several buckets, so that rows come packed
    statistic = PersonRows(schema=SCHEMA)
    how = persons(table, id="who", rules=RULES)
    whole = statistic.pack(state_of(statistic, how))
    assert len(whole) == 148 * 2 * 8
    for engine in ("serial", "processes:2"):
        found = here(persons(spread(table, engine=engine), id="who", rules=RULES), schema=SCHEMA)
        assert statistic.pack([found.table.rows]) == whole
        assert statistic.pack(statistic.unpack(whole)) == whole
    orders = {
        found.table.rows.tobytes()
        for found in (here(persons(spread(table), id="who", rules=RULES), schema=SCHEMA) for _ in range(3))
    }
    assert len(orders) == 3
    with pytest.raises(DataError, match="that the same statistic packed"):
        statistic.unpack(whole[:-1])
    assert here(how, schema=SCHEMA) is how


@dataclass(frozen=True)
class Shuffled:
    """Hands out the reports of a half in some order; one half, or both."""

    order: tuple[int, ...]
    half: int
    calls: list[int]

    def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
        self.calls.append(len(pieces))
        found = [task.counted(piece) for piece in pieces]
        if len(self.calls) - 1 != self.half:
            return iter(found[::-1])
        return iter([found[number] for number in self.order])


@given(order=st.permutations([0, 1, 2]) | st.lists(st.integers(0, 2), max_size=5), half=st.integers(0, 1))
@settings(max_examples=30, deadline=None)
def test_a_hostile_engine_is_right_or_refused_in_both_halves(table: Path, order: list[int], half: int) -> None:
    how, pieces = persons(table, id="who", rules=RULES | {"cost": "first"}), cut(table)
    engine = Shuffled(tuple(order), half, [])
    if sorted(order) == [0, 1, 2]:
        assert in_buckets(how, pieces, 3, engine) == state_of(recipe(), how)
        return
    with pytest.raises(DataError, match=r"every piece must be counted once; piece \d (was counted twice|is missing)"):
        in_buckets(how, pieces, 3, engine)


@pytest.mark.parametrize("rule", ["first", "last"])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_is_first_does_not_depend_on_who_counts_faster(table: Path, rule: str, order: tuple[int, ...]) -> None:
    how = persons(table, id="who", rules=RULES | {"cost": rule})
    assert in_buckets(how, cut(table), 1, Shuffled(order, 0, [])) == state_of(recipe(), how)


def test_a_file_replaced_between_cut_and_reading_is_refused_and_leaves_nothing(table: Path, tmp_path: Path) -> None:
    where = visits(tmp_path / "visits")
    pieces = cut(where)
    os.utime(where / "2.parquet", ns=(1, 1))
    with pytest.raises(DataError, match=r"2\.parquet \(piece 2\) must stay as it is"):
        in_buckets(persons(where, id="who", rules=RULES), pieces, 4)


def test_what_is_written_down_is_the_owners_alone_and_goes_with_a_failure(table: Path, empty: Path) -> None:
    seen: list[int] = []

    @dataclass(frozen=True)
    class Watching:
        def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
            for piece in pieces:
                yield task.counted(piece)
                for name in [*empty.iterdir(), *map(Path, glob.glob(f"{empty}/*/*"))]:
                    seen.append(name.stat().st_mode & 0o077)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_buckets(persons(table, id="who", rules=RULES), cut(table), 4, Watching())
    assert len(seen) > 3
    assert set(seen) == {0}


def test_a_full_disk_is_told_in_our_words(table: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(DataError, match=r"the folder for temporary files must have room .* TMPDIR=FOLDER"):
        in_buckets(persons(table, id="who", rules=RULES), cut(table), 4)


@pytest.mark.parametrize("folder", ["absent", "file"])
def test_rows_that_can_be_written_nowhere_cost_nothing(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    from engine.worlds import cloud, outliers

    (tmp_path / "file").touch()
    points = cloud(tmp_path / "points")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    how = persons(table, id="who", rules=RULES)
    with pytest.raises(DataError, match="the folder for temporary files must have room for the rows"):
        shuffled(Serial(), by_person(recipe(), how, form=None), cut(table), buckets=2)
    with pytest.raises(DataError, match="the folder for temporary files must have room for the rows"):
        outliers(spread(points), "abc")


def test_rows_that_were_written_down_and_are_gone_are_told(table: Path, empty: Path) -> None:
    @dataclass(frozen=True)
    class Sweeping:
        def reports(self, task: Counting, pieces: Sequence[Numbered]) -> Iterator[Report]:
            for file in glob.glob(f"{empty}/*/*"):
                os.remove(file)
            return Serial().reports(task, pieces)

    with pytest.raises(DataError, match=r"must stay there until they are counted; some are gone. Nothing was charged"):
        shuffled(Sweeping(), by_person(recipe(), persons(table, id="who", rules=RULES), form=None), cut(table), buckets=2)


def test_a_file_that_is_gone_before_it_is_looked_at_is_named_and_costs_nothing(tmp_path: Path) -> None:
    where, book = visits(tmp_path / "visits"), Ledger.create(tmp_path / "book", name="book", epsilon=1, unit="person")
    source = persons(spread(where), id="who", rules=RULES)
    (where / "1.parquet").unlink()
    with pytest.raises(DataError, match=r"1\.parquet \(piece 1\) must stay as it is while it is read"):
        Mean(column="cost", schema=SCHEMA, epsilon=1, ledger=book).fit(source)
    assert book.entries() == ()


def test_columns_that_nobody_asked_for_are_not_written_down(table: Path) -> None:
    grouped = by_person(recipe(), persons(table, id="who", rules=RULES), form=None)
    rows = b"".join(bytes(each) for block in grouped.parted(0, cut(table)[0].part, 3) for each in block)
    assert b"cost" in rows
    assert b"day" not in rows


def test_several_processes_give_the_same(table: Path) -> None:
    how = persons(table, id="who", rules=RULES)
    assert in_buckets(how, cut(table), 5, Processes(2)) == state_of(recipe(), how)


@pytest.mark.parametrize("field", [name for name in Parted._fields if name != "rows"])
def test_what_a_piece_has_for_a_bucket_is_taken_by_that_bucket_of_that_plan_alone(table: Path, field: str) -> None:
    pieces = cut(table)
    task = Shuffle.of(
        by_person(recipe(), persons(spread(table), id="who", rules=RULES), form=None),
        plan=plan_of(pieces),
        pieces=len(pieces),
        buckets=2,
    )
    parted = [task.parted(piece) for piece in pieces]
    for bucket in range(2):
        own = [parts[bucket] for parts in parted]
        assert task.joined(bucket, own).number == bucket
        for other in ("x" if field == "plan" else -1, *(() if field == "plan" else (getattr(own[0], field) + 1,))):
            with pytest.raises(DataError, match="Nothing was charged"):
                task.joined(bucket, [own[0]._replace(**{field: other}), *own[1:]])
