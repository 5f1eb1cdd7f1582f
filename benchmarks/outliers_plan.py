"""What a plan says of a count in the digits: for every table alike, with a public reference, and what came."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.forecasts_outliers import _errors
from benchmarks.measure import Figure, main
from sabun.outliers import OutlierCount, suggest_radius
from sabun.outliers.plan import CountPlan

ROOM = "outliers_plan"
MEASURES = ("src/sabun/outliers",)
_K, _SHARE = 5, 0.02


def run(quick: bool) -> list[Figure]:
    table = load_digits().data[: 400 if quick else None]
    asked = OutlierCount(k=_K, radius=suggest_radius(table, k=_K, share=_SHARE), epsilon=1)
    alike = asked.plan(n_records=len(table), dimensions=table.shape[1])
    like = asked.plan(n_records=len(table), like=table)
    order = np.random.default_rng(7).permutation(len(table))
    reference, private = table[order[: len(table) // 2]], table[order[len(table) // 2 :]]
    halved = OutlierCount(k=_K, radius=suggest_radius(reference, k=_K, share=_SHARE), epsilon=1)
    foretold = halved.plan(n_records=len(private), like=reference)
    came = float(np.median(_errors(private, halved.radius, Fraction(1), _K)))
    return [
        _said("before: a plan that is the same for every table", alike, reach=alike.kindest_width),
        _said("with the digits as reference", like, reach=like.expected_width),
        _said("one half as reference, the other foretold", foretold, reach=foretold.expected_width),
        Figure(room=ROOM, name="one half as reference, what came (median)", ours=came, unit="records"),
        _said("limit: a table in which no record decides about others", alike, reach=alike.kindest_width),
    ]


def _said(name: str, plan: CountPlan, *, reach: float | None) -> Figure:
    """The middle of the first forecast; how far the interval reaches stands where a peer would."""
    return Figure(
        room=ROOM, name=name, ours=plan.forecasts[0].middle, peer=reach, peer_name="reach of the interval", unit="records"
    )


if __name__ == "__main__":
    main(run)
