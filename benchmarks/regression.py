"""Regression beside scikit-learn, scipy and diffprivlib: accuracy on the evaluation grid, speed of release and weights."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import scipy
import sklearn
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

from benchmarks.measure import Figure, cpu_seconds, faster, main, run_peer, wall_seconds
from sabun.asking import state_of
from sabun.privacy.noise import seeded_coin
from sabun.records import chunks
from sabun.regression import PrivateRidge, combine, mirror_weights
from sabun.regression.evaluation import coverage, grid
from sabun.regression.simulation import organisation_table, simulated_study, world
from sabun.regression.statistic import Labelled, Moments

ROOM = "regression"

FIT_PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import LinearRegression
n, p = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (n, p))
y = np.clip(X @ rng.normal(size=p) * 0.1, -1, 1)
best = float("inf")
for _ in range(3):
    start = time.process_time()
    LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False).fit(X, y)
    best = min(best, time.process_time() - start)
print(json.dumps({"seconds": best}))
"""

MIRROR_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import LinearRegression
data = np.load(sys.argv[1])
errors = []
for w in range(int(data["worlds"])):
    betas = []
    for X, y in zip(data[f"x{w}"], data[f"y{w}"]):
        m = LinearRegression(epsilon=1.0, bounds_X=(-1, 1), bounds_y=(-1, 1), fit_intercept=False).fit(X, y)
        betas.append(m.coef_ / max(1.0, np.linalg.norm(m.coef_)))
    betas = np.array(betas)
    losses = (data[f"t{w}"][:, None] - data[f"h{w}"] @ betas.T) ** 2
    sums = np.cumsum(losses, axis=0) / 8.0
    weights = np.exp(-(sums - sums.min(axis=1, keepdims=True)))
    weights = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    errors.append(float(np.sum((weights @ betas - data[f"b{w}"]) ** 2) / 0.64))
print(json.dumps({"error": float(np.median(errors))}))
"""

TABLE_PEER = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib.models import LinearRegression
data = np.load(sys.argv[1])
found = {}
for name in [key[:-2] for key in data.files if key.endswith("/X")]:
    X, y, T, u, lows, highs, ends = (data[f"{name}/{part}"] for part in ("X", "y", "T", "u", "lows", "highs", "ends"))
    for epsilon in (1.0, 3.0):
        errors = []
        for seed in range(5):
            m = LinearRegression(epsilon=epsilon, bounds_X=(lows, highs), bounds_y=tuple(ends), random_state=seed).fit(X, y)
            errors.append(float(np.mean((np.clip(m.predict(T), *ends) - u) ** 2) / np.var(u)))
        found[f"{name} {epsilon:g}"] = float(np.median(errors))
print(json.dumps(found))
"""


def run(quick: bool) -> list[Figure]:
    with threadpool_limits(1):
        return [*_speed(quick), *_tables(quick), *_accuracy(quick)]


def _tables(quick: bool) -> list[Figure]:
    """One organisation's public model on held-out rows: the former default, the new one, diffprivlib, no privacy at all."""
    tables = held_out_tables()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tables.npz"
        np.savez(path, **{f"{name}/{part}": value for name, table in tables.items() for part, value in table.items()})
        peers = run_peer(TABLE_PEER, str(path))
    figures = []
    for name, table in tables.items():
        limit = LinearRegression().fit(table["X"], table["y"]).predict(table["T"])
        best = float(np.mean((limit - table["u"]) ** 2) / np.var(table["u"]))
        for epsilon in (1, 3):
            runs = 5 if quick else 15
            new, old = (float(np.median(held_out_errors(table, method, epsilon, runs))) for method in ("staged", "ssp-gauss"))
            peer = peers[f"{name} {epsilon}"]
            note = f"MSE / variance, median; former default {old:.3g}, diffprivlib {peer:.3g}, without privacy {best:.3g}"
            figures.append(
                Figure(
                    room=ROOM,
                    name=f"{name}, {len(table['X']):,} rows, epsilon {epsilon}: held-out error",
                    ours=new,
                    peer=min(old, peer),
                    peer_name="ssp-gauss" if old < peer else "diffprivlib 0.6.6",
                    unit="MSE / variance",
                    ratio=min(old, peer) / new,
                    note=note,
                )
            )
    return figures


def held_out_model(table: dict[str, np.ndarray], method: str, epsilon: int) -> PrivateRidge:
    """A model of such a table before it is fitted."""
    bounds = list(zip(table["lows"], table["highs"], strict=True))
    return PrivateRidge(epsilon=epsilon, method=method, x_bounds=bounds, y_bounds=tuple(table["ends"]))


def held_out_errors(table: dict[str, np.ndarray], method: str, epsilon: int, repeats: int) -> list[float]:
    """Of one organisation's public model, over the variance of the target."""
    errors = []
    for _ in range(repeats):
        model = held_out_model(table, method, epsilon).fit(table["X"], table["y"])
        guess = np.clip(model.predict(table["T"]), *table["ends"])
        errors.append(float(np.mean((guess - table["u"]) ** 2) / np.var(table["u"])))
    return errors


def held_out_tables() -> dict[str, dict[str, np.ndarray]]:
    """Tables with round public bounds: three of scikit-learn's, three made up with a seed that nothing was tuned on."""
    dice, found = np.random.default_rng(20_311), {}
    cancer, wine, sugar = (load(return_X_y=True)[0] for load in (load_breast_cancer, load_wine, load_diabetes))
    progress = load_diabetes(return_X_y=True)[1]
    raw = {
        "diabetes": (sugar, progress, [(-0.2, 0.2)] * 10, (0, 400)),
        "cancer: area from 5 columns": (
            cancer[:, [0, 1, 4, 5, 7]],
            cancer[:, 3],
            [(5, 30), (5, 40), (0, 0.2), (0, 0.4), (0, 0.25)],
            (0, 2600),
        ),
        "wine: colour from 4 columns": (wine[:, [0, 1, 6, 12]], wine[:, 9], [(10, 16), (0, 6), (0, 6), (200, 1800)], (0, 14)),
    }
    for name, spread, centre, noise in (
        ("made up, centred", 0.5, 0.0, 0.1),
        ("made up, off centre", 0.15, 0.5, 0.1),
        ("made up, weak", 0.3, 0.0, 0.4),
    ):
        X = np.clip(centre + spread * dice.normal(size=(6000, 6)), -1, 1)
        y = np.clip((X - centre) @ dice.normal(size=6) * 0.1 / spread + noise * dice.normal(size=6000), -1, 1)
        raw[name] = X, y, [(-1, 1)] * 6, (-1, 1)
    for name, (X, y, bounds, ends) in raw.items():
        order = dice.permutation(len(X))
        train, test = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
        lows, highs = np.array(bounds, dtype=float).T
        X = np.clip(X, lows, highs)
        parts = {"X": X[train], "y": y[train], "T": X[test], "u": y[test], "lows": lows, "highs": highs}
        found[name] = parts | {"ends": np.array(ends, dtype=float)}
    return found


def _speed(quick: bool) -> list[Figure]:
    rows, columns = (100_000 if quick else 1_000_000), 50
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, columns))
    y = np.clip(X @ rng.normal(size=columns) * 0.1, -1, 1)
    terms = {"epsilon": 1, "delta": 1e-7, "x_bounds": (-1, 1), "y_bounds": (-1, 1), "fit_intercept": False}
    terms |= {"method": "ssp-gauss"}
    PrivateRidge(**terms).fit(X[:100], y[:100])
    ours = cpu_seconds(lambda: PrivateRidge(**terms).fit(X, y))
    ridge = cpu_seconds(lambda: Ridge(solver="cholesky", fit_intercept=False).fit(X, y))
    peer = run_peer(FIT_PEER, str(rows), str(columns))["seconds"]
    what = f"release, {rows:,} rows x {columns} features, CPU"
    figures = [
        faster(ROOM, what, ours=ours, peer=ridge, peer_name=f"scikit-learn {sklearn.__version__} Ridge", target=1 / 1.3),
        faster(ROOM, what, ours=ours, peer=peer, peer_name="diffprivlib 0.6.6", target=1 / 0.45),
    ]
    twice = cpu_seconds(lambda: PrivateRidge(**(terms | {"method": "staged"})).fit(X, y))
    figures.append(faster(ROOM, what + ", staged (read three times)", ours=twice, peer=peer, peer_name="diffprivlib 0.6.6"))
    few, goals = X[:1000, :5], y[:1000]
    small = cpu_seconds(lambda: PrivateRidge(**(terms | {"method": "staged", "delta": 1e-6})).fit(few, goals), repeat=9)
    plain = cpu_seconds(lambda: Ridge(solver="cholesky", fit_intercept=False).fit(few, goals), repeat=9)
    name = "release, 1,000 rows x 5 features, CPU"
    figures.append(faster(ROOM, name, ours=small, peer=plain, peer_name=f"scikit-learn {sklearn.__version__} Ridge"))
    design = simulated_study(features=columns, epsilon=1).design
    whole = cpu_seconds(lambda: state_of(Moments(design=design), Labelled(X, y)))
    table = np.column_stack([X, y])
    moments, pieces = Moments(design=design), [table[s : s + 20_000] for s in range(0, rows, 20_000)]
    streamed = cpu_seconds(lambda: state_of(moments, chunks(pieces)))
    figures.append(
        faster(ROOM, f"sums, {rows:,} rows streamed, CPU", ours=streamed, peer=whole, peer_name="in memory", target=0.9)
    )
    losses = rng.exponential(size=(100_000, 50)) * 0.1
    weights = cpu_seconds(lambda: mirror_weights(losses, tau=8.0, convention="paper"), repeat=7)
    plain = cpu_seconds(lambda: softmax(-np.cumsum(losses, axis=0) / 8.0, axis=1).mean(axis=0), repeat=7)
    name = "mirror weights, 100,000 records x 50 candidates, CPU"
    figures.append(faster(ROOM, name, ours=weights, peer=plain, peer_name=f"scipy {scipy.__version__} softmax", target=1 / 0.6))
    starts = range(0, 10_000, 200)
    few = [PrivateRidge(**terms).fit(X[s : s + 200, :20], y[s : s + 200]).release_ for s in starts]
    joined = wall_seconds(lambda: combine(few))
    figures.append(
        Figure(room=ROOM, name="combine 50 releases of 20 features, with influences", ours=joined, note="at most 0.2 s wanted")
    )
    return figures


def _accuracy(quick: bool) -> list[Figure]:
    repeats = 3 if quick else 24
    sizes = {"organisations": (2, 10), "rows": (200, 1000)} if quick else {}
    figures = []
    for setting, wanted in (("iid", 70), ("narrow", 76)):
        cells = list(grid(setting, repeats=repeats, **sizes))
        wins = sum(cell.pool_wins for cell in cells)
        by_median = sum(cell.errors["pool"] < cell.errors["alone"] for cell in cells)
        mean_ratio = float(np.exp(np.mean([np.log(cell.means["pool"] / cell.means["alone"]) for cell in cells])))
        worst = max(cell.means["pool"] / cell.means["alone"] for cell in cells)
        note = (
            f"{wins} of {len(cells)} cells by mean error over {repeats} worlds ({by_median} by median); "
            f"geometric mean of error / alone {mean_ratio:.3f}, worst cell {worst:.2f}"
        )
        share = wins / len(cells)
        name = f"{setting}: share of grid cells where pool beats home alone"
        target = None if quick else wanted / 80
        figures.append(Figure(room=ROOM, name=name, ours=share, unit="share", ratio=share, target=target, note=note))
    return [*figures, *_one_cell(repeats), *_coverage(quick)]


def _one_cell(repeats: int) -> list[Figure]:
    """Narrow regions, 10 organisations of 1000 rows, epsilon 1."""
    facts = {"organisations": (10,), "rows": (1000,), "epsilons": ("1",), "repeats": max(repeats // 2, 6)}
    pool = next(grid("narrow", **facts)).errors["pool"]
    name = "narrow, 10 x 1000 rows, epsilon 1: relative error"
    figures = []
    for mechanism, who, target in (("paper", "eq. (8) + mirror as printed", 20), ("objpert", "constrained + mirror", 20)):
        peer = next(grid("narrow", method=mechanism, **facts)).errors["mirror"]
        figures.append(
            Figure(room=ROOM, name=name, ours=pool, peer=peer, peer_name=who, unit="error", ratio=peer / pool, target=target)
        )
    peer = _diffprivlib_mirror(3)
    note = "symmetric bounds, coefficients projected to the ball; 3 worlds"
    figures.append(
        Figure(
            room=ROOM,
            name=name,
            ours=pool,
            peer=peer,
            peer_name="diffprivlib 0.6.6 + mirror",
            unit="error",
            ratio=peer / pool,
            target=20,
            note=note,
        )
    )
    return figures


def _diffprivlib_mirror(worlds: int) -> float:
    arrays: dict[str, object] = {"worlds": worlds}
    for place in range(worlds):
        drawn = world(features=5, rows=1000, organisations=1, setting="narrow", seed=place)
        tables = [organisation_table(seeded_coin(900 + 20 * place + m), drawn.beta, 1000, "narrow") for m in range(10)]
        arrays |= {f"x{place}": np.array([x for x, _ in tables]), f"y{place}": np.clip([y for _, y in tables], -1, 1)}
        arrays |= {f"h{place}": drawn.home_rows, f"t{place}": drawn.home_targets, f"b{place}": drawn.beta}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "worlds.npz"
        np.savez(path, **arrays)
        return run_peer(MIRROR_PEER, str(path))["error"]


def _coverage(quick: bool) -> list[Figure]:
    rows, many, repeats = ((200, 1000), (5,), 20) if quick else ((200, 1000, 5000), (5, 20), 60)
    found = [
        coverage(setting, organisations=m, rows=n, epsilon=epsilon, method=mechanism, repeats=repeats, home=home)
        for setting in ("iid", "narrow", "collinear")
        for home in (True, False)
        for m in many
        for n in rows
        for epsilon, mechanism in (("1", "ssp-gauss"), ("1", "ssp-laplace"), ("0.3", "ssp-gauss"), ("5", "ssp-gauss"))
    ]
    note = f"{len(found)} cells of {5 * repeats} intervals; least {min(found):.3f}, most {max(found):.3f}"
    inside = float(np.mean([share >= 0.9 for share in found]))
    target = None if quick else 1.0
    name = "cells whose 95 % intervals cover at least 90 %, nearly equal features included"
    return [Figure(room=ROOM, name=name, ours=inside, unit="share", ratio=inside, target=target, note=note)]


if __name__ == "__main__":
    main(run)
