"""How files are cut: nothing twice, nothing missing, nothing that changed in between."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from engine.worlds import folder, recipe, truth
from sabun.engine import Part, cut, spread
from sabun.engine.by_person import by_person
from sabun.engine.counting import Task
from sabun.engine.pieces import plan_of
from sabun.engine.shuffle import Shuffle
from sabun.engine.statistic import Met
from sabun.errors import DataError, ParameterError
from sabun.records import persons


@pytest.mark.parametrize("rows", [1, 99, 100, 101, 250, 10**6])
def test_pieces_of_any_size_add_up_to_the_table(tmp_path: Path, rows: int) -> None:
    where = folder(tmp_path / "table")
    pieces = cut(where, rows=rows)
    part = Part.empty(recipe(), pieces=len(pieces))
    for piece in reversed(pieces):
        part = part.with_piece(piece.number, piece.part)
    assert part.whole() == truth(where)
    assert len(pieces) == {1: 12, 99: 12, 100: 12, 101: 6, 250: 6, 10**6: 3}[rows]


def test_a_file_without_rows_is_a_piece_all_the_same(tmp_path: Path) -> None:
    where = folder(tmp_path / "table")
    parquet.write_table(pa.table({"age": np.zeros(0)}), where / "none.parquet")
    assert len(cut(where)) == 4
    assert spread(where).counted(recipe()) == truth(where)


def test_csv_files_and_parquet_files_count_alike(tmp_path: Path) -> None:
    for number, cells in enumerate(["30\n40\n", "", "x\n500\n"]):
        (tmp_path / f"{number}.csv").write_text("age\n" + cells)
    state = spread(str(tmp_path / "*.csv")).counted(recipe())
    assert state.rows == 4
    assert len(cut(str(tmp_path / "*.csv"))) == 3


@pytest.mark.parametrize("again", ["same", "link"])
def test_a_file_that_comes_twice_is_refused(tmp_path: Path, again: str) -> None:
    where = folder(tmp_path / "table")
    first = where / "0.parquet"
    second = first if again == "same" else tmp_path / "hard.parquet"
    if again == "link":
        os.link(first, second)
    with pytest.raises(DataError, match=r"must be named once; the same file comes twice"):
        cut([first, second])


@pytest.mark.parametrize("source", ["nothing.parquet", "nothing/*.parquet", []])
def test_no_file_is_an_error(tmp_path: Path, source: object) -> None:
    named = [str(tmp_path / source)] if isinstance(source, str) else source
    with pytest.raises(DataError, match="must"):
        cut(named)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", ["replaced", "appended", "removed", "touched", "set back"])
def test_a_file_that_changes_after_the_cut_is_refused_by_name(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sabun.engine.pieces._FOOTER", 8)  # a change lies before the end that is looked at
    where = folder(tmp_path / "table")
    table = spread(where)
    file = where / "1.parquet"
    if change == "replaced":
        shutil.copy(where / "2.parquet", file)
    elif change == "appended":
        with file.open("ab") as opened:
            opened.write(b"x")
    elif change == "removed":
        file.unlink()
    elif change == "set back":  # as long as it was, other rows, the old time: what a copy that keeps times leaves
        before = file.stat()
        time.sleep(0.05)  # longer than a tick of the file system's clock
        with file.open("r+b") as opened:
            opened.seek(100)
            opened.write(b"\0")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    else:
        os.utime(file, ns=(1, 1))
    with pytest.raises(DataError, match=r"1\.parquet \(piece 1\) must stay as it is while it is read") as caught:
        table.counted(recipe())
    assert "Nothing was charged" in str(caught.value)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sabun.engine.counting import Task

    where = folder(tmp_path / "table")
    plain = Task.counted_rows

    def slow(self: Task, number: int, source: object) -> object:
        report = plain(self, number, source)
        if number == 2:
            os.utime(where / "2.parquet", ns=(1, 1))
        return report

    monkeypatch.setattr(Task, "counted_rows", slow)
    with pytest.raises(DataError, match=r"2\.parquet \(piece 2\)"):
        spread(where).counted(recipe())


def test_a_plan_tells_files_and_their_state_apart(tmp_path: Path) -> None:
    where = folder(tmp_path / "table")
    before = plan_of(cut(where))
    assert before == plan_of(cut(where))
    assert before != plan_of(cut(where, rows=100))
    os.utime(where / "0.parquet", ns=(1, 1))
    assert before != plan_of(cut(where))
    assert "mark" not in repr(cut(where)[0])


def test_a_copy_of_a_part_that_was_merged_long_ago_is_refused(tmp_path: Path) -> None:
    where = folder(tmp_path / "table")
    first, second, third = (Part.unnumbered(recipe()).with_rows(where) for _ in range(3))
    whole = first.merged(second).merged(third)
    for copy in (first, second, third, whole):
        with pytest.raises(ParameterError, match="a copy of a part that is counted already"):
            whole.merged(copy)


def test_a_part_that_is_printed_shows_no_sums(tmp_path: Path) -> None:
    where = folder(tmp_path / "table")
    part = Part.unnumbered(recipe()).with_rows(where)
    assert repr(part.state) not in repr(part)
    assert "state" not in repr(part)


def test_what_travels_shows_no_plan_no_sums_and_no_rows(tmp_path: Path) -> None:
    pieces = cut(folder(tmp_path / "table"))
    plan = plan_of(pieces)
    task, how = Task.of(recipe(), plan), persons(tmp_path / "table", id="other")
    shuffle = Shuffle.of(by_person(recipe(), how, form=None), plan=plan, pieces=len(pieces), buckets=2)
    report, parted = task.counted(pieces[0]), shuffle.parted(pieces[0])
    for thing in (task, shuffle, report, parted, Met(0, [b"SECRET"])):
        told = f"{thing!r} {thing}"
        assert len(told) < 300
        for secret in (plan, "SECRET", repr(report.state)[2:20], repr(parted[0].rows[0])[2:20], "pickle", "b'", "x80"):
            assert secret not in told


def test_a_store_that_says_more_one_time_than_another_still_has_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As buckets do: what a listing says of a file is not what its head says, and workers ask for the head."""
    fsspec = pytest.importorskip("fsspec", reason="needs the extra: pip install 'sabun[remote]'")
    from fsspec.implementations.memory import MemoryFileSystem

    plain, version, asked = MemoryFileSystem.info, ["1"], itertools.count()

    def info(self: Any, path: str, **more: Any) -> Any:
        return plain(self, path, **more) | {"ETag": version[0], "asked": next(asked)}

    monkeypatch.setattr(MemoryFileSystem, "info", info)
    file = folder(tmp_path / "table", files=1) / "0.parquet"
    with fsspec.open("memory://a-bucket/0.parquet", "wb") as out:
        out.write(file.read_bytes())
    (piece,) = cut("memory://a-bucket/0.parquet")
    piece.must_be_unchanged()
    assert plan_of([piece]) == plan_of(cut("memory://a-bucket/*.parquet"))
    version[0] = "2"
    with pytest.raises(DataError, match="must stay as it is"):
        piece.must_be_unchanged()
