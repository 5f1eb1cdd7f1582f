"""The default estimator beside the others, over populations of which half were invented after it was finished.

A cell is a population, a number of keys, of reports about each key, and an epsilon; its figure is the root mean squared error
of `shrunk` divided by that of whichever of `mle`, `posterior` and `em` was best in this very cell, chosen with hindsight.
`tuned` populations were looked at while the estimator was made, `fresh` ones were not.

    python -m benchmarks.keyvalue_estimators [--keys N ...] [--populations tuned|fresh|all] [--protocol NAME] [--runs N]
        [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sabun.keyvalue import Study
from sabun.keyvalue.estimates import point_estimates

__all__ = ["FRESH", "TUNED", "Cell", "cells", "measured"]

_Floats = NDArray[np.float64]
_Population = Callable[[int, np.random.Generator], tuple[_Floats, _Floats]]
PEERS = ("mle", "posterior", "em")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
REPORTS = (200, 2000, 20_000)
"""About each key."""
_RUNS = {5: 24, 20: 10, 50: 6, 300: 2}


def _quantiles(d: int) -> _Floats:
    return (np.arange(d) + 0.5) / d


def _tied(f: _Floats) -> tuple[_Floats, _Floats]:
    """As in the paper: the mean follows the frequency."""
    return f, 2 * f - 1


def _gaussian(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return _tied(np.clip(dice.normal(0.5, 0.15, d), 0, 1))


def _linear(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return _tied(_quantiles(d))


def _power(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return _tied(_quantiles(d) ** 4)


def _zipf(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return 0.9 / np.arange(1, d + 1), dice.uniform(-1, 1, d)


def _slow_zipf(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return 0.6 / np.sqrt(np.arange(1, d + 1)), np.full(d, 0.3)


def _mixture(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    common = dice.random(d) < 0.3
    return np.where(common, dice.uniform(0.3, 0.7, d), dice.uniform(0.01, 0.08, d)), np.where(common, 0.5, -0.4)


def _equal(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.full(d, 0.2), np.full(d, 0.1)


def _dominating(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    f = np.full(d, 0.02)
    f[0] = 0.9
    return f, np.full(d, -0.2)


def _empty(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.where(np.arange(d) < -(-d // 10), dice.uniform(0.02, 0.5, d), 0.0), dice.uniform(-0.5, 0.9, d)


def _ends(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return dice.uniform(0.05, 0.6, d), dice.choice([-1.0, 1.0], d)


def _geometric(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return 0.8 * np.exp(-5 * _quantiles(d)), np.cos(7 * _quantiles(d))


def _two_minds(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Loved or hated, nothing between."""
    return dice.beta(2, 6, d), dice.choice([-0.8, 0.7], d, p=[0.35, 0.65])


def _rare_cluster(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    rare = np.arange(d) % 4 != 0
    return np.where(rare, 0.013, dice.uniform(0.5, 0.95, d)), np.where(rare, 0.6, dice.uniform(-0.3, 0.3, d))


def _log_normal(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.minimum(np.exp(dice.normal(-3, 1.2, d)), 1.0), np.tanh(dice.normal(0.2, 0.7, d))


def _u_shaped(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return dice.beta(0.3, 0.3, d), dice.beta(0.4, 0.4, d) * 2 - 1


def _stairs(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    step = np.arange(d) % 5
    return np.array([0.02, 0.11, 0.3, 0.55, 0.97])[step], np.array([0.9, -0.9, 0.0, 0.4, -0.1])[step]


def _everybody(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    return np.where(dice.random(d) < 0.5, 1.0, 0.85), dice.normal(0, 0.2, d).clip(-1, 1)


def _against(d: int, dice: np.random.Generator) -> tuple[_Floats, _Floats]:
    """The rarer, the better liked."""
    f = dice.uniform(0, 0.4, d) ** 1.5
    return f, 1 - 4 * f


TUNED: dict[str, _Population] = {
    "gaussian": _gaussian,
    "linear": _linear,
    "power": _power,
    "zipf": _zipf,
    "slow zipf": _slow_zipf,
    "mixture": _mixture,
    "equal": _equal,
    "dominating": _dominating,
    "empty": _empty,
    "ends": _ends,
}
FRESH: dict[str, _Population] = {
    "geometric": _geometric,
    "two minds": _two_minds,
    "rare cluster": _rare_cluster,
    "log-normal": _log_normal,
    "u-shaped": _u_shaped,
    "stairs": _stairs,
    "everybody": _everybody,
    "against": _against,
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell and its errors by method: root mean squares of frequency and mean, plain and weighted by frequency."""

    population: str
    keys: int
    reports: int
    epsilon: float
    errors: dict[str, tuple[float, float, float, float]]

    @property
    def ratios(self) -> tuple[float, ...]:
        """Of `shrunk` to the best of the others, for each of the four."""
        return tuple(
            ours / max(min(self.errors[peer][place] for peer in PEERS), 1e-12)
            for place, ours in enumerate(self.errors["shrunk"])
        )


def cells(
    populations: dict[str, _Population], *, keys: int, protocol: str = "kv3", runs: int | None = None, seed: int = 0
) -> Iterator[Cell]:
    """The cells of some populations, one after the other."""
    for name, population in populations.items():
        for reports in REPORTS:
            for epsilon in EPSILONS:
                yield measured(
                    name, population, keys=keys, reports=reports, epsilon=epsilon, protocol=protocol, runs=runs, seed=seed
                )


def measured(
    name: str, population: _Population, *, keys: int, reports: int, epsilon: float, protocol: str, runs: int | None, seed: int
) -> Cell:
    """One cell: every method on the same counts."""
    padded = protocol.startswith("pckv")
    study = Study(keys=list(range(keys)), epsilon=epsilon, protocol=protocol, padding_length=keys if padded else None)
    squares: dict[str, list[tuple[float, ...]]] = {method: [] for method in (*PEERS, "shrunk")}
    for run in range(runs or _RUNS.get(keys, 1)):
        dice = np.random.default_rng([seed, run, keys])
        f, m = population(keys, dice)
        counts = study.simulate(f, m, n=reports * (1 if padded else keys), random_state=1000 * seed + run).counts()
        for method, kept in squares.items():
            kept.append(_squares(point_estimates(method, study.channel, counts), f, m))
    errors = {method: tuple(np.sqrt(np.mean(kept, axis=0)).tolist()) for method, kept in squares.items()}
    return Cell(population=name, keys=keys, reports=reports, epsilon=epsilon, errors=errors)  # type: ignore[arg-type]


def _squares(found: tuple[_Floats, _Floats], f: _Floats, m: _Floats) -> tuple[float, ...]:
    held = f > 0
    of_f = (np.nan_to_num(found[0]) - f) ** 2
    of_m = ((np.nan_to_num(found[1]) - m) ** 2)[held]
    return float(of_f.mean()), float(f @ of_f / f.sum()), float(of_m.mean()), float(f[held] @ of_m / f.sum())


def _told(found: list[Cell]) -> str:
    ratios = np.array([cell.ratios for cell in found])
    rows = [np.exp(np.log(ratios).mean(axis=0)), np.quantile(ratios, 0.95, axis=0), ratios.max(axis=0)]
    return "   ".join(" ".join(f"{value:.2f}" for value in row) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="The default estimator beside the best of the others.")
    parser.add_argument("--keys", type=int, nargs="+", default=[5, 20, 50, 300])
    parser.add_argument("--populations", choices=("tuned", "fresh", "all"), default="all")
    parser.add_argument("--protocol", default="kv3")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    chosen = {"tuned": {"tuned": TUNED}, "fresh": {"fresh": FRESH}}.get(asked.populations, {"tuned": TUNED, "fresh": FRESH})
    kept = []
    print("f, f weighted, m, m weighted: geometric mean, 95th percentile, maximum of the ratio to the best of three")
    for keys in asked.keys:
        for label, populations in chosen.items():
            found = list(cells(populations, keys=keys, protocol=asked.protocol, runs=asked.runs, seed=asked.seed))
            print(f"{label:<6} d = {keys:<5} {_told(found)}", flush=True)
            worst = sorted(found, key=lambda cell: -cell.ratios[0])[:3]
            for cell in worst:
                print(
                    f"         {cell.ratios[0]:.3f}  {cell.population}, {cell.reports} reports a key, epsilon {cell.epsilon:g}"
                )
            kept += [asdict(cell) | {"kind": label, "protocol": asked.protocol, "ratios": cell.ratios} for cell in found]
    if asked.json is not None:
        asked.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
