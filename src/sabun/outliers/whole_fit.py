"""A whole fit of every mechanism of `sabun.outliers`: is the noise that is drawn what the promise needs?

What one record can change is worked out by hand on a table of three records, the loss of the noise from its density.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sabun.asking.evidence import Bench, Checklist, near
from sabun.asking.evidence.needed import Density, hockey_stick, power_loss, rho_of
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice, count, enclosures, laws, regions, subspace, vector
from sabun.privacy.noise import os_coin

__all__ = ["CHECKS"]

CHECKS = Checklist()


LINE = np.array([[0.0], [2.0], [4.0]])
"""Three records, one neighbour needed within 1: all are outliers until a record between two of them makes both inliers."""
MOST = {"replace-one": 3, "add-remove": 2}
"""Replacing 4 by 1 ends all three outliers; adding 1 ends two, and no record on a line has more than two neighbours apart."""


def _count(**how: Any) -> OutlierCount:
    facts: dict[str, Any] = {"k": 1, "radius": 1.0, "epsilon": 1.0} | how
    return OutlierCount(**facts).fit(LINE)


def _settled(bench: Bench) -> list[list[float]]:
    """The magnitudes of continuous noise when every uniform number behind it is one half, draw by draw."""
    found: list[list[float]] = []
    for home in (laws, vector):
        original = home.settle

        def listener(uniforms: Any, compute: Any, original: Any = original) -> Any:
            with Bench() as half:
                half.replace(enclosures.Uniform, "ends", lambda _: (1 << 99, (1 << 99) + 1, 1 << 100))
                found.append([float(x.low) for x in compute(enclosures.Arithmetic(60))])
            return original(uniforms, compute)

        bench.replace(home, "settle", listener)
    return found


def _measured(bench: Bench) -> list[tuple[float, float]]:
    """(beta, S) of every smooth bound that was measured."""
    found: list[tuple[float, float]] = []
    for home, name in ((count, "measure"), (regions, "measure_regions")):
        original = getattr(home, name)

        def listener(*rows: Any, beta: Fraction, original: Any = original, **how: Any) -> Any:
            result = original(*rows, beta=beta, **how)
            found.append((float(beta), float(result[1])))
            return result

        bench.replace(home, name, listener)
    return found


@CHECKS("global-laplace", "global-gaussian", relation=["replace-one", "add-remove"])
def _global_outlier_noise_is_for_the_worst_table(bench: Bench, relation: str) -> None:
    heard = bench.heard
    _count(mechanism="global-laplace", relation=relation)
    bench.enough(heard.only("discrete_laplace").parameter, MOST[relation], waste=1.01)
    heard.draws.clear()
    _count(mechanism="global-gaussian", delta=1e-6, relation=relation)
    bench.enough(heard.only("discrete_gaussian").parameter, MOST[relation] ** 2 / (2 * rho_of(1, 1e-6)), waste=1.01)
    heard.draws.clear()
    # In the plane six records within a radius can be farther apart than it, each with k - 1 = 4 twins of its own.
    table = np.random.default_rng(0).uniform(0, 9, (60, 2))
    OutlierCount(k=5, radius=1.0, epsilon=1, mechanism="global-laplace", relation=relation).fit(table)
    bench.enough(heard.only("discrete_laplace").parameter, 5 * 6 + (relation == "replace-one"), waste=1.01)


@CHECKS("power", relation=["replace-one", "add-remove"], epsilon=[0.5, 2.0, 8.0])
def _pure_smooth_outlier_noise_keeps_its_share(bench: Bench, relation: str, epsilon: float) -> None:
    heard = bench.heard
    settled = _settled(bench)
    measured = _measured(bench)
    model = _count(epsilon=epsilon, relation=relation)
    [(beta, bound)], [[half]] = measured, settled
    bench.must(bound == MOST[relation], "the bound is not what a person can change.")
    for_count = 0.7 * epsilon
    power = for_count / beta
    theta = bound / half * math.expm1(math.log(2) / power)  # P(|z| > x) = (1 + theta x / S)^-p is 1/2 at the half
    loss = power_loss(theta, power=power, beta=beta)
    bench.must(
        loss <= for_count * (1 + 1e-9) < power_loss(theta * 1.01, power=power, beta=beta),
        "the noise of the count loses more than its share, or wastes it.",
    )
    # ln S moves by beta, which is 4096 steps of the grid, and one more where both ends are rounded.
    bar = heard.only("discrete_laplace").parameter
    bench.enough(bar, 4097 / (0.3 * epsilon), waste=1.01)
    bench.must(loss + 4097 / bar <= epsilon * (1 + 1e-9), "count and error bar together lose more than epsilon.")
    bench.must(model.guarantee_.epsilon == epsilon, "the promise is not what was asked for.")
    bench.must(
        model.release_.provenance.parameters["error_bar_epsilon"] == Fraction(3, 10) * Fraction(str(epsilon)),
        "the error bar is told to have cost another share.",
    )


@CHECKS("power")
def _without_an_error_bar_the_outlier_count_may_spend_everything(bench: Bench) -> None:
    heard = bench.heard
    settled = _settled(bench)
    measured = _measured(bench)
    _count(error_bar=0)
    [(beta, bound)], [[half]] = measured, settled
    bench.must(not heard.draws, "noise was drawn for an error bar that nobody asked for.")
    theta = bound / half * math.expm1(math.log(2) * beta)
    bench.must(
        power_loss(theta, power=1 / beta, beta=beta) <= 1 + 1e-9 < power_loss(theta * 1.01, power=1 / beta, beta=beta),
        "the noise of the count loses more than epsilon, or wastes it.",
    )


def _neighbours_delta(density: Callable[[float], Density], *, beta: float, epsilon: float, reach: float) -> float:
    """The largest delta between neighbours whose bounds are as different as beta allows, or the same; S is 1 or e^beta."""
    worst, wide = 0.0, math.exp(beta)
    for one, other in ((1.0, 1.0), (1.0, wide), (wide, 1.0)):
        there = density(other)
        for shift in (0.0, 1.0):
            moved = partial(lambda z, law, by: law(z - by), law=there, by=shift)
            worst = max(worst, hockey_stick(density(one), moved, epsilon, reach=reach))
    return worst


@CHECKS("laplace", "gaussian", epsilon=[1.0, 4.0], mechanism=["laplace", "gaussian"], relation=["replace-one", "add-remove"])
def _smooth_outlier_noise_with_a_delta_keeps_it(bench: Bench, mechanism: str, relation: str, epsilon: float) -> None:
    settled = _settled(bench)
    measured = _measured(bench)
    delta = 1e-4
    _count(mechanism=mechanism, delta=delta, epsilon=epsilon, error_bar=0, relation=relation)
    [(beta, bound)], [[half]] = measured, settled
    bench.must(bound == MOST[relation], "the bound is not what a person can change.")
    capped = min(epsilon, 2.0)
    if mechanism == "laplace":
        scale = half / bound / math.log(2)
        bench.enough(scale, 2 / capped, waste=1.0001)
        bench.enough(1 / beta, 2 * math.log(1 / delta) / capped, waste=1.0001)
        found = _neighbours_delta(
            lambda s: lambda z: np.exp(-np.abs(z) / (scale * s)) / (2 * scale * s), beta=beta, epsilon=epsilon, reach=60 * scale
        )
    else:
        sigma = half / bound / (0.5 * math.sqrt(2 * math.log(2) / 0.5))  # the polar method at x = y = 1/2
        log = math.log((1 + math.exp(capped / 2)) / delta)
        bench.enough(sigma, 5 * math.sqrt(2 * log) / capped, waste=1.0001)
        bench.enough(1 / beta, 4 * (1 + log) / capped, waste=1.0001)
        found = _neighbours_delta(
            lambda s: lambda z: np.exp(-((z / (sigma * s)) ** 2) / 2) / (sigma * s * math.sqrt(2 * math.pi)),
            beta=beta,
            epsilon=epsilon,
            reach=12 * sigma,
        )
    bench.must(found <= delta, "noise of neighbouring bounds has more than the promised delta.")


@CHECKS("power")
def _outlier_counts_by_region_share_their_noise(bench: Bench) -> None:
    heard = bench.heard
    settled = _settled(bench)
    measured = _measured(bench)
    parts: dict[str, dict[str, Any]] = {"left": {"x0": (None, 3)}, "right": {"x0": (3, None)}}
    model = RegionCount(regions=parts, k=1, radius=1.0, epsilon=2.0).fit(LINE)
    [(beta, bound)], [halves] = measured, settled
    bench.must(3 <= bound <= 4, "replacing 4 by 1 ends two outliers on the left and one on the right")
    for_counts = 0.7 * 2
    power = for_counts / beta
    bench.must(len(halves) == 2, "there is not one draw for each region.")
    bench.must(near(power, round(power)), "the exponent is not whole.")
    theta = bound / (halves[0] * power)  # each is (S / theta) E / G, with E = ln 2 and G = p ln 2
    loss = power_loss(theta, power=power, beta=beta, outputs=2)
    bench.must(
        loss <= for_counts * (1 + 1e-9) < power_loss(theta * 1.01, power=power, beta=beta, outputs=2),
        "the noise of the counts loses more than its share, or wastes it.",
    )
    bench.enough(heard.only("discrete_laplace").parameter, 4097 / (0.3 * 2), waste=1.01)
    bench.must(model.guarantee_.epsilon == 2, "the promise is not what was asked for.")


@CHECKS("permute-and-flip")
def _the_choice_of_a_subspace_tosses_with_half_its_epsilon(bench: Bench) -> None:
    table = np.column_stack([np.arange(12.0) * 5, np.zeros(12), np.repeat([0.0, 9.0, 30.0, 60.0], 3)])
    sides = {"apart": ["x0"], "together": ["x1"], "groups": ["x2"]}
    scores = {name: subspace.dampened_score(table[:, [i]], k=3, radius=1.0, cover="degeneracy") for i, name in enumerate(sides)}
    bench.must(len(set(scores.values())) >= 2, "the subspaces have one score, so that nothing shows.")
    tossed: list[Fraction] = []

    def toss(gamma: Fraction, *, coin: Any) -> bool:
        del coin
        tossed.append(gamma)
        return len(tossed) == len(sides)  # so that every one is asked

    bench.replace(subspace, "bernoulli_exp", toss)
    model = SubspaceChoice(subspaces=sides, k=3, radius=1.0, epsilon=0.5).fit(table)
    best = max(scores.values())
    # A score moves by at most 1; permute-and-flip keeps epsilon with exp(-epsilon (best - score) / 2).
    bench.must(
        sorted(tossed) == sorted(Fraction(1, 2) * (best - score) / 2 for score in scores.values()),
        "coins were tossed with other odds than the scores need.",
    )
    bench.must(model.guarantee_.epsilon == Fraction(1, 2), "the promise is not what was asked for.")


@CHECKS("power", "laplace", "gaussian", epsilon=[Fraction(1, 2), Fraction(5)])
def _intervals_are_made_of_the_tail_that_the_noise_has(bench: Bench, epsilon: Fraction) -> None:
    """Half of all draws lie beyond the one whose uniform number is a half; each width is exceeded as often as it was to be."""
    settled, delta, bound = _settled(bench), Fraction(1, 10**4), 10**6
    families: tuple[laws.Law, ...] = (
        laws.PowerTail(epsilon=epsilon, beta=epsilon / 6),
        laws.Laplace(epsilon=epsilon, delta=delta),
        laws.Gaussian(epsilon=epsilon, delta=delta),
    )
    for law in families:
        law.draw(Fraction(bound), coin=os_coin())
        if not isinstance(law, laws.Gaussian):
            bench.must(
                near(float(law.tail(np.array(settled[-1]) / bound)[0]), 0.5, rel=1e-4), f"{type(law).__name__}: its median."
            )
        for miss in (0.5, 0.05, 0.001):
            width = law.reach(float(bound), miss=miss) / bound
            bench.must(near(float(law.tail(np.array([width]))[0]), miss, rel=1e-3), f"{type(law).__name__}: missed {miss}.")


@CHECKS("power", outputs=[2, 5])
def _no_two_regions_have_noise_of_one_size(bench: Bench, outputs: int) -> None:
    """Of noise this wide two numbers are alike once in millions; eight times in a row they are so by design."""
    law = vector.PowerVector.of(epsilon=Fraction(1), outputs=outputs, beta=None)
    alike = [outputs - len({abs(one) for one in law.draw(Fraction(10**9), coin=os_coin())}) for _ in range(8)]
    bench.must(min(alike) == 0, "their difference tells what the noise should hide.")
