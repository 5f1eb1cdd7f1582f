from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from sabun.density.smooth import Evidence, Smoothness, fitted


def problem(rows: int, columns: int, seed: int) -> tuple[np.ndarray, Smoothness, np.ndarray]:
    table = np.random.default_rng(seed).normal(size=(rows, columns))
    smoothness = Smoothness.of(table, tau2=0.5)
    return table, smoothness, smoothness.features(table)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 50), rows=st.integers(2, 60), columns=st.integers(1, 4), far=st.floats(-1, 1),
    noise=st.floats(1e-14, 1e6), size=st.floats(1, 1e9),
)  # fmt: skip
def test_any_release_gives_weights(seed: int, rows: int, columns: int, far: float, noise: float, size: float) -> None:
    table, _, features = problem(rows, columns, seed)
    points = np.tanh(table) / 2
    mean = np.full(columns, far / columns**0.5)
    found = fitted(points, features, Evidence(mean=mean, noise=noise, ratio=2.0, rows=size))
    assert np.isfinite(found.share).all()
    assert found.share.min() >= 0
    assert found.share.sum() == pytest.approx(1.0)


def test_the_fit_is_where_the_posterior_is_flat() -> None:
    """b = J^T r: the pull of the release equals the pull of the prior."""
    table, _, features = problem(300, 2, 1)
    points = np.column_stack([np.tanh(table), np.sin(table)]) / 2
    truth = np.exp(table[:, 0] - 0.5)
    evidence = Evidence(mean=points.T @ truth / truth.sum(), noise=1e-5, ratio=1.0, rows=2000.0)
    found = fitted(points, features, evidence)
    assert found.converged
    root = linalg.cholesky(evidence.covariance(points, found.share), lower=True)
    residual = linalg.solve_triangular(root, evidence.mean - points.T @ found.share, lower=True)
    centred = features - found.share @ features
    pull = linalg.solve_triangular(root, (points * found.share[:, None]).T @ centred, lower=True)
    assert np.linalg.norm(pull.T @ residual - found.slope) < 0.02 * np.linalg.norm(found.slope)


def test_a_smooth_ratio_is_found_again() -> None:
    table, _, features = problem(1000, 2, 2)
    points = np.column_stack([np.cos(table @ w) for w in np.random.default_rng(0).normal(size=(2, 20)).T])
    truth = np.exp(0.8 * table[:, 0] - 0.2 * table[:, 1] ** 2)
    truth /= truth.sum()
    found = fitted(points, features, Evidence(mean=points.T @ truth, noise=1e-8, ratio=1.0, rows=1e6))
    assert ((found.share - truth) ** 2).sum() < 0.08 * ((truth - 1 / 1000) ** 2).sum()


def test_a_ratio_is_a_function_of_the_point() -> None:
    """What the coefficients of the landmarks say at the public rows is what the features say there."""
    table, smoothness, features = problem(500, 3, 3)
    slope = np.random.default_rng(0).normal(size=features.shape[1])
    tilt, constant = smoothness.tilt(slope)
    assert np.allclose(smoothness.log_ratio(table, tilt) + constant, features @ slope, atol=1e-6)
    assert np.abs(features.mean(axis=0)).max() < 1e-9


def test_larger_tau2_makes_the_ratio_flatter() -> None:
    table = np.random.default_rng(0).normal(size=(200, 2))
    wide, flat = (Smoothness.of(table, tau2=tau2).features(table) for tau2 in (0.5, 2.0))
    assert (wide**2).sum() == pytest.approx(4 * (flat**2).sum(), rel=1e-6)


@pytest.mark.parametrize("table", [np.zeros((5, 2)), np.array([[0.0], [1.0]]), np.array([[1e150], [-1e150], [3.0]])])
def test_poor_public_tables_have_features_too(table: np.ndarray) -> None:
    features = Smoothness.of(table, tau2=0.5).features(np.vstack([table, np.full((1, table.shape[1]), np.nan)]))
    assert np.isfinite(features).all()
