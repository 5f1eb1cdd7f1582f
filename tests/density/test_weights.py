from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sabun.density.weights import best_rank, calibrate, tuned


def problem(seed: int, rows: int, rank: int, shift: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, rank)) * np.logspace(0, -1, rank)
    return points, points.mean(axis=0) + shift * rng.normal(size=rank) * np.logspace(0, -1, rank)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000), rows=st.integers(2, 200), rank=st.integers(1, 8), shift=st.floats(0, 20),
    penalty=st.floats(1e-6, 1e6),
)  # fmt: skip
def test_weights_are_nonnegative_with_mean_one(seed: int, rows: int, rank: int, shift: float, penalty: float) -> None:
    points, target = problem(seed, rows, rank, shift)
    found = calibrate(points, target, penalty=penalty)
    assert np.isfinite(found.weights).all()
    assert (found.weights >= 0).all()
    assert found.weights.mean() == pytest.approx(1.0)
    assert 0 <= found.freedom <= rank


@pytest.mark.parametrize(
    ("rows", "rank", "shift", "penalty"), [(50, 4, 0.7, 1e-2), (500, 10, 0.3, 1e-3), (2000, 30, 0.2, 1e-3)]
)
def test_optimality_conditions_hold(rows: int, rank: int, shift: float, penalty: float) -> None:
    points, target = problem(1, rows, rank, shift)
    found = calibrate(points, target, penalty=penalty)
    assert np.abs(points.T @ found.weights / rows - target + penalty * found.slope).max() < 1e-8
    assert np.abs(found.at(points) - found.weights).max() < 1e-8


def test_weights_minimise_the_stated_objective() -> None:
    points, target = problem(2, 20, 3, 0.5)
    found = calibrate(points, target, penalty=0.05)

    def objective(w: np.ndarray) -> float:
        return float(np.sum((points.T @ w / 20 - target) ** 2) / 2 + 0.05 * np.mean((w - 1) ** 2) / 2)

    other = minimize(
        objective, np.ones(20), bounds=[(0, None)] * 20, constraints={"type": "eq", "fun": lambda w: w.mean() - 1}, tol=1e-12
    )
    assert objective(found.weights) <= objective(other.x) + 1e-8


def test_a_target_out_of_reach_still_gives_weights() -> None:
    points = np.random.default_rng(0).normal(size=(100, 2))
    found = tuned(points, np.array([1e6, -1e6]), noise=1e-8, tau2=0.5)
    assert found.weights.mean() == pytest.approx(1.0)


def test_no_shift_gives_even_weights_under_heavy_noise() -> None:
    rng = np.random.default_rng(4)
    points = rng.normal(size=(2000, 40)) * 0.1
    target = points.mean(axis=0) + 0.02 * rng.normal(size=40)
    w = tuned(points, target, noise=4e-4, tau2=0.5).weights
    assert w.sum() ** 2 / (w @ w) > 0.9 * 2000


def test_the_rank_falls_as_noise_grows() -> None:
    variances = np.logspace(0, -6, 50)
    ranks = [best_rank(variances, np.full(50, noise)) for noise in (1e-9, 1e-5, 1e-2, 1e3)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1] >= 1


def test_the_rank_minimises_the_expected_error() -> None:
    variances, noise = np.logspace(0, -4, 12), np.linspace(1, 2, 12) * 1e-3
    signal = 0.05 * variances
    errors = [(signal[:k] * noise[k - 1] / (signal[:k] + noise[k - 1])).sum() + signal[k:].sum() for k in range(1, 13)]
    assert best_rank(variances, noise) == int(np.argmin(errors)) + 1
