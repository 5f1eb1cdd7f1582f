"""Made-up organisations: how well the methods do when the truth is known. Everything here is simulated and NOT PRIVATE.

Notation: y = x beta + normal noise of standard deviation 0.2, |beta| = 0.8, rows in the unit ball. `iid`: every
organisation draws x
uniformly from the ball. `narrow`: organisation m sees only x = 0.8 u_m + 0.1 ball, u_m its own direction. `collinear`: the
features are nearly equal, x = 0.9 t (1, ..., 1) / sqrt(features) + 0.1 ball with t uniform in [-1, 1]. An error is
|estimate - beta|**2 / |beta|**2, the excess risk relative to predicting with all coefficients 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from sabun import checks
from sabun.asking import renamed, state_of
from sabun.privacy.noise import Coin, seeded_coin
from sabun.records import Column, Schema
from sabun.regression.design import UNIT, Floats
from sabun.regression.falling import public_posterior
from sabun.regression.intervals import half_lengths
from sabun.regression.mirror import mirror_weights, theory_tau
from sabun.regression.paper import printed_estimate
from sabun.regression.perturbation import coefficients_of, perturbed_minimiser
from sabun.regression.pooling import Posterior, pooled, pull_of
from sabun.regression.second_round import residuals_around
from sabun.regression.sharing import shares_of
from sabun.regression.staged import Reading, add_residual_noise, add_staged_noise
from sabun.regression.statistic import Labelled, Moments, Totals
from sabun.regression.study import MECHANISMS, STAGED, STATISTICS, Study
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import Sums, home_sums, sums_of, uncut

__all__ = [
    "SETTINGS",
    "Errors",
    "World",
    "errors_of",
    "interval_hits",
    "normals",
    "organisation_table",
    "simulate",
    "simulated_study",
    "world",
]

SETTINGS = ("iid", "narrow", "collinear")
Errors: TypeAlias = dict[str, float]

_RESIDUAL = 0.2
_LENGTH = 0.8


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Data of a home organisation and of others, with the truth."""

    beta: Floats
    home_rows: Floats
    home_targets: Floats
    home: Totals
    others: tuple[Totals, ...]
    tables: tuple[Labelled, ...] = ()


def simulated_study(
    *, features: int, epsilon: Any, delta: Any = None, method: str = "ssp-gauss", relation: str = "replace-one"
) -> Study:
    """The study of the simulations: rows in the unit ball, no intercept, coefficients of length at most 1."""
    return Study(
        features=Schema.of_bounds([(-1, 1)] * features),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=epsilon,
        delta=delta,
        method=method,
        relation=relation,
        fit_intercept=False,
        clip_radius=1,
        coef_bound=1,
    )


def world(*, features: int, rows: int, organisations: int, setting: str, seed: int) -> World:
    """Draws a truth, a home organisation, that many other organisations."""
    checks.one_of(SETTINGS, setting=setting)
    checks.whole(minimum=1, features=features, rows=rows, organisations=organisations)
    coin = seeded_coin(seed)
    design = simulated_study(features=features, epsilon=1).design
    beta = _LENGTH * _directions(coin, 1, features)[0]
    tables = [organisation_table(coin, beta, rows, setting) for _ in range(organisations + 1)]
    home, *others = [state_of(Moments(design=design), Labelled(x, y)) for x, y in tables]
    body = np.empty(tables[0][0].shape)
    design.whole_rows(tables[0][0], body)
    targets = design.whole_targets(tables[0][1]) / UNIT
    return World(
        beta=beta,
        home_rows=body / (UNIT * design.shrink),
        home_targets=targets,
        home=home,
        others=tuple(others),
        tables=tuple(Labelled(x, y) for x, y in tables[1:]),
    )


def errors_of(world: World, study: Study, *, coin: Coin, mirror: bool = True) -> Errors:
    """Errors of the ways to use one round of releases; `mirror=False` leaves out what works on single estimates."""
    released = _released(study, world, coin)
    own = home_sums(study, world.home)
    estimates = {"alone": pooled(study, [], own).beta, "all raw data": pooled(study, [], _everything(study, world)).beta}
    if study.method in STATISTICS:
        sums: list[Sums] = [sums_of(study, value) for value in released]
        estimates |= {"pool": pooled(study, sums, own).beta, "public": public_posterior(study, sums).beta}
        candidates = np.array([_inside(pooled(study, [one]).beta) for one in sums] if mirror else [])
    else:
        shrink = study.design.shrink
        raw = [coefficients_of(v["coefficients"]) if "coefficients" in v else v["estimate"] for v in released]
        candidates = np.array(raw) * shrink
    if len(candidates):
        losses = (world.home_targets[:, None] - world.home_rows @ candidates.T) ** 2
        estimates["mirror"] = mirror_weights(losses, tau=theory_tau(1.0)) @ candidates
        estimates["average"] = candidates.mean(axis=0)
        estimates["best single"] = min(candidates, key=lambda beta: float(np.sum((beta - world.beta) ** 2)))
    return {name: float(np.sum((beta - world.beta) ** 2) / _LENGTH**2) for name, beta in estimates.items()}


def interval_hits(world: World, study: Study, *, coin: Coin, confidence: float = 0.95, home: bool = True) -> tuple[int, int]:
    """How many 95 % intervals of the pooled model, with or without home data, hold the truth, out of how many."""
    sums = [uncut(sums_of(study, value)) for value in _released(study, world, coin)]
    posterior: Posterior = pooled(study, sums, home_sums(study, world.home) if home else None)
    each = np.eye(study.width)
    reach = half_lengths(each, posterior.error, posterior.doubt, pull_of(study, posterior.covariance, each), confidence)
    return int(np.sum(np.abs(posterior.beta - world.beta) <= reach)), len(reach)


@renamed(rows="n_records", mechanism="method")
def simulate(
    *,
    n_records: int,
    features: int,
    organisations: int,
    epsilon: Any,
    delta: Any = None,
    method: str = "staged",
    setting: str = "iid",
    repeats: int = 10,
    random_state: int = 0,
) -> Errors:
    """Median errors to expect, from made-up data with these public numbers.

    Args:
        n_records: Rows of each organisation.
        features: Number of features.
        organisations: How many organisations release.
        epsilon: Privacy of each release.
        delta: The same.
        method: As in `Study`.
        setting: `iid`, `narrow` or `collinear`.
        repeats: How many worlds.
        random_state: Seed of the first one.

    Example:
        >>> found = simulate(n_records=500, features=3, organisations=5, epsilon=1, setting="narrow", repeats=3)
        >>> found["pool"] < found["alone"]
        True
    """
    checks.one_of(MECHANISMS, method=method)
    checks.whole(minimum=1, n_records=n_records, repeats=repeats)
    checks.whole(minimum=0, random_state=random_state)
    study = simulated_study(features=features, epsilon=epsilon, delta=delta, method=method)
    found: list[Errors] = []
    for repeat in _seeds(random_state, repeats):
        drawn = world(features=features, rows=n_records, organisations=organisations, setting=setting, seed=repeat)
        found.append(errors_of(drawn, study, coin=seeded_coin(repeat + 1)))
    return {name: float(np.median([errors[name] for errors in found])) for name in found[0]}


def _seeds(first: int, count: int) -> Iterator[int]:
    return iter(range(2 * first, 2 * (first + count), 2))


def _released(study: Study, world: World, coin: Coin) -> list[dict[str, Any]]:
    """What the other organisations release."""
    if study.method in STAGED:
        first = [add_staged_noise(study, Reading.of(study, table), coin) for table in world.tables]
        return first if study.method == "staged" else _second_round(study, world, first, coin)
    mechanism = {"objpert": perturbed_minimiser, "paper": printed_estimate}.get(study.method, add_noise)
    return [mechanism(study, totals, coin) for totals in world.others]


def _second_round(study: Study, world: World, first: Sequence[dict[str, Any]], coin: Coin) -> list[dict[str, Any]]:
    model, found = public_posterior(study, [sums_of(study, value) for value in first]), []
    for value, table in zip(first, world.tables, strict=True):
        statistic = residuals_around(study, value, model)
        noisy = add_residual_noise(study, state_of(statistic, table), shares_of(study, value["rows"]), coin)
        found.append(value | noisy | {"start": list(statistic.start), "level": statistic.level})
    return found


def _everything(study: Study, world: World) -> Any:
    return home_sums(study, reduce(Moments(design=study.design).merge, world.others, world.home))


def _inside(beta: Floats) -> Floats:
    return beta / max(1.0, float(np.linalg.norm(beta)))


def organisation_table(coin: Coin, beta: Floats, rows: int, setting: str) -> tuple[Floats, Floats]:
    """Made-up features and targets of one organisation."""
    width = len(beta)
    x = _directions(coin, rows, width) * _uniforms(coin, (rows, 1)) ** (1 / width)
    if setting == "narrow":
        x = 0.8 * _directions(coin, 1, width) + 0.1 * x
    if setting == "collinear":
        x = 0.9 / np.sqrt(width) * (2 * _uniforms(coin, (rows, 1)) - 1) + 0.1 * x
    return x, x @ beta + _RESIDUAL * normals(coin, (rows,))


def _directions(coin: Coin, count: int, width: int) -> Floats:
    drawn = normals(coin, (count, width))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def _uniforms(coin: Coin, shape: Sequence[int]) -> Floats:
    """Numbers strictly between 0 and 1."""
    return ((coin.words(int(np.prod(shape))) >> np.uint64(11)).astype(np.float64) + 0.5).reshape(shape) * 2.0**-53


def normals(coin: Coin, shape: Sequence[int]) -> Floats:
    """Standard normal numbers, to simulate with."""
    radius = np.sqrt(-2 * np.log(_uniforms(coin, shape)))
    return np.asarray(radius * np.cos(2 * np.pi * _uniforms(coin, shape)))
