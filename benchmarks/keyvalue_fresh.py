"""The default estimator beside the best of the others in hindsight, over populations that were written when it was finished.

How it weighs its priors was changed after these had been measured once; that was chosen on the `TUNED` ones.

python -m benchmarks keyvalue_fresh    (what the page shows; `keyvalue_estimators --populations fresh` prints more)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.keyvalue_estimators import REPORTS, Cell, cells, over_the_best, where
from benchmarks.keyvalue_populations import FRESH
from benchmarks.measure import Figure

__all__ = ["run", "told"]

MEASURES = (
    "benchmarks/keyvalue_estimators.py",
    "benchmarks/keyvalue_populations.py",
    "src/sabun/keyvalue/channel.py",
    "src/sabun/keyvalue/closed_form.py",
    "src/sabun/keyvalue/em.py",
    "src/sabun/keyvalue/posterior.py",
    "src/sabun/keyvalue/quadrature.py",
    "src/sabun/keyvalue/shrinkage.py",
)
_SIZES = {5: (12, REPORTS), 50: (12, REPORTS), 300: (3, REPORTS), 2000: (2, REPORTS[1:2])}
"""Runs of each cell and reports a key, by the number of keys: with fewer, the worst of a hundred cells is the unluckiest."""
_STATED = {5: (0.95, 1.10), 50: (1 / 0.9, 1.05), 300: (1 / 0.81, 1.05), 2000: (1 / 0.81, 1.05)}
"""Best peer over ours on average, and ours over the best peer in the worst cell; of frequencies."""
_ALLOWED = 1.05
_HINDSIGHT = "populations that nobody tuned on; the best is chosen with hindsight in each cell"


def run(quick: bool) -> list[Figure]:
    """Averages and worst cells, by the number of keys."""
    sizes = {50: (1, REPORTS[:1])} if quick else _SIZES
    return [figure for keys, (runs, reports) in sizes.items() for figure in told(keys, _found(keys, runs, reports))]


def _found(keys: int, runs: int, reports: Sequence[int]) -> list[Cell]:
    return list(cells(FRESH, keys=keys, runs=runs, seed=7, reports=reports))


def told(keys: int, found: list[Cell]) -> list[Figure]:
    """The figures of some cells."""
    figures = []
    for place, what in enumerate(("frequencies", "frequencies by holders", "means")):
        ratios, luck = (np.array([getattr(cell, which)[place] for cell in found]) for which in ("ratios", "luck"))
        above, first = ratios > _ALLOWED, int(ratios.argmax())
        worst = (
            f"{where(found[first])}, give or take {luck[first]:.2g}; {above.sum()} of {len(found)} cells above {_ALLOWED}, "
            f"{(ratios - 2 * luck > _ALLOWED).sum()} by more than two standard errors"
        )
        middle, largest = float(np.exp(np.log(ratios).mean())), float(ratios.max())
        stated = (_STATED[keys][0], 1 / _STATED[keys][1]) if place == 0 else (None, None)
        figures.append(over_the_best(what, f"fresh, d = {keys}: geometric mean", middle, _HINDSIGHT, stated[0]))
        figures.append(over_the_best(what, f"fresh, d = {keys}: largest", largest, worst, stated[1]))
    return figures
