"""A table in several files, and the sums that everybody must find."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sabun.asking import Statistic, state_of
from sabun.engine.counting import Report, Task
from sabun.engine.pieces import Piece
from sabun.records import Schema
from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler
from sabun.summaries.statistic import PowerSums, Tally

SCHEMA = Schema.of_bounds({"age": (0, 120)})


def folder(where: Path, *, files: int = 3, rows: int = 400, groups: int = 100) -> Path:
    where.mkdir(exist_ok=True)
    rng = np.random.default_rng(7)
    for number in range(files):
        columns = {"age": rng.normal(40, 30, rows), "other": rng.normal(size=rows)}
        parquet.write_table(pa.table(columns), where / f"{number}.parquet", row_group_size=groups)
    return where


def recipe() -> Statistic[Tally]:
    people = People.of(SCHEMA, column="age", by=None, where=None)
    return PowerSums(people=people, ruler=Ruler.of(people.summed))


def truth(where: Path) -> Tally:
    return state_of(recipe(), where)


@dataclass(frozen=True)
class Mortal:
    """A task whose first worker dies."""

    task: Task
    marker: Path

    @property
    def plan(self) -> str:
        return self.task.plan

    def counted(self, piece: Piece) -> Report:
        try:
            self.marker.touch(exist_ok=False)
        except FileExistsError:
            return self.task.counted(piece)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError


@dataclass(frozen=True)
class Deadly:
    """A task that no worker survives."""

    plan: str = "plan"

    def counted(self, piece: Piece) -> Report:
        os._exit(9)


@dataclass(frozen=True)
class Dying:
    """An engine one of whose workers dies."""

    engine: Any
    marker: Path

    def reports(self, task: Task, pieces: Sequence[Piece]) -> Iterator[Report]:
        found: Iterator[Report] = self.engine.reports(Mortal(task, self.marker), pieces)
        return found


POINTS = Schema.of_bounds(dict.fromkeys("abcdef", (0, 1)))


def cloud(where: Path) -> Path:
    """Points with duplicates, on borders and off them, some of them missing."""
    where.mkdir(exist_ok=True)
    rng = np.random.default_rng(3)
    for number in range(3):
        rows = np.vstack([rng.uniform(size=(150, 6)), rng.integers(0, 9, size=(100, 6)) / 8])
        rows[:20] = rows[0]
        rows[20:25] = np.nan
        parquet.write_table(
            pa.table({name: rows[:, place] for place, name in enumerate("abcdef")}), where / f"{number}.parquet"
        )
    return where


def outliers(source: Any, columns: str, **more: Any) -> Any:
    """The release about as many coordinates; a simulation, so that the same sums give the same bytes."""
    from sabun.outliers import OutlierCount

    asked = OutlierCount(k=3, radius=0.15, epsilon=2, schema=POINTS, columns=list(columns), random_state=5, **more)
    return asked.fit(source).release_.value


@dataclass(frozen=True)
class Uneven:
    """Sums of which one process has another idea than all others: the first that is not the owner's."""

    exact: Any
    marker: Path
    owner: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.exact, name)

    def sample(self) -> Any:
        block = self.exact.sample()
        if os.getpid() == self.owner:
            return block
        try:
            with self.marker.open("x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            pass
        odd = self.marker.read_text() == str(os.getpid())
        return block._replace(cells=block.cells.astype(np.float16).astype(np.float64)) if odd else block


@dataclass(frozen=True)
class Meddling:
    """Sums during which a file is replaced by another."""

    exact: Any
    file: Path
    other: Path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.exact, name)

    def blocks(self, source: Any) -> Iterator[Any]:
        yield from self.exact.blocks(source)
        if source.path == self.file:
            shutil.copy(self.other, self.file)


def reports(where: Path) -> tuple[Any, list[Path], Any]:
    """A study, files of reports some of which come again in other files or under a taken id, and their tally."""
    from sabun.keyvalue import Study
    from sabun.keyvalue.batches import read_reports, write_reports
    from sabun.keyvalue.collector import Register

    study = Study(keys=["a", "b", "c"], epsilon=2, protocol="kv3")
    rng = np.random.default_rng(11)
    head = bytes([1]) + study.terms.short_id + bytes(4)
    made = [head + rng.bytes(16) + bytes([rng.integers(3)]) for _ in range(120)]
    made += [made[n][:-1] + bytes([rng.integers(4)]) for n in rng.integers(0, 120, 60).tolist()]
    where.mkdir()
    for number in range(3):
        write_reports(where / f"{number}.bin", made[number::3])
    files = sorted(where.iterdir())
    tally = study.tally()
    tally.add_reports((each for file in files for each in read_reports(file, study)), register=Register(ids={}))
    return study, files, tally


def visits(where: Path, *, files: int = 3, rows: int = 200, seed: int = 5) -> Path:
    """People come again, in other files too; some rows are nobody's."""
    where.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(files):
        who = [None if each == 0 else f"p{each}" for each in rng.integers(0, 150, rows).tolist()]
        columns = {
            "who": who,
            "age": rng.normal(50, 40, rows),
            "cost": rng.normal(50, 40, rows),
            "day": rng.integers(0, 9, rows),
        }
        parquet.write_table(pa.table(columns), where / f"{number}.parquet", row_group_size=64)
    return where
