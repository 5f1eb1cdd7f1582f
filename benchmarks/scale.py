"""What it costs to count a table in pieces: one process, several, Dask, Spark, beside the plain loop over the same files.

python -m benchmarks.scale [--quick] [--json FILE]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import Figure, main, wall_seconds
from sabun.engine import Statistic, spread, state_of
from sabun.records import Schema
from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler
from sabun.summaries.statistic import PowerSums

FILES = 20
MEASURES = ("src/sabun/engine", "src/sabun/summaries/statistic.py")
LOOP = "the plain loop over the same files"


def run(quick: bool) -> list[Figure]:
    rows = 1_000_000 if quick else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        table = _table(Path(folder), rows)
        statistic = _statistic()
        truth = state_of(statistic, table)
        loop = wall_seconds(lambda: state_of(statistic, table), repeat=2)

        def beside(name: str, seconds: float, target: float | None, note: str = "") -> Figure:
            return Figure(
                room="scale",
                name=f"{name}, {rows:,} rows in {FILES} files",
                ours=seconds,
                peer=loop,
                peer_name=LOOP,
                ratio=loop / seconds,
                target=target,
                note=note,
            )

        def count(engine: Any) -> float:
            begun = time.perf_counter()
            assert spread(table, engine=engine).counted(statistic) == truth, "the same sums to the bit"
            return time.perf_counter() - begun

        return [
            beside("one process in pieces", min(count("serial"), count("serial")), 0.95),
            beside(
                "two processes", count("processes:2"), None, "with the start of the processes, which plain sums do not pay back"
            ),
            *_dask(count, beside),
            *_spark(count, beside),
        ]


def _table(folder: Path, rows: int) -> Path:
    rng = np.random.default_rng(0)
    for number in range(FILES):
        size = rows // FILES
        columns = {"age": rng.normal(40, 20, size), "cost": rng.exponential(100, size), "sex": rng.choice(["f", "m"], size)}
        parquet.write_table(pa.table(columns), folder / f"{number:02}.parquet", row_group_size=100_000)
    return folder


def _statistic() -> Statistic[Any]:
    people = People.of(Schema.of_bounds({"age": (0, 120), "cost": (0, 1000)}), column="age", by=None, where={"cost": (0, 500)})
    return PowerSums(people=people, ruler=Ruler.of(people.summed))


def _dask(count: Callable[[Any], float], beside: Callable[..., Figure]) -> list[Figure]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        count(client)  # workers import the package once
        return [beside("Dask, two workers on this machine", min(count(client), count(client)), None, "the cluster was running")]


def _spark(count: Callable[[Any], float], beside: Callable[..., Figure]) -> list[Figure]:
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    session = builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    try:
        session.sparkContext.setLogLevel("OFF")
        count(session)
        return [
            beside("Spark, two threads on this machine", min(count(session), count(session)), None, "the session was running")
        ]
    finally:
        session.stop()


if __name__ == "__main__":
    main(run)
