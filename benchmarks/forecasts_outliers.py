"""Forecasts of outlier counts: one half of a table is the public reference, the other the private table."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from benchmarks.forecasts import Case, Floats, real_tables
from sabun.outliers import OutlierCount, suggest_radius
from sabun.outliers.sensitivity import measure
from sabun.outliers.settings import Amounts
from sabun.privacy.noise import seeded_coin

_RUNS = 61
_K = 5


def cases(quick: bool) -> Iterator[Case]:
    """A grid of made-up tables, and the real ones."""
    rng = np.random.default_rng(1)
    grid = [(name, make(rng)) for name, make in _GRID.items()]
    for real, tables in ((False, grid), (True, list(real_tables()))):
        for name, table in tables[: 3 if quick else None]:
            for part in (2, 4) if not quick else (2,):
                yield from _of_table(name, table, part, rng, real=real, quick=quick)


def _of_table(name: str, table: Floats, part: int, rng: np.random.Generator, *, real: bool, quick: bool) -> Iterator[Case]:
    order = rng.permutation(len(table))
    reference, private = table[order[: len(table) // part]], table[order[len(table) // part :]]
    for share in (0.02, 0.1):
        radius = suggest_radius(reference, k=_K, share=share)
        for epsilon in ("1",) if quick else ("1/2", "3"):
            asked = OutlierCount(k=_K, radius=radius, epsilon=Fraction(epsilon))
            plan = asked.plan(n_records=len(private), like=reference)
            words = f"{name} n={len(private)} reference={len(reference)} share={share} epsilon={epsilon}"
            yield Case.of("outliers", words, plan, _errors(private, radius, Fraction(epsilon)), real=real, step=1)


def _errors(private: Floats, radius: float, epsilon: Fraction) -> list[float]:
    """What `OutlierCount.fit` would be off: the bound is worked out once, for it is the same in every run."""
    law = Amounts.of(epsilon=epsilon, delta=0, method="power", beta=None, error_bar=0.3).law
    assert law is not None
    exact, bound = measure(private, k=_K, radius=radius, beta=law.beta, cover="degeneracy", relation="replace-one")
    coin = seeded_coin(1)
    drawn = (exact + law.draw(bound, coin=coin) for _ in range(_RUNS))
    return [float(abs(min(max(count, 0), len(private)) - exact)) for count in drawn]


def _blobs(rng: np.random.Generator) -> Floats:
    return rng.normal(size=(2000, 3)) * 0.3 + rng.integers(0, 5, size=(2000, 1)) * 2.0


_GRID = {
    "normal, 2 columns": lambda rng: rng.normal(size=(2000, 2)),
    "normal, 6 columns": lambda rng: rng.normal(size=(2000, 6)),
    "blobs, 3 columns": _blobs,
    "uniform, 3 columns": lambda rng: rng.random((2000, 3)),
    "heavy tails, 2 columns": lambda rng: rng.standard_t(3, size=(4000, 2)),
}
