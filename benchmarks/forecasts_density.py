"""Forecasts of density answers: means of columns over the covered private rows, in standard deviations of the column."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.forecasts import Case, Floats, real_tables
from sabun.density import CoverageWarning, DensityRatio

_PUBLIC = 600


def cases(quick: bool) -> Iterator[Case]:
    """A grid of made-up shifts, and the real tables cut in two."""
    rng = np.random.default_rng(3)
    for d in (2,) if quick else (2, 8):
        for n in (500,) if quick else (300, 2000):
            for shift in ("none", "mean") if quick else ("none", "mean", "scale", "skew"):
                for epsilon in (1.0,) if quick else (0.3, 3.0):
                    words = f"{shift}, {d} columns n={n} epsilon={epsilon:g}"
                    yield _case(
                        words, rng.normal(size=(_PUBLIC, d)), _shifted(shift, rng, n, d), epsilon, 1 if d > 2 else 2, real=False
                    )
    for name, table in list(real_tables(most=600))[: 2 if quick else None]:
        for cut in ("even",) if quick else ("even", "by the first column"):
            public, private = _cut(table, cut, rng)
            for epsilon in (1.0,) if quick else (0.3, 3.0):
                yield _case(f"{name}, {cut} n={len(private)} epsilon={epsilon:g}", public, private, epsilon, 2, real=True)


def _shifted(shift: str, rng: np.random.Generator, n: int, d: int) -> Floats:
    table = rng.normal(size=(n, d))
    if shift == "mean":
        table[:, 0] += 0.7
    elif shift == "scale":
        table *= 0.8
    elif shift == "skew":
        table[:, 0] = np.where(table[:, 0] > 0, 0.6 * table[:, 0], table[:, 0])
    return table


def _cut(table: Floats, cut: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The public and the private half: drawn evenly, or with rows that are high in one column mostly private."""
    rank = table[:, 0].argsort().argsort() / len(table)
    private = rng.random(len(table)) < (0.5 if cut == "even" else 0.2 + 0.6 * rank)
    return table[~private], table[private]


def _case(name: str, public: Floats, private: Floats, epsilon: float, runs: int, *, real: bool) -> Case:
    kept = public.std(axis=0) > 0
    public, private = public[:, kept], private[:, kept]
    errors: list[float] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        plan = DensityRatio(epsilon=epsilon).plan(public=public, n_records=len(private))
        for seed in range(runs):
            ratio = DensityRatio(epsilon=epsilon, random_state=seed).fit(private=private, public=public)
            truth = private[ratio.covered(private)].mean(axis=0)
            found = np.array([ratio.mean(column) for column in range(public.shape[1])])
            errors += list(np.abs(found - truth) / public.std(axis=0))
    return Case.of("density", name, plan, errors, real=real)
