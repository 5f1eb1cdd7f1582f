"""Plain answers beside OpenDP, diffprivlib and PipelineDP: mean error at equal epsilon, equal bounds, equal neighbours.

    python -m benchmarks.summaries [--quick] [--json FILE]

Every answer is asked many times about one public table (ages of the census); the error is its mean size over all draws.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Figure, cpu_seconds, main, run_peer
from sabun.datasets import load_adult
from sabun.records import Schema
from sabun.summaries import Count, Histogram, Mean, Quantiles, Sum, Variance

ROOM = "summaries"
EPSILON = 0.5
BOUNDS = (0.0, 120.0)
ROWS = 5000

DIFFPRIVLIB = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from diffprivlib import tools
data, times, epsilon, bounds = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), (0.0, 120.0)
x = data["x"]
exact = {"count": (x >= 65).sum(), "sum": x.sum(), "mean": x.mean(), "variance": x.var(), "median": np.median(x)}
asked = {
    "count": lambda: tools.count_nonzero(x >= 65, epsilon=epsilon),
    "sum": lambda: tools.sum(x, epsilon=epsilon, bounds=bounds),
    "mean": lambda: tools.mean(x, epsilon=epsilon, bounds=bounds),
    "variance": lambda: tools.var(x, epsilon=epsilon, bounds=bounds),
    "median": lambda: tools.median(x, epsilon=epsilon, bounds=bounds),
}
found = {name: float(np.mean([abs(ask() - exact[name]) for _ in range(times)])) for name, ask in asked.items()}
bins = np.histogram(x, bins=12, range=bounds)[0]
draws = [tools.histogram(x, epsilon=epsilon, bins=12, range=bounds)[0] for _ in range(times)]
found["histogram"] = float(np.mean(np.abs(np.array(draws) - bins)))
print(json.dumps(found))
"""

PIPELINE_DP = """
import json, sys
import numpy as np
import pipeline_dp
data, times, epsilon = np.load(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
x, groups = data["x"], data["g"]
rows = list(zip(range(len(x)), groups.tolist(), x.tolist()))
labels = sorted(set(groups.tolist()))
metrics = {"count": pipeline_dp.Metrics.COUNT, "sum": pipeline_dp.Metrics.SUM, "mean": pipeline_dp.Metrics.MEAN}
of = {g: x[groups == g] for g in labels}
exact = {name: {g: len(of[g]) if name == "count" else getattr(of[g], name)() for g in labels} for name in metrics}
errors = {name: [] for name in metrics}
for name, metric in metrics.items():
    for _ in range(times):
        accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=1e-12)
        engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
        params = pipeline_dp.AggregateParams(
            metrics=[metric], noise_kind=pipeline_dp.NoiseKind.LAPLACE, max_partitions_contributed=1,
            max_contributions_per_partition=1, min_value=0, max_value=120,
        )
        extract = pipeline_dp.DataExtractors(
            privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: row[2]
        )
        result = engine.aggregate(rows, params, extract, public_partitions=labels)
        accountant.compute_budgets()
        errors[name] += [abs(getattr(told, name) - exact[name][g]) for g, told in result]
print(json.dumps({name: float(np.mean(found)) for name, found in errors.items()}))
"""


def run(quick: bool) -> list[Figure]:
    """Errors beside three libraries, and the time of one answer."""
    times = 60 if quick else 600
    people = load_adult()
    frame = people.data.head(ROWS)
    schema = people.schema.replacing(Schema.of_bounds({"age": BOUNDS}).columns[0]).select(["age", "sex", "race"])
    x, groups = frame["age"].to_numpy(dtype=float), frame["race"].to_numpy(dtype=str)
    asked = _Asked(frame=frame[["age", "sex", "race"]], schema=schema, times=times)
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "table.npz")
        np.savez(file, x=x, g=groups)
        one = run_peer(DIFFPRIVLIB, file, str(times), str(EPSILON))
        other = run_peer(PIPELINE_DP, file, str(max(times // 20, 5)), str(EPSILON))
    figures = _everybody(asked, x, one)
    figures += _opendp(asked, x, times)
    figures += _by_group(asked, x, groups, other)
    return [*figures, _speed(asked)]


class _Asked:
    """One public table, asked many times."""

    def __init__(self, *, frame: Any, schema: Schema, times: int) -> None:
        self.frame, self.schema, self.times = frame, schema, times

    def error(self, question: Callable[..., Any], attribute: str, exact: Any, **how: Any) -> float:
        """The median error of many answers."""
        errors = []
        for seed in range(self.times):
            model = question(epsilon=EPSILON, schema=self.schema, random_state=seed, **how).fit(self.frame)
            found = getattr(model, attribute)
            if isinstance(exact, dict):
                middle = sum(BOUNDS) / 2  # the best guess about a group that is too small to tell
                errors += [abs((middle if found[name] is None else found[name]) - value) for name, value in exact.items()]
            else:
                errors += np.abs(np.asarray(found, dtype=float) - exact).ravel().tolist()
        return float(np.mean(errors))


TARGETS = {"variance": 1.5, "mean by race": 1.2}
"""Where our method is another one than the peer's; counts, sums and means over all rows have the same law everywhere."""

INTERPOLATED = "ages are whole numbers; diffprivlib draws between them, so its answer is never one"


def _figure(name: str, ours: float, peer: float, peer_name: str, note: str = "") -> Figure:
    return Figure(
        room=ROOM,
        name=f"{name}, {ROWS} rows, epsilon {EPSILON:g}",
        ours=ours,
        peer=peer,
        peer_name=peer_name,
        unit="mean error",
        ratio=peer / max(ours, 1e-12),
        target=TARGETS.get(name.partition(",")[0]),
        note=note,
    )


def _everybody(table: _Asked, x: Any, peer: dict[str, float]) -> list[Figure]:
    name = "diffprivlib 0.6.6"
    ours = {
        "count": table.error(Count, "count_", (x >= 65).sum(), where={"age": (65, None)}),
        "sum": table.error(Sum, "sum_", x.sum(), column="age"),
        "mean": table.error(Mean, "mean_", x.mean(), column="age"),
        "variance": table.error(Variance, "variance_", x.var(), column="age"),
        "median": table.error(Quantiles, "quantiles_", np.median(x), column="age", shares=["0.5"], error_bar=0),
    }
    notes = {"median": INTERPOLATED}
    figures = [_figure(f"{asked}, replace-one", ours[asked], peer[asked], name, notes.get(asked, "")) for asked in ours]
    bins = np.histogram(x, bins=12, range=BOUNDS)[0]
    found = table.error(Histogram, "histogram_", bins, column="age", bins=12, relation="add-remove")
    return [*figures, _figure("histogram of 12 bins, add-remove", found, peer["histogram"], name)]


def _opendp(asked: _Asked, x: Any, times: int) -> list[Figure]:
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    rows, name = x.tolist(), f"opendp {version('opendp')}"
    space = dp.vector_domain(dp.atom_domain(bounds=BOUNDS, nan=False), size=len(rows)), dp.symmetric_distance()
    # Replacing one row is one removed and one added: distance 2.
    mean = dp.binary_search_chain(lambda s: dp.t.make_mean(*space) >> dp.m.then_laplace(s), d_in=2, d_out=EPSILON)
    ours = asked.error(Mean, "mean_", x.mean(), column="age")
    theirs = float(np.mean([abs(mean(rows) - x.mean()) for _ in range(times)]))
    return [_figure("mean, replace-one", ours, theirs, name)]


def _by_group(asked: _Asked, x: Any, groups: Any, peer: dict[str, float]) -> list[Figure]:
    labels = sorted(set(groups.tolist()))
    how: dict[str, Any] = {"by": "race", "relation": "add-remove"}
    exact: dict[str, dict[str, float]] = {
        "count": {label: float((groups == label).sum()) for label in labels},
        "sum": {label: float(x[groups == label].sum()) for label in labels},
        "mean": {label: float(x[groups == label].mean()) for label in labels},
    }
    ours = {
        "count": asked.error(Count, "count_", exact["count"], **how),
        "sum": asked.error(Sum, "sum_", exact["sum"], column="age", **how),
        "mean": asked.error(Mean, "mean_", exact["mean"], column="age", **how),
    }
    note = "over five groups; one row for each person, public partitions, Laplace noise"
    return [_figure(f"{name} by race, add-remove", ours[name], peer[name], "pipeline-dp 0.3.1", note) for name in ours]


def _speed(asked: _Asked) -> Figure:
    seconds = cpu_seconds(lambda: Mean(column="age", epsilon=1, schema=asked.schema, by="race").fit(asked.frame))
    return Figure(room=ROOM, name=f"mean by race of {ROWS} rows, one answer", ours=seconds)


if __name__ == "__main__":
    main(run)
