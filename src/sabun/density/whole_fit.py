"""A whole fit of every method of `sabun.density`: is the noise that is drawn what the promise needs?

The farthest neighbours of the embedding are fitted without noise; the others' sensitivities follow from public bounds.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sabun.asking.evidence import Bench, Checklist, near, zeros
from sabun.asking.evidence.needed import rho_of
from sabun.density import DensityRatio
from sabun.density.mechanism import EuclideanNoise
from sabun.privacy.noise import os_coin

__all__ = ["CHECKS"]

CHECKS = Checklist()


ROWS = 40
EPSILON = 5.0
FAR = np.vstack([np.random.default_rng(0).normal(0, 0.1, (60, 1)), np.random.default_rng(1).normal(9, 0.1, (60, 1))])
"""Two groups so far apart that the kernel between them is zero."""


def _ratio(private: Any, **how: Any) -> DensityRatio:
    method = how.get("method", "rkhs")
    kernels = {"bandwidth": 1.0} if method not in ("ulsif-parametric", "ji-elkan") else {}
    centres = {"centers": [[0.0], [9.0]]} if method in ("rkhs", "ulsif-b") else {}
    facts: dict[str, Any] = {"epsilon": EPSILON, "standardize": False, **kernels, **centres, **how}
    return DensityRatio(**facts).fit(private=np.asarray(private, dtype=float), public=FAR)


def _statistic(model: DensityRatio) -> NDArray[np.float64]:
    """What was released but for the noise: the sum of the embedded records and the number of those off the public support;
    under add-remove with the number of all."""
    value, size = model.release_.value, float(model.release_["private_rows"])
    counted = model.guarantee_.relation == "add-remove"
    return np.append(np.asarray(value["embedding"]) * size, [float(value["uncovered"]) * size, *([size] if counted else [])])


@CHECKS("rkhs", delta=[None, 1e-6], relation=["replace-one", "add-remove"])
def _the_density_embedding_has_noise_for_two_neighbours(bench: Bench, relation: str, delta: float | None) -> None:
    """The farthest neighbours are fitted without noise; the noise is measured in the units of what is released."""
    heard = bench.heard
    heard.instead = zeros
    half = [[0.0]] * (ROWS // 2), [[9.0]] * (ROWS // 2)
    here, there = half[0] + half[1], half[0][1:] + half[1] + ([[9.0]] if relation == "replace-one" else [])
    one, other = (_statistic(_ratio(table, relation=relation, delta=delta)) for table in (here, there))
    moved = float(np.linalg.norm(one - other))
    heard.instead = lambda draw: np.array([2**60] + [0] * (draw.count - 1), dtype=object)
    unit = abs(_statistic(_ratio(here, relation=relation, delta=delta))[0] - one[0]) / 2**60
    heard.draws.clear()
    model = _ratio(here, relation=relation, delta=delta)
    # The embedding of a record has length 1, two records with nothing in common lie a right angle apart; so does the count.
    # (One coordinate is enough to tell the two groups apart, but not for the whole length of a record.)
    bench.must(
        0.999 * math.sqrt(2 if relation == "replace-one" else 1.5) <= moved <= math.sqrt(2) * (1 + 1e-9),
        "the farthest neighbour moves the sums otherwise than is reckoned with.",
    )
    if delta is None:
        draw = heard.only("spherical_laplace")
        needed, deviation = math.sqrt(2) / EPSILON, draw.parameter * math.sqrt(draw.count + 1)
        bench.enough(draw.parameter * unit, needed, waste=1.01)
    else:
        draw = heard.only("discrete_gaussian")
        needed, deviation = math.sqrt(2 / (2 * rho_of(EPSILON, delta))), math.sqrt(draw.parameter)
        bench.enough(deviation * unit, needed, waste=1.01)
    bench.must(
        near(model.release_["noise_sd"], deviation * unit / model.release_["private_rows"], rel=1e-6),
        "the told deviation is not that of the noise.",
    )
    bench.must(
        (model.guarantee_.epsilon, float(model.guarantee_.delta)) == (EPSILON, delta or 0.0),
        "the promise is not what was asked for.",
    )


@CHECKS("rkhs", relation=["replace-one", "add-remove"])
def _the_uncovered_share_has_noise_like_the_rest(bench: Bench, relation: str) -> None:
    """Noise on that coordinate alone moves what is released as the uncovered share, by its own size."""
    heard = bench.heard
    table = [[0.0]] * (ROWS - 10) + [[100.0]] * 10
    heard.instead = zeros
    plain = _ratio(table, relation=relation).release_
    bench.must(near(plain["uncovered"], 10 / ROWS), "the uncovered share is not what the rows give.")
    place = len(plain["embedding"])
    heard.instead = lambda draw: np.array([2**61 * (index == place) for index in range(draw.count)], dtype=object)
    moved = _ratio(table, relation=relation).release_
    bench.must(
        near((moved["uncovered"] - plain["uncovered"]) * ROWS, 0.5),
        "noise of the share reaches it otherwise than is reckoned with.",
    )
    bench.must(np.array_equal(moved["embedding"], plain["embedding"]), "noise of the share reaches the embedding.")


@CHECKS("ulsif-b", "ulsif-parametric", "ulsif-c")
def _the_density_methods_of_the_paper_have_laplace_noise_for_their_bases(bench: Bench) -> None:
    heard = bench.heard
    table, centres, unit = [[0.0]] * ROWS, 2, 2.0**30
    _ratio(table, method="ulsif-b")
    bench.enough(heard.only("discrete_laplace").parameter, centres * unit / EPSILON, waste=1.01)
    heard.draws.clear()
    _ratio(table, method="ulsif-parametric", basis=lambda x: [1.0, x[0], -x[0]], basis_bounds=(-3.0, 1.0))
    wide = 3 * (1 - -3) / (3 / unit)
    bench.enough(heard.only("discrete_laplace").parameter, wide / EPSILON, waste=1.01)
    heard.draws.clear()
    model = _ratio(table, method="ulsif-c", n_centers=4, accept_publishing_raw_records=True)
    bench.enough(heard.only("discrete_laplace").parameter, 4 * unit / EPSILON, waste=1.01)
    bench.must(model.guarantee_.delta == Fraction(4, ROWS), "four rows are published as they are")


@CHECKS("ulsif-a")
def _the_density_method_with_noisy_centres_splits_its_epsilon(bench: Bench) -> None:
    heard = bench.heard
    model = _ratio([[0.0]] * ROWS, method="ulsif-a", n_centers=4, bounds=[(-1.0, 10.0)])
    centres, fit = heard.of("discrete_laplace")
    inside = 2.0**30 / centres.parameter  # what the sampled rows may spend
    outside = math.log1p(math.expm1(inside) * 4 / ROWS)  # that a row is sampled at all makes it less
    bench.must(near(outside + 4 * 2.0**30 / fit.parameter, EPSILON, rel=1e-6), "the two steps together do not spend epsilon.")
    bench.must(near(outside, EPSILON / 2, rel=1e-6), "the first step does not spend half of epsilon.")
    bench.must(model.guarantee_.epsilon == EPSILON, "the promise is not what was asked for.")


@CHECKS("ji-elkan", delta=[None, 1e-6])
def _the_density_baseline_has_noise_for_its_minimiser(bench: Bench, delta: float | None) -> None:
    heard = bench.heard
    radius, penalty = 3.0, 0.5
    model = _ratio([[0.0]] * ROWS, method="ji-elkan", clip_norm=radius, regularization=penalty, delta=delta)
    # One row changes the mean gradient by 2 R / n; strong convexity divides that by lambda.
    moved = 2 * radius / ROWS / penalty * 2.0**40
    if delta is None:
        bench.enough(heard.only("spherical_laplace").parameter, moved / EPSILON, waste=1.01)
    else:
        bench.enough(heard.only("discrete_gaussian").parameter, moved**2 / (2 * rho_of(EPSILON, delta)), waste=1.01)
    bench.must(
        (model.guarantee_.epsilon, float(model.guarantee_.delta)) == (EPSILON, delta or 0.0),
        "the promise is not what was asked for.",
    )


@CHECKS("ji-elkan", basis=[None, lambda x: [1.0, x[0]]])
def _a_wild_row_moves_the_minimiser_no_farther(bench: Bench, basis: Any) -> None:
    """Rows a thousand million apart, fitted without noise: the features are shortened to the clip norm."""
    heard = bench.heard
    heard.instead = zeros
    how: dict[str, Any] = {"method": "ji-elkan", "clip_norm": 3.0, "regularization": 0.5, "basis": basis}
    how["basis_bounds"] = None if basis is None else (-1e9, 1e9)
    one, other = (_ratio([[0.0]] * (ROWS - 1) + [[wild]], **how).release_["beta"] for wild in (1e9, -1e9))
    moved = float(np.linalg.norm(np.asarray(one) - np.asarray(other)))
    bench.must(0.01 < moved <= 2 * 3.0 / ROWS / 0.5 * (1 + 1e-6), "a person moves the weights otherwise than is reckoned with.")


@CHECKS("ulsif-parametric")
def _a_wild_row_moves_a_basis_no_farther_than_its_bounds(bench: Bench) -> None:
    heard = bench.heard
    heard.instead = zeros
    how: dict[str, Any] = {"method": "ulsif-parametric", "basis": lambda x: [x[0], -x[0]], "basis_bounds": (-3.0, 1.0)}
    one, other = (np.asarray(_ratio([[0.0]] * (ROWS - 1) + [[wild]], **how).release_["h"]) for wild in (1e9, -1e9))
    bench.must(
        near(np.abs(one - other).sum() * ROWS, 2 * (1 - -3), rel=1e-6),
        "a person moves the means otherwise than is reckoned with.",
    )


@CHECKS("rkhs", "ji-elkan", dimension=[1, 2, 7, 100])
def _the_stated_variance_is_that_of_the_law_that_is_drawn(bench: Bench, dimension: int) -> None:
    """The squared length of pure noise is that of a gamma number, shared alike by all coordinates."""
    l2, epsilon = Fraction(3), Fraction(1, 2)
    pure = EuclideanNoise(l2=l2, epsilon=epsilon, delta=None, dimension=dimension)
    square = float(stats.gamma(dimension, scale=float(l2 / epsilon)).moment(2)) / dimension
    bench.must(near(float(pure.variance), square, rel=1e-9), "intervals are made of other noise than is drawn.")
    heard = bench.heard
    pure.add([0] * dimension, coin=os_coin())
    bench.must(near(heard.only("spherical_laplace").parameter, float(l2 / epsilon)), "another scale is drawn.")
