"""How time and memory grow with the number of rows: every size in a process of its own, over files that were made before.

python -m benchmarks.scale_growth [--quick] [--rows 1e8] [--only QUESTION] [--files FOLDER] [--json FILE] [--plot FOLDER]

Files are made under TMPDIR, 88 bytes a row, 42 a report and 24 a point: 13 GB at 1e8 rows, and 3 GB more while reports are
counted. With --files they are made in that folder, once, and stay. With --only, what FILE holds of other questions is kept,
provided that the same code was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks import scale_outliers
from benchmarks.freshness import modules
from benchmarks.measure import Figure, keep
from sabun.engine import Statistic, spread, state_of
from sabun.records import Schema

MEASURES = (
    "src/sabun/density/statistic.py",
    "src/sabun/engine/by_person.py",
    "src/sabun/engine/counting.py",
    "src/sabun/engine/engines.py",
    "src/sabun/engine/pieces.py",
    "src/sabun/engine/shuffle.py",
    "src/sabun/engine/spread_table.py",
    "src/sabun/engine/statistic.py",
    "src/sabun/keyvalue/once.py",
    "src/sabun/keyvalue/whole_reports.py",
    "src/sabun/outliers/slabs.py",
    "src/sabun/outliers/spread_points.py",
    "src/sabun/records/cells.py",
    "src/sabun/regression/statistic.py",
    "src/sabun/summaries/statistic.py",
)
COLUMNS = 10
SMALLEST = 100_000
SLOW = {"summaries of persons", "outliers"}
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


def write_points(folder: Path, rows: int) -> None:
    """Folders of points in three dimensions, one for each size: the radius shrinks as they grow."""
    for size in sizes(rows // 10):
        (folder / str(size)).mkdir(parents=True)
        scale_outliers.points(folder / str(size), size)


def run(quick: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="sabun-scale-") as folder:
        return measured(Path(folder), 1_000_000 if quick else 10_000_000)


def measured(
    folder: Path, rows: int, only: str | None = None, kept: Callable[[list[Figure]], None] | None = None
) -> list[Figure]:
    """Makes the files that are not there, then measures each question at every size; what is known is kept as it comes."""
    found: list[Figure] = []
    for what in QUESTIONS if only is None else [only]:
        where = folder / _FILES.get(what, ("table", write_table))[0]
        if not where.exists():
            _FILES.get(what, ("table", write_table))[1](where, rows)
        for size in sizes(rows // 10 if what in SLOW else rows):
            found += _grown(what, where, size)
            print(*found[-2:], sep="\n", flush=True)
            if kept is not None:
                kept(found)
    return found


def _grown(what: str, where: Path, size: int) -> list[Figure]:
    command = [sys.executable, "-m", "benchmarks.scale_growth", "--one", what, "--files", str(where), "--rows", str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    told = json.loads(done.stdout.splitlines()[-1])
    most = MOST.get(what)
    return [
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


def _count_reports(files: Sequence[Path], size: int) -> None:
    del size
    _study().tally().add_files(files)


def _count_persons(files: Sequence[Path], size: int) -> None:
    from sabun.records import persons

    del size
    state_of(summaries(), persons(spread(list(files)), id="who"))


def _count_outliers(files: Sequence[Path], size: int) -> None:
    scale_outliers.measured(files[0].parent, size, "serial")


QUESTIONS: dict[str, Callable[[Sequence[Path], int], object]] = {
    "summaries": lambda files, _: spread(list(files)).counted(summaries()),
    "regression": lambda files, _: spread(list(files)).counted(regression()),
    "density": lambda files, _: spread(list(files)).counted(density()),
    "reports": _count_reports,
    "summaries of persons": _count_persons,
    "outliers": _count_outliers,
}
_FILES: dict[str, tuple[str, Callable[[Path, int], None]]] = {
    "reports": ("reports", write_reports),
    "outliers": ("points", write_points),
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


def _one(what: str, folder: Path, size: int) -> None:
    """Measures one thing in this process and prints JSON."""
    if what == "outliers":
        chosen = first = sorted((folder / str(size)).iterdir())
        scale_outliers.load_loops()
    else:
        chosen = sorted(folder.iterdir())[: files_of(size)]
        first = chosen[:1]
        QUESTIONS[what](first, SMALLEST)  # imports, compiled loops
    before, begun, wall = _peak(), time.process_time(), time.perf_counter()
    QUESTIONS[what](chosen, size)
    told = {"cpu": time.process_time() - begun, "wall": time.perf_counter() - wall, "peak": _peak(), "before": before}
    print(json.dumps(told))


def laid_together(file: Path, figures: list[Figure]) -> list[Figure]:
    """These figures and, of a run over the same code, those of other questions."""
    if not file.exists():
        return figures
    record = json.loads(file.read_text(encoding="utf-8"))
    if record["modules"] != modules("scale_growth"):
        return figures
    held = {figure.name: figure for figure in (Figure(**each) for each in record["figures"])}
    both = held | {figure.name: figure for figure in figures}
    return sorted(both.values(), key=lambda figure: list(QUESTIONS).index(figure.name.partition(",")[0]))


def _keep(file: Path, figures: list[Figure]) -> None:
    keep(file, laid_together(file, figures), room="scale_growth", quick=False)


def main() -> None:
    parser = argparse.ArgumentParser(description="How time and memory grow with the number of rows.")
    parser.add_argument("--quick", action="store_true", help="10**6 rows, for a first look")
    parser.add_argument("--rows", type=float, default=1e7, help="up to how many rows, such as 1e8")
    parser.add_argument("--only", choices=QUESTIONS, help="this question alone")
    parser.add_argument("--files", type=Path, help="where files are, or are to stay")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--plot", type=Path, help="also draw growth of time and memory into this folder")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = 1_000_000 if options.quick else int(options.rows)
    if options.one is not None:
        _one(options.one, options.files, rows)
        return
    with ExitStack() as stack:
        folder = options.files or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sabun-scale-")))
        figures = measured(folder, rows, options.only, None if options.json is None else partial(_keep, options.json))
    if options.plot:
        draw(figures if options.json is None else laid_together(options.json, figures), options.plot)


if __name__ == "__main__":
    main()
