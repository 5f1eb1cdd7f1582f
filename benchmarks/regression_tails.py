"""Where a line and normal residuals are a poor description: the default method of regression beside the former one.

Worlds with a few targets far to one side, with curves, with two kinds of rows, and two that are lines with normal residuals;
and the table adult, whose rows are drawn with replacement. A distance is that of predictions from those of the best line for
the whole population, in variances of the latter; `held out` is the mean squared error of predictions for new rows. Covers are
of 95 % intervals for the best line, and for the line that is best for rows weighted as the release weighs them. Everything is
seeded: NOT PRIVATE. It is the part `tails` of `python -m benchmarks.regression_defaults`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking import state_of
from sabun.datasets import load_adult
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PublicModel, Study, plan_of
from sabun.regression.combining import facts_of
from sabun.regression.falling import public_posterior
from sabun.regression.staged import Reading, add_staged_noise
from sabun.regression.statistic import Labelled, Moments
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import released_radius, sums_of

__all__ = ["WORLDS", "tails_part"]

Floats = NDArray[np.float64]
Dice = np.random.Generator
_SEED = 41_507
_POPULATION = 1_000_000
"""So many rows know the best line far better than the tables that are drawn."""
_LARGE = 10_000


def _two_points(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    X = dice.uniform(-1, 1, (rows, 3))
    return X, -0.6 + 0.1 * X.sum(axis=1) + 1.2 * (dice.random(rows) < 0.03)


def _lognormal(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    X = 0.4 * dice.normal(size=(rows, 4))
    return X, -0.8 + 0.15 * X.sum(axis=1) + 0.1 * dice.lognormal(-0.5, 1.2, rows)


def _mostly_nothing(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    X = dice.uniform(-1, 1, (rows, 3))
    some = dice.random(rows) < np.clip(0.06 + 0.05 * X.sum(axis=1), 0, 1)
    return X, -1 + some * dice.uniform(0.3, 1.8, rows)


def _bent(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    X = 0.4 * dice.normal(size=(rows, 2))
    return X, -0.3 + 0.3 * np.abs(X[:, 0]) + 0.2 * X.sum(axis=1) + 0.1 * dice.normal(size=rows)


def _squares(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    X = 0.3 * dice.standard_t(3, (rows, 2))
    return X, -0.5 + 0.8 * (np.clip(X, -1, 1) ** 2).sum(axis=1) + 0.2 * X.sum(axis=1) + 0.05 * dice.normal(size=rows)


def _growing(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    X = -1 + 0.3 * dice.exponential(1, (rows, 1))
    return X, -0.9 + 1.5 * ((np.clip(X[:, 0], -1, 1) + 1) / 2) ** 3 + 0.03 * dice.normal(size=rows)


def _two_kinds(dice: Dice, rows: int) -> tuple[Floats, Floats]:
    far = dice.random(rows) < 0.1
    X = np.where(far[:, None], dice.choice([-1.0, 1.0], (rows, 3)), 0.1 * dice.normal(size=(rows, 3)))
    return X, np.where(far, 0.3, -0.5) * X[:, 0] + 0.05 * dice.normal(size=rows)


def _line(deviation: float) -> Callable[[Dice, int], tuple[Floats, Floats]]:
    def world(dice: Dice, rows: int) -> tuple[Floats, Floats]:
        X = 0.4 * dice.normal(size=(rows, 4))
        return X, -0.2 + X @ np.array([0.3, -0.2, 0.2, 0.1]) + deviation * dice.normal(size=rows)

    return world


WORLDS: dict[str, Callable[[Dice, int], tuple[Floats, Floats]]] = {
    "3 % of targets far above": _two_points,
    "lognormal residuals": _lognormal,
    "targets mostly 0": _mostly_nothing,
    "bent line": _bent,
    "squares, heavy tails": _squares,
    "growing curve": _growing,
    "two kinds of rows": _two_kinds,
    "line, residuals 0.2": _line(0.2),
    "line, residuals 0.05": _line(0.05),
}
"""Features and targets, cut to -1 and 1."""

_ADULT = {
    "adult: capital gain": ("capital-gain", 100_000),
    "adult: capital loss": ("capital-loss", 5_000),
    "adult: hours": ("hours-per-week", 100),
}


def tails_part(quick: bool) -> list[dict[str, Any]]:
    """Every world and table, measured."""
    sizes = (1000, 4000) if quick else (1000, 4000, 20_000)
    found = []
    for number, (name, world) in enumerate(WORLDS.items()):
        X, y = _within(*world(np.random.default_rng([_SEED, number]), _POPULATION))
        for rows in sizes:
            for epsilon in (1.0, 3.0):
                dice = np.random.default_rng([_SEED, number, rows, int(epsilon)])
                runs = 20 if quick else 100 if rows < _LARGE else 50
                drawn = (_within(*world(dice, rows)) for _ in range(runs))
                found.append({"world": name, "rows": rows, "epsilon": epsilon} | _measured(X, y, drawn, epsilon))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    table = load_adult().data
    for name, (target, top) in _ADULT.items():
        columns = [one for one in ("age", "education-num", "hours-per-week") if one != target]
        tops = np.array([{"education-num": 16}.get(one, 100) for one in columns])
        X, y = _within(2 * table[columns].to_numpy(float) / tops - 1, 2 * table[target].to_numpy(float) / top - 1)
        for epsilon in (1.0, 3.0):
            dice = np.random.default_rng([_SEED, len(name), int(epsilon)])
            places = (dice.integers(0, len(X), len(X)) for _ in range(5 if quick else 25))
            drawn = ((X[place], y[place]) for place in places)
            found.append({"world": name, "rows": len(X), "epsilon": epsilon} | _measured(X, y, drawn, epsilon))
            print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def _within(X: Floats, y: Floats) -> tuple[Floats, Floats]:
    return np.clip(X, -1, 1), np.clip(y, -1, 1)


def _measured(X: Floats, y: Floats, drawn: Any, epsilon: float) -> dict[str, Any]:
    """Both methods on every table, beside the best line of the population."""
    width, rows = X.shape[1] + 1, np.column_stack([X, np.ones(len(X))])
    bounds = {"features": Schema.of_bounds([(-1, 1)] * (width - 1)), "target": Column.number("y", lower=-1, upper=1)}
    best = _best(rows, y, math.inf)
    gram, explained = rows.T @ rows / len(rows), float(np.var(rows @ best))
    least = float(np.mean((y - rows @ best) ** 2))
    longest = math.sqrt(width)
    studies = {
        "ssp-gauss": Study(**bounds, epsilon=epsilon, method="ssp-gauss"),
        "staged": Study(**bounds, epsilon=epsilon, method="staged"),
        "unshortened": Study(**bounds, epsilon=epsilon, method="staged", clip_radius=longest),
    }
    lines: dict[float, Floats] = {}
    far: dict[str, list[float]] = {name: [] for name in studies}
    plain, weighted, shorter = [], [], []
    for run, (features, targets) in enumerate(drawn):
        for name, study in studies.items():
            model, radius = _model(study, Labelled(features, targets), run)
            off = np.append(model.coef_, model.intercept_) - best
            far[name].append(float(off @ gram @ off))
            if name != "staged":
                continue
            if radius not in lines:
                lines[radius] = _best(rows, y, radius)
            low, high = _ends(model, "any")
            plain.append((low <= best) & (best <= high))
            weighted.append((low <= lines[radius]) & (lines[radius] <= high))
            shorter.append(np.median((high - low) / np.subtract(*_ends(model, "light")[::-1])))
    ratio = {name: round(float(np.exp(np.mean(np.log(far[name]) - np.log(far["ssp-gauss"])))), 4) for name in studies}
    held_out = {name: round(float((least + np.mean(far[name])) / (least + np.mean(far["ssp-gauss"]))), 4) for name in studies}
    plan = plan_of(studies["staged"], n_records=len(features))
    return {
        "runs": len(plain),
        "refused": plan.vacuous,
        "distance": {name: float(f"{np.median(far[name]) / explained:.4g}") for name in studies},
        "ratio": ratio,
        "held out": held_out,
        "cover": np.mean(plain, axis=0).round(4).tolist(),
        "cover weighted": np.mean(weighted, axis=0).round(4).tolist(),
        "longer": round(float(np.median(shorter)), 3),
        "forecasts": [float(f"{one.middle:.4g}") for one in plan.forecasts],
    }


def _best(rows: Floats, y: Floats, radius: float) -> Floats:
    """The best line for rows that weigh as much as a release with this radius makes them."""
    weights = np.minimum(1, (radius / np.linalg.norm(rows, axis=1)) ** 2)[:, None] * rows
    return np.asarray(np.linalg.solve(weights.T @ rows, weights.T @ y))


def _ends(model: PublicModel, tails: str) -> tuple[Floats, Floats]:
    ends = np.vstack([model.conf_int(tails=tails), model.intercept_interval(tails=tails)])
    return ends[:, 0], ends[:, 1]


def _model(study: Study, table: Labelled, seed: int) -> tuple[PublicModel, float]:
    """The public model of one release, and the radius of its rows."""
    coin, facts = seeded_coin(seed), {"study": study, "method": "pool", "organisations": ("one",)}
    if study.method == "ssp-gauss":
        sums = [sums_of(study, add_noise(study, state_of(Moments(design=study.design), table), coin))]
        return PublicModel(**facts, **facts_of(public_posterior(study, sums), study, sums)), math.inf
    value = add_staged_noise(study, Reading.of(study, table), coin)
    sums = [sums_of(study, value)]
    return PublicModel(**facts, **facts_of(public_posterior(study, sums), study, sums)), released_radius(study, value)
