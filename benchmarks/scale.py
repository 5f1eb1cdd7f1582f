"""What it costs to count a table in pieces: one process, several, Dask, Spark, beside the plain loop; and text beside Parquet.

python -m benchmarks.scale [--quick] [--json FILE]

How cost grows with the number of rows is in `benchmarks.scale_growth`. Ratios of wall time mean something on idle cores only;
beside them stands what the processor time of all processes comes to, which does not depend on who else is at work.
"""

from __future__ import annotations

import os
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
from benchmarks.measure import Figure, cpu_seconds, faster, main, wall_seconds
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
_ROWS = 10_000_000
_QUESTIONS = {
    "summaries": scale_growth.summaries,
    "regression": scale_growth.regression,
    "density": scale_growth.density,
}
_PARALLEL = 1.6
"""How many times faster two processes on two idle cores are stated to be, once they run; at the full size, in every room."""

_TEXT = 0.5
"""Processor time from Parquet beside that from text. All of a line must be parsed, whatever is asked: where pyarrow's reader
alone takes more than twice what the whole question takes from Parquet, nothing is stated."""


def run(quick: bool) -> list[Figure]:
    rows = 1_000_000 if quick else _ROWS
    with tempfile.TemporaryDirectory(prefix="sabun-scale-") as folder:
        scale_growth.write_table(Path(folder) / "table", rows)
        table = sorted((Path(folder) / "table").iterdir())
        return [*_engines(table, rows), *_texts(table[-1], Path(folder))]


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
        name = f"{self.name}, {engine}, {self.rows:,} rows"
        return faster("scale", name, ours=seconds, peer=beside, peer_name=LOOP, target=target, note=note)


def _engines(files: list[Path], rows: int) -> Iterator[Figure]:
    for name, statistic in _QUESTIONS.items():
        race = Race.of(name, rows, files, statistic())
        serial = min(race.count("serial"), race.count("serial"))
        yield race.figure("one process in pieces", serial, beside=race.wall, target=0.95)
        yield from _processes(race)
        yield from _dask(race)
        yield from _spark(race)


def _processes(race: Race) -> Iterator[Figure]:
    engine = engine_named("processes:2")
    first = race.count(engine)
    workers = list(engine._kept[0]._processes)  # type: ignore[attr-defined]
    before, own = _seconds_of(workers), time.process_time()
    seconds = race.count(engine)
    worked, own = _seconds_of(workers) - before, time.process_time() - own
    seconds = min(seconds, race.count(engine))
    target = _PARALLEL if race.rows >= _ROWS else None
    yield race.figure("two processes", seconds, beside=race.wall, target=target, note=f"{first:.3g} s with their start")
    yield race.figure(
        "two processes, half of their CPU and all of the owner's",
        worked / 2 + own,
        beside=race.cpu,
        target=target,
        note="not a run: what two cores that nobody else uses would take, beside the loop's own CPU",
    )


def _seconds_of(processes: list[int]) -> float:
    """CPU seconds of processes so far, from Linux."""
    told = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split() for each in processes]
    return sum(int(fields[11]) + int(fields[12]) for fields in told) / os.sysconf("SC_CLK_TCK")


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
    for (name, statistic), used in zip(_QUESTIONS.items(), (2, 10, 3), strict=True):
        recipe = statistic()
        wanted = arrow_csv.ConvertOptions(include_columns=table.column_names[:used])
        alone = cpu_seconds(partial(arrow_csv.read_csv, text, convert_options=wanted), repeat=3)
        ours, peer = (cpu_seconds(partial(state_of, recipe, source), repeat=3) for source in (text, packed))
        for beside, whose, target in (
            (peer, "the same rows in a Parquet file", _TEXT if alone <= peer / _TEXT else None),
            (alone, "pyarrow's reader alone", None),
        ):
            shape = f"{name}, CPU of a CSV file, {len(table):,} rows"
            note = f"{used} of 11 columns are used; of a text all must be parsed"
            yield faster("scale", shape, ours=ours, peer=beside, peer_name=whose, target=target, note=note)


if __name__ == "__main__":
    main(run)
