"""How time and memory grow with the number of rows: every size in a process of its own, over files that were made before.

python -m benchmarks.scale_growth WHAT FOLDER FILES     measures one thing, prints JSON
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.measure import Figure
from sabun.engine import Statistic, spread, state_of
from sabun.records import Schema

COLUMNS = 10
SMALLEST = 100_000
SLOW = {"summaries of persons"}
"""What is not measured beyond a tenth of the rows."""

MOST = {"summaries": 500.0, "regression": 500.0, "density": 500.0, "reports": 1000.0}
"""Megabytes that are stated, at any size."""

_NAMES = [f"x{number}" for number in range(COLUMNS)]
_SCHEMA = Schema.of_bounds(dict.fromkeys(_NAMES, (-3.0, 3.0)))


def sizes(rows: int) -> list[int]:
    """10**5 and every power of ten up to the largest."""
    return [size for size in (10**power for power in range(5, 12)) if size <= rows]


def files_of(size: int) -> int:
    """How many of the files a size has: the largest table holds all smaller ones, so that nothing is written twice."""
    count, held = 0, 0
    while held < size:
        held += rows_in(count)
        count += 1
    return count


def rows_in(number: int) -> int:
    """Rows of one file."""
    return SMALLEST if number < 10 else 10 * SMALLEST


def write_table(folder: Path, rows: int) -> None:
    """Files of random rows, 80 bytes each, one after the other; 10**8 rows are 8 GB."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(files_of(rows)):
        size = rows_in(number)
        columns: dict[str, Any] = {name: rng.random(size) * 6 - 3 for name in _NAMES[:-1]}
        columns["x9"] = columns["x0"] / 2 + rng.random(size) - 0.5
        columns["who"] = rng.integers(0, max(rows // 4, 1), size)
        table = pa.table(columns)
        parquet.write_table(table, _file(folder, number, "parquet"), row_group_size=SMALLEST, use_dictionary=False)


def write_reports(folder: Path, rows: int) -> None:
    """Files of reports of a study, one in a thousand of which comes twice; 10**8 reports are 4 GB."""
    folder.mkdir()
    made, rng = _study(), np.random.default_rng(1)
    head = np.frombuffer(made.report_bytes.to_bytes(4, "big") + bytes([1]) + made.terms.short_id + bytes(4), dtype=np.uint8)
    for number in range(files_of(rows)):
        size = rows_in(number)
        frames = np.empty((size, 4 + made.report_bytes), dtype=np.uint8)
        frames[:, : len(head)] = head
        frames[:, len(head) : len(head) + 16] = rng.integers(0, 256, (size, 16), dtype=np.uint8)
        frames[:, -1] = rng.integers(0, 3, size)
        frames[-size // 1000 :] = frames[: size // 1000]
        _file(folder, number, "bin").write_bytes(frames.tobytes())


def measured(folder: Path, rows: int) -> list[Figure]:
    """Makes the files, then measures each question at every size."""
    write_table(folder / "table", rows)
    write_reports(folder / "reports", rows)
    found = []
    for what in QUESTIONS:
        for size in sizes(rows // 10 if what in SLOW else rows):
            where = folder / ("reports" if what == "reports" else "table")
            command = [sys.executable, "-m", "benchmarks.scale_growth", what, str(where), str(files_of(size))]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
            told = json.loads(done.stdout.splitlines()[-1])
            most = MOST.get(what)
            found += [
                Figure(room="scale", name=f"{what}, {size:,} rows: CPU", ours=told["cpu"], note=f"{told['wall']:.3g} s wall"),
                Figure(
                    room="scale",
                    name=f"{what}, {size:,} rows: memory",
                    ours=told["peak"],
                    unit="MB",
                    peer=most,
                    peer_name="" if most is None else "stated",
                    ratio=None if most is None else most / told["peak"],
                    target=None if most is None else 1.0,
                    note=f"{told['before']:.0f} MB before anything was read",
                ),
            ]
    return found


def _environment() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _file(folder: Path, number: int, kind: str) -> Path:
    return folder / f"{number:05}.{kind}"


def summaries() -> Statistic[Any]:
    """Plain sums of one column under a condition on another."""
    from sabun.summaries.people import People
    from sabun.summaries.ruler import Ruler
    from sabun.summaries.statistic import PowerSums

    people = People.of(_SCHEMA, column="x0", by=None, where={"x1": (0, 3)})
    return PowerSums(people=people, ruler=Ruler.of(people.summed))


def regression() -> Statistic[Any]:
    """Products of nine features and a target."""
    from sabun.records import NumberColumn
    from sabun.regression.design import Design
    from sabun.regression.statistic import Moments

    target = NumberColumn(name="x9", lower=-3, upper=3, missing=0)
    return Moments(design=Design(features=_SCHEMA.select(_NAMES[:-1]), target=target, intercept=True, radius=None))


def density() -> Statistic[Any]:
    """An embedding of three columns at the default's centres."""
    from sabun.density import DensityRatio

    public = np.random.default_rng(2).uniform(-3, 3, size=(2000, 3))
    ratio = DensityRatio(epsilon=1, schema=_SCHEMA.select(_NAMES[:3]), random_state=0).set_public(public)
    statistic: Statistic[Any] = ratio._open_part().statistic
    return statistic


def _study() -> Any:
    from sabun.keyvalue import Study

    return Study(keys=[f"k{number}" for number in range(100)], epsilon=2, protocol="kv3")


def _count_reports(files: Sequence[Path]) -> None:
    _study().tally().add_files(files)


def _count_persons(files: Sequence[Path]) -> None:
    from sabun.records import persons

    state_of(summaries(), persons(spread(list(files)), id="who"))


QUESTIONS: dict[str, Callable[[Sequence[Path]], object]] = {
    "summaries": lambda files: spread(list(files)).counted(summaries()),
    "regression": lambda files: spread(list(files)).counted(regression()),
    "density": lambda files: spread(list(files)).counted(density()),
    "reports": _count_reports,
    "summaries of persons": _count_persons,
}


def draw(figures: Sequence[Figure], folder: Path) -> None:
    """`scale-time.svg` and `scale-memory.svg`: both axes in powers of ten."""
    import matplotlib
    from matplotlib.figure import Figure as Picture
    from matplotlib.ticker import FuncFormatter

    with matplotlib.rc_context({"svg.hashsalt": "sabun", "font.size": 9}):
        for kind, axis, name in (("CPU", "CPU seconds", "time"), ("memory", "peak memory, MB", "memory")):
            picture = Picture(figsize=(5.6, 3.4), layout="constrained")
            axes = picture.subplots()
            for what in QUESTIONS:
                told = {figure.name: figure.ours for figure in figures}
                points = [(size, told.get(f"{what}, {size:,} rows: {kind}")) for size in sizes(10**11)]
                known = [(size, found) for size, found in points if found is not None]
                if known:
                    axes.plot(*zip(*known, strict=True), marker="o", markersize=4, label=what)
            axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=axis)
            for each in (axes.xaxis, axes.yaxis):
                each.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
            axes.grid(linewidth=0.4)
            picture.legend(loc="outside upper left", ncols=3, frameon=False)
            picture.savefig(folder / f"scale-{name}.svg", metadata={"Date": None})


def _peak() -> float:
    """Megabytes that this process and its children needed at most."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1000


def _one(what: str, folder: str, files: str) -> None:
    chosen = sorted(Path(folder).iterdir())[: int(files)]
    QUESTIONS[what](chosen[:1])  # imports, compiled loops
    before, begun, wall = _peak(), time.process_time(), time.perf_counter()
    QUESTIONS[what](chosen)
    told = {"cpu": time.process_time() - begun, "wall": time.perf_counter() - wall, "peak": _peak(), "before": before}
    print(json.dumps(told))


if __name__ == "__main__":
    _one(*sys.argv[1:])
