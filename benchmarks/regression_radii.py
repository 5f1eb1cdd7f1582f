"""A radius that is chosen privately beside the best fixed one, which nobody can know beforehand.

The best fixed radius is the one of the ladder whose sums, with all of the budget and calibrated analytically, have the least
error in a cell, found with the truth at hand: one stage, rows weighted, no choice to pay for. Errors are squared distances of
coefficients from the truth over its squared length, of the public model and of the one with home data; geometric means over
worlds.
Everything is seeded: NOT PRIVATE. It is the part `radii` of `python -m benchmarks.regression_defaults`.
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
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import Study, plan_of
from sabun.regression.falling import public_posterior
from sabun.regression.pooling import pooled
from sabun.regression.sharing import undivided_variance
from sabun.regression.simulation import World, errors_of
from sabun.regression.stages import RADII, radius_of, staged_design
from sabun.regression.statistic import Labelled, Moments
from sabun.regression.sufficient import gauss_level
from sabun.regression.sums import Home, Sums, home_sums, near_radius

__all__ = ["KINDS", "METHODS", "radii_part"]

Floats = NDArray[np.float64]
Dice = np.random.Generator
_SEED = 77_023
_RESIDUAL, _LENGTH = 0.2, 0.8
METHODS = ("ssp-gauss", "staged", "rounds")
_FIXED = "fixed "


def _ball(dice: Dice, rows: int, features: int) -> Floats:
    X = dice.normal(size=(rows, features))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * dice.random((rows, 1)) ** (1 / features)


def _corner(dice: Dice, rows: int, features: int) -> Floats:
    return 0.8 * _ball(dice, 1, features) + 0.1 * _ball(dice, rows, features)


def _heavy(dice: Dice, rows: int, features: int) -> Floats:
    return 0.15 * dice.standard_t(3, (rows, features))


def _cube(dice: Dice, rows: int, features: int) -> Floats:
    return dice.uniform(-1, 1, (rows, features))


def _together(dice: Dice, rows: int, features: int) -> Floats:
    return 0.9 / math.sqrt(features) * dice.uniform(-1, 1, (rows, 1)) + 0.1 * _ball(dice, rows, features)


KINDS: dict[str, tuple[Callable[[Dice, int, int], Floats], int, int, int]] = {
    "ball, 2 features": (_ball, 2, 1000, 10),
    "ball, 5 features": (_ball, 5, 1000, 10),
    "ball, 10 features": (_ball, 10, 1000, 10),
    "heavy tails": (_heavy, 5, 1000, 10),
    "cube": (_cube, 5, 1000, 10),
    "nearly equal": (_together, 5, 1000, 10),
    "200 rows": (_ball, 5, 200, 10),
    "one organisation": (_ball, 5, 1000, 1),
    "own corners, 2 features": (_corner, 2, 1000, 10),
    "own corners, 5 features": (_corner, 5, 1000, 10),
    "own corners, 10 features": (_corner, 10, 1000, 10),
}
"""Features in bounds of -1 and 1, how many, rows of each organisation, organisations; home has as many rows."""


def radii_part(quick: bool) -> list[dict[str, Any]]:
    """Every kind at three epsilons: one file and two rounds beside the best fixed radius and the former default."""
    found = []
    for kind in KINDS:
        for epsilon in ("0.3", "1", "3"):
            worlds = [_errors(kind, epsilon, number) for number in range(4 if quick else 60)]
            refused = _refused(kind, epsilon)
            for model in worlds[0]:
                cell = {"kind": kind, "epsilon": epsilon, "model": model, "worlds": len(worlds), "refused": refused}
                found.append(cell | _beside_the_best([one[model] for one in worlds]))
                print(json.dumps(found[-1]), file=sys.stderr, flush=True)
    return found


def _refused(kind: str, epsilon: str) -> bool:
    _, features, rows, organisations = KINDS[kind]
    return plan_of(_study("staged", features, epsilon), n_records=rows, organisations=organisations).vacuous


def _beside_the_best(worlds: list[dict[str, float]]) -> dict[str, Any]:
    """Geometric means, with standard errors of the logarithms of ratios."""
    logs = {name: np.log([one[name] for one in worlds]) for name in worlds[0]}
    best = min((name for name in logs if name.startswith(_FIXED)), key=lambda name: float(logs[name].mean()))
    row: dict[str, Any] = {
        "radius": float(best.removeprefix(_FIXED)),
        "best fixed": float(f"{math.exp(logs[best].mean()):.4g}"),
    }
    for method in METHODS:
        ratio = logs[method] - logs[best]
        row[method] = round(math.exp(ratio.mean()), 4)
        row[f"{method}, error"] = round(float(ratio.std(ddof=1)) / math.sqrt(len(worlds)), 4)
    return row


def _errors(kind: str, epsilon: str, number: int) -> dict[str, dict[str, float]]:
    """Errors in one world, by model and by method or radius."""
    law, features, rows, organisations = KINDS[kind]
    dice = np.random.default_rng([_SEED, number, list(KINDS).index(kind)])
    beta = _ball(dice, 1, features)[0]
    beta *= _LENGTH / np.linalg.norm(beta)
    tables = []
    for _ in range(organisations + 1):
        X = np.clip(law(dice, rows, features), -1, 1)
        tables.append(Labelled(X, X @ beta + _RESIDUAL * dice.normal(size=rows)))
    found: dict[str, dict[str, float]] = {"public": {}, "with home data": {}}
    for method in METHODS:
        terms = _study(method, features, epsilon)
        errors = errors_of(_world(terms, beta, tables), terms, coin=seeded_coin(1000 * number + 1), mirror=False)
        for model, name in (("public", "public"), ("with home data", "pool")):
            found[model][method] = errors[name] / terms.design.scale**2
    terms = _study("staged", features, epsilon)
    home, truth = _exact(terms, tables[0], radius_of(terms.design, 0)), beta * terms.design.scale
    for step in range(RADII):
        radius = radius_of(terms.design, step)
        sums = [_single_stage(terms, table, radius, dice) for table in tables[1:]]
        for model, posterior in (("public", public_posterior(terms, sums)), ("with home data", pooled(terms, sums, home))):
            off = posterior.beta - truth
            found[model][f"{_FIXED}{radius:.3f}"] = float(off @ off / (truth @ truth))
    return found


def _study(method: str, features: int, epsilon: str) -> Study:
    return Study(
        features=Schema.of_bounds([(-1, 1)] * features),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=epsilon,
        method=method,
        fit_intercept=False,
        coef_bound=3,
    )


def _world(study: Study, beta: Floats, tables: list[Labelled]) -> World:
    totals = [state_of(Moments(design=study.design), table) for table in tables]
    none = np.empty(0)
    return World(
        beta=beta * study.design.scale,
        home_rows=none,
        home_targets=none,
        home=totals[0],
        others=tuple(totals[1:]),
        tables=tuple(tables[1:]),
    )


def _exact(study: Study, table: Labelled, radius: float) -> Home:
    return home_sums(study, state_of(Moments(design=staged_design(study.design, radius)), table))


def _single_stage(study: Study, table: Labelled, radius: float, dice: Dice) -> Sums:
    """Sums of rows weighted to a radius, with the noise of all of the budget; how many whole rows they are worth is granted."""
    own = _exact(study, table, radius)
    squares = np.minimum(1.0, radius / np.linalg.norm(np.asarray(table.features), axis=1)) ** 2
    near, width = radius / study.design.scale, study.width
    level = near_radius(gauss_level(study, undivided_variance(study)), near)
    drawn = np.triu(dice.normal(size=(width, width)))
    noise = np.sqrt(level.above) * (drawn + np.triu(drawn, 1).T)
    np.fill_diagonal(noise, math.sqrt(level.gram) * np.diag(drawn))
    return Sums(
        gram=own.gram * near**2 + noise,
        moment=own.moment * near + math.sqrt(level.moment) * dice.normal(size=width),
        square=own.square + math.sqrt(level.square) * float(dice.normal()),
        rows=float(own.rows),
        noise=level,
        near=near,
        weight=float(squares.sum()),
        staged=True,
    )
