"""How much worse a default can be than another method, on made-up tables that are hard for it.

`straight`: dp-adam beside dp-sgd where classes are parted by planes, for numbers of records at which a hidden layer is just
taken, and below. `pure`: noisy-centroids beside the other methods with delta 0. Paired over seeds, 2,000 rows to test on.

    python -m benchmarks.learning_regret straight|pure [--seeds N]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sabun.learning import PrivateClassifier
from sabun.records import Schema

_TEST = 2000
_STRAIGHT = ("a plane off the centre", "the 10 % above a plane", "five bands", "largest of six", "noisy plane")


class Cell(NamedTuple):
    """One table and epsilon, with the methods to compare, the first one with the others."""

    name: str
    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    epsilon: float
    methods: tuple[str, ...]


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
            schema=_schema(cell.rows),
            classes=list(range(int(cell.labels.max()) + 1)),
            random_state=seed,
        ).fit(cell.rows[:cut], cell.labels[:cut])
        found.append(asked.score(cell.rows[cut:], cell.labels[cut:]))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=("straight", "pure"))
    parser.add_argument("--seeds", type=int, default=5)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    below, cells, worst = 0, 0, 0.0
    for cell in {"straight": straight, "pure": pure}[asked.which]():
        first = scores(cell, cell.methods[0], asked.seeds)
        words = f"{cell.name}, {cell.rows.shape[1]} columns, {len(cell.rows) - _TEST} records, epsilon {cell.epsilon}"
        words += f": {cell.methods[0]} {first.mean():.3f}"
        for other in cell.methods[1:]:
            found = scores(cell, other, asked.seeds)
            less, error = (first - found).mean(), (first - found).std(ddof=1) / asked.seeds**0.5
            words += f", {other} {found.mean():.3f} ({less:+.3f} ± {error:.3f})"
            below, cells, worst = below + (less < -2 * error), cells + 1, min(worst, float(less))
        print(words, flush=True)
    print(f"{below} of {cells} below by more than two standard errors, the worst by {-worst:.3f}")


if __name__ == "__main__":
    main()
