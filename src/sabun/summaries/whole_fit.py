"""A whole fit of every question of `sabun.summaries`: is the noise that is drawn what the promise needs?

What one person can change is worked out by hand, in units of the column: cells lie between -2 and 6, M = 6, K = 8.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from sabun.asking.evidence import Bench, Checklist, each, near, zeros
from sabun.asking.evidence.needed import rho_of
from sabun.privacy.noise import exponential_choice
from sabun.records import Column, Schema
from sabun.summaries import Count, Histogram, Mean, Quantiles, Sum, Variance, quantiles

__all__ = ["CHECKS"]

CHECKS = Checklist()

SCHEMA = Schema(columns=(Column.number("x", bounds=(-2, 6)), Column.category("g", ["a", "b", "c"])))
TABLE = np.array(
    [[value, label] for value, label in zip([-9, -2, 0, 1.5, 3, 6, 7, None], "abcaabbc", strict=True)], dtype=object
)
STEP = 2.0**-16
"""Marks of a column whose bounds are 8 apart: 8 is half of 2**4, and 20 binary digits are kept."""

# Changes by hand, L1 and squared L2: a person enters a group, moves from one to another, or changes the cell.
COUNT = {"add-remove": (1, 1), "replace-one": (2, 2)}
SUM = {"add-remove": (6, 36), "replace-one": (12, 72)}
MEAN = {"add-remove": (8, 64), "replace-one": (16, 128)}
VARIANCE = {"add-remove": (64, 64**2), "replace-one": (128, 2 * 64**2)}
BY_GROUP = [
    (Count, {}, COUNT, 1.0),
    (Sum, {"column": "x"}, SUM, STEP),
    (Mean, {"column": "x"}, MEAN, STEP),
    (Variance, {"column": "x"}, VARIANCE, STEP**2),
    (Histogram, {"column": "x", "bins": 4}, COUNT, 1.0),
    (Histogram, {"column": "g", "by": None}, COUNT, 1.0),
]


@CHECKS(
    "discrete Laplace noise",
    "discrete Gaussian noise",
    cases=each("asked how change unit", BY_GROUP),
    relation=["replace-one", "add-remove"],
)
def _noise_of_answers_by_group(bench: Bench, asked: Any, how: Any, change: Any, unit: float, relation: str) -> None:
    heard = bench.heard
    terms = {"schema": SCHEMA, "by": "g", "relation": relation} | how
    model = asked(epsilon=0.5, **terms).fit(TABLE)
    l1, l2_squared = change[relation]
    bench.enough(heard.only("discrete_laplace").parameter * unit, l1 / 0.5, waste=1.0001)
    bench.must(model.guarantee_.epsilon == Fraction(1, 2), "the promise is not what was asked for.")
    bench.must(model.guarantee_.delta == 0, "the promise is not what was asked for.")
    heard.draws.clear()
    model = asked(epsilon=0.5, delta=1e-6, **terms).fit(TABLE)
    bench.enough(heard.only("discrete_gaussian").parameter * unit**2, l2_squared / (2 * rho_of(0.5, 1e-6)), waste=1.01)
    bench.must(model.guarantee_.delta == Fraction(1, 10**6), "the promise is not what was asked for.")


ONE = [
    (Count, {"where": {"x": (0, None)}}, (1, 1), 1.0),
    (Sum, {"column": "x", "where": {"x": (0, None)}}, (8, 64), STEP),
    (Sum, {"column": "x"}, (8, 64), STEP),
    (Mean, {"column": "x", "where": {"g": "a"}}, (16, 128), STEP),
    (Mean, {"column": "x"}, (8, 64), STEP),
    (Variance, {"column": "x", "where": {"g": "a"}}, (128, 2 * 64**2), STEP**2),
    (Variance, {"column": "x"}, (144, 4 * 64**2), STEP**2),
    (Histogram, {"column": "x", "bins": 1}, (1, 1), 1.0),
]


@CHECKS("discrete Laplace noise", "discrete Gaussian noise", cases=each("asked how change unit", ONE))
def _noise_of_one_answer_under_replace_one(bench: Bench, asked: Any, how: Any, change: Any, unit: float) -> None:
    heard = bench.heard
    asked(epsilon=2, schema=SCHEMA, **how).fit(TABLE)
    bench.enough(heard.only("discrete_laplace").parameter * unit, change[0] / 2, waste=1.0001)
    heard.draws.clear()
    asked(epsilon=2, delta=1e-4, schema=SCHEMA, **how).fit(TABLE)
    bench.enough(heard.only("discrete_gaussian").parameter * unit**2, change[1] / (2 * rho_of(2, 1e-4)), waste=1.01)


@CHECKS("discrete Laplace noise")
def _without_noise_the_answers_are_exact(bench: Bench) -> None:
    heard = bench.heard
    heard.instead = zeros
    cells = np.array([-2, -2, 0, 1.5, 3, 6, 6, 2])  # clipped; the unreadable one counts as the middle
    of = {"a": cells[[0, 3, 4]], "b": cells[[1, 5, 6]], "c": cells[[2, 7]]}
    whole: dict[str, Any] = {"epsilon": 50, "schema": SCHEMA, "random_state": 1}
    bench.must(Sum(column="x", **whole).fit(TABLE).sum_ == cells.sum(), "the sum is another.")
    bench.must(Mean(column="x", **whole).fit(TABLE).mean_ == cells.mean(), "the mean is another.")
    bench.must(near(Variance(column="x", **whole).fit(TABLE).variance_, cells.var(), abs=1e-12), "the variance is another.")
    groups = whole | {"by": "g"}
    bench.must(Count(**groups).fit(TABLE).count_ == {"a": 3, "b": 3, "c": 2}, "the counts by group are others.")
    bench.must(
        Sum(column="x", **groups).fit(TABLE).sum_ == {name: values.sum() for name, values in of.items()},
        "the sums by group are others.",
    )
    means = Mean(column="x", **groups).fit(TABLE).mean_
    bench.must(
        all(near(means[name], values.mean(), abs=1e-12) for name, values in of.items()), "the means by group are others."
    )
    variances = Variance(column="x", **groups).fit(TABLE).variance_
    bench.must(
        all(near(variances[name], values.var(), abs=1e-12) for name, values in of.items()), "the variances by group are others."
    )
    counts = Histogram(column="x", bins=[-2, 0, 2, 6], **groups).fit(TABLE).histogram_
    bench.must(counts == {"a": (1, 1, 1), "b": (1, 0, 2), "c": (0, 1, 1)}, "the histograms by group are others.")


@CHECKS(
    "exponential mechanism",
    cases=each(
        "relation how moved",
        [
            ("add-remove", {"by": "g"}, Fraction(3, 4)),
            ("replace-one", {"by": "g"}, Fraction(3, 2)),
            ("replace-one", {"where": {"g": "a"}}, Fraction(1)),
            ("replace-one", {}, Fraction(1)),
        ],
    ),
)
def _quantiles_toss_with_what_their_ranks_can_move(bench: Bench, relation: str, how: Any, moved: Fraction) -> None:
    """The first quartile's rank n/4 moves by 1/4 where a person joins above it, by 3/4 below it, by 1 in place."""
    rates: list[Fraction] = []
    original = exponential_choice

    def listener(costs: Any, *, rate: Fraction, coin: Any) -> int:
        rates.append(rate)
        return original(costs, rate=rate, coin=coin)

    bench.replace(quantiles, "exponential_choice", listener)
    asked: dict[str, Any] = {
        "column": "x",
        "shares": ["1/4"],
        "epsilon": 3,
        "schema": SCHEMA,
        "relation": relation,
        "resolution": 1,
    }
    model = Quantiles(**asked, error_bar="1/3", **how).fit(TABLE)
    # Costs are in quarters of a rank; a draw loses 2 rate move, and two thirds of epsilon go to the quantile.
    spent = [2 * 4 * rate * moved for rate in rates]
    bench.must(
        spent == [2, Fraction(1, 2), Fraction(1, 2)] * (3 if "by" in how else 1),
        "the tosses spend otherwise than was asked for.",
    )
    bench.must(model.guarantee_.epsilon == 3, "the promise is not what was asked for.")
