"""Forecasts of accuracy lost to noise: beside the same model, trained alike with hardly any noise (epsilon 30).

The first grid has the tables of `learning_accuracy`, those that were held out when the forecasts were first made, on which
their constants were found, and those on which `learning_regret` looks for losses of the default; what is held out are other
tables, or other questions about the same. One point of accuracy is granted: a test set has a few hundred rows. A model that
noise made better has lost nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmarks.forecasts import Case
from benchmarks.learning_regret import Cell, common, few
from benchmarks.learning_tables import FRESH, KNOWN, Table, numbers, outwards, table
from sabun.datasets import load_adult
from sabun.learning import PrivateClassifier
from sabun.records import Schema

_MOST = 4000
_NO_NOISE = 30
_STEP = 0.02
_REAL = ("digits", "wine", "cancer", "adult", "iris", "ionosphere")


def cases(quick: bool) -> Iterator[Case]:
    """The tables of the accuracy benchmark."""
    for name in ("wine",) if quick else (*KNOWN, *FRESH):
        for epsilon in (3,) if quick else (1, 3, 8):
            for pure in (False,) if quick else (False, True):
                yield _case(table(name), epsilon, pure=pure, real=name in _REAL)
    if not quick:
        yield from _grid(_others(), (0.5, 5))
        for cell in (*few(), *common()):
            yield _case(_sought(cell), cell.epsilon, pure=False, real=False)


def held_out(quick: bool) -> Iterator[Case]:
    """Other tables and amounts, then tables made to break a forecast."""
    yield from _grid(list(_fresh())[: 1 if quick else None], (0.7, 4))
    if not quick:
        yield from _grid(_hard(), (0.6, 3))


def _grid(tables: Iterable[tuple[Table, bool]], amounts: tuple[float, ...]) -> Iterator[Case]:
    for one, real in tables:
        for epsilon in amounts:
            for pure in (False, True):
                yield _case(one, epsilon, pure=pure, real=real)


def _case(held: Table, epsilon: float, *, pure: bool, real: bool) -> Case:
    rows = min(len(held.codes) * 4 // 5, _MOST)
    own: dict[str, Any] = {"method": "noisy-centroids", "delta": 0} if pure else {"delta": 1e-5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an epsilon of thirty is a weak promise, and is meant
        plan = _classifier(held, epsilon, **own).plan(n_records=rows)
        losses = []
        for seed in range(3):
            private = _classifier(held, epsilon, random_state=seed, **own)
            score = _score(held, private, rows, seed)
            layers = tuple(private.model_.network.sizes[1:-1])
            losses.append(max(0.0, _without(held, rows, seed, layers, pure) - score))
    words = f"{held.name} n={rows} epsilon={epsilon:g}{', delta 0' if pure else ''}"
    return Case.of("learning", words, plan, losses, real=real, step=_STEP)


def _classifier(held: Table, epsilon: float, **own: Any) -> PrivateClassifier:
    return PrivateClassifier(epsilon=epsilon, schema=held.schema, classes=list(held.classes), **own)


def _score(held: Table, asked: PrivateClassifier, rows: int, seed: int) -> float:
    train, test = held.split(100 + seed)
    asked.fit(held.rows(train[:rows]), held.labels[train[:rows]])
    return float(asked.score(held.rows(test), held.labels[test]))


@cache
def _without(held: Table, rows: int, seed: int, layers: tuple[int, ...], pure: bool) -> float:
    """The accuracy of the same model with hardly any noise."""
    own: dict[str, Any] = {"method": "noisy-centroids", "delta": 0} if pure else {"delta": 1e-5, "hidden": layers}
    return _score(held, _classifier(held, _NO_NOISE, random_state=seed, **own), rows, seed)


def _others() -> Iterator[tuple[Table, bool]]:
    from sklearn import datasets

    digits, cancer, sugar = datasets.load_digits(), datasets.load_breast_cancer(), datasets.load_diabetes()
    pixels = numbers(digits.data, [(0.0, 16.0)] * 64)
    yield _named("digits, odd or even", digits.data, digits.target % 2, pixels), True
    ten = cancer.data[:, :10]
    yield _named("cancer, ten columns", ten, cancer.target, numbers(ten, outwards(ten))), True
    high = (sugar.target > 140).astype(np.int64)
    yield _named("diabetes, above 140", sugar.data, high, numbers(sugar.data, [(-0.2, 0.2)] * 10)), True
    yield _long_hours(), True
    made = {
        "circles": datasets.make_circles(3000, noise=0.15, factor=0.5, random_state=5),
        "blobs, 4 classes": datasets.make_blobs(2500, 6, centers=4, cluster_std=3.0, random_state=5),
        "shells, 3 classes": datasets.make_gaussian_quantiles(n_samples=4000, n_features=4, n_classes=3, random_state=5),
        "20 columns, 5 classes": datasets.make_classification(
            5000, 20, n_informative=10, n_classes=5, class_sep=1.5, random_state=5
        ),
    }
    for name, (data, codes) in made.items():
        yield _named(name, data, codes, numbers(data, outwards(data))), False


def _sought(cell: Cell) -> Table:
    """A table that was made for the default to lose on."""
    data = cell.rows if hasattr(cell.rows, "iloc") else np.asarray(cell.rows)
    return _named(f"{cell.name}, {len(data)} rows", data, cell.labels, cell.schema)


def _fresh() -> Iterator[tuple[Table, bool]]:
    from sklearn import datasets

    digits, cancer = datasets.load_digits(), datasets.load_breast_cancer()
    yield _named("digits, five or more", digits.data, digits.target // 5, numbers(digits.data, [(0.0, 16.0)] * 64)), True
    worst = cancer.data[:, 20:]
    yield _named("cancer, worst ten columns", worst, cancer.target, numbers(worst, outwards(worst))), True
    yield _photographs(), True
    yield _married(), True
    rng = np.random.default_rng(17)
    one = rng.normal(size=(3000, 40))
    made = {
        "one column of 40": (one, (one[:, 0] + 0.5 * rng.normal(size=3000) > 0).astype(np.int64)),
        "checkerboard": datasets.make_classification(
            3500, 6, n_informative=2, n_redundant=0, n_clusters_per_class=2, class_sep=1.2, random_state=17
        ),
        "blobs, 6 classes": datasets.make_blobs(1800, 10, centers=6, cluster_std=5.0, random_state=17),
        "12 columns, 3 classes": datasets.make_classification(
            1500, 12, n_informative=5, n_classes=3, class_sep=0.8, random_state=17
        ),
    }
    for name, (data, codes) in made.items():
        yield _named(name, data, codes, numbers(data, outwards(data))), False


def _hard() -> Iterator[tuple[Table, bool]]:
    """Long tails, bounds that values hardly fill, rare bits, boundaries off the centre; 250 and 1000 rows to train on."""
    for rows in (250, 1000):
        rng, n = np.random.default_rng([91, rows]), rows * 5 // 4
        stretched = rng.normal(size=(n, 6)) * np.where(rng.random((n, 6)) < [0, 0, 0, 0.02, 0, 0], 30, 1)
        codes = rng.integers(0, 3, n)
        blobs = rng.normal(size=(n, 8)) + np.pad(2 * np.eye(3), ((0, 0), (0, 5)))[codes]
        blobs[0] *= 8
        bits, normal = (rng.random((n, 15)) < 0.07).astype(float), rng.normal(size=(n, 4))
        logs, tails, counts = np.exp(rng.normal(size=(n, 4))), rng.standard_t(2, size=(n, 5)), rng.poisson(2, size=(n, 5)) * 1.0
        gammas, powers = rng.gamma(0.5, size=(n, 3)), rng.random((n, 3)) ** 4
        made = {
            "lognormal": (logs, logs[:, 0] * logs[:, 1] > 1),
            "student's t": (tails, tails[:, 0] > tails[:, 2]),
            "gamma, 3 classes": (gammas, np.digitize(gammas[:, 0] + gammas[:, 1], [0.3, 1.2])),
            "one stretched column": (stretched, stretched[:, 0] + stretched[:, 3].clip(-3, 3) + 0.5 * rng.normal(size=n) > 0),
            "3 blobs, one row far off": (blobs, codes),
            "rare bits": (bits, bits[:, :4].any(axis=1)),
            "powers": (powers, powers[:, 0] > 0.05),
            "counts": (counts, counts[:, 0] + counts[:, 1] > counts[:, 2] + counts[:, 3]),
            "plane off the centre": (normal, normal @ [1, -1, 0.5, 0] > 1),
        }
        for name, (data, labels) in made.items():
            yield _named(name, data, np.asarray(labels, dtype=np.int64), numbers(data, outwards(data))), False


def _photographs() -> Table:
    """Of which of two photographs a pixel is."""
    from sklearn import datasets

    rng = np.random.default_rng(17)
    some = [datasets.load_sample_image(f"{name}.jpg").reshape(-1, 3).astype(float) for name in ("china", "flower")]
    data = np.concatenate([pixels[rng.permutation(len(pixels))[:2000]] for pixels in some])
    return _named("pixels of two photographs", data, np.repeat([0, 1], 2000), numbers(data, [(0.0, 255.0)] * 3))


def _married() -> Table:
    """Who is married, by the numbers of Adult and the income; rows of men alone."""
    found = load_adult()
    data = found.data[found.data["sex"] == "Male"].reset_index(drop=True)
    kept = tuple(c for c in found.schema.columns if c.name in ("age", "education-num", "hours-per-week", "race", "workclass"))
    codes = data["marital-status"].str.startswith("Married").to_numpy(dtype=np.int64)
    return _named("adult, married men", data[[column.name for column in kept]], codes, Schema(columns=kept))


def _long_hours() -> Table:
    """Who works above forty hours a week, by the other columns of Adult; rows of women alone."""
    found = load_adult()
    data = found.data[found.data["sex"] == "Female"].reset_index(drop=True)
    kept = tuple(column for column in found.schema.columns if column.name not in ("sex", "hours-per-week"))
    codes = (data["hours-per-week"] > 40).to_numpy(dtype=np.int64)
    return _named("adult, long hours of women", data[[column.name for column in kept]], codes, Schema(columns=kept))


def _named(name: str, data: Any, codes: Any, schema: Schema) -> Table:
    classes = tuple(range(int(codes.max()) + 1))
    return Table(name=name, data=data, codes=np.asarray(codes, dtype=np.int64), schema=schema, classes=classes)
