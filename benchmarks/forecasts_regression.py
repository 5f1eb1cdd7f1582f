"""Forecasts of public models: made-up worlds, and real tables of which somebody knows roughly what they are like.

What is told of a real table (spread, centre, correlation, R squared, spread of the target) has one digit; each column has round
public bounds. Models are of half of a table, an error is the squared distance from the best line through all of it, in units of
what the mean has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn import datasets as bundled

from benchmarks.forecasts import Case, Floats
from sabun import datasets
from sabun.regression import PrivateRidge, Shape

_RUNS = 11
Table = tuple[Floats, Floats, Sequence[tuple[float, float]], tuple[float, float]]
"""Features, target, and their bounds."""


def cases(quick: bool) -> Iterator[Case]:
    """Each table at several epsilons."""
    for is_real, tables in ((False, _made_up()), (True, _real())):
        for name, table in list(tables.items())[: 2 if quick else None]:
            for epsilon in (1.0,) if quick else (0.3, 1.0, 3.0):
                yield _case(name, table, epsilon, real=is_real)


def _made_up() -> dict[str, Table]:
    rng = np.random.default_rng(20_312)
    found: dict[str, Table] = {}
    for rows, features, spread, centre, noise in (
        (500, 3, 0.5, 0.0, 0.1),
        (2000, 5, 0.3, 0.2, 0.3),
        (5000, 8, 0.2, 0.0, 0.1),
        (1000, 2, 0.15, 0.5, 0.2),
    ):
        X = np.clip(centre + spread * rng.normal(size=(rows, features)), -1, 1)
        y = np.clip((X - centre) @ rng.normal(size=features) * 0.1 / spread + noise * rng.normal(size=rows), -1, 1)
        found[f"made up p={features}"] = X, y, [(-1.0, 1.0)] * features, (-1.0, 1.0)
    return found


def _real() -> dict[str, Table]:
    """Seven tables; that of California is made up to be like the census one, which does not come with scikit-learn."""
    cancer, wine, iris = (load().data for load in (bundled.load_breast_cancer, bundled.load_wine, bundled.load_iris))
    sugar, progress = bundled.load_diabetes(return_X_y=True)
    digits = bundled.load_digits().data
    adult = datasets.load_adult().data.select_dtypes("number")
    hours = adult["hours_per_week" if "hours_per_week" in adult else "hours-per-week"].to_numpy(dtype=float)
    schooling = [name for name in adult if name.startswith(("age", "education"))]
    rng = np.random.default_rng(20_313)
    income, rooms = np.clip(rng.gamma(4, 1, 8000), 0, 15), np.clip(rng.gamma(9, 0.6, 8000), 0, 20)
    age = rng.uniform(1, 52, 8000)
    price = np.clip(0.2 + 0.42 * income - 0.05 * rooms + 0.008 * age + 0.7 * rng.normal(size=8000), 0, 5)
    return {
        "diabetes": (sugar, progress, [(-0.2, 0.2)] * 10, (0, 400)),
        "wdbc": (
            cancer[:, [0, 1, 4, 5, 7]],
            cancer[:, 3],
            [(5, 30), (5, 40), (0, 0.2), (0, 0.4), (0, 0.25)],
            (0, 2600),
        ),
        "wine": (wine[:, [0, 1, 6, 12]], wine[:, 9], [(10, 16), (0, 6), (0, 6), (200, 1800)], (0, 14)),
        "iris": (iris[:, :3], iris[:, 3], [(4, 8), (2, 5), (0, 8)], (0, 3)),
        "digits": (digits[:, [10, 19, 28, 35]], digits[:, 36], [(0, 16)] * 4, (0, 16)),
        "adult": (adult[schooling].to_numpy(dtype=float), hours, [_round(adult[name]) for name in schooling], (0, 100)),
        "like California": (np.column_stack([income, rooms, age]), price, [(0, 15), (0, 20), (0, 60)], (0, 5)),
    }


def _round(column: Any) -> tuple[float, float]:
    return 0.0, float(-(-column.max() // 10) * 10)


def _case(name: str, table: Table, epsilon: float, *, real: bool) -> Case:
    X, y, bounds, ends = table
    lows, highs = np.array(bounds, dtype=float).T
    X, y = np.clip(X, lows, highs), np.clip(y, *ends)
    ones = np.column_stack([X, np.ones(len(X))])
    line = ones @ np.linalg.lstsq(ones, y, rcond=None)[0]
    scaled = (X - (lows + highs) / 2) / ((highs - lows) / 2)
    shape = _shape(scaled, float(np.var(line) / np.var(y)), float(np.std(y)) / ((ends[1] - ends[0]) / 2))

    def ask(seed: int) -> PrivateRidge:
        return PrivateRidge(epsilon=epsilon, x_bounds=list(bounds), y_bounds=ends, random_state=seed)

    half = np.random.default_rng(0).permutation(len(X))[: len(X) // 2]
    errors = [float(np.mean((ask(seed).fit(X[half], y[half]).predict(X) - line) ** 2) / np.var(line)) for seed in range(_RUNS)]
    plan = ask(0).plan(n_records=len(half), shape=shape)
    return Case.of("regression", f"{name} n={len(half)} epsilon={epsilon:g}", plan, errors, real=real)


def _shape(scaled: Floats, r_squared: float, deviation: float) -> Shape:
    features = scaled.shape[1]
    between = np.abs(np.corrcoef(scaled.T)) if features > 1 else np.eye(1)
    correlation = (between.sum() - features) / max(features * (features - 1), 1)
    return Shape(
        spread=_digit(float(np.sqrt(np.mean(scaled.var(axis=0))))),
        centre=round(float(np.sqrt(np.mean(scaled.mean(axis=0) ** 2))), 1),
        correlation=min(round(float(correlation), 1), 0.9),
        r_squared=min(max(_digit(r_squared), 0.01), 0.95),
        deviation=_digit(deviation),
    )


def _digit(value: float) -> float:
    return float(f"{value:.1g}")
