"""Forecasts of plain answers: columns that nobody looked at, in bounds twice as wide as they are.

Of each real table the column with the most different cells is taken, for a quantile among equal ones has no error in ranks; of
a histogram, the bins that are not empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.forecasts import Case, Floats, other_tables, real_tables
from sabun import summaries
from sabun.records import Schema

_RUNS = 15
_MARK = 2.0**-16
_QUESTIONS = ("sum", "mean", "variance", "histogram", "quantiles", "count")


def cases(quick: bool) -> Iterator[Case]:
    """A grid of made-up columns, and the first columns of the real tables."""
    rng = np.random.default_rng(2)
    grid = [
        ("even", rng.random(1000)),
        ("even, many", rng.random(10_000)),
        ("narrow", 0.3 + 0.05 * rng.random(2000)),
        ("skewed", rng.beta(0.5, 5, size=3000)),
    ]
    real = [(name, _most_different(table)) for name, table in real_tables()]
    for is_real, columns in ((False, grid), (True, real)):
        for name, column in columns[: 1 if quick else None]:
            for relation in ("replace-one",) if quick else ("replace-one", "add-remove"):
                for epsilon in (1.0,) if quick else (0.3, 3.0):
                    for word in _QUESTIONS:
                        yield _case(word, name, column, relation, epsilon, real=is_real)


def held_out(quick: bool) -> Iterator[Case]:
    """Other columns, other numbers of records, other amounts."""
    rng = np.random.default_rng(14)
    made = [
        ("two heaps", np.where(rng.random(700) < 0.3, 0.1, 0.8) + 0.02 * rng.normal(size=700)),
        ("bell", np.clip(0.5 + 0.15 * rng.normal(size=5000), 0, 1)),
        ("few", rng.random(150)),
        ("rising", np.sqrt(rng.random(30_000))),
    ]
    real = [(name, _most_different(table)) for name, table in other_tables()]
    for is_real, columns in ((False, made), (True, real)):
        for name, column in columns[: 1 if quick else None]:
            for relation in ("replace-one",) if quick else ("replace-one", "add-remove"):
                for epsilon in (1.0,) if quick else (0.1, 1.0, 8.0):
                    for word in _QUESTIONS:
                        yield _case(word, name, column, relation, epsilon, real=is_real)


def _most_different(table: Floats) -> Floats:
    found: Floats = table[:, int(np.argmax([len(np.unique(column)) for column in table.T]))]
    return found


def _case(word: str, name: str, column: Floats, relation: str, epsilon: float, *, real: bool) -> Case:
    bounds = Schema.of_bounds({"x": (-0.5, 1.5)})
    own: dict[str, Any] = {"where": {"x": (0.25, None)}} if word == "count" else {"column": "x"}
    own |= {"shares": [0.5], "error_bar": 0} if word == "quantiles" else {}

    def ask(seed: int) -> Any:
        kind = getattr(summaries, word.capitalize())
        return kind(**own, epsilon=epsilon, relation=relation, schema=bounds, random_state=seed)

    errors = []
    table = column.reshape(-1, 1)
    for seed in range(_RUNS):
        asked = ask(seed).fit(table)
        errors += _errors(word, getattr(asked, f"{word}_"), column)
    step = float(word in ("count", "histogram", "quantiles"))
    words = f"{word} {name} n={len(column)} epsilon={epsilon:g} {relation}"
    return Case.of("summaries", words, ask(0).plan(n_records=len(column)), errors, real=real, step=step)


def _errors(word: str, found: Any, column: Floats) -> list[float]:
    if word == "quantiles":
        ends = [np.searchsorted(np.sort(column), found[0] + side) for side in (-_MARK, _MARK)]
        return [float(max(ends[0] - len(column) / 2, len(column) / 2 - ends[1], 0.0))]
    if word == "histogram":
        exact = np.histogram(column, bins=np.linspace(-0.5, 1.5, 11))[0]
        return [float(error) for error in np.abs(np.array(found) - exact)[exact > 0]]
    exact_value = {"sum": column.sum(), "mean": column.mean(), "variance": column.var(), "count": (column >= 0.25).sum()}[word]
    return [abs(float(found) - float(exact_value))] if found is not None else []
