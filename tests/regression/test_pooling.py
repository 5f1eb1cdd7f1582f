from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from regression.worlds import clinic, totals, unit_study
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import Study
from sabun.regression.pooling import pooled
from sabun.regression.simulation import errors_of, interval_hits, simulated_study, world
from sabun.regression.sufficient import add_noise
from sabun.regression.sums import home_sums, sums_of


def test_without_noise_the_pool_is_a_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (4000, 3))
    y = np.clip(X @ [0.5, -0.3, 0.1] + rng.normal(size=4000) * 0.1, -1, 1)
    study = unit_study(3)
    found = pooled(study, [], home_sums(study, totals(study.design, X, y)))
    ridge = Ridge(alpha=found.variance * 3, fit_intercept=False, solver="cholesky").fit(X, y)
    assert found.beta == pytest.approx(ridge.coef_, abs=2e-4)
    assert found.variance == pytest.approx(0.01, rel=0.1)


def test_a_huge_epsilon_gives_the_ordinary_regression_in_original_units() -> None:
    X, y = clinic(5000)
    study = Study(
        features=Schema.of_bounds([(0, 120), (10, 60)]),
        target=Column.number("y", lower=0, upper=100),
        epsilon=10**6,
        delta="1e-6",
        method="ssp-gauss",
    )
    sums = sums_of(study, add_noise(study, totals(study.design, X, y), seeded_coin(0)))
    matrix, shift = study.design.original_units
    found = matrix @ pooled(study, [sums]).beta + shift
    wanted = Ridge(alpha=1e-9).fit(X, y)
    assert found == pytest.approx([*wanted.coef_, wanted.intercept_], rel=5e-3)


def test_many_small_tables_say_what_one_large_table_says() -> None:
    study = unit_study(2, epsilon=50)
    X, y = np.random.default_rng(0).uniform(-0.6, 0.6, (400, 2)), np.linspace(-1, 1, 400)
    coin = seeded_coin(3)
    parts = [sums_of(study, add_noise(study, totals(study.design, X[i::4], y[i::4]), coin)) for i in range(4)]
    assert sum(part.rows for part in parts) == 400
    assert sum(part.gram for part in parts) == pytest.approx(X.T @ X, abs=6)
    whole = sums_of(study, add_noise(study, totals(study.design, X, y), coin))
    assert pooled(study, parts).beta == pytest.approx(pooled(study, [whole]).beta, abs=0.2)


def test_pure_noise_leaves_the_home_organisation_where_it_was() -> None:
    study = simulated_study(features=3, epsilon="1/1000")
    drawn = world(features=3, rows=300, organisations=3, setting="iid", seed=1)
    errors = errors_of(drawn, study, coin=seeded_coin(2))
    assert errors["pool"] == pytest.approx(errors["alone"], rel=0.2)


def test_many_organisations_help() -> None:
    study = simulated_study(features=5, epsilon=1)
    found = [
        errors_of(world(features=5, rows=1000, organisations=10, setting="narrow", seed=s), study, coin=seeded_coin(s))
        for s in range(6)
    ]
    medians = {name: np.median([errors[name] for errors in found]) for name in found[0]}
    assert medians["pool"] < 0.2 * medians["alone"]
    assert medians["public"] < 0.5 * medians["alone"]
    assert medians["pool"] < 0.05 * medians["mirror"]


@pytest.mark.parametrize(
    ("setting", "mechanism", "epsilon"), [("iid", "ssp-gauss", 1), ("narrow", "ssp-gauss", 5), ("narrow", "ssp-laplace", 1)]
)
def test_intervals_cover(setting: str, mechanism: str, epsilon: int) -> None:
    study = simulated_study(features=5, epsilon=epsilon, method=mechanism)
    hits = np.array(
        [
            interval_hits(
                world(features=5, rows=500, organisations=5, setting=setting, seed=s), study, coin=seeded_coin(1000 + s)
            )
            for s in range(40)
        ]
    )
    assert hits[:, 0].sum() / hits[:, 1].sum() >= 0.93


def test_the_variance_of_a_public_model_stays_in_public_limits() -> None:
    study = unit_study(2, epsilon="1/100")
    coin = seeded_coin(0)
    for _ in range(20):
        found = pooled(study, [sums_of(study, add_noise(study, totals(study.design, np.zeros((3, 2)), np.zeros(3)), coin))])
        assert 1e-3 <= found.variance <= 1
        assert np.isfinite(found.beta).all()
        assert np.all(np.linalg.eigvalsh(found.covariance) > 0)


def test_a_home_with_fewer_rows_than_coefficients_still_works() -> None:
    study = unit_study(3, epsilon=5)
    one = totals(study.design, np.array([[0.1, 0.2, 0.3]]), np.array([0.5]))
    sums = sums_of(study, add_noise(study, one, seeded_coin(0)))
    assert np.isfinite(pooled(study, [sums], home_sums(study, one)).beta).all()
