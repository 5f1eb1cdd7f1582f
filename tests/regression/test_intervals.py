from __future__ import annotations

import dataclasses
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from regression.worlds import totals
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Study, combine
from sabun.regression.evaluation import coverage
from sabun.regression.intervals import half_lengths
from sabun.regression.pooling import pooled, pull_of
from sabun.regression.simulation import simulated_study, world
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import sums_of

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.regression_coverage import World, drawn_world, measured, upper_limit

from sabun.errors import ParameterError
from sabun.regression.intervals import Doubt, record_half_lengths

ONE = np.eye(1)


def doubt(*, home: float = 0.0, freedom: float = np.inf, slope: float = 0.0, spread: float = 0.0, **facts: object) -> Doubt:
    parts = {"home": home * ONE, "slope": slope * ONE, "variances": np.array([0.04]), **facts}
    return Doubt(freedom=freedom, spread=spread, **parts)  # type: ignore[arg-type]


def half(error: float, unsure: Doubt, pull: float = 0.0, level: float = 0.95) -> float:
    return float(half_lengths(ONE, error * ONE, unsure, np.array([pull]), level)[0])


def test_a_known_error_without_a_pull_has_the_normal_quantile() -> None:
    assert half(4.0, doubt()) == pytest.approx(2 * stats.norm.ppf(0.975))


def test_an_error_from_home_alone_has_students_quantile() -> None:
    assert half(1.0, doubt(home=1.0, freedom=3)) == pytest.approx(stats.t.ppf(0.975, 3))


def test_degrees_of_freedom_are_those_of_welch_and_satterthwaite() -> None:
    """Two means of 5 and 9 values by the textbook's formula, the first variance as if its estimate were a lower quartile."""
    first, second = 2.0 / 5, 3.0 / 9
    likely = first * 4 / stats.chi2.ppf(0.25, 4)
    textbook = (likely + second) ** 2 / (likely**2 / 4 + second**2 / 8)
    # A variance of 8 degrees has a standard deviation of sqrt(2 / 8) of itself.
    unsure = doubt(home=first, freedom=4, slope=1 / 9, spread=3.0 * np.sqrt(2 / 8))
    assert half(first + second, unsure) == pytest.approx(np.sqrt(first + second) * stats.t.ppf(0.975, textbook))


@pytest.mark.parametrize("freedom", [3, 7])
def test_the_level_is_held_whatever_share_of_the_error_is_from_home(freedom: int) -> None:
    """By integration over the law of the estimated variance; degrees of freedom from the estimates alone hold 93.6 %."""
    estimates = stats.chi2.ppf((np.arange(120) + 0.5) / 120, freedom) / freedom
    for share in (0.05, 0.3, 0.5, 0.8, 0.9, 0.97, 1.0):
        halves = [half(share * one + 1 - share, doubt(home=share * one, freedom=freedom)) for one in estimates]
        held = float(np.mean(2 * stats.norm.cdf(halves) - 1))
        assert 0.949 <= held <= 0.96


@pytest.mark.parametrize("pull", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("level", [0.3, 0.95])
def test_a_pull_is_held_at_the_level_and_not_twice_over(pull: float, level: float) -> None:
    found = half(1.0, doubt(home=1.0, freedom=5), pull, level)
    law = stats.t(5)
    assert law.cdf(found - pull) - law.cdf(-found - pull) == pytest.approx(level)
    assert found < pull + law.ppf((1 + level) / 2)


def test_a_home_record_adds_its_own_residual_on_the_same_degrees_of_freedom() -> None:
    unsure = doubt(home=1.0, freedom=4, home_variance=3.0)
    found = record_half_lengths(ONE, ONE, unsure, np.zeros(1), 0.95)
    assert found == pytest.approx(2 * stats.t.ppf(0.975, 4))


def test_a_record_from_anywhere_is_held_on_average_over_the_variances() -> None:
    small, large = 0.01, 0.25
    unsure = doubt(variances=np.array([small, large]))
    found = record_half_lengths(ONE, 0.02 * ONE, unsure, np.array([0.1]), 0.9)[0]
    held = [
        np.diff(stats.norm.cdf([(-found - 0.1) / np.sqrt(0.02 + v), (found - 0.1) / np.sqrt(0.02 + v)])) for v in (small, large)
    ]
    assert np.mean(held) == pytest.approx(0.9)


def test_many_records_are_asked_in_blocks() -> None:
    rows = np.ones((5000, 1))
    found = record_half_lengths(rows, ONE, doubt(), np.zeros(5000), 0.95)
    assert len(found) == 5000
    assert np.ptp(found) == 0
    assert len(record_half_lengths(rows[:0], ONE, doubt(), np.zeros(0), 0.95)) == 0


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan"), "0.9"])
def test_a_confidence_must_be_one(confidence: object) -> None:
    for measure in (half_lengths, record_half_lengths):
        with pytest.raises(ParameterError, match="confidence must be above 0 and below 1"):
            measure(ONE, ONE, doubt(), np.zeros(1), confidence)  # type: ignore[arg-type]


BASE: dict[str, Any] = {"features": 1, "intercept": True, "signal": 0.15, "spread": 0.4, "correlation": 0.0, "between": 0.0}
MIXED = (0.03, 0.2, 0.03, 0.2)


@pytest.mark.parametrize(
    ("world", "before"),
    [
        # 3 degrees of freedom: prediction intervals with a normal quantile held 85 %.
        (World(organisations=3, rows=500, home_rows=5, residuals=(0.1,) * 3, home_residual=0.1, epsilon="1", **BASE), 0.85),
        # The home variance imposed on all: coefficient intervals held 30 to 75 %.
        (World(organisations=3, rows=2000, home_rows=30, residuals=(0.2,) * 3, home_residual=0.03, epsilon="10", **BASE), 0.75),
        # One variance for organisations that differ: prediction intervals of the public model held 91 %.
        (World(organisations=4, rows=2000, home_rows=None, residuals=MIXED, home_residual=0.1, epsilon="10", **BASE), 0.91),
    ],
)
def test_intervals_hold_where_one_variance_and_a_normal_quantile_did_not(world: World, before: float) -> None:
    found = measured(world, runs=120, seed=3)
    assert min(upper_limit(share, found.runs) for share in found.coefficients) > 0.95
    assert found.prediction > before
    assert found.prediction + 3.09 * found.prediction_error > 0.95


def test_a_world_is_its_number() -> None:
    assert drawn_world(1003) == drawn_world(1003) != drawn_world(1004)


def test_a_cover_that_is_certainly_too_low_fails() -> None:
    """The test of the test: 85 % of 300 is no 95 %."""
    assert upper_limit(0.85, 300) < 0.94 < upper_limit(0.92, 300)


def nearly_equal(dice: np.random.Generator, rows: int) -> np.ndarray:
    common = dice.uniform(-1, 1, (rows, 1))
    return np.repeat(common, 2, axis=1) * 0.95 + dice.normal(0, 0.05, (rows, 2)).clip(-0.05, 0.05)


def test_intervals_hold_coefficients_of_features_that_are_nearly_equal() -> None:
    """The prior pulls them towards 0, and 95 % intervals held 73 % of them."""
    study = Study(
        features=Schema.of_bounds([(-1, 1)] * 2),
        target=Column.number("y", lower=-1, upper=1),
        epsilon=3,
        coef_bound=2,
        method="ssp-gauss",
    )
    matrix, _ = study.design.original_units
    dice, truth, hits, before = np.random.default_rng(7), np.array([0.8, -0.6, 0.0]), 0, 0
    for place in range(100):
        sums = []
        for part in range(5):
            X = nearly_equal(dice, 3000)
            y = X @ truth[:2] + dice.normal(0, 0.05, 3000)
            noisy = add_noise(study, totals(study.design, X, y), seeded_coin(10 * place + part))
            sums.append(sums_of(study, noisy))
        found = pooled(study, sums)
        off = np.abs(matrix @ found.beta - truth)[:2]
        reach = half_lengths(matrix, found.error, found.doubt, pull_of(study, found.covariance, matrix), 0.95)
        hits += int((off <= reach[:2]).sum())
        before += int((off <= 1.96 * np.sqrt(np.diag(matrix @ found.covariance @ matrix.T))[:2]).sum())
    assert hits >= 0.92 * 200
    assert before < 0.85 * 200, "the posterior alone does not"


@pytest.mark.parametrize("home", [True, False])
def test_intervals_hold_in_every_setting_of_the_benchmark(home: bool) -> None:
    for setting in ("iid", "narrow", "collinear"):
        facts: dict[str, Any] = {"organisations": 5, "rows": 500, "epsilon": "1", "method": "ssp-gauss", "repeats": 20}
        assert coverage(setting, home=home, **facts) >= 0.93


def test_the_interval_of_what_noise_hides_reaches_as_far_as_coefficients_can() -> None:
    """Nothing but noise: every coefficient that the study allows must be inside."""
    study = Study(
        features=Schema.of_bounds([(-1, 1)] * 2),
        target=Column.number("y", lower=-1, upper=1),
        epsilon="1/1000",
        method="ssp-gauss",
        coef_bound=2,
        fit_intercept=False,
        clip_radius=1,
    )
    noisy = sums_of(study, add_noise(study, totals(study.design, np.zeros((3, 2)), np.zeros(3)), seeded_coin(0)))
    found = pooled(study, [noisy])
    reach = half_lengths(np.eye(2), found.error, found.doubt, pull_of(study, found.covariance, np.eye(2)), 0.95)
    assert (reach + np.abs(found.beta) >= 1.99).all()


def test_where_noise_hides_nothing_intervals_are_hardly_longer_for_it() -> None:
    study = simulated_study(features=5, epsilon=5)
    drawn = world(features=5, rows=5000, organisations=5, setting="iid", seed=0)
    found = pooled(study, [sums_of(study, add_noise(study, one, seeded_coin(s))) for s, one in enumerate(drawn.others)])
    reach = half_lengths(np.eye(5), found.error, found.doubt, pull_of(study, found.covariance, np.eye(5)), 0.95)
    assert (reach <= 1.1 * 1.96 * np.sqrt(np.diag(found.covariance))).all()


@pytest.mark.parametrize("epsilon", ["1/1000000", "1", "1000000000"])
def test_sums_of_any_size_under_a_prior_of_any_strength_give_finite_intervals(epsilon: str) -> None:
    """A coef_bound of 1e9 had no inverse beside large sums."""
    dice = np.random.default_rng(0)
    for bound in ("1e-9", "1e9"):
        terms: dict[str, Any] = {"epsilon": epsilon, "coef_bound": bound, "x_bounds": [(-1, 1)] * 3, "y_bounds": (-1, 1)}
        release = PrivateRidge(**terms).fit(np.zeros((5, 3)), np.zeros(5)).release_
        for top in (1, 2**20, 2**40, 2**62):
            signs = [int(sign) * top for sign in dice.choice([-1, 1], 15)]
            value = dict(release.value) | {"gram": signs[:10], "moment": signs[10:14], "square": signs[14]}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # implausible, and said to be
                model = combine([dataclasses.replace(release, value=value)])
            assert np.isfinite(model.conf_int()).all()
