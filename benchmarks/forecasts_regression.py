"""Forecasts of the public model's error, beside the best linear model: worlds of told shapes, and real tables.

Of a real table the last column is foretold from the first few, in bounds half as wide again as the columns; the plan is told
the table's shape (as somebody may know it who has seen such tables), or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.forecasts import Case, Floats, other_tables, real_tables
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Shape, Study, combine, plan_of

_RUNS = 9
_WIDER = 1.5


@dataclass(frozen=True, kw_only=True)
class _World:
    """Rows of so many organisations with a target that is linear but for residuals; x and y from -1 to 1."""

    shape: Shape
    law: str
    features: int
    rows: int
    organisations: int
    epsilon: float
    relation: str = "replace-one"

    @property
    def name(self) -> str:
        sizes = f"{self.features} features, {self.organisations} x {self.rows} rows"
        return f"{self.law}, {sizes}, R2 {self.shape.r_squared:.2f} epsilon={self.epsilon:g} {self.relation}"


def cases(quick: bool) -> Iterator[Case]:
    """Worlds drawn at random, with normal features, and the real tables."""
    rng = np.random.default_rng(21)
    for _ in range(2 if quick else 24):
        yield _of_world(_drawn(rng, "normal", (0.3, 1.0, 3.0), most=8), rng)
    for name, table in list(real_tables())[: 0 if quick else None]:
        for epsilon in (1.0, 3.0):
            yield from _of_table(name, table, 5, epsilon, rng)


def held_out(quick: bool) -> Iterator[Case]:
    """Worlds with features of other laws, other amounts, either relation, and other tables."""
    rng = np.random.default_rng(22)
    for place in range(4 if quick else 28):
        law = ("even", "yes or no", "skewed", "heavy tails")[place % 4]
        relation = ("replace-one", "add-remove")[place // 4 % 2]
        yield _of_world(_drawn(rng, law, (0.5, 2.0, 6.0), most=12, relation=relation), rng)
    for name, table in list(other_tables(most=6000))[: 1 if quick else None]:
        for epsilon in (2.0,) if quick else (0.5, 2.0, 6.0):
            yield from _of_table(name, table, 7, epsilon, rng)


def _drawn(rng: np.random.Generator, law: str, epsilons: tuple[float, ...], *, most: int, **own: Any) -> _World:
    shape = Shape(
        spread=float(rng.uniform(0.1, 0.5)),
        centre=float(rng.uniform(0, 0.3)),
        correlation=float(rng.uniform(0, 0.7)),
        r_squared=float(rng.uniform(0.1, 0.9)),
        deviation=float(rng.uniform(0.1, 0.4)),
        between=float(rng.choice([0.0, 0.4])),
    )
    return _World(
        shape=shape,
        law=law,
        features=int(rng.integers(1, most + 1)),
        rows=int(rng.integers(200, 6000)),
        organisations=int(rng.choice([1, 3, 8])),
        epsilon=float(rng.choice(epsilons)),
        **own,
    )


def _of_world(world: _World, rng: np.random.Generator) -> Case:
    schema, target = Schema.of_bounds([(-1, 1)] * world.features), Column.number("y", lower=-1, upper=1)
    study = Study(features=schema, target=target, epsilon=world.epsilon, relation=world.relation)
    errors = []
    for run in range(_RUNS):
        parts, truth = _parts(world, rng)
        made = [PrivateRidge(study=study, random_state=100 * run + at).fit(X, y).release_ for at, (X, y) in enumerate(parts)]
        errors.append(_error(combine(made), np.concatenate([X for X, _ in parts]), truth))
    plan = plan_of(study, n_records=world.rows, organisations=world.organisations, shape=world.shape)
    return Case.of("regression", world.name, plan, errors, real=False)


def _parts(world: _World, rng: np.random.Generator) -> tuple[list[tuple[Floats, Floats]], Floats]:
    """Rows and targets of each organisation, and the true coefficients with the intercept."""
    shape, d = world.shape, world.features
    root = shape.spread * np.linalg.cholesky((1 - shape.correlation) * np.eye(d) + shape.correlation)
    beta = rng.normal(size=d)
    beta *= shape.deviation * math.sqrt(shape.r_squared) / np.linalg.norm(root.T @ beta)
    found = []
    for _ in range(world.organisations):
        middle = shape.centre + math.sqrt(shape.between) * root @ rng.normal(size=d)
        X = np.clip(middle + math.sqrt(1 - shape.between) * _LAWS[world.law](rng, (world.rows, d)) @ root.T, -1, 1)
        y = (X - shape.centre) @ beta + shape.deviation * math.sqrt(1 - shape.r_squared) * rng.normal(size=world.rows)
        found.append((X, np.clip(y, -1, 1)))
    return found, np.append(beta, -shape.centre * beta.sum())


def _error(model: Any, X: Floats, truth: Floats) -> float:
    """What the model misses of the true one's guesses, in variances of those."""
    best = _with_ones(X) @ truth
    return float(np.mean((X @ model.coef_ + model.intercept_ - best) ** 2) / np.var(best))


def _with_ones(X: Floats) -> Floats:
    return np.column_stack([X, np.ones(len(X))])


def _of_table(name: str, table: Floats, most: int, epsilon: float, rng: np.random.Generator) -> Iterator[Case]:
    X, y = (2 * part - 1 for part in (table[:, : min(most, table.shape[1] - 1)], table[:, -1]))
    schema, target = Schema.of_bounds([(-_WIDER, _WIDER)] * X.shape[1]), Column.number("y", lower=-_WIDER, upper=_WIDER)
    study = Study(features=schema, target=target, epsilon=epsilon)
    errors = []
    for run in range(_RUNS):
        some = rng.integers(0, len(X), len(X))  # the table is the population, its best linear model the truth
        model = PrivateRidge(study=study, random_state=run).fit(X[some], y[some])
        errors.append(_error(combine([model.release_]), X, np.linalg.lstsq(_with_ones(X), y, rcond=None)[0]))
    for told, shape in (("told its shape", _shape_of(X / _WIDER, y / _WIDER)), ("told nothing", None)):
        plan = plan_of(study, n_records=len(X), shape=shape)
        yield Case.of("regression", f"{name}, {told} n={len(X)} epsilon={epsilon:g}", plan, errors, real=True)


def _shape_of(X: Floats, y: Floats) -> Shape:
    rows = _with_ones(X)
    explained = np.var(rows @ np.linalg.lstsq(rows, y, rcond=None)[0]) / np.var(y)
    apart = np.abs(np.corrcoef(X.T))[np.triu_indices(X.shape[1], 1)] if X.shape[1] > 1 else np.zeros(1)
    return Shape(
        spread=round(float(X.std(axis=0).mean()), 3),
        centre=round(float(np.abs(X.mean(axis=0)).mean()), 3),
        correlation=round(float(apart.mean()), 3),
        r_squared=round(float(np.clip(explained, 0.01, 0.99)), 3),
        deviation=round(float(y.std()), 3),
    )


_LAWS: dict[str, Any] = {
    "normal": lambda rng, size: rng.normal(size=size),
    "even": lambda rng, size: rng.uniform(-math.sqrt(3), math.sqrt(3), size=size),
    "yes or no": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
    "skewed": lambda rng, size: rng.exponential(size=size) - 1,
    "heavy tails": lambda rng, size: rng.standard_t(5, size=size) / math.sqrt(5 / 3),
}
"""Each with mean 0 and variance 1."""
