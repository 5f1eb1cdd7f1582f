"""What it costs to count a table in pieces: one process, several, Dask, Spark, beside the plain loop; and how cost grows.

python -m benchmarks.scale [--quick] [--rows 1e8] [--json FILE] [--plot FOLDER]

Files are made under TMPDIR, 88 bytes a row and 42 a report: 13 GB at 1e8 rows, and 3 GB more while reports are counted.
Engines are compared at no more than 10**7 rows; ratios of wall time mean something on idle cores only.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import csv as arrow_csv
from pyarrow import parquet

from benchmarks import scale_growth
from benchmarks.measure import Figure, cpu_seconds, keep, wall_seconds
from sabun.engine import Statistic, engine_named, spread, state_of

MEASURES = (
    "src/sabun/engine",
    "src/sabun/summaries/statistic.py",
    "src/sabun/keyvalue/once.py",
    "src/sabun/keyvalue/whole_reports.py",
    "src/sabun/records/cells.py",
    "src/sabun/records/csv_files.py",
)
LOOP = "the plain loop over the same files"
_COMPARED = 10_000_000


def run(quick: bool) -> list[Figure]:
    return measured(1_000_000 if quick else _COMPARED)


def measured(rows: int) -> list[Figure]:
    """All figures, with growth up to so many rows."""
    with tempfile.TemporaryDirectory(prefix="sabun-scale-") as folder:
        growth = scale_growth.measured(Path(folder), rows)
        table = sorted((Path(folder) / "table").iterdir())[: scale_growth.files_of(min(rows, _COMPARED))]
        return [*_engines(table, min(rows, _COMPARED)), *_texts(table[0], Path(folder)), *growth]


@dataclass(frozen=True)
class Race:
    """One statistic of some files, and what the plain loop takes."""

    name: str
    rows: int
    files: list[Path]
    statistic: Statistic[Any]
    truth: bytes
    wall: float
    cpu: float

    @classmethod
    def of(cls, name: str, rows: int, files: list[Path], statistic: Statistic[Any]) -> Race:
        def loop() -> Any:
            state = statistic.zero()
            for file in files:
                state = statistic.merge(state, state_of(statistic, file))
            return state

        truth = statistic.pack(loop())
        return cls(name, rows, files, statistic, truth, wall_seconds(loop, repeat=2), cpu_seconds(loop, repeat=2))

    def count(self, engine: Any) -> float:
        """Wall time of one counting, whose sums must be the same to the bit."""
        begun = time.perf_counter()
        found = spread(list(self.files), engine=engine).counted(self.statistic)
        seconds = time.perf_counter() - begun
        assert self.statistic.pack(found) == self.truth, "the same sums to the bit"
        return seconds

    def figure(self, engine: str, seconds: float, *, beside: float, target: float | None = None, note: str = "") -> Figure:
        return Figure(
            room="scale",
            name=f"{self.name}, {engine}, {self.rows:,} rows",
            ours=seconds,
            peer=beside,
            peer_name=LOOP,
            ratio=beside / seconds,
            target=target,
            note=note,
        )


def _engines(files: list[Path], rows: int) -> Iterator[Figure]:
    for name, statistic in (
        ("summaries", scale_growth.summaries()),
        ("regression", scale_growth.regression()),
        ("density", scale_growth.density()),
    ):
        race = Race.of(name, rows, files, statistic)
        serial = min(race.count("serial"), race.count("serial"))
        yield race.figure("one process in pieces", serial, beside=race.wall, target=0.95)
        yield from _processes(race)
        yield from _dask(race)
        yield from _spark(race)


def _processes(race: Race) -> Iterator[Figure]:
    engine = engine_named("processes:2")
    first = race.count(engine)
    seconds = min(race.count(engine), race.count(engine))
    # Plain sums take less time than it takes to hand pieces out; what is stated is about sums that work.
    target = 1.6 if race.name == "density" and race.rows >= _COMPARED else None
    yield race.figure("two processes", seconds, beside=race.wall, target=target, note=f"{first:.3g} s with their start")


def _dask(race: Race) -> Iterator[Figure]:
    engine = engine_named("dask")
    with engine._client() as client:  # type: ignore[attr-defined]
        race.count(engine)  # workers import the package once
        before = _worker_seconds(client)
        seconds = race.count(engine)
        cpu = _worker_seconds(client) - before
        workers = len(client.scheduler_info()["workers"])
    yield race.figure(f"Dask, {workers} workers of a local cluster", seconds, beside=race.wall, note="the cluster was running")
    yield race.figure("Dask, CPU of all workers", cpu, beside=race.cpu, target=0.8, note="beside the loop's own CPU")


def _worker_seconds(client: Any) -> float:
    """CPU seconds of all workers so far."""
    return float(sum(client.run(_own_seconds).values()))


def _own_seconds() -> float:
    import os

    return sum(os.times()[:2])


def _spark(race: Race) -> Iterator[Figure]:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.driver.host": "127.0.0.1"}
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.master("local[2]").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    race.count(session)
    seconds = min(race.count(session), race.count(session))
    yield race.figure("Spark, two threads on this machine", seconds, beside=race.wall, note="the session was running")


def _texts(file: Path, folder: Path) -> Iterator[Figure]:
    """The same rows as text: CPU beside that of Parquet."""
    table = parquet.read_table(file)
    rounded = [column if column.type == "int64" else column.cast("float32") for column in table.columns]
    table = table.from_arrays(rounded, names=table.column_names)
    text, packed = folder / "same.csv", folder / "same.parquet"
    arrow_csv.write_csv(table, text)
    parquet.write_table(table, packed)
    for name, statistic, used in (
        ("summaries", scale_growth.summaries(), 2),
        ("regression", scale_growth.regression(), 10),
        ("density", scale_growth.density(), 3),
    ):
        ours, peer = (cpu_seconds(partial(state_of, statistic, source), repeat=3) for source in (text, packed))
        yield Figure(
            room="scale",
            name=f"{name}, CPU of a CSV file, {len(table):,} rows",
            ours=ours,
            peer=peer,
            peer_name="the same rows in a Parquet file",
            ratio=peer / ours,
            target=0.5 if name == "density" else None,
            note=f"{used} of 11 columns are used; of a text all must be parsed",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Counting in pieces, beside the plain loop over the same files.")
    parser.add_argument("--quick", action="store_true", help="10**6 rows, for a first look")
    parser.add_argument("--rows", type=float, default=_COMPARED, help="up to how many rows growth is measured, such as 1e8")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--plot", type=Path, help="also draw growth of time and memory into this folder")
    options = parser.parse_args()
    figures = measured(1_000_000 if options.quick else int(options.rows))
    for figure in figures:
        print(figure, flush=True)
    if options.json:
        keep(options.json, figures, room="scale", quick=options.quick)
    if options.plot:
        scale_growth.draw(figures, options.plot)


if __name__ == "__main__":
    main()
