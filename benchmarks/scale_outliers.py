"""Outliers of a table that need not fit into memory: time and memory of slabs on one machine, beside the table in memory.

Points in 3 dimensions: nine tenths in a hundred dense balls, the rest anywhere, the radius shrinking so that about as many
neighbours are expected whatever the size. Each way runs in a process of its own, so that its memory is its own; where the table
in memory runs too, both must give the same count and bound to the bit.

    python -m benchmarks.scale_outliers [--json FILE] [--points 1e7] [--engine serial] [--in-memory 3e6]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from sabun.engine import spread
from sabun.outliers.points import read_table
from sabun.outliers.sensitivity import measure
from sabun.outliers.settings import load_loops
from sabun.outliers.spread_points import SpreadPoints
from sabun.records import Schema
from sabun.telling.harness import machine, write_record

MEASURES = ("src/sabun/engine", "src/sabun/outliers")
NAMES = ("x", "y", "z")
SCHEMA = Schema.of_bounds(dict.fromkeys(NAMES, (0, 1)))
_FILE = 500_000
_BALLS = 100


def points(folder: Path, count: int) -> None:
    """Writes a folder of Parquet files, never holding more than one."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(0.1, 0.9, size=(_BALLS, 3))
    for number, start in enumerate(range(0, count, _FILE)):
        size = min(_FILE, count - start)
        rows = centres[rng.integers(_BALLS, size=size)] + rng.normal(scale=0.02, size=(size, 3))
        stray = rng.random(size) < 0.1
        rows[stray] = rng.uniform(size=(int(stray.sum()), 3))
        columns = {name: rows[:, place] for place, name in enumerate(NAMES)}
        parquet.write_table(pa.table(columns), folder / f"{number:04}.parquet", row_group_size=100_000)


def question(count: int) -> dict[str, Any]:
    """k = 10 within a radius that holds about 6 of the strays alone."""
    radius = (6 / (0.1 * count * 4 / 3 * np.pi)) ** (1 / 3)
    return {
        "k": 10,
        "radius": float(radius),
        "beta": Fraction(7, 50),
        "cover": "degeneracy",
        "relation": "replace-one",
    }


def measured(folder: Path, count: int, engine: str) -> dict[str, Any]:
    """One way, in this process: seconds, CPU seconds, most megabytes, the exact answer (of made-up data)."""
    load_loops()
    begun = time.perf_counter()
    if engine == "memory":
        found = measure(read_table(folder, schema=SCHEMA)[1], **question(count))
    else:
        found = SpreadPoints.of(spread(folder, engine=engine), schema=SCHEMA, columns=None).measured(**question(count))
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {
        "engine": engine,
        "seconds": time.perf_counter() - begun,
        "cpu_seconds": sum(part.ru_utime + part.ru_stime for part in used),
        "most_megabytes": max(part.ru_maxrss for part in used) / 1024,
        "outliers": found[0],
        "bound": str(found[1]),
    }


def apart(folder: Path, count: int, engine: str) -> dict[str, Any]:
    """The same in a process of its own."""
    asked = [sys.executable, "-m", "benchmarks.scale_outliers", "--within", str(folder), "--points", str(count)]
    done = subprocess.run([*asked, "--engine", engine], capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Outliers of a table larger than memory.")
    parser.add_argument("--points", type=float, default=1e5)
    parser.add_argument("--engine", default="serial", help="serial, processes:2, ...")
    parser.add_argument("--in-memory", type=float, default=3e6, help="up to how many points the table in memory runs too")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--within", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    count = int(options.points)
    if options.within is not None:
        print(json.dumps(measured(options.within, count, options.engine)))
        return
    with tempfile.TemporaryDirectory(prefix="sabun-points-") as folder:
        points(Path(folder), count)
        ways = [options.engine] + (["memory"] if count <= options.in_memory else [])
        results = [apart(Path(folder), count, engine) for engine in ways]
    for result in results:
        result |= {"points": count, "dimensions": 3}
        print(
            f"{count:>12,} points, {result['engine']:<12} {result['seconds']:8.1f} s, {result['cpu_seconds']:8.1f} CPU s, "
            f"{result['most_megabytes']:7.0f} MB",
            flush=True,
        )
    if len({(result["outliers"], result["bound"]) for result in results}) > 1:
        raise SystemExit("the ways differ: they must give the same count and bound to the bit.")
    if options.json is not None:
        write_record(options.json, {"machine": machine(), "runs": results})


if __name__ == "__main__":
    main()
