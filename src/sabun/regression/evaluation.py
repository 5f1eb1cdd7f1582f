"""The evaluation that the paper does not have: a grid of made-up worlds, NOT PRIVATE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sabun.privacy.noise import seeded_coin
from sabun.regression.simulation import Errors, World, errors_of, interval_hits, simulated_study, world

__all__ = ["EPSILONS", "ORGANISATIONS", "ROWS", "Cell", "coverage", "grid"]

ORGANISATIONS = (2, 5, 10, 50)
ROWS = (50, 200, 1000, 10_000)
EPSILONS = ("0.1", "0.5", "1", "2", "10")
_FEATURES = 5


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of the grid: relative errors by method, their medians and their means over worlds."""

    setting: str
    organisations: int
    rows: int
    epsilon: str
    errors: Errors
    means: Errors

    @property
    def pool_wins(self) -> bool:
        """Whether pooling has the smaller expected error than the home organisation alone."""
        return self.means["pool"] < self.means["alone"]


def grid(
    setting: str,
    *,
    repeats: int,
    organisations: Sequence[int] = ORGANISATIONS,
    rows: Sequence[int] = ROWS,
    epsilons: Sequence[str] = EPSILONS,
    method: str = "ssp-gauss",
    mirror: bool = False,
) -> Iterator[Cell]:
    """The cells of the grid, one after the other; every epsilon sees the same worlds.

    Args:
        setting: `iid`, `narrow` or `collinear`.
        repeats: Worlds for each cell.
        organisations: How many organisations release.
        rows: Rows of each.
        epsilons: Privacy of each release.
        method: As in `Study`.
        mirror: Whether to compute mirror averages for methods that release sums.
    """
    for many in organisations:
        for size in rows:
            worlds = [_world(setting, many, size, seed) for seed in range(repeats)]
            for epsilon in epsilons:
                study = simulated_study(features=_FEATURES, epsilon=epsilon, method=method)
                found = [errors_of(w, study, coin=seeded_coin(7000 + s), mirror=mirror) for s, w in enumerate(worlds)]
                columns = {name: [errors[name] for errors in found] for name in found[0]}
                medians = {name: float(np.median(column)) for name, column in columns.items()}
                means = {name: float(np.mean(column)) for name, column in columns.items()}
                yield Cell(setting=setting, organisations=many, rows=size, epsilon=epsilon, errors=medians, means=means)


def coverage(
    setting: str, *, organisations: int, rows: int, epsilon: Any, method: str, repeats: int, home: bool = True
) -> float:
    """Share of 95 % intervals of the pool, with or without home data, that hold the truth."""
    study = simulated_study(features=_FEATURES, epsilon=epsilon, method=method)
    worlds = (_world(setting, organisations, rows, 500 + s) for s in range(repeats))
    pairs = [interval_hits(one, study, coin=seeded_coin(s), home=home) for s, one in enumerate(worlds)]
    return sum(hits for hits, _ in pairs) / sum(count for _, count in pairs)


def _world(setting: str, organisations: int, rows: int, seed: int) -> World:
    return world(features=_FEATURES, rows=rows, organisations=organisations, setting=setting, seed=seed)
