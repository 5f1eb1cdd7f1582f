from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.learning_samples import data, problem
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier, objective
from sabun.learning.objective import ObjectivePerturbation
from sabun.learning.recompute import recompute
from sabun.learning.training import train, unheard
from sabun.privacy.noise import os_coin


def method(epsilon: str = "1", regularisation: str = "5") -> ObjectivePerturbation:
    given = problem(relation="replace-one", epsilon=Fraction(epsilon), delta=Fraction(0))
    return ObjectivePerturbation(problem=given, network=given.network(()), regularisation=Fraction(regularisation))


def test_the_parts_add_up_to_epsilon() -> None:
    for epsilon, regularisation in (("1", "5"), ("1/10", "50"), ("8", "0.625")):
        total, delta = recompute(method(epsilon, regularisation).account)
        assert total == Fraction(epsilon)
        assert delta == 0


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), regularisation=st.sampled_from([0.3, 2.0, 40.0]))
def test_replacing_a_row_moves_gradient_and_curvature_as_the_proof_says(seed: int, regularisation: float) -> None:
    generator = np.random.default_rng(seed)
    rows = generator.normal(size=(8, 3))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    other = rows.copy()
    other[3] = generator.normal(size=3)
    other[3] /= np.linalg.norm(other[3])
    signs = generator.choice([-1.0, 1.0], 8)
    point = generator.normal(size=3) * 5

    def gradient(z: np.ndarray) -> np.ndarray:
        return -(z * (signs / (1 + np.exp(signs * (z @ point))))[:, None]).sum(axis=0)

    def determinant(z: np.ndarray) -> float:
        share = 1 / (1 + np.exp(z @ point))
        return float(np.linalg.det((z * (share * (1 - share))[:, None]).T @ z + regularisation * np.eye(3)))

    assert np.linalg.norm(gradient(rows) - gradient(other)) <= 2 + 1e-12
    ratio = determinant(rows) / determinant(other)
    assert max(ratio, 1 / ratio) <= (1 + 0.25 / regularisation) * (1 + 1e-9)


def test_the_found_point_is_as_near_the_minimum_as_the_noise_pays_for() -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(300, 4))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    signs, tilt = generator.choice([-1.0, 1.0], 300), generator.normal(size=4) * 20
    rough = objective._minimum(rows, signs, 0.5, tilt, 5e-5)
    fine = objective._minimum(rows, signs, 0.5, tilt, 1e-12)
    assert np.linalg.norm(rough - fine) <= float(objective._SLACK) / 0.5


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_solver_settles_on_any_table(scale: float) -> None:
    generator = np.random.default_rng(1)
    found = objective._minimum(generator.normal(size=(50, 3)) * min(scale, 1.0), np.ones(50), 1e-2, np.full(3, scale), 5e-5)
    assert np.isfinite(found).all()


def test_weights_come_with_a_two_class_network() -> None:
    weights = train(method("8", "0.6"), data(500), coin=os_coin(), progress=unheard)["weights"]
    assert weights.shape == (8,)
    assert np.isfinite(weights).all()


def test_a_large_budget_approaches_the_unperturbed_minimum() -> None:
    table = data(4000, seed=3)
    table.labels[:] = (table.rows[:, 0] > 0).astype(np.int64)
    run = method("1000", "1")
    weights = train(run, table, coin=os_coin(), progress=unheard)["weights"]
    assert (run.network.probabilities(weights, table.rows).argmax(axis=1) == table.labels).mean() > 0.95


HALF = 200
STEP = np.r_[np.zeros(HALF), np.ones(HALF)][:, None]


@pytest.mark.filterwarnings("ignore:Even if every column told the classes apart")
@pytest.mark.parametrize(("epsilon", "regularisation"), [(10, "0.001"), (60, "0.001"), (1e6, None), (1e-6, None)])
@pytest.mark.parametrize("table", ["separable", "constant", "one class", "extreme", "one row"])
def test_the_solver_ends_whatever_the_rows(table: str, epsilon: float, regularisation: str | None) -> None:
    X, y = np.hstack([STEP, np.zeros((2 * HALF, 2))]), STEP.ravel().astype(int)
    X = X * 0 + 1 if table == "constant" else X
    y = y * 0 if table == "one class" else y
    if table == "extreme":
        X[0], X[1], X[2] = 5e-324, 1e300, -1e300
    if table == "one row":
        X, y = X[:1], y[:1]
    with np.errstate(all="raise"):
        clf = PrivateClassifier(
            method="objective-perturbation", epsilon=epsilon, regularisation=regularisation, classes=[0, 1], random_state=1
        ).fit(X, y)
    assert np.isfinite(clf.model_.weights).all()


def test_a_regularisation_too_small_for_floats_is_refused() -> None:
    with pytest.raises(ParameterError, match="regularization must be at least 1/1000, so that the solver always ends"):
        PrivateClassifier(method="objective-perturbation", epsilon=40, regularisation="1e-15", classes=[0, 1]).fit(
            STEP, STEP.ravel().astype(int)
        )


@pytest.mark.filterwarnings("ignore:Even if every column told the classes apart")
def test_a_solution_too_far_out_for_the_grid_is_cut() -> None:
    X, y = np.r_[np.zeros(100), np.ones(100)][:, None], np.r_[np.zeros(100, int), np.ones(100, int)]
    for seed in range(6):
        clf = PrivateClassifier(
            method="objective-perturbation", epsilon="5.8163", regularisation="0.001", classes=[0, 1], random_state=seed
        ).fit(X, y)
        assert np.isfinite(clf.model_.weights).all()
