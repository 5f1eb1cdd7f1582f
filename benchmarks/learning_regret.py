"""How much worse a default can be than another method, on made-up tables that are hard for it.

`straight`: dp-adam beside dp-sgd where classes are parted by planes, for numbers of records at which a hidden layer is just
taken, and below. `pure`: noisy-centroids beside the other methods with delta 0. `few`: dp-adam beside dp-sgd where few columns
among many tell the classes apart; `one`: beside noisy-centroids where one alone does. `common`: where nearly everybody is in
one class. Paired over seeds, 2,000 rows to test on.

    python -m benchmarks.learning_regret straight|pure|few|one|common [--seeds N] [--json docs/results/learning/regret.json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sabun.datasets import load_adult
from sabun.learning import PrivateClassifier
from sabun.records import Column, Schema
from sabun.telling.harness import machine, write_record

_TEST = 2000
_STRAIGHT = ("a plane off the centre", "the 10 % above a plane", "five bands", "largest of six", "noisy plane")


class Cell(NamedTuple):
    """One table and epsilon, with the methods to compare, the first one with the others."""

    name: str
    rows: Any
    labels: NDArray[np.int64]
    epsilon: float
    methods: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """Frames hold labels, arrays numbers."""
        if isinstance(self.rows, pd.DataFrame):
            return Schema(columns=tuple(_column(name, column) for name, column in self.rows.items()))
        return _schema(self.rows)


def straight() -> Iterator[Cell]:
    """Uniform columns, classes parted by planes; as many records as take the layer and a tenth more, and a third of them."""
    for columns in (4, 12, 30):
        for name in _STRAIGHT:
            for epsilon in (2, 8):
                few = np.random.default_rng([51, columns])
                classes = int(_parted(name, few.random((1000, columns))).max()) + 1
                just = _just(columns, classes, epsilon)
                for records in (just // 3, just * 11 // 10):
                    if 100 <= records <= 6000:
                        rows = np.random.default_rng([51, columns, records]).random((records + _TEST, columns))
                        yield Cell(name, rows, _parted(name, rows), epsilon, ("dp-adam", "dp-sgd"))


def pure() -> Iterator[Cell]:
    """What means of classes do not show, and what they do."""
    for records in (1500, 10_000):
        rng = np.random.default_rng([52, records])
        n = records + _TEST
        for epsilon in (1, 3):
            others = ("noisy-centroids", "laplace-sgd", "objective-perturbation")
            two, noise = rng.random((n, 2)), rng.normal(size=(n, 6))
            together = rng.normal(size=(n, 1)) + 0.3 * noise
            yield Cell("x0 > 0.75", two, _whole(two[:, 0] > 0.75), epsilon, others)
            yield Cell("x0 > 0.9", two, _whole(two[:, 0] > 0.9), epsilon, others)
            yield Cell("x0 > 0.5", two, _whole(two[:, 0] > 0.5), epsilon, others)
            yield Cell("x0 > x1, columns together", together, _whole(together[:, 0] > together[:, 1]), epsilon, others)
            for classes in (2, 5):
                codes = rng.integers(0, classes, n)
                blobs = rng.normal(size=(classes, 10))[codes] + rng.normal(size=(n, 10))
                yield Cell(f"{classes} blobs", blobs, codes, epsilon, others[: 3 if classes == 2 else 2])


def few() -> Iterator[Cell]:
    """Numbers, bits and labels of which a few say which class it is, nearly always, and the others nothing."""
    methods = ("dp-adam", "dp-sgd")
    for telling, columns, records, epsilon in ((1, 200, 3000, 8), (1, 500, 5000, 8), (5, 500, 5000, 8), (20, 100, 2000, 3)):
        yield _of_numbers(telling, columns, records, epsilon, methods)
    for telling, columns, records, epsilon in ((1, 150, 1000, 1), (3, 500, 5000, 8), (3, 200, 3000, 8), (3, 500, 20_000, 1)):
        yield _of_bits(telling, columns, records, epsilon, methods)
    for telling, columns, labels, records, epsilon in (
        (2, 60, 8, 5000, 3),
        (2, 60, 8, 20_000, 1),
        (2, 60, 8, 5000, 8),
        (1, 60, 8, 5000, 5),
        (3, 100, 10, 10_000, 5),
    ):
        rng = np.random.default_rng([56, telling, columns])
        codes = rng.integers(0, labels, (records + _TEST, columns))
        said = (codes[:, :telling] >= labels // 2).sum(axis=1) > telling / 2 - 0.5
        said = said ^ (rng.random(len(codes)) < 0.03)
        yield Cell(f"{telling} of {columns} categories of {labels} labels", _labelled(codes), _whole(said), epsilon, methods)
    rng = np.random.default_rng(57)
    numbers, city = rng.normal(size=(20_000 + _TEST, 3)), rng.integers(0, 2000, 20_000 + _TEST)
    said = rng.permutation(2000)[city] + 100 * numbers[:, 0] > 1000
    mixed = _labelled(city[:, None]).assign(**{f"x{place}": numbers[:, place] for place in range(3)})
    yield Cell("a category of 2000 labels beside 3 numbers", mixed, _whole(said), 8, methods)


def one() -> Iterator[Cell]:
    """One telling column among very many, where the method without delta is at its best."""
    methods = ("dp-adam", "noisy-centroids")
    for records, epsilon in ((1000, 1), (1000, 3), (5000, 1)):
        yield _of_bits(1, 150, records, epsilon, methods)
        yield _of_numbers(1, 150, records, epsilon, methods)
    yield _of_bits(1, 300, 2000, 1, methods)


def _of_numbers(telling: int, columns: int, records: int, epsilon: float, methods: tuple[str, ...]) -> Cell:
    rng = np.random.default_rng([54, telling, columns])
    rows = rng.normal(size=(records + _TEST, columns))
    said = rows[:, :telling].sum(axis=1) + 0.3 * telling**0.5 * rng.normal(size=len(rows))
    return Cell(f"{telling} of {columns} numbers", rows, _whole(said > 0), epsilon, methods)


def _of_bits(telling: int, columns: int, records: int, epsilon: float, methods: tuple[str, ...]) -> Cell:
    rng = np.random.default_rng([55, telling, columns])
    rows = rng.integers(0, 2, (records + _TEST, columns)).astype(float)
    said = (rows[:, :telling].sum(axis=1) > telling / 2) ^ (rng.random(len(rows)) < 0.03)
    return Cell(f"{telling} of {columns} bits", rows, _whole(said), epsilon, methods)


def common() -> Iterator[Cell]:
    """Many columns, and a class that most people are in."""
    methods = ("dp-adam", "dp-sgd")
    for columns, classes, share, records, epsilon in (
        (1000, 5, 0.835, 10_000, 8),
        (200, 10, 0.896, 3000, 3),
        (500, 2, 0.979, 5000, 5),
        (100, 2, 0.9, 5000, 1),
    ):
        rng = np.random.default_rng([58, columns, classes])
        codes = rng.choice(classes, records + _TEST, p=[share, *[(1 - share) / (classes - 1)] * (classes - 1)])
        often = rng.uniform(0.01, 0.1, columns) * np.where(rng.random((classes, columns)) < 0.05, 4, 1)
        rows = (rng.random((len(codes), columns)) < often[codes]).astype(float)
        name = f"{columns} rare bits, {classes} classes, one has {share:.0%}"
        yield Cell(name, rows, codes, epsilon, methods)
        yield Cell(f"{name}, as categories", _labelled(rows.astype(np.int64)), codes, epsilon, methods)
    for columns, classes, share, records, epsilon in (
        (200, 6, 0.858, 3000, 5),
        (50, 6, 0.845, 1000, 3),
        (100, 4, 0.7, 3000, 1),
        (20, 3, 0.9, 1000, 1),
        (60, 3, 0.9, 60_000, 1),
    ):
        rng = np.random.default_rng([59, columns, classes])
        codes = rng.choice(classes, records + _TEST, p=[share, *[(1 - share) / (classes - 1)] * (classes - 1)])
        rows = 0.15 * rng.normal(size=(classes, columns))[codes] + rng.normal(size=(len(codes), columns))
        yield Cell(f"{columns} numbers, {classes} classes, one has {share:.0%}", rows, codes, epsilon, methods)
    found = load_adult().data.sample(frac=1, random_state=60).reset_index(drop=True)
    born = _whole(found["native-country"] != "United-States")
    others = pd.get_dummies(found.drop(columns=["native-country", "fnlwgt"], errors="ignore")).astype(float)
    for records, epsilon in ((3000, 3), (10_000, 1)):
        some = slice(0, records + _TEST)
        rows = others.to_numpy()[some]
        yield Cell("Adult with dummies as numbers, country of birth", rows, born[some], epsilon, methods)


def _labelled(codes: NDArray[np.int64]) -> pd.DataFrame:
    return pd.DataFrame({f"c{place}": column.astype(str) for place, column in enumerate(codes.T)})


def _column(name: str, column: Any) -> Column:
    if column.dtype.kind == "f":
        return Column.number(name, lower=float(np.floor(column.min())), upper=float(np.floor(column.max())) + 1)
    return Column.category(name, sorted(set(column), key=int))


def _parted(name: str, rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Labels by planes that belong to the number of columns."""
    rng = np.random.default_rng([53, rows.shape[1]])
    way = rng.normal(size=rows.shape[1])
    along = (rows - 0.5) @ way / np.linalg.norm(way)
    if name == "largest of six":
        return np.asarray(rows[:, : min(6, rows.shape[1])].argmax(axis=1), dtype=np.int64)
    if name == "five bands":
        return np.digitize(along, [-0.25, -0.08, 0.08, 0.25]).astype(np.int64)
    cut = {"a plane off the centre": 0.15, "the 10 % above a plane": 0.37}.get(name, 0.0)
    return _whole(along + (0.2 * rng.logistic(size=len(rows)) if name == "noisy plane" else 0.0) > cut)


def _whole(found: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(found, dtype=np.int64)


def _just(columns: int, classes: int, epsilon: float) -> int:
    """The least number of records, but for a hundredth, from which on the default takes its layer."""
    low, high = 50, 1_000_000
    asked = PrivateClassifier(epsilon=epsilon, delta=1e-5, schema=_schema(np.zeros((1, columns))), classes=list(range(classes)))
    while high > low * 1.01:
        middle = (low + high) // 2
        layered = asked.plan(n_records=middle).n_weights > (columns + 1) * classes
        low, high = (low, middle) if layered else (middle, high)
    return high


def _schema(rows: NDArray[np.float64]) -> Schema:
    low, high = np.floor(rows.min(axis=0)), np.floor(rows.max(axis=0)) + 1
    return Schema.of_bounds({f"x{place}": (a, b) for place, (a, b) in enumerate(zip(low.tolist(), high.tolist(), strict=True))})


def scores(cell: Cell, method: str, seeds: int) -> NDArray[np.float64]:
    """Accuracies, a seed each."""
    cut, found = len(cell.rows) - _TEST, []
    for seed in range(seeds):
        asked = PrivateClassifier(
            method=method,
            epsilon=cell.epsilon,
            delta=1e-5 if method.startswith("dp-") else 0,
            schema=cell.schema,
            classes=list(range(int(cell.labels.max()) + 1)),
            random_state=seed,
        ).fit(cell.rows[:cut], cell.labels[:cut])
        found.append(asked.score(cell.rows[cut:], cell.labels[cut:]))
    return np.array(found)


def _share(cell: Cell) -> float:
    """Of the most common class among the rows to test on."""
    tested = cell.labels[len(cell.labels) - _TEST :]
    return float(np.bincount(tested).max() / _TEST)


_KINDS = {"straight": straight, "pure": pure, "few": few, "one": one, "common": common}


def compared(cell: Cell, seeds: int) -> list[dict[str, Any]]:
    """One row for each other method: accuracies, and the paired difference with its standard error."""
    first = scores(cell, cell.methods[0], seeds)
    found = []
    for other in cell.methods[1:]:
        theirs = scores(cell, other, seeds)
        less = (first - theirs).tolist()
        found.append(
            {
                "table": cell.name,
                "columns": int(cell.rows.shape[1]),
                "records": len(cell.rows) - _TEST,
                "epsilon": cell.epsilon,
                "method": cell.methods[0],
                "score": round(float(first.mean()), 4),
                "other": other,
                "other score": round(float(theirs.mean()), 4),
                "common class": round(_share(cell), 4),
                "above": round(statistics.fmean(less), 4),
                "error": round(statistics.stdev(less) / seeds**0.5, 4),
            }
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=tuple(_KINDS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the rows to this file; what it has of other kinds stays")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for cell in _KINDS[asked.which]():
        for row in compared(cell, asked.seeds):
            print(
                f"{row['table']}, {row['columns']} columns, {row['records']} records, epsilon {row['epsilon']}: "
                f"{row['method']} {row['score']:.3f}, always the common class {row['common class']:.3f}, "
                f"{row['other']} {row['other score']:.3f} ({row['above']:+.3f} ± {row['error']:.3f})",
                flush=True,
            )
            rows.append(row)
    below = sum(row["above"] < -2 * row["error"] for row in rows)
    print(
        f"{below} of {len(rows)} below by more than two standard errors, the worst by {-min(row['above'] for row in rows):.3f}"
    )
    if asked.json:
        kept = json.loads(asked.json.read_text(encoding="utf-8"))["kinds"] if asked.json.is_file() else {}
        kept[asked.which] = {"machine": machine(), "seeds": asked.seeds, "rows": rows}
        write_record(asked.json, {"kinds": kept})


if __name__ == "__main__":
    main()
