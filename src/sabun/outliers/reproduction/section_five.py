"""Section 5 of the paper: the radius of best accuracy, table 1, figures 4 and 5, and what its formulas imply.

The paper's figures have no numbers in the text and its delta is not given; what its formulas imply is computed here.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.outliers import smooth_bound
from sabun.outliers.kissing import global_bound
from sabun.outliers.ladder import Bands, Cover
from sabun.outliers.laws import PowerTail
from sabun.outliers.paper import (
    PrintedRungs,
    algorithm_two,
    printed_bound,
    printed_global_bound,
    theorem_one_sigma,
    theorem_two,
)
from sabun.outliers.reproduction.samples import INJECTED, NAMES, PAPER_RADIUS, K, Sample, accuracy, sample_of
from sabun.outliers.sensitivity import measure
from sabun.telling.reproduction import Figure, Table, drawn

__all__ = [
    "DELTA",
    "EPSILONS",
    "LARGE_DELTA",
    "Noise",
    "Radius",
    "Steps",
    "accuracy_figure",
    "cover_table",
    "floor",
    "floor_table",
    "noise_figure",
    "noise_of",
    "noise_table",
    "radii_of",
    "radius_table",
    "steps_of",
    "steps_table",
    "table_one",
]

EPSILONS = (0.2, 0.3, 0.5, 1.0)
DELTA = 1e-6
LARGE_DELTA = 0.999999


@dataclass(frozen=True, kw_only=True)
class Radius:
    """The radius of best accuracy under one scaling: medians over the draws."""

    name: str
    scaling: str
    low: float
    high: float
    best: float
    plain: float
    printed: float
    at_printed: float


@dataclass(frozen=True, kw_only=True)
class Noise:
    """Standard deviations of the noise at one epsilon, each draw at its own best radius: medians over the draws."""

    epsilon: float
    count: float
    lower: float
    laplace: float
    printed: float
    sound: float
    ours: float
    typical: float


@dataclass(frozen=True, kw_only=True)
class Steps:
    """One run of Algorithm 2: how many records Algorithm 1 is given at its first and last step, and what it returns."""

    name: str
    delta: float
    epsilon: float
    first: int
    stop: int
    last: int
    value: float
    whole: float


def radii_of(draws: int) -> list[Radius]:
    """Both data sets under both scalings."""
    found = []
    for name in NAMES:
        for scaling in ("z-score", "min-max"):
            samples = [sample_of(name, seed=seed, scaling=scaling) for seed in range(draws)]
            middle = statistics.median
            found.append(
                Radius(
                    name=name,
                    scaling=scaling,
                    low=middle(sample.best.low for sample in samples),
                    high=middle(sample.best.high for sample in samples),
                    best=middle(sample.best.accuracy for sample in samples),
                    plain=1 - INJECTED / len(samples[0].points),
                    printed=PAPER_RADIUS[name],
                    at_printed=middle(accuracy(sample, PAPER_RADIUS[name]) for sample in samples),
                )
            )
    return found


def radius_table(radii: list[Radius]) -> Table:
    """Where accuracy is best, beside the printed radius."""
    rows = [(r.name, r.scaling, r.low, r.high, r.best, r.plain, r.printed, r.at_printed) for r in radii]
    ours = ("data", "scaling", "best r from", "best r to", "accuracy", "all-inlier accuracy")
    columns = (*ours, "paper's r", "accuracy at paper's r")
    note = "Medians over the draws. Calling every record an inlier has the accuracy of the sixth column."
    return Table(name="radius", title="Radius of best accuracy (section 5.1)", columns=columns, rows=tuple(rows), note=note)


def table_one(samples: dict[str, Sample]) -> Table:
    """Table 1 of the paper, filled: one draw of each data set."""
    rows = []
    for name, sample in samples.items():
        for radius, which in ((sample.best.middle, "best"), (PAPER_RADIUS[name], "paper's")):
            rows.append((name, which, radius, *sample.cells(radius), accuracy(sample, radius)))
    columns = ("data", "radius", "r", "TP", "FP", "FN", "TN", "accuracy (26)")
    note = "The paper prints the meaning of the four cells and no numbers. One draw of each data set, z-scored."
    return Table(name="table-1", title="Table 1, filled", columns=columns, rows=tuple(rows), note=note)


def noise_of(name: str, draws: int) -> list[Noise]:
    """The noise of each mechanism over epsilon."""
    samples = [sample_of(name, seed=seed) for seed in range(draws)]
    found = []
    for epsilon in EPSILONS:
        each = [_noise(sample, epsilon) for sample in samples]
        names = ("count", "lower", "laplace", "printed", "sound", "ours", "typical")
        medians = {field: float(statistics.median(getattr(one, field) for one in each)) for field in names}
        found.append(Noise(epsilon=epsilon, **medians))
    return found


def _noise(sample: Sample, epsilon: float) -> Noise:
    radius, points = sample.best.middle, sample.points
    n, d = points.shape
    inverse, beta = theorem_two(epsilon=epsilon, delta=DELTA)
    exact = Fraction(str(epsilon))
    law = PowerTail(epsilon=exact, beta=exact / 5)
    q, bound = measure(points, k=K, radius=radius, beta=law.beta, cover="degeneracy", relation="replace-one")
    return Noise(
        epsilon=epsilon,
        count=q,
        lower=theorem_one_sigma(sensitivity=printed_global_bound(n=n, d=d, k=K), epsilon=epsilon, delta=DELTA),
        laplace=math.sqrt(2) * global_bound(n=n, d=d, k=K) / epsilon,
        printed=inverse * smooth_bound(points, k=K, radius=radius, beta=beta, cover="paper"),
        sound=inverse * smooth_bound(points, k=K, radius=radius, beta=beta),
        ours=law.deviation(float(bound)),
        typical=law.reach(float(bound), miss=0.5),
    )


def noise_table(name: str, rows: list[Noise]) -> Table:
    """The numbers behind figure 4 or 5."""
    columns = (
        "epsilon",
        "exact count",
        "global lower bound, Gaussian (paper)",
        "global, Laplace (sound)",
        "printed (24), Gaussian (paper, not private)",
        "sound ladder, Theorem 2 Gaussian",
        "sound ladder, power tail (ours)",
        "ours: median error",
        "Theorem 2 / ours",
    )
    cells = [(r.epsilon, r.count, r.lower, r.laplace, r.printed, r.sound, r.ours, r.typical, r.sound / r.ours) for r in rows]
    note = (
        f"Each draw at the middle of its own interval of best radii, k = {K}, delta = {DELTA:g} where there is one; ours "
        f"is pure "
        "epsilon. Standard deviations unless stated, medians over the draws."
    )
    return Table(name=f"noise-{name}", title=f"Noise on {name} (figures 4, 5)", columns=columns, rows=tuple(cells), note=note)


def noise_figure(name: str, rows: list[Noise]) -> Figure:
    """Figure 4 or 5 in the paper's form: the count, plus and minus one standard deviation of the noise."""
    number = 4 + NAMES.index(name)
    lines = {
        "lower": "global lower bound (paper)",
        "printed": "(24) as printed (paper)",
        "ours": "Sabun's default, pure epsilon",
    }

    def draw(axes: Any) -> None:
        for place, (field, label) in enumerate(lines.items()):
            where = [row.epsilon * (1 + 0.04 * (place - 1)) for row in rows]
            bars = [getattr(row, field) for row in rows]
            axes.errorbar(where, [row.count for row in rows], yerr=bars, fmt="o", capsize=4, label=label)
        axes.axhline(INJECTED, color="grey", linestyle=":", label="injected outliers")
        axes.set_yscale("symlog", linthresh=INJECTED)
        axes.margins(y=0.1)
        axes.set(xlabel="epsilon", ylabel="count ± standard deviation of the noise", title=name)
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.18))

    first = rows[0]
    note = (
        f"At epsilon = {first.epsilon:g} the count of {first.count:g} carries ± {first.lower:,.0f} by the global lower bound, "
        f"± {first.printed:,.0f} by (24) and ± {first.ours:,.0f} by our default (logarithmic beyond ± {INJECTED})."
    )
    return drawn(
        name=f"figure-{number}", title=f"Figure {number}: count ± noise on {name}", draw=draw, note=note, size=(6.4, 4.6)
    )


def floor(epsilon: float, delta: float) -> float:
    """The least deviation that (24) can give: it is at least max_t (t + 1) exp(-beta t) for every table."""
    inverse, beta = theorem_two(epsilon=epsilon, delta=delta)
    return inverse * max((t + 1) * math.exp(-beta * t) for t in range(math.ceil(3 / beta) + 2))


def floor_table() -> Table:
    """A floor under the paper's noise."""
    rows = [(epsilon, floor(epsilon, DELTA), floor(epsilon, LARGE_DELTA), INJECTED) for epsilon in EPSILONS]
    columns = ("epsilon", f"least deviation, delta = {DELTA:g}", "least deviation, delta -> 1", "count in the paper")
    note = "Whatever the data, (24) cannot give less noise than this, so the claimed small ratio to the count does not follow."
    return Table(name="floor", title="What (24) implies for every table", columns=columns, rows=tuple(rows), note=note)


def cover_table(samples: dict[str, Sample]) -> Table:
    """How tightly the covers bound a band."""
    rows = []
    for name, sample in samples.items():
        radius = sample.best.middle
        bands = Bands(sample.points, k=K, radius=radius, rungs=31)
        members = sample.points[bands.gained[: bands.gained_ends[-1]]]
        rough, link = Cover("degeneracy", members, radius), Cover("link-core", members, radius)
        for rung in (0, 5, 12, 20, 30):
            size = int(bands.gained_ends[rung])
            rows.append((name, rung, size, rough.on(size), link.on(size)))
    columns = ("data", "rung t", "records in the band", "degeneracy + 1", "link-core")
    note = "One draw each, at its best radius. The band of rung 0 is V(k - 1), which Algorithm 1 is given for (14)."
    return Table(name="covers", title="How tightly a band is bounded", columns=columns, rows=tuple(rows), note=note)


def steps_of(samples: dict[str, Sample]) -> list[Steps]:
    """Algorithm 2 on one draw of each data set, for a usual delta and for the kindest one."""
    found = []
    for name, sample in samples.items():
        radius, points = sample.best.middle, sample.points
        rungs = PrintedRungs(points, k=K, radius=radius)
        for delta in (DELTA, LARGE_DELTA):
            for epsilon in EPSILONS:
                _, beta = theorem_two(epsilon=epsilon, delta=delta)
                value, stop = algorithm_two(points, k=K, radius=radius, beta=beta)
                whole = printed_bound(points, k=K, radius=radius, beta=beta)
                sizes = {"first": rungs.members(0), "stop": stop, "last": rungs.members(max(0, stop - 1))}
                found.append(Steps(name=name, delta=delta, epsilon=epsilon, **sizes, value=value, whole=whole))
    return found


def steps_table(steps: list[Steps]) -> Table:
    """Where Algorithm 2 stops, and how many records it hands to Algorithm 1 on the way."""
    rows = [(s.name, s.delta, s.epsilon, s.first, s.stop, s.last, s.value, s.whole) for s in steps]
    columns = ("data", "delta", "epsilon", "records at t = 0", "stops at t", "records at the last t", "Algorithm 2", "(24)")
    note = (
        "Algorithm 1 looks at every set of the records it is given: 2 to the power of that number. Algorithm 2 stops once "
        "N exp(-beta t), which bounds LS and not (25), falls below the largest step, so that it may return less than (24)."
    )
    return Table(name="algorithm-2", title="Algorithm 2 on the paper's data", columns=columns, rows=tuple(rows), note=note)


def accuracy_figure(name: str, sample: Sample) -> Figure:
    """Accuracy over the radius."""
    best = sample.best
    radii = np.linspace(0.05, 2 * best.high, 300)

    def draw(axes: Any) -> None:
        axes.plot(radii, [accuracy(sample, float(r)) for r in radii], color="#4c72b0")
        axes.axvspan(best.low, best.high, color="#55a868", alpha=0.4, label="best")
        axes.axvline(PAPER_RADIUS[name], color="#c44e52", label="paper's r")
        axes.set(xlabel="radius r (z-scored data)", ylabel="accuracy (eq. 26)", title=name, ylim=(0, 1.02))
        axes.legend(frameon=False)

    called = sum(sample.cells(PAPER_RADIUS[name])[:2])
    note = f"At the paper's radius {called} of the {len(sample.points)} records are called outliers. Ours: not in the paper."
    return drawn(name=f"accuracy-{name}", title=f"Accuracy over the radius, {name}", draw=draw, note=note)
