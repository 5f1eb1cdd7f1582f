"""Several rows per person: making one row of each person's, beside reading and encoding the same rows as they are.

python -m benchmarks.persons [--quick] [--json FILE]
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.measure import Figure, cpu_seconds, faster, main
from sabun.records import Column, Schema, open_source, persons

MEASURES = ("src/sabun/records/collapsing.py", "src/sabun/records/ids.py", "src/sabun/records/spilling.py")
PLAIN = "reading and encoding the rows as they are"
SCHEMA = Schema(
    columns=[
        Column.number("age", lower=0, upper=120),
        Column.number("cost", lower=0, upper=1000),
        Column.number("pressure", lower=50, upper=250),
        Column.category("ward", ["a", "b", "c", "d"]),
        Column.category("state", ["well", "ill"]),
    ]
)
RULES = {"age": "last", "pressure": "max"}


def run(quick: bool) -> list[Figure]:
    rows, people = (100_000, 20_000) if quick else (1_000_000, 200_000)
    with tempfile.TemporaryDirectory() as folder:
        table = _table(Path(folder), rows, people)
        plain = cpu_seconds(lambda: open_source(table, schema=SCHEMA).matrix())

        def seconds(memory: int) -> float:
            return cpu_seconds(lambda: _collapsed(table, people, memory))

        shape = f"{rows:,} rows of {people:,} persons, 5 columns of a CSV file"
        return [
            faster("persons", shape, ours=seconds(1 << 30), peer=plain, peer_name=PLAIN, target=0.5),
            faster(
                "persons",
                f"{shape}, a sixteenth in memory",
                ours=seconds(people // 16 * 500),
                peer=plain,
                peer_name=PLAIN,
                target=0.4,
                note="the other rows wait in temporary files",
            ),
        ]


def _collapsed(table: Path, people: int, memory: int) -> None:
    found = open_source(persons(table, id="who", rules=RULES, memory=memory), schema=SCHEMA, by_person=True).matrix()
    assert len(found) == people, "one row each"


def _table(folder: Path, rows: int, people: int) -> Path:
    rng = np.random.default_rng(1)
    who = np.concatenate([np.arange(people), rng.integers(0, people, rows - people)])
    rng.shuffle(who)
    frame = pa.table(
        {
            "who": [f"P{number:07d}" for number in who.tolist()],
            "age": rng.integers(0, 120, rows),
            "cost": rng.uniform(0, 1000, rows).round(2),
            "pressure": rng.normal(130, 20, rows).round(1),
            "ward": rng.choice(["a", "b", "c", "d"], rows).tolist(),
            "state": rng.choice(["well", "ill"], rows).tolist(),
        }
    )
    csv.write_csv(frame, folder / "visits.csv")
    return folder / "visits.csv"


if __name__ == "__main__":
    main(run)
