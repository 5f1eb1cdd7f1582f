"""Forecasts of outlier counts: one half of a table is the public reference, the other the private table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.forecasts import Case, Floats, in_unit, other_tables, real_tables
from sabun.outliers import OutlierCount, suggest_radius
from sabun.outliers.sensitivity import measure
from sabun.outliers.settings import Amounts
from sabun.privacy.noise import seeded_coin

_RUNS = 61
_K = 5


def cases(quick: bool) -> Iterator[Case]:
    """A grid of made-up tables and the real ones, and those that were once held out."""
    rng = np.random.default_rng(1)
    grid = [(name, make(rng)) for name, make in _GRID.items()]
    for real, tables in ((False, grid), (True, list(real_tables()))):
        for name, table in tables[: 3 if quick else None]:
            for part in (2, 4) if not quick else (2,):
                epsilons = ("1",) if quick else ("1/2", "3")
                yield from _of_table(name, table, part, rng, real=real, shares=(0.02, 0.1), epsilons=epsilons, k=_K)
    if not quick:
        yield from _thirds(12, _OTHERS, other_tables(most=2400), shares=(0.01, 0.05), epsilons=("1/4", "1", "2"), k=10)


def held_out(quick: bool) -> Iterator[Case]:
    """Other tables, another k, other shares and amounts, another size of the reference."""
    yield from _thirds(31, _NEW, _new_tables(), quick=quick, shares=(0.015, 0.08), epsilons=("1/3", "1", "4"), k=7)


def _thirds(
    seed: int,
    made: dict[str, Callable[[np.random.Generator], Floats]],
    found: Iterable[tuple[str, Floats]],
    *,
    quick: bool = False,
    **terms: Any,
) -> Iterator[Case]:
    """A third of each table is the reference."""
    rng = np.random.default_rng(seed)
    for real, tables in ((False, [(name, make(rng)) for name, make in made.items()]), (True, list(found))):
        for name, table in tables[: 1 if quick else None]:
            yield from _of_table(name, table, 3, rng, real=real, **terms)


def _new_tables() -> Iterator[tuple[str, Floats]]:
    """Real tables made anew of those that come with scikit-learn or this package; each column from 0 to 1."""
    from sklearn import datasets as bundled

    from sabun import datasets

    rng = np.random.default_rng(32)
    china, flower = (bundled.load_sample_image(f"{name}.jpg").astype(float) for name in ("china", "flower"))
    steps = (china[1:] - china[:-1]).reshape(-1, 3)
    adult = datasets.load_adult().data
    men = adult[adult["sex"] == "Male"][["age", "fnlwgt", "education-num", "hours-per-week"]].to_numpy(dtype=float)
    ionosphere = datasets.load_ionosphere().data.select_dtypes("number").to_numpy(dtype=float)
    tables = {
        "china, steps": steps[rng.permutation(len(steps))[:2400]],
        "flower, patches": flower[:424, :640].reshape(53, 8, 80, 8, 3).mean(axis=(1, 3)).reshape(-1, 3)[::2],
        "digits, sums": bundled.load_digits().data.reshape(-1, 8, 8).sum(axis=2),
        "adult, men": men[rng.permutation(len(men))[:1800]],
        "ionosphere, eight columns": ionosphere[:, 10:18],
    }
    yield from ((name, in_unit(table)) for name, table in tables.items())


def _of_table(
    name: str,
    table: Floats,
    part: int,
    rng: np.random.Generator,
    *,
    real: bool,
    shares: Sequence[float],
    epsilons: Sequence[str],
    k: int,
) -> Iterator[Case]:
    order = rng.permutation(len(table))
    reference, private = table[order[: len(table) // part]], table[order[len(table) // part :]]
    for share in shares:
        radius = suggest_radius(reference, k=k, share=share)
        for epsilon in epsilons:
            asked = OutlierCount(k=k, radius=radius, epsilon=Fraction(epsilon))
            plan = asked.plan(n_records=len(private), like=reference)
            words = f"{name} n={len(private)} reference={len(reference)} share={share} epsilon={epsilon}"
            yield Case.of("outliers", words, plan, _errors(private, radius, Fraction(epsilon), k), real=real, step=1)


def _errors(private: Floats, radius: float, epsilon: Fraction, k: int) -> list[float]:
    """What `OutlierCount.fit` would be off: the bound is worked out once, for it is the same in every run."""
    law = Amounts.of(epsilon=epsilon, delta=0, method="power", beta=None, error_bar=0.3).law
    assert law is not None
    exact, bound = measure(private, k=k, radius=radius, beta=law.beta, cover="degeneracy", relation="replace-one")
    coin = seeded_coin(1)
    drawn = (exact + law.draw(bound, coin=coin) for _ in range(_RUNS))
    return [float(abs(min(max(count, 0), len(private)) - exact)) for count in drawn]


def _blobs(rng: np.random.Generator) -> Floats:
    return rng.normal(size=(2000, 3)) * 0.3 + rng.integers(0, 5, size=(2000, 1)) * 2.0


def _ring(rng: np.random.Generator, rows: int) -> Floats:
    angle, length = rng.uniform(0, 2 * np.pi, rows), 1 + 0.1 * rng.normal(size=rows)
    return np.column_stack([length * np.cos(angle), length * np.sin(angle)])


def _spiral(rng: np.random.Generator, rows: int) -> Floats:
    turn = rng.uniform(1, 12, rows)
    return np.column_stack([turn * np.cos(turn), turn * np.sin(turn)]) + 0.3 * rng.normal(size=(rows, 2))


_GRID = {
    "normal, 2 columns": lambda rng: rng.normal(size=(2000, 2)),
    "normal, 6 columns": lambda rng: rng.normal(size=(2000, 6)),
    "blobs, 3 columns": _blobs,
    "uniform, 3 columns": lambda rng: rng.random((2000, 3)),
    "heavy tails, 2 columns": lambda rng: rng.standard_t(3, size=(4000, 2)),
}
_OTHERS = {
    "logistic, 4 columns": lambda rng: rng.logistic(size=(1500, 4)),
    "ring, 2 columns": lambda rng: _ring(rng, 3000),
    "lognormal, 3 columns": lambda rng: rng.lognormal(sigma=0.8, size=(2400, 3)),
    "two spheres, 5 columns": lambda rng: rng.normal(size=(1800, 5)) * np.where(rng.random((1800, 1)) < 0.2, 2.0, 0.5),
}
_NEW = {
    "gamma, 3 columns": lambda rng: rng.gamma(2.0, size=(2100, 3)),
    "spiral, 2 columns": lambda rng: _spiral(rng, 1800),
    "correlated, 5 columns": lambda rng: rng.normal(size=(1500, 5)) @ np.linalg.cholesky(0.4 * np.eye(5) + 0.6).T,
    "whole numbers, 4 columns": lambda rng: rng.poisson(6.0, size=(2000, 4)).astype(float),
    "Laplace, 3 columns": lambda rng: rng.laplace(size=(900, 3)),
}
