"""Forecasts of density answers: means of columns over the covered private rows, in standard deviations of the column."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np

from benchmarks.forecasts import Case, Floats, other_tables, real_tables
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


def held_out(quick: bool) -> Iterator[Case]:
    """Other kinds of columns and of shifts, other sizes and amounts, other tables cut another way."""
    rng = np.random.default_rng(13)
    for d, n, rows in ((3, 800, 400),) if quick else ((3, 800, 400), (5, 5000, 1000)):
        for shift in ("rotation",) if quick else ("rotation", "mixture", "tails", "chosen rows"):
            public, private = _other(shift, rng, rows, n, d)
            for epsilon in (0.7,) if quick else (0.1, 0.7, 6.0):
                words = f"{shift}, {d} columns n={n} public={rows} epsilon={epsilon:g}"
                yield _case(words, public, private, epsilon, 2, real=False)
    for name, table in list(other_tables(most=900))[: 1 if quick else None]:
        for cut in ("by the last column",) if quick else ("a quarter", "by the last column"):
            public, private = _cut(table, cut, rng)
            for epsilon in (0.7,) if quick else (0.1, 0.7, 6.0):
                yield _case(f"{name}, {cut} n={len(private)} epsilon={epsilon:g}", public, private, epsilon, 2, real=True)


def _other(shift: str, rng: np.random.Generator, rows: int, n: int, d: int) -> tuple[Floats, Floats]:
    if shift == "rotation":
        turned = rng.normal(size=(n, d))
        turned[:, 1] = 0.6 * turned[:, 0] + 0.8 * turned[:, 1]
        return rng.normal(size=(rows, d)), turned
    if shift == "mixture":
        return tuple(
            rng.normal(size=(many, d)) * 0.6 + 2.0 * (rng.random((many, 1)) < part) for many, part in ((rows, 0.5), (n, 0.25))
        )  # type: ignore[return-value]
    if shift == "tails":
        return rng.standard_t(4, size=(rows, d)), rng.standard_t(4, size=(n, d)) * 0.9 + 0.2
    table = rng.random((4 * (rows + n), d))
    private = rng.random(len(table)) < 0.15 + 0.7 * table[:, 0] * table[:, 1]
    return table[~private][:rows], table[private][:n]


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
    """Public and private rows: drawn evenly (halves, or a quarter public), or rows high in a column mostly private."""
    rank = table[:, -1 if cut == "by the last column" else 0].argsort().argsort() / len(table)
    chance = {"even": 0.5, "a quarter": 0.75}.get(cut, 0.2 + 0.6 * rank)
    private = rng.random(len(table)) < chance
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
