"""The default estimator beside the others, over populations of which some were invented after it was finished.

A cell is a population, a number of keys, of reports about each key, and an epsilon; its figure is the root mean squared error
of `shrunk` divided by that of whichever of `mle`, `posterior` and `em` was best in this very cell, chosen with hindsight.
Which populations were looked at when is told in `keyvalue_populations`; what the adverse ones found was mended, so they are no
fair sample, but their worst cell is told.

    python -m benchmarks.keyvalue_estimators [--keys N ...] [--populations tuned|seen|fresh|adverse|all] [--protocol NAME]
        [--runs N] [--json FILE]
    python -m benchmarks keyvalue_estimators    (what the pages show: the paper's sets; fresh ones: keyvalue_fresh)
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.keyvalue_populations import ADVERSE, FRESH, SEEN, TUNED, Population
from benchmarks.measure import Figure, cpu_seconds
from sabun.datasets import keyvalue_population
from sabun.keyvalue import Study
from sabun.keyvalue.estimates import point_estimates

__all__ = ["EPSILONS", "PEERS", "REPORTS", "Cell", "cells", "measured", "over_the_best", "run", "where"]

MEASURES = (
    "benchmarks/keyvalue_populations.py",
    "src/sabun/keyvalue/channel.py",
    "src/sabun/keyvalue/closed_form.py",
    "src/sabun/keyvalue/em.py",
    "src/sabun/keyvalue/posterior.py",
    "src/sabun/keyvalue/quadrature.py",
    "src/sabun/keyvalue/shrinkage.py",
)

_Floats = NDArray[np.float64]
PEERS = ("mle", "posterior", "em")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
REPORTS = (200, 2000, 20_000)
"""About each key."""
_RUNS = {5: 24, 20: 20, 50: 24, 300: 4}
"""Of each cell: with fewer, the largest of a hundred ratios is mostly luck."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell and its errors by method: root mean squares of frequency and mean, plain and weighted by frequency."""

    population: str
    keys: int
    reports: int
    epsilon: float
    errors: dict[str, tuple[float, float, float, float]]
    luck: tuple[float, ...]
    """Standard errors of `ratios`."""

    @property
    def ratios(self) -> tuple[float, ...]:
        """Of `shrunk` to the best of the others, for each of the four."""
        return tuple(
            ours / max(min(self.errors[peer][place] for peer in PEERS), 1e-12)
            for place, ours in enumerate(self.errors["shrunk"])
        )


def cells(
    populations: dict[str, Population],
    *,
    keys: int,
    protocol: str = "kv3",
    runs: int | None = None,
    seed: int = 0,
    reports: Sequence[int] = REPORTS,
) -> Iterator[Cell]:
    """The cells of some populations, one after the other."""
    for name, population in populations.items():
        for each in reports:
            for epsilon in EPSILONS:
                yield measured(
                    name, population, keys=keys, reports=each, epsilon=epsilon, protocol=protocol, runs=runs, seed=seed
                )


def measured(
    name: str, population: Population, *, keys: int, reports: int, epsilon: float, protocol: str, runs: int | None, seed: int
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
    return Cell(population=name, keys=keys, reports=reports, epsilon=epsilon, errors=errors, luck=_luck(squares))


def _luck(squares: dict[str, list[tuple[float, ...]]]) -> tuple[float, ...]:
    """Standard errors of the ratios, by the differences on the same counts; which of the others was best is taken as given."""
    ours, peers = np.array(squares["shrunk"]), np.array([squares[peer] for peer in PEERS])
    if len(ours) < 2:
        return (float("nan"),) * ours.shape[1]
    best = np.take_along_axis(peers, peers.mean(axis=1).argmin(axis=0)[None, None], axis=0)[0]
    level = np.maximum(best.mean(axis=0), 1e-24)
    ratio = np.sqrt(np.maximum(ours.mean(axis=0) / level, 1e-24))
    off = (ours - ratio**2 * best).std(axis=0, ddof=1) / np.sqrt(len(ours))
    return tuple(float(one) for one in off / (2 * ratio * level))


def _squares(found: tuple[_Floats, _Floats], f: _Floats, m: _Floats) -> tuple[float, ...]:
    held = f > 0
    of_f = (np.nan_to_num(found[0]) - f) ** 2
    of_m = ((np.nan_to_num(found[1]) - m) ** 2)[held]
    return float(of_f.mean()), float(f @ of_f / f.sum()), float(of_m.mean()), float(f[held] @ of_m / f.sum())


def _told(found: list[Cell]) -> str:
    ratios = np.array([cell.ratios for cell in found])
    rows = [np.exp(np.log(ratios).mean(axis=0)), np.quantile(ratios, 0.95, axis=0), ratios.max(axis=0)]
    return "   ".join(" ".join(f"{value:.2f}" for value in row) for row in rows)


def run(quick: bool) -> list[Figure]:
    """What the pages show."""
    trials = 4 if quick else 40
    figures = [figure for shape in ("gaussian", "linear", "power") for figure in _on_the_papers_sets(shape, trials)]
    figures += [figure for epsilon in (0.5, 1.0, 2.0, 4.0) for figure in _on_zipf(epsilon, 2 if quick else 10)]
    figures += [figure for keys in ((50,) if quick else (50, 300)) for figure in _on_adverse_cells(keys, 1 if quick else None)]
    return [*figures, *_covered(4 if quick else 12), _many_keys()]


PRIVKV = 3.013
"""The nominal epsilon at which PrivKV is certified for 2."""


def _on_the_papers_sets(shape: str, trials: int) -> list[Figure]:
    """Old default, new default, the paper's method at the same certified epsilon, and what no unbiased estimate is below."""
    truth = keyvalue_population(shape)
    studies = {
        name: Study(keys=list(range(50)), epsilon=epsilon, protocol=name)
        for name, epsilon in (("kv3", 2.0), ("privkv", PRIVKV))
    }

    def errors(protocol: str, method: str) -> list[float]:
        study = studies[protocol]
        runs = [
            point_estimates(method, study.channel, study.simulate(*truth, n=100_000, random_state=t).counts())
            for t in range(trials)
        ]
        return [float(np.mean([(np.nan_to_num(one[place]) - truth[place]) ** 2 for one in runs])) for place in (0, 1)]

    ours, old, paper = errors("kv3", "shrunk"), errors("kv3", "mle"), errors("privkv", "em")
    limit = float(np.mean(studies["kv3"].channel.frequency_variance(truth[0], 100_000 / 50)))
    beside = [
        (what, peer[place], who)
        for place, what in enumerate(("frequencies", "means"))
        for peer, who in ((old, OLD), (paper, PAPER))
    ]
    beside.append(("frequencies", limit, LIMIT))
    return [
        Figure(
            room="keyvalue",
            name=f"MSE of {what}, {shape}, n = 100,000, d = 50, certified epsilon 2",
            ours=ours[what == "means"],
            peer=peer,
            peer_name=who,
            unit="MSE",
            ratio=peer / ours[what == "means"],
            target=_STATED.get((what, who)),
            note=f"{trials} trials",
        )
        for what, peer, who in beside
    ]


OLD, PAPER, LIMIT = "mle, the old default", "PrivKV + EM (the paper)", "least variance of an unbiased estimate"
_STATED = {("frequencies", OLD): 0.9, ("frequencies", PAPER): 1.05, ("means", OLD): 1.2, ("means", PAPER): 2.0}


def _on_zipf(epsilon: float, trials: int) -> list[Figure]:
    study = Study(keys=list(range(300)), epsilon=epsilon, protocol="kv3")
    errors: dict[str, list[float]] = {method: [] for method in (*PEERS, "shrunk")}
    for trial in range(trials):
        f, m = TUNED["zipf"](300, np.random.default_rng(trial))
        counts = study.simulate(f, m, n=300_000, random_state=trial).counts()
        for method, kept in errors.items():
            kept.append(_squares(point_estimates(method, study.channel, counts), f, m)[0])
    ours, old, best = (
        float(np.sqrt(np.mean(errors[name]))) for name in ("shrunk", "mle", min(PEERS, key=lambda peer: np.mean(errors[peer])))
    )
    name = f"RMSE of frequencies, Zipf, n = 300,000, d = 300, epsilon {epsilon:g}"
    return [
        Figure(
            room="keyvalue",
            name=name,
            ours=ours,
            peer=peer,
            peer_name=who,
            unit="RMSE",
            ratio=peer / ours,
            target=1,
            note=f"{trials} trials",
        )
        for peer, who in ((old, OLD), (best, "best of mle, posterior, em"))
    ]


def _on_adverse_cells(keys: int, runs: int | None) -> list[Figure]:
    found = list(cells(ADVERSE, keys=keys, runs=runs or {50: 8, 300: 3}[keys]))
    without = [cell for cell in found if cell.population not in ZERO_MEANS]
    figures = []
    for place, what, some in ((0, "frequencies", found), (2, "means", without)):
        worst = max(some, key=lambda cell: cell.ratios[place])
        title = f"adverse populations, d = {keys}: largest"
        figures.append(over_the_best(what, title, worst.ratios[place], f"{len(some)} cells; {where(worst)}"))
    worst = max((cell for cell in found if cell.population in ZERO_MEANS), key=lambda cell: cell.ratios[2])
    for peer in ("em", "mle"):
        ratio = worst.errors["shrunk"][2] / worst.errors[peer][2]
        figures.append(over_the_best("means", f"all means 0, d = {keys}: over {peer}", ratio, where(worst)))
    return figures


ZERO_MEANS = ("half everybody", "two groups")
"""Adverse populations in which all means are 0, which `em` leans to."""


def where(cell: Cell) -> str:
    """In words."""
    return f"{cell.population}, {cell.reports} reports a key, epsilon {cell.epsilon:g}"


def over_the_best(what: str, which: str, ratio: float, note: str, target: float | None = None) -> Figure:
    """An error as a multiple of the best of the others."""
    return Figure(
        room="keyvalue",
        name=f"RMSE of {what} over the best of mle, posterior, em, {which}",
        ours=ratio,
        peer=1.0,
        peer_name="the best of three in each cell",
        unit="ratio",
        ratio=1 / ratio,
        target=target,
        note=note,
    )


def _covered(runs: int) -> list[Figure]:
    """What intervals that are right on average over the keys cover: on average, and for the keys that many people hold."""
    figures = []
    for name, population, keys, epsilon, reports in (
        ("Zipf", TUNED["zipf"], 300, 1.0, 1000),
        ("log-normal", SEEN["log-normal"], 300, 1.0, 1000),
        ("dominating", TUNED["dominating"], 50, 0.5, 1000),
        ("two minds", SEEN["two minds"], 100, 1.0, 1000),
        ("half everybody", ADVERSE["half everybody"], 50, 4.0, 2000),
        ("upper half", ADVERSE["upper half"], 50, 4.0, 2000),
        ("two groups", ADVERSE["two groups"], 50, 4.0, 2000),
    ):
        study = Study(keys=list(range(keys)), epsilon=epsilon, protocol="kv3")
        inside: dict[str, list[tuple[float, float, float]]] = {"each": [], "average": []}
        for seed in range(runs):
            f, m = population(keys, np.random.default_rng(seed))
            tally = study.simulate(f, m, n=reports * keys, random_state=seed)
            for kind, kept in inside.items():
                ends = tally.estimate(interval=kind).frequency_interval
                holds = (ends[:, 0] <= f) & (f <= ends[:, 1])
                kept.append((float(holds.mean()), float(f @ holds / f.sum()), float(np.diff(ends).mean())))
        for place, what in enumerate(("covered, keys alike", "covered, keys by frequency", "length")):
            ours, each = (float(np.mean([one[place] for one in inside[kind]])) for kind in ("average", "each"))
            title = f"95 % intervals right on average, {name}, d = {keys}, epsilon {epsilon:g}: {what}"
            figures.append(
                Figure(room="keyvalue", name=title, ours=ours, peer=each, peer_name="intervals of each key", unit="share")
            )
    return figures


def _many_keys() -> Figure:
    d = 100_000
    study = Study(keys=list(range(d)), epsilon=1.0, protocol="kv3")
    counts = study.simulate(0.9 / np.sqrt(np.arange(1, d + 1)), np.zeros(d), n=1000 * d, random_state=0).counts()
    point_estimates("shrunk", study.channel, counts)
    return Figure(
        room="keyvalue",
        name="shrunk estimates of 100,000 keys",
        ours=cpu_seconds(lambda: point_estimates("shrunk", study.channel, counts)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="The default estimator beside the best of the others.")
    parser.add_argument("--keys", type=int, nargs="+", default=[5, 20, 50, 300])
    parser.add_argument("--populations", choices=("tuned", "seen", "fresh", "adverse", "all"), default="all")
    parser.add_argument("--protocol", default="kv3")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    known = {"tuned": TUNED, "seen": SEEN, "fresh": FRESH, "adverse": ADVERSE}
    chosen = known if asked.populations == "all" else {asked.populations: known[asked.populations]}
    kept = []
    print("f, f weighted, m, m weighted: geometric mean, 95th percentile, maximum of the ratio to the best of three")
    for keys in asked.keys:
        for label, populations in chosen.items():
            found = list(cells(populations, keys=keys, protocol=asked.protocol, runs=asked.runs, seed=asked.seed))
            print(f"{label:<6} d = {keys:<5} {_told(found)}", flush=True)
            worst = sorted(found, key=lambda cell: -cell.ratios[0])[:3]
            for cell in worst:
                print(f"         {cell.ratios[0]:.3f} ± {cell.luck[0]:.3f}  {where(cell)}")
            kept += [asdict(cell) | {"kind": label, "protocol": asked.protocol, "ratios": cell.ratios} for cell in found]
    if asked.json is not None:
        asked.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
