from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from regression.worlds import totals, unit_study
from sabun.privacy.noise import seeded_coin
from sabun.regression.pooling import pooled
from sabun.regression.sufficient import add_noise, noise_level
from sabun.regression.sums import Home, home_sums, sums_of
from sabun.regression.variances import Variance, drawn_together, home_variance, mixed, released_variance


@pytest.mark.parametrize(("found", "deviation"), [(0.2, 0.05), (-0.3, 0.2), (0.9, 0.5), (2.0, 0.3), (-50.0, 0.1), (0.5, 10.0)])
def test_points_are_those_of_the_cut_normal_law(found: float, deviation: float) -> None:
    one = Variance(found=found, deviation=deviation)
    centre = max(found, -30 * deviation)
    law = stats.truncnorm((0 - centre) / deviation, (1 - centre) / deviation, loc=centre, scale=deviation)
    assert one.points == pytest.approx(law.ppf((np.arange(40) + 0.5) / 40), abs=1e-5)
    assert one.mean == pytest.approx(law.mean(), rel=0.02, abs=1e-5)
    assert np.all(np.diff(one.points) >= 0)
    assert one.points.min() > 0
    assert one.points.max() <= 1


def test_the_stated_deviation_is_that_of_the_estimate() -> None:
    """At the true coefficients, where the formula was derived; it is cautious by at most the two parts added."""
    study, beta, sd = unit_study(3), np.array([0.5, -0.4, 0.2]), 0.1
    dice, found, stated = np.random.default_rng(0), [], []
    for run in range(300):
        X = dice.uniform(-0.5, 0.5, (400, 3))
        moments = totals(study.design, X, X @ beta + dice.normal(0, sd, 400))
        one = released_variance([sums_of(study, add_noise(study, moments, seeded_coin(run)))], beta, 0.0)
        found.append(one.found)
        stated.append(one.deviation)
    spread, level = float(np.std(found)), noise_level(study)
    wanted = np.sqrt(level.square + 4 * (beta @ beta) * level.moment + (beta @ beta) ** 2 * level.gram) / 400
    assert spread == pytest.approx(wanted, rel=0.13)
    assert spread < 1.15 * np.median(stated) < 1.6 * spread
    assert np.mean(found) == pytest.approx(sd**2, abs=4 * spread / np.sqrt(300))


def test_the_coefficients_that_were_paid_for_are_given_back() -> None:
    """Hardly any noise: the plain sum of squares over n would be too small by 8 of 60."""
    study, dice = unit_study(8, epsilon=10**6, coef_bound=9), np.random.default_rng(1)
    found = []
    for run in range(100):
        X = dice.uniform(-0.35, 0.35, (60, 8))
        y = X @ np.full(8, 0.2) + dice.normal(0, 0.2, 60)
        noisy = add_noise(study, totals(study.design, X, y), seeded_coin(run))
        found.append(pooled(study, [sums_of(study, noisy)]).variance)
    assert np.mean(found) == pytest.approx(0.04, rel=0.07)


def test_organisations_that_agree_are_drawn_together_and_others_are_not() -> None:
    common = Variance(found=0.1, deviation=0.01)
    alike = [Variance(found=0.1 + off, deviation=0.05) for off in (-0.02, 0.0, 0.01, 0.01, 0.0)]
    assert [one.found for one in drawn_together(alike, common)] == [0.1] * 5
    apart = [Variance(found=value, deviation=0.005) for value in (0.01, 0.2, 0.02, 0.3, 0.01)]
    assert [one.found for one in drawn_together(apart, common)] == pytest.approx([one.found for one in apart], rel=0.03)
    assert drawn_together(alike[:1], common) == [common]


def test_a_record_comes_from_an_organisation_as_often_as_it_has_rows() -> None:
    small, large = Variance(found=0.01, deviation=1e-6), Variance(found=0.2, deviation=1e-6)
    points = mixed([small, large], [300, 100])
    assert np.sum(points > 0.1) == 10


def test_home_has_its_rows_less_its_coefficients_as_degrees_of_freedom() -> None:
    study, dice = unit_study(2), np.random.default_rng(0)
    found = []
    for _ in range(400):
        X = dice.uniform(-0.5, 0.5, (6, 2))
        moments = totals(study.design, X, X @ [0.3, 0.2] + dice.normal(0, 0.1, 6))
        variance, freedom = home_variance(home_sums(study, moments), np.ones(2)) or (0.0, 0)
        assert freedom == 4
        found.append(variance)
    assert np.mean(found) == pytest.approx(0.01, rel=0.12)
    assert np.var(found) == pytest.approx(2 * 0.01**2 / 4, rel=0.4)


def test_too_few_home_rows_are_reckoned_with_the_largest_variance() -> None:
    """Nobody can tell a variance from two rows too many, and the others' need not be that of home."""
    study, dice = unit_study(2, epsilon=5), np.random.default_rng(0)
    X = dice.uniform(-0.5, 0.5, (2000, 2))
    y = X @ [0.3, 0.2] + dice.normal(0, 0.02, 2000)
    sums = sums_of(study, add_noise(study, totals(study.design, X, y), seeded_coin(0)))
    home = home_sums(study, totals(study.design, X[:4], y[:4]))
    assert home_variance(home, np.ones(2)) is None
    found = pooled(study, [sums], home)
    assert found.doubt.home_variance == 1.0
    assert found.doubt.freedom == np.inf
    assert found.variance < 0.1, "the weight is that of the others"


def test_a_home_organisation_does_not_lend_its_variance_to_the_others() -> None:
    study, dice = unit_study(2, epsilon=10), np.random.default_rng(0)
    X = dice.uniform(-0.5, 0.5, (3000, 2))
    y = X @ [0.3, 0.2] + dice.normal(0, 0.2, 3000)
    sums = sums_of(study, add_noise(study, totals(study.design, X, y), seeded_coin(0)))
    exact = Home(gram=X[:50].T @ X[:50], moment=X[:50].T @ (X[:50] @ [0.3, 0.2]), square=0.0, rows=50)
    exact = Home(gram=exact.gram, moment=exact.moment, square=float(np.sum((X[:50] @ [0.3, 0.2]) ** 2)) + 48 * 1e-4, rows=50)
    found = pooled(study, [sums], exact)
    assert found.doubt.home_variance == pytest.approx(1e-4, rel=0.1)
    assert np.sqrt(found.doubt.variances.mean()) == pytest.approx(0.2, rel=0.2)
