"""Whether plans come true: the error of the default estimator divided by the forecast, over a grid of populations.

Whoever plans is supposed to know the mean frequency of the keys, nothing else. A forecast is right within a factor of three.
The constants of the forecast were set while looking at the `tuned` and `seen` populations; the `later` ones came after that,
and the `sought` ones were made up by somebody who meant to show where it fails.

    python -m benchmarks.keyvalue_plans [--keys N ...] [--seed N]
    python -m benchmarks keyvalue_plans    (what the page shows)
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.keyvalue_estimators import EPSILONS, REPORTS
from benchmarks.keyvalue_populations import SEEN, TUNED, Population
from benchmarks.measure import Figure
from sabun.keyvalue import Study

__all__ = ["LATER", "SOUGHT", "Foretold", "foretold", "run"]

MEASURES = (
    "benchmarks/keyvalue_populations.py",
    "src/sabun/keyvalue/plan.py",
    "src/sabun/keyvalue/quadrature.py",
    "src/sabun/keyvalue/shrinkage.py",
)

LATER: dict[str, Population] = {
    "triangle": lambda d, dice: (dice.triangular(0, 0.2, 0.9, d), dice.triangular(-1, 0.8, 1, d)),
    "halves": lambda d, dice: (np.where(np.arange(d) % 2, 0.6, 0.03), np.where(np.arange(d) % 2, -0.2, 0.2)),
    "gamma": lambda d, dice: (np.minimum(dice.gamma(0.5, 0.1, d) + 1e-4, 1), dice.uniform(-0.3, 0.3, d)),
    "heavy": lambda d, dice: (np.clip(np.abs(dice.standard_cauchy(d)) / 50, 1e-4, 1), np.sin(np.arange(d))),
}
SOUGHT: dict[str, Population] = {
    "alike": lambda d, dice: (np.clip(dice.normal(0.3, 0.01, d), 0, 1), dice.normal(0.2, 0.02, d).clip(-1, 1)),
    "few held": lambda d, dice: (
        np.where(np.arange(d) < max(1, d // 50), dice.uniform(0.2, 0.9, d), 0.0),
        dice.uniform(-1, 1, d),
    ),
    "all held": lambda d, dice: (np.full(d, 0.98), dice.uniform(-1, 1, d)),
    "rare, liked": lambda d, dice: (dice.uniform(0.001, 0.02, d), np.full(d, 0.9)),
    "bimodal": lambda d, dice: (np.where(dice.random(d) < 0.5, 0.05, 0.95), dice.choice([-0.5, 0.5], d)),
    "zipf": lambda d, dice: (0.5 / np.arange(1, d + 1), dice.uniform(-1, 1, d)),
    "app store": lambda d, dice: (0.9 * np.arange(1, d + 1) ** -0.8, dice.beta(5, 2, d) * 2 - 1),
    "loved or hated": lambda d, dice: (dice.beta(1, 3, d), dice.choice([-1.0, 1.0], d)),
    "ratings": lambda d, dice: (dice.beta(0.7, 5, d), dice.normal(0.5, 0.15, d).clip(-1, 1)),
    "yes or no": lambda d, dice: (dice.uniform(0.3, 0.7, d), np.ones(d)),
}


@dataclass(frozen=True, kw_only=True)
class Foretold:
    """One cell: errors over forecasts, of frequencies and of means, and whether both lay within the forecast's interval."""

    population: str
    keys: int
    reports: int
    epsilon: float
    ratios: tuple[float, float]
    within: tuple[bool, bool]

    @property
    def right(self) -> tuple[bool, bool]:
        """Whether each error was between a third of the forecast and three times as much."""
        return (1 / 3 <= self.ratios[0] <= 3, 1 / 3 <= self.ratios[1] <= 3)


def foretold(
    populations: dict[str, Population],
    *,
    keys: Iterable[int],
    seed: int = 0,
    epsilons: tuple[float, ...] = EPSILONS,
) -> list[Foretold]:
    """The cells of some populations, one collection each."""
    found = []
    for name, population in populations.items():
        for d in keys:
            for reports in REPORTS:
                for epsilon in epsilons:
                    found.append(_cell(name, population, d, reports, epsilon, seed))
    return found


def _cell(name: str, population: Population, d: int, reports: int, epsilon: float, seed: int) -> Foretold:
    study = Study(keys=list(range(d)), epsilon=epsilon, protocol="kv3")
    f, m = population(d, np.random.default_rng([seed, d, reports]))
    plan = study.plan(n_records=reports * d, frequency=float(f.mean()))
    result = study.simulate(f, m, n=reports * d, random_state=seed).estimate()
    errors = np.sqrt([np.mean((result.frequency - f) ** 2), f @ (result.mean - m) ** 2 / f.sum()])
    ratios = tuple(float(error / one.middle) for error, one in zip(errors, plan.forecasts, strict=True))
    within = tuple(bool(one.low <= error <= one.high) for error, one in zip(errors, plan.forecasts, strict=True))
    return Foretold(population=name, keys=d, reports=reports, epsilon=epsilon, ratios=ratios, within=within)  # type: ignore[arg-type]


KINDS = {"looked at": {**TUNED, **SEEN}, "later": LATER, "sought": SOUGHT}


def run(quick: bool) -> list[Figure]:
    """Of the cells of each kind of population, the share in which the error was within a factor of three of the forecast."""
    figures = []
    for label, populations in KINDS.items():
        found = foretold(populations, keys=(50,) if quick else (5, 50, 300))
        for place, what in enumerate(("frequencies", "means")):
            share = float(np.mean([cell.right[place] for cell in found]))
            name = f"error of the {what} within a factor of three of its forecast, {label}"
            figures.append(Figure(room="keyvalue", name=name, ours=share, unit="of cells", note=f"{len(found)} cells"))
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors over forecasts.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keys", type=int, nargs="+", default=[5, 50, 300])
    asked = parser.parse_args()
    for label, populations in (("tuned", TUNED), ("seen", SEEN), ("later", LATER), ("sought", SOUGHT)):
        found = foretold(populations, keys=asked.keys, seed=asked.seed)
        for place, what in enumerate(("frequencies", "means")):
            ratios = np.array([cell.ratios[place] for cell in found])
            low, middle, high = np.quantile(ratios, [0.1, 0.5, 0.9])
            right, within = (np.mean([getattr(cell, kind)[place] for cell in found]) for kind in ("right", "within"))
            print(
                f"{label} {what:<12} {len(found)} cells: right {right:.3f}, within the interval {within:.3f}; "
                f"ratio 10 % {low:.2f}, median {middle:.2f}, 90 % {high:.2f}"
            )
            for cell in sorted(found, key=lambda cell: -abs(np.log(cell.ratios[place])))[:4]:
                where = f"{cell.population}, d {cell.keys}, {cell.reports} reports, epsilon {cell.epsilon:g}"
                print(f"    {cell.ratios[place]:.2f} {where}")


if __name__ == "__main__":
    main()
