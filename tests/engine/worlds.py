"""A table in several files, and the sums that everybody must find."""

from __future__ import annotations

import os
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


def outliers(source: Any, columns: str) -> Any:
    """The release about as many coordinates; a simulation, so that the same sums give the same bytes."""
    from sabun.outliers import OutlierCount

    asked = OutlierCount(k=3, radius=0.15, epsilon=2, schema=POINTS, columns=list(columns), random_state=5)
    return asked.fit(source).release_.value
