"""The default method of regression beside the former one, in cells and on tables that nothing was tuned on.

    python -m benchmarks.regression_defaults [--quick] [--json docs/results/regression/defaults.json] [PART ...]

Parts: `cells` (made-up tables, yes-or-no features among them), `tables` (real ones, held-out rows), `pilots` (the same
tables, with and without a fifth of epsilon on a pilot), `rounds` (one file beside two rounds), `tails` (skewed residuals and
curves: `benchmarks.regression_tails`), `radii` (the best fixed radius: `benchmarks.regression_radii`), `time` (a small table
beside scikit-learn). Errors of cells are those of the public
model's predictions beside the true ones, in variances of those; a cell's figure is the geometric mean over runs of the ratio
of the two methods' errors. What a first draw puts above 1.1 is drawn anew, with five times as many runs, and the second draw
counts. Cells whose plan is refused as noise are told apart. With --json, what the file has about other parts stays.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

from benchmarks.measure import cpu_seconds, run_peer
from benchmarks.regression import TABLE_PEER, held_out_errors, held_out_model, held_out_tables
from benchmarks.regression_radii import radii_part
from benchmarks.regression_tails import tails_part
from sabun.asking import state_of
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Study, narrowed, plan_of
from sabun.regression.design import Design
from sabun.regression.falling import public_posterior
from sabun.regression.pooling import pooled
from sabun.regression.simulation import errors_of, simulated_study, world
from sabun.regression.staged import Reading, add_staged_noise
from sabun.regression.statistic import Labelled, Moments
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import home_sums, sums_of
from sabun.telling.harness import machine, write_record

Floats = NDArray[np.float64]
OLD, NEW = "ssp-gauss", "staged"
_SEED = 90_417
_WORSE = 1.1
_ANEW = 5
_SMALL = 1000
"""Tables up to so many rows are noisy, and quick: more runs."""
_DEVIATION = 0.35

LAWS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Floats]] = {
    "yes or no": lambda rng, size: rng.integers(0, 2, size) * 2.0 - 1,
    "rarely yes": lambda rng, size: (rng.random(size) < 0.15) * 2.0 - 1,
    "even": lambda rng, size: rng.uniform(-1, 1, size),
    "normal": lambda rng, size: 0.4 * rng.normal(size=size),
    "narrow": lambda rng, size: 0.15 * rng.normal(size=size),
    "off centre": lambda rng, size: 0.4 + 0.2 * rng.normal(size=size),
    "heavy tails": lambda rng, size: 0.15 * rng.standard_t(3, size=size),
    "nearly equal": lambda rng, size: 0.4 * rng.normal(size=(size[0], 1)) + 0.1 * rng.normal(size=size),
}
"""Features within bounds of -1 and 1."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Made-up tables of one kind."""

    law: str
    features: int
    rows: int
    organisations: int
    epsilon: float
    explained: float


def cells(quick: bool) -> Iterator[Cell]:
    """The grid: all laws, widths and sizes, with epsilon and the share that a line explains taking turns."""
    sizes = ((300, 1), (1000, 5)) if quick else ((200, 1), (300, 1), (1000, 1), (4000, 1), (1000, 5))
    for at, law in enumerate(LAWS):
        for wide, features in enumerate((5,) if quick else (2, 5, 20)):
            for size, (rows, organisations) in enumerate(sizes):
                turn = at + wide + size
                yield Cell(
                    law=law,
                    features=features,
                    rows=rows,
                    organisations=organisations,
                    epsilon=(1.0, 3.0)[turn % 2],
                    explained=(0.7, 0.25)[turn // 2 % 2],
                )


def measured(cell: Cell, runs: int) -> dict[str, Any]:
    """Ratios of the new default's error to the former one's, of the public model and of the one with home data."""
    found = _ratios(cell, runs, first=0)
    for model, part in found.items():
        if part["ratio"] > _WORSE:
            found[model] = _ratios(cell, _ANEW * runs, first=10_000)[model] | {"drawn anew": True}
    return asdict(cell) | {"refused": _refused(cell.features, cell.rows, cell.organisations, cell.epsilon)} | found


def _ratios(cell: Cell, runs: int, *, first: int) -> dict[str, dict[str, Any]]:
    errors = [_errors(cell, first + run) for run in range(runs)]
    found = {}
    for model in errors[0][NEW]:
        old, new = (np.array([one[method][model] for one in errors]) for method in (OLD, NEW))
        logs = np.log(new / old)
        found[model] = {
            "ratio": round(float(np.exp(logs.mean())), 4),
            "error": round(float(logs.std(ddof=1) / math.sqrt(runs)), 4),
            OLD: round(float(np.median(old)), 5),
            NEW: round(float(np.median(new)), 5),
            "runs": runs,
        }
    return found


@cache
def _refused(features: int, rows: int, organisations: int, epsilon: float) -> bool:
    return plan_of(_study(NEW, features, epsilon), n_records=rows, organisations=organisations).vacuous


@cache
def _study(method: str, features: int, epsilon: float) -> Study:
    bounds = Schema.of_bounds([(-1, 1)] * features)
    return Study(features=bounds, target=Column.number("y", lower=-1, upper=1), epsilon=epsilon, method=method)


def _errors(cell: Cell, run: int) -> dict[str, dict[str, float]]:
    """Errors of both methods on one draw of the tables."""
    rng = np.random.default_rng([_SEED, run, cell.features, cell.rows, list(LAWS).index(cell.law)])
    X = np.clip(LAWS[cell.law](rng, (cell.rows * (cell.organisations + 1), cell.features)), -1, 1)
    line = X @ rng.normal(size=cell.features)
    line *= _DEVIATION * math.sqrt(cell.explained) / line.std()
    line -= line.mean()
    y = np.clip(line + _DEVIATION * math.sqrt(1 - cell.explained) * rng.normal(size=len(X)), -1, 1)
    others = [slice(place * cell.rows, (place + 1) * cell.rows) for place in range(cell.organisations)]
    home = slice(cell.organisations * cell.rows, None)
    found: dict[str, dict[str, float]] = {}
    for method in (OLD, NEW):
        study = _study(method, cell.features, cell.epsilon)
        sums = [sums_of(study, _value(study, Labelled(X[part], y[part]), 100 * run + at)) for at, part in enumerate(others)]
        models = {"public": public_posterior(study, sums).beta}
        if cell.organisations > 1:
            own = home_sums(study, state_of(Moments(design=study.design), Labelled(X[home], y[home])))
            models["with home data"] = pooled(study, sums, own).beta
        found[method] = {name: _off(study.design, beta, X, line) for name, beta in models.items()}
    return found


def _value(study: Study, table: Labelled, seed: int) -> dict[str, Any]:
    coin = seeded_coin(seed)
    if study.method == NEW:
        return add_staged_noise(study, Reading.of(study, table), coin)
    return add_noise(study, state_of(Moments(design=study.design), table), coin)


def _off(design: Design, beta: Floats, X: Floats, line: Floats) -> float:
    matrix, shift = design.original_units
    slopes = matrix @ beta + shift
    return float(np.mean((X @ slopes[:-1] + slopes[-1] - line) ** 2) / np.var(line))


def cells_part(quick: bool) -> list[dict[str, Any]]:
    """The grid, measured."""
    found = []
    for cell in cells(quick):
        found.append(measured(cell, 4 if quick else 12))
        print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def tables_part(quick: bool) -> list[dict[str, Any]]:
    """One organisation's public model on held-out rows: MSE over the target's variance, medians; whether a plan refuses."""
    tables, found = held_out_tables(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.npz"
        np.savez(path, **{f"{name}/{part}": value for name, table in tables.items() for part, value in table.items()})
        peers = run_peer(TABLE_PEER, str(path))
    for name, table in tables.items():
        limit = LinearRegression().fit(table["X"], table["y"]).predict(table["T"])
        best = float(np.mean((limit - table["u"]) ** 2) / np.var(table["u"]))
        for epsilon in (1, 3):
            runs = 5 if quick else 45 if len(table["X"]) > _SMALL else 180
            errors = {method: float(np.median(held_out_errors(table, method, epsilon, runs))) for method in (OLD, NEW)}
            row = {"table": name, "rows": len(table["X"]), "epsilon": epsilon, "runs": runs, **errors}
            refused = held_out_model(table, NEW, epsilon).plan(n_records=len(table["X"])).vacuous
            found.append(row | {"refused": refused, "diffprivlib": peers[f"{name} {epsilon}"], "without privacy": best})
    return found


def pilots_part(quick: bool) -> list[dict[str, Any]]:
    """The same tables: all of epsilon at once, and a fifth of it on a pilot that draws the bounds in; medians."""
    found = []
    for name, table in held_out_tables().items():
        for epsilon in (1, 3):
            runs = 5 if quick else 25 if len(table["X"]) > _SMALL else 100
            straight = float(np.median(held_out_errors(table, NEW, epsilon, runs)))
            piloted = float(np.median([_piloted(table, epsilon) for _ in range(runs)]))
            row = {"table": name, "rows": len(table["X"]), "epsilon": epsilon, "runs": runs}
            found.append(row | {"at once": straight, "with a pilot": piloted})
    return found


def _piloted(table: dict[str, Floats], epsilon: int) -> float:
    bounds = Schema.of_bounds(list(zip(table["lows"].tolist(), table["highs"].tolist(), strict=True)))
    target = Column.number("y", bounds=tuple(table["ends"].tolist()))
    first = Study(features=bounds, target=target, epsilon=Fraction(epsilon, 5), delta="5e-7", method=NEW)
    pilot = PrivateRidge(study=first).fit(table["X"], table["y"]).release_
    study = narrowed(first, [pilot], epsilon=Fraction(4 * epsilon, 5))
    guess = np.clip(PrivateRidge(study=study).fit(table["X"], table["y"]).predict(table["T"]), *table["ends"])
    return float(np.mean((guess - table["u"]) ** 2) / np.var(table["u"]))


def rounds_part(quick: bool) -> list[dict[str, Any]]:
    """Ten organisations of 1000 rows and 5 features: errors of coefficients, geometric means over worlds."""
    found = []
    for setting in ("narrow", "iid"):
        for epsilon in ("0.3", "1", "3"):
            row: dict[str, Any] = {"setting": setting, "epsilon": epsilon, "worlds": 3 if quick else 150}
            for method in (OLD, NEW, "rounds"):
                study = simulated_study(features=5, epsilon=epsilon, method=method)
                errors = [_world_errors(setting, study, seed) for seed in range(row["worlds"])]
                row[method] = {
                    name: float(np.exp(np.mean([math.log(one[name]) for one in errors])))
                    for name in ("public", "pool", "alone", "all raw data")
                }
            found.append(row)
    return found


def _world_errors(setting: str, study: Study, seed: int) -> dict[str, float]:
    drawn = world(features=5, rows=1000, organisations=10, setting=setting, seed=_SEED + seed)
    return errors_of(drawn, study, coin=seeded_coin(seed), mirror=False)


def time_part(quick: bool) -> dict[str, Any]:
    """A small table beside scikit-learn, least CPU time of some runs in turn."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 5))
    y = np.clip(X @ rng.normal(size=5) * 0.1, -1, 1)
    terms: dict[str, Any] = {"epsilon": 1, "x_bounds": (-1, 1), "y_bounds": (-1, 1), "fit_intercept": False}
    ours, theirs = math.inf, math.inf
    for _ in range(3 if quick else 30):
        ours = min(ours, cpu_seconds(lambda: PrivateRidge(**terms).fit(X, y), repeat=5))
        theirs = min(theirs, cpu_seconds(lambda: Ridge(solver="cholesky", fit_intercept=False).fit(X, y), repeat=5))
    return {"ours": ours, "scikit-learn": theirs, "ratio": ours / theirs, "version": sklearn.__version__}


PARTS: dict[str, Callable[[bool], Any]] = {
    "cells": cells_part,
    "tables": tables_part,
    "pilots": pilots_part,
    "rounds": rounds_part,
    "tails": tails_part,
    "radii": radii_part,
    "time": time_part,
}


def main() -> int:
    parser = argparse.ArgumentParser(description="The default method of regression beside the former one.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or more of: {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a first look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to keep what was found")
    options = parser.parse_args()
    for part in options.parts:
        if part not in PARTS:
            parser.error(f"PART must be one of {', '.join(PARTS)}; got {part!r}.")
    for part in options.parts or PARTS:
        with threadpool_limits(1):
            found = PARTS[part](options.quick)
        if not options.json:
            print(json.dumps({part: found}, indent=1))
            continue
        kept = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else {}
        write_record(options.json, kept | {part: {"machine": machine(), "quick": options.quick, "found": found}})
    return 0


if __name__ == "__main__":
    sys.exit(main())
