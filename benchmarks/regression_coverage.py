"""Measures how often the intervals of the pooled models hold the truth, in worlds that nothing was tuned on.

A world is drawn from its number alone: features, their law, spread and correlation, organisations, rows, residuals (the same
everywhere, others at home, or different in each organisation), epsilon, relation, mechanism. Each run draws coefficients,
data and noise (a seeded coin) anew, and asks the pooled model for `conf_int`, `intercept_interval` and `predict_interval`.
NOT PRIVATE.

    python -m benchmarks.regression_coverage [--kind KIND] [--runs 300] [--worlds 40] [--first 2000] [--json FILE]

Kinds: `sums` (one file of noisy sums), `staged` and `rounds` (yes-or-no and off-centre features and heavy tails among them, the
radius chosen by the release), `weak` (staged, public, slopes that noise hides: models that fall back to the mean). A world
fails when the 99.9 % upper confidence limit of one of its covers lies below 0.94. With --json, worlds that the file has about
other kinds stay.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr

from sabun.asking import state_of
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import HomeModel, PublicModel, Study
from sabun.regression.combining import facts_of
from sabun.regression.falling import public_posterior
from sabun.regression.leaving_out import worth_pooling
from sabun.regression.pooling import pooled
from sabun.regression.second_round import residuals_around
from sabun.regression.sharing import shares_of
from sabun.regression.staged import Reading, add_residual_noise, add_staged_noise
from sabun.regression.statistic import Labelled, Moments
from sabun.regression.study import STAGED
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import home_sums, sums_of
from sabun.telling.harness import machine, write_record

FAILS_BELOW = 0.94
KINDS = ("sums", "staged", "rounds", "weak")
LAWS = ("normal", "yes or no", "off centre", "heavy tails", "even")
_NEW_RECORDS = 20
_ROOM = 0.45
"""The linear part stays within so much of the middle of the target, so that hardly any target is cut."""


@dataclass(frozen=True, kw_only=True)
class World:
    """What a world is made of; standard deviations are in half ranges of the target, spreads in half ranges of a feature.

    Args:
        features: How many features.
        intercept: Whether the model has a constant.
        organisations: How many organisations release.
        rows: Rows of each.
        home_rows: Rows of the home organisation; None for a public model.
        residuals: Standard deviation of the residuals in each organisation.
        home_residual: The same at home.
        signal: Standard deviation of the linear part, about.
        spread: Standard deviation of a feature.
        correlation: Between two features.
        between: How far the centres of organisations lie apart, in spreads.
        epsilon: Privacy of each release.
        mechanism: As in `Study`.
        relation: The same.
        law: Of the features, one of `LAWS`.
    """

    features: int
    intercept: bool
    organisations: int
    rows: int
    home_rows: int | None
    residuals: tuple[float, ...]
    home_residual: float
    signal: float
    spread: float
    correlation: float
    between: float
    epsilon: str
    mechanism: str = "ssp-gauss"
    relation: str = "replace-one"
    law: str = "normal"

    @property
    def width(self) -> int:
        """Number of coefficients."""
        return self.features + self.intercept


@dataclass(frozen=True, kw_only=True)
class Cover:
    """What was measured in one world.

    Args:
        world: Its number; -1 for one that has none.
        facts: What it is made of.
        runs: How many times it was drawn.
        coefficients: Share of runs in which each coefficient (the constant last) lay in its 95 % interval.
        prediction: Share of new records in their 95 % prediction intervals.
        prediction_error: Its standard error, by runs: the records of one run share a model.
        width: Median over coefficients of half-length over 1.96 root mean squared errors.
        fallen: Share of runs whose model fell back to the mean.
    """

    world: int
    facts: dict[str, Any]
    runs: int
    coefficients: list[float]
    prediction: float
    prediction_error: float
    width: float
    fallen: float = 0.0

    @property
    def fails(self) -> bool:
        """Whether a cover is certainly too low."""
        tops = [upper_limit(share, self.runs) for share in self.coefficients]
        return min(tops) < FAILS_BELOW or self.prediction + 3.09 * self.prediction_error < FAILS_BELOW

    def __str__(self) -> str:
        least, mean = min(self.coefficients), float(np.mean(self.coefficients))
        said = f"coefficients {mean:.3f}, least {least:.3f}; records {self.prediction:.3f}; length {self.width:.2f}"
        return f"{self.world:>5}  {said}{'  FAILS' if self.fails else ''}  {self.facts}"


def upper_limit(share: float, runs: int, level: float = 0.999) -> float:
    """One-sided Clopper-Pearson limit of a probability."""
    hits = round(share * runs)
    return 1.0 if hits == runs else float(betaincinv(hits + 1, runs - hits, level))


def drawn_world(number: int) -> World:
    """The world with that number."""
    dice = np.random.default_rng([17, number])
    features, intercept, organisations = (
        int(dice.choice([1, 2, 3, 5, 8])),
        bool(dice.random() < 0.7),
        int(dice.choice([1, 2, 5, 12])),
    )
    at_home = bool(dice.random() < 0.6)
    kind = dice.choice(["alike", "home differs", "all differ"])
    common, other = np.exp(dice.uniform(np.log(0.03), np.log(0.22), 2))
    each = (
        np.exp(dice.uniform(np.log(0.03), np.log(0.22), organisations))
        if kind == "all differ"
        else np.full(organisations, common)
    )
    mechanism = "ssp-laplace" if features <= 3 and dice.random() < 0.2 else "ssp-gauss"
    return World(
        features=features,
        intercept=intercept,
        organisations=organisations,
        rows=int(dice.choice([200, 700, 2000, 6000])),
        home_rows=features + intercept + int(dice.integers(3, 12)) if at_home else None,
        residuals=tuple(round(float(sd), 3) for sd in each),
        home_residual=round(float(common if kind == "alike" else other), 3),
        signal=round(float(dice.uniform(0.05, 0.2)), 3),
        spread=round(float(dice.uniform(0.15, 0.45)), 3),
        correlation=float(dice.choice([0, 0.3, 0.6, 0.9])),
        between=float(dice.choice([0, 0, 0.5, 1])),
        epsilon=str(dice.choice(["0.3", "1", "3", "10"])),
        mechanism=mechanism,
        relation="add-remove" if dice.random() < 0.15 else "replace-one",
    )


def drawn_staged_world(number: int, kind: str) -> World:
    """The world of `staged`, `rounds` or `weak` with that number."""
    dice = np.random.default_rng([29, KINDS.index(kind), number])
    weak = kind == "weak"
    features, organisations = int(dice.choice([1, 2, 4, 7])), int(dice.choice([1, 2] if weak else [1, 3, 8]))
    at_home = not weak and bool(dice.random() < 0.5)
    alike, other = np.exp(dice.uniform(np.log(0.04), np.log(0.2), 2))
    differ = bool(dice.random() < 0.5)
    each = np.exp(dice.uniform(np.log(0.04), np.log(0.2), organisations)) if differ else np.full(organisations, alike)
    return World(
        features=features,
        intercept=weak or bool(dice.random() < 0.8),
        organisations=organisations,
        rows=int(dice.choice([100, 200, 400] if weak else [200, 600, 2000])),
        home_rows=features + 1 + int(dice.integers(3, 12)) if at_home else None,
        residuals=tuple(round(float(sd), 3) for sd in each),
        home_residual=round(float(other if differ else alike), 3),
        signal=round(float(dice.uniform(0.0, 0.1) if weak else dice.uniform(0.05, 0.2)), 3),
        spread=round(float(dice.uniform(0.15, 0.45)), 3),
        correlation=float(dice.choice([0, 0.5, 0.9])),
        between=float(dice.choice([0, 1])),
        epsilon=str(dice.choice(["1", "3"] if weak else ["0.5", "1", "3", "8"])),
        mechanism="rounds" if kind == "rounds" else "staged",
        relation="add-remove" if dice.random() < 0.15 else "replace-one",
        law=str(dice.choice(LAWS)),
    )


def measured(world: World, *, runs: int, seed: int = 0, number: int = -1) -> Cover:
    """Covers of one world."""
    found = list(_runs(world, runs, seed))
    hits = np.array([run[0] for run in found])
    records, fallen = (np.array([run[place] for run in found]) for place in (1, 4))
    off, half = (np.array([run[place] for run in found]) for place in (2, 3))
    needed = 1.96 * np.sqrt(np.mean(off**2, axis=0))
    return Cover(
        world=number,
        facts=asdict(world),
        runs=runs,
        coefficients=[round(float(share), 4) for share in hits.mean(axis=0)],
        prediction=round(float(records.mean()), 4),
        prediction_error=round(float(records.std(ddof=1) / math.sqrt(runs)), 5),
        width=round(float(np.median(np.median(half, axis=0) / needed)), 3),
        fallen=round(float(fallen.mean()), 3),
    )


def _runs(world: World, runs: int, seed: int) -> Iterator[tuple[Any, float, Any, Any, bool]]:
    """For each run: hits, share of new records held, errors, half-lengths of the intervals, whether it fell back."""
    for run in range(runs):
        dice = np.random.default_rng([seed, run])
        slopes = dice.normal(size=world.features)
        spread = world.spread * np.sqrt(_correlated(world, np.eye(world.features)) @ slopes @ slopes)
        slopes *= world.signal / spread
        if world.law != "normal":  # rows of other laws reach far, or lie far from 0
            slopes *= min(1.0, _ROOM / float(np.abs(slopes).sum()))
        truth = np.append(slopes, dice.uniform(-0.2, 0.2) * world.intercept)
        model, kept = _model(world, _study(world, truth), truth, dice)
        low, high = np.vstack([model.conf_int(), model.intercept_interval()]).T[:, : world.width]
        coefficients = np.append(model.coef_, model.intercept_)[: world.width]
        place = kept[int(dice.integers(len(kept)))]  # a model's new records are those of the organisations that count
        X, y = _table(world, truth, dice, _NEW_RECORDS, None if world.home_rows else place)
        ends = model.predict_interval(X)
        held = float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))
        aim = truth[: world.width]
        yield (low <= aim) & (aim <= high), held, coefficients - aim, (high - low) / 2, model.moved is not None


def _study(world: World, truth: np.ndarray[Any, Any]) -> Study:
    length = float(np.linalg.norm(truth)) * math.sqrt(world.width)
    return Study(
        features=Schema.of_bounds([(-1, 1)] * world.features),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=world.epsilon,
        method=world.mechanism,
        relation=world.relation,
        fit_intercept=world.intercept,
        coef_bound=max(2, math.ceil(1.2 * length)),
    )


def _model(
    world: World, study: Study, truth: np.ndarray[Any, Any], dice: np.random.Generator
) -> tuple[HomeModel | PublicModel, list[int]]:
    """What `combine` makes of such releases, without the files around them, which take most of its time; and of which."""
    tables = [Labelled(*_table(world, truth, dice, world.rows, place)) for place in range(world.organisations)]
    sums, moments = [sums_of(study, value) for value in _released(study, tables, dice)], Moments(design=study.design)
    facts: dict[str, Any] = {"study": study, "method": "pool", "organisations": tuple(map(str, range(len(sums))))}
    home = None
    if world.home_rows is not None:
        home = home_sums(study, state_of(moments, Labelled(*_table(world, truth, dice, world.home_rows, None))))
    kept = worth_pooling(study, sums, home)
    places = [place for place, one in enumerate(sums) if any(one is other for other in kept)]
    if home is None:
        return PublicModel(**facts, **facts_of(public_posterior(study, kept), study, kept)), places
    return HomeModel(**facts, **facts_of(pooled(study, kept, home), study, kept, home)), places


def _released(study: Study, tables: Sequence[Labelled], dice: np.random.Generator) -> list[dict[str, Any]]:
    """What organisations release: sums, both stages, or both rounds as `combine` joins them."""
    coins = [seeded_coin(int(dice.integers(2**31))) for _ in tables]
    if study.method not in STAGED:
        totals = [state_of(Moments(design=study.design), table) for table in tables]
        return [add_noise(study, one, coin) for one, coin in zip(totals, coins, strict=True)]
    first = [add_staged_noise(study, Reading.of(study, table), coin) for table, coin in zip(tables, coins, strict=True)]
    if study.method == "staged":
        return first
    model, both = public_posterior(study, [sums_of(study, value) for value in first]), []
    for value, table, coin in zip(first, tables, coins, strict=True):
        around = residuals_around(study, value, model)
        again = add_residual_noise(study, state_of(around, table), shares_of(study, value["rows"]), coin)
        both.append(value | again | {"start": list(around.start), "level": around.level})
    return both


def _table(
    world: World, truth: np.ndarray[Any, Any], dice: np.random.Generator, rows: int, place: int | None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Records of an organisation, or of the home organisation; the target is cut at its bounds, which is rare."""
    centre = np.random.default_rng([place + 1, 5]).normal(size=world.features) if place is not None else 0.0
    X = world.spread * (_correlated(world, dice.normal(size=(rows, world.features))) + world.between * centre * 0.5)
    X = _by_law(world.law, X, world.spread, dice).clip(-1, 1)
    sd = world.home_residual if place is None else world.residuals[place]
    return X, (X @ truth[:-1] + truth[-1] + dice.normal(0, sd, rows)).clip(-1, 1)


def _by_law(law: str, X: np.ndarray[Any, Any], spread: float, dice: np.random.Generator) -> np.ndarray[Any, Any]:
    """Normal features turned into those of another law."""
    if law == "yes or no":
        return np.where(spread / 2 < X, 1.0, -1.0)
    if law == "off centre":
        return 0.5 + X / 2
    if law == "heavy tails":
        return X / np.sqrt(dice.chisquare(3, size=(len(X), 1)))
    return 2 * ndtr(X / spread) - 1 if law == "even" else X


def _correlated(world: World, normals: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Rows with that correlation between any two features."""
    matrix = np.full((world.features, world.features), world.correlation)
    np.fill_diagonal(matrix, 1.0)
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(normals @ (vectors * np.sqrt(values)) @ vectors.T)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="sums")
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--first", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    covers: list[Cover] = []
    for number in range(asked.first, asked.first + asked.worlds):
        world = drawn_world(number) if asked.kind == "sums" else drawn_staged_world(number, asked.kind)
        covers.append(measured(world, runs=asked.runs, seed=number, number=number))
        print(covers[-1], file=sys.stderr, flush=True)
        if asked.json:
            kept = json.loads(asked.json.read_text(encoding="utf-8")) if asked.json.exists() else {}
            found = [asdict(one) | {"fails": one.fails} for one in covers]
            write_record(asked.json, kept | {asked.kind: {"machine": machine(), "found": found}})
    for name, chosen in (
        ("home", [one for one in covers if one.facts["home_rows"] is not None]),
        ("public", [one for one in covers if one.facts["home_rows"] is None]),
    ):
        if chosen:
            print(f"{name}: {summary(chosen)}")


def summary(covers: Sequence[Cover]) -> str:
    """One line about many worlds."""
    each = [float(np.mean(one.coefficients)) for one in covers]
    single = min(min(one.coefficients) for one in covers)
    records, length = [one.prediction for one in covers], float(np.median([one.width for one in covers]))
    return (
        f"{len(covers)} worlds, coefficients {np.mean(each):.3f} (lowest world {min(each):.3f}, lowest single {single:.3f}), "
        f"records {np.mean(records):.3f} (lowest world {min(records):.3f}), length {length:.2f}, "
        f"{sum(one.fails for one in covers)} fail"
    )


if __name__ == "__main__":
    main()
