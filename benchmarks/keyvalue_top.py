"""Whether probabilities of being among the most frequent keys come true, over populations that nobody tuned on.

Of the keys that lists say to be among the first with a probability in some range, as many should be. Keys that are equally
frequent count by the share of them that fits into the list.

    python -m benchmarks keyvalue_top    (what the page shows)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.keyvalue_populations import FRESH, Population
from benchmarks.measure import Figure
from sabun.keyvalue import Study

__all__ = ["RANGES", "listed", "run"]

MEASURES = (
    "benchmarks/keyvalue_populations.py",
    "src/sabun/keyvalue/quadrature.py",
    "src/sabun/keyvalue/ranking.py",
    "src/sabun/keyvalue/shrinkage.py",
)
RANGES = ((0.3, 0.6), (0.6, 0.9), (0.9, 1.01))
_SIZES = ((20, 3, 4), (50, 10, 4), (300, 10, 2))
"""Keys, length of the list, runs."""


def listed(
    population: Population, *, keys: int, k: int, reports: int, epsilon: float, run: int
) -> tuple[list[float], list[float]]:
    """Of one list: what was said of each key, and what is true; nothing where the list is weak."""
    f, m = population(keys, np.random.default_rng([8, run, keys]))
    study = Study(keys=list(range(keys)), epsilon=epsilon, protocol="kv3")
    ranking = study.simulate(f, m, n=reports * keys, random_state=8000 + run).top(k)
    if ranking.weak:
        return [], []
    true = _among(f, k)
    return list(ranking.probability), [float(true[int(key)]) for key in ranking.keys]


def _among(f: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Whether each key is among the k most frequent; of those that tie for the last places, the share that fits."""
    last = np.sort(f)[-k]
    above, equal = f > last, f == last
    return np.where(above, 1.0, np.where(equal, (k - above.sum()) / equal.sum(), 0.0))


def run(quick: bool) -> list[Figure]:
    """Said and true, by range; and how many lists give probabilities at all."""
    said: list[float] = []
    came: list[float] = []
    lists = told = 0
    for keys, k, runs in _SIZES[:1] if quick else _SIZES:
        for population in FRESH.values():
            for reports in (200, 2000):
                for epsilon in (0.5, 1.0, 2.0):
                    for number in range(1 if quick else runs):
                        one, true = listed(population, keys=keys, k=k, reports=reports, epsilon=epsilon, run=number)
                        lists, told = lists + 1, told + bool(one)
                        said, came = said + one, came + true
    numbers = np.array([said, came])
    figures = [
        Figure(
            room="keyvalue",
            name="lists of the most frequent keys with probabilities",
            ours=told / lists,
            unit="of lists",
            note=f"{lists} lists",
        )
    ]
    for low, high in RANGES:
        some = numbers[:, (numbers[0] >= low) & (numbers[0] < high)]
        for what, value in zip(("said", "true"), some.mean(axis=1), strict=True):
            name = f"keys said to be among the most frequent with {low:g} to {min(high, 1):g}: {what}"
            figures.append(Figure(room="keyvalue", name=name, ours=float(value), unit="share", note=f"{some.shape[1]} keys"))
    return figures
