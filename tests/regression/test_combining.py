from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from regression.worlds import CLINIC, clinic
from sabun.errors import DataError, ParameterError
from sabun.regression import METHODS, HomeModel, PrivateRidge, PublicModel, combine
from sabun.release import Release


def releases(mechanism: str = "ssp-gauss", count: int = 3, rows: int = 3000) -> list[Release]:
    """Seeded, so that no test here depends on luck; real entropy is used in test_exchange and test_ridge."""
    terms = {"epsilon": 2, "mechanism": mechanism, **CLINIC}
    return [PrivateRidge(random_state=s, **terms).fit(*clinic(rows, seed=s)).release_ for s in range(count)]


SUMS, COEFFICIENTS = releases(), releases("objpert")
HOME = clinic(60, seed=99)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_sums(method: str) -> None:
    model = combine(SUMS, *HOME, method=method)
    assert isinstance(model, HomeModel)
    assert model.coef_ == pytest.approx([0.3, 0.5], abs=0.1)
    assert model.predict(HOME[0]).shape == (60,)
    assert model.score(*HOME) > 0.6


@pytest.mark.parametrize("method", ["mirror", "average", "stack", "best"])
def test_coefficients_combine_by_weights(method: str) -> None:
    model = combine(COEFFICIENTS, *HOME, method=method)
    assert model.weights is not None
    assert sum(model.weights) == pytest.approx(1)
    assert model.coef_ == pytest.approx([0.3, 0.5], abs=0.3)


def test_coefficients_cannot_be_pooled() -> None:
    with pytest.raises(ParameterError, match="'mirror', 'average' or 'best' where releases are by 'objpert'"):
        combine(COEFFICIENTS, *HOME)


def test_home_data_makes_a_home_model_and_its_absence_a_public_one() -> None:
    public = combine(SUMS)
    assert isinstance(public, PublicModel)
    assert "made of releases only" in str(public)
    home = combine(SUMS, *HOME)
    assert "NOT PRIVATE for the home data" in str(home)
    for way_out in ("save", "to_json", "sign", "release_", "to_release"):
        assert not hasattr(home, way_out)
    assert home.to_dict()["private_for_home"] is False


@pytest.mark.parametrize("intercept", [True, False])
def test_the_residuals_at_home_are_those_of_whole_rows(intercept: bool) -> None:
    """Rows weighted to the study's radius have small residuals: intervals of new records held 62 to 92 % of them."""
    rng = np.random.default_rng(3)
    X = rng.choice([-1.0, 1.0], (4 * 2000, 3))
    y = X @ [0.1, 0.1, 0.1] + 0.1 * rng.normal(size=len(X))
    terms = {"epsilon": 3, "x_bounds": [(-1, 1)] * 3, "y_bounds": (-1, 1), "clip_radius": 1, "fit_intercept": intercept}
    parts = np.split(np.arange(len(X)), 4)
    given = [PrivateRidge(random_state=at, **terms).fit(X[part], y[part]).release_ for at, part in enumerate(parts[:3])]
    for many in (40, 2000):
        home = parts[3][:many]
        model = combine(given, X[home], y[home])
        low, high = model.predict_interval(X).T
        assert np.mean((low <= y) & (y <= high)) > 0.9
        assert np.median(high - low) < 0.6
        assert model.coef_ == pytest.approx([0.1, 0.1, 0.1], abs=0.05)
    alone = combine(given, X[parts[3]], y[parts[3]], method="guard")
    assert alone.coef_ == pytest.approx([0.1, 0.1, 0.1], abs=0.05)


def test_too_few_home_rows_are_said_to_be_too_few() -> None:
    X, y = HOME
    assert combine(SUMS, X[:6], y[:6]).findings == ()
    few = combine(SUMS, X[:5], y[:5])
    assert few.findings[0].startswith("The home data has too few rows to tell how much its residuals vary")
    assert (np.diff(few.predict_interval(X[:3]), axis=1) > 100).all(), "a new target may be anywhere within its bounds"
    assert combine(SUMS[:1], X, y).findings == (), "one release and home data are two"


def test_methods_that_need_home_data_say_so() -> None:
    for method in ("guard", "mirror", "stack", "best"):
        with pytest.raises(ParameterError, match=f"method '{method}' must have home data; got none"):
            combine(SUMS, method=method)


def test_home_data_sharpens_the_model() -> None:
    big = clinic(5000, seed=5)
    public, home = combine(SUMS), combine(SUMS, *big)
    assert np.all(np.diag(home.cov_) < np.diag(public.cov_))


def test_home_files_and_frames_are_read(tmp_path: Path) -> None:
    frame = pd.DataFrame(HOME[0], columns=["x0", "x1"]).assign(y=HOME[1])
    frame.to_csv(tmp_path / "home.csv", index=False)
    wanted = combine(SUMS, *HOME).coef_
    assert combine(SUMS, tmp_path / "home.csv").coef_ == pytest.approx(wanted)
    assert combine(SUMS, frame).coef_ == pytest.approx(wanted)


def test_the_order_of_releases_does_not_matter() -> None:
    assert combine(SUMS[::-1]).coef_ == pytest.approx(combine(SUMS).coef_)


def test_guard_prefers_home_when_the_others_are_another_world() -> None:
    X, y = clinic(300, seed=7)
    other = 100 - y
    guard = combine(SUMS, X, other, method="guard")
    pool = combine(SUMS, X, other)
    truth = np.linalg.lstsq(np.c_[X, np.ones(300)], other, rcond=None)[0]
    assert np.linalg.norm(guard.coef_ - truth[:2]) < 0.5 * np.linalg.norm(pool.coef_ - truth[:2])
    with pytest.raises(DataError, match="method 'guard' must have at least 5 home rows"):
        combine(SUMS, X[:4], y[:4], method="guard")


def test_mirror_with_both_conventions_and_temperatures() -> None:
    jrt, paper = (combine(COEFFICIENTS, *HOME, method="mirror", convention=c).weights for c in ("jrt", "paper"))
    assert jrt == pytest.approx(paper, abs=0.05)
    assert max(combine(COEFFICIENTS, *HOME, method="mirror", tau=1e-6).weights) > 0.45
    best = combine(COEFFICIENTS, *HOME, method="best").weights
    assert sorted(best) == [0, 0, 1]


def test_bad_choices_are_refused() -> None:
    with pytest.raises(
        ParameterError, match="method must be one of 'pool', 'guard', 'mirror', 'average', 'stack', 'best'; got 'mean'"
    ):
        combine(SUMS, method="mean")
    with pytest.raises(ParameterError, match="convention must be one of 'jrt', 'paper'"):
        combine(SUMS, *HOME, method="mirror", convention="gibbs")
    with pytest.raises(ParameterError, match="tau must be finite and > 0"):
        combine(SUMS, *HOME, method="mirror", tau=-1)
    with pytest.raises(DataError, match="home data must have at least one row"):
        combine(SUMS, np.zeros((0, 2)), np.zeros(0))


def test_simulated_releases_make_a_model_that_says_so() -> None:
    seeded = [PrivateRidge(epsilon=2, random_state=s, **CLINIC).fit(*clinic(200, seed=s)).release_ for s in (1, 2)]
    model = combine(seeded)
    assert model.simulated
    assert str(model).startswith("NOT PRIVATE")


def test_the_papers_own_pipeline_runs_as_printed() -> None:
    model = combine(releases("paper"), *HOME, method="mirror", convention="paper")
    assert np.isfinite(model.coef_).all()
