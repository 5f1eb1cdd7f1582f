from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sabun.density import DensityRatio
from sabun.density.logistic import Logistic
from sabun.density.method import Target
from sabun.errors import DataError, ParameterError

PURE = Target(epsilon=Fraction(1), delta=None, relation="replace-one")


def made(penalty: float = 0.1, clip_norm: float = 2.0) -> tuple[Logistic, np.ndarray]:
    rng = np.random.default_rng(0)
    plan = Logistic(public=rng.normal(size=(80, 2)), basis=None, clip_norm=clip_norm, penalty=penalty, target=PURE)
    return plan, rng.normal([1.0, 0.0], 1.0, (40, 2))


def beta(plan: Logistic, private: np.ndarray) -> np.ndarray:
    return plan._minimiser(plan._features(private), plan._features(plan.public))


@pytest.mark.parametrize(("penalty", "clip_norm"), [(0.1, 2.0), (0.001, 5.0), (1.0, 0.5)])
def test_no_neighbour_moves_the_solution_further_than_stated(penalty: float, clip_norm: float) -> None:
    plan, private = made(penalty, clip_norm)
    bound = float(plan._noise(len(private)).l2) / 2**40
    base = beta(plan, private)
    for row in ([1e9, 0.0], [-1e9, 1e9], [np.nan, 0.0], [np.inf, 1.0], [0.0, 0.0], [-3.0, -3.0]):
        changed = private.copy()
        changed[0] = row
        assert np.linalg.norm(beta(plan, changed) - base) <= bound


def test_the_gradient_at_the_end_is_as_short_as_the_proof_needs() -> None:
    plan, private = made(0.03, 50.0)
    private = np.vstack([private * 100, private])
    found = plan._newton(plan._features(private), plan._features(plan.public))
    gradient, _ = plan._slopes(found, plan._features(private), plan._features(plan.public))
    assert np.linalg.norm(gradient) <= 1e-8 * 50.0


def test_plain_descent_arrives_where_newton_does(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, private = made(0.05, 2.0)
    quick = beta(plan, private)
    monkeypatch.setattr(Logistic, "_newton", lambda *_: None)
    assert np.linalg.norm(beta(plan, private) - quick) <= 4e-8 * plan.clip_norm / plan.penalty


def test_newtons_method_arrives_all_over_the_public_range() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        columns, radius = int(rng.integers(1, 12)), 10 ** rng.uniform(-5, 5)
        penalty = min(radius**2 * 10 ** rng.uniform(-4.9, 2), 1e9)
        if penalty < 1.01e-5 * radius**2:
            continue
        sizes = 10 ** rng.uniform(-3, 6, 3)
        public, private = rng.normal(size=(50, columns)) * sizes[0], rng.normal(size=(40, columns)) * sizes[1] + sizes[2]
        plan = Logistic(public=public, basis=None, clip_norm=radius, penalty=penalty, target=PURE)
        assert plan._newton(plan._features(private), plan._features(public)) is not None


@pytest.mark.parametrize(
    ("penalty", "clip_norm", "message"),
    [
        (0.1, 1e7, "clip_norm must be from 1e-06 to 1e[+]06; got 10000000.0. Rescale the columns"),
        (0.1, 1e-7, "clip_norm must be from 1e-06"),
        (0.09, 100.0, "regularization must be from 0.1 .which grows with clip_norm squared. to 1e9; got 0.09"),
        (2e9, 1.0, "to 1e9; got 2000000000.0"),
    ],
)
def test_settings_beyond_the_error_bounds_are_refused(penalty: float, clip_norm: float, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        made(penalty, clip_norm)


def test_tables_beyond_the_error_bounds_are_refused() -> None:
    with pytest.raises(DataError, match="both tables must have at most 33554432 rows together"):
        made()[0].promise(2**25)
    with pytest.raises(ParameterError, match="features must be at most 4096; got 4097"):
        Logistic(public=np.zeros((2, 4096)), basis=None, clip_norm=1.0, penalty=1.0, target=PURE)


def test_features_are_never_longer_than_the_clip_norm() -> None:
    plan, _ = made(clip_norm=1.5)
    rows = np.array([[1e300, -1e300], [1e-300, 0.0], [3.0, 4.0], [np.nan, 1.0], [np.inf, 1.0]])
    lengths = [sum(Fraction(float(v)) ** 2 for v in row) for row in plan._features(rows)]
    assert all(length <= Fraction(1.5) ** 2 for length in lengths)
    assert lengths[3] == lengths[4] == 0


def test_ratios_are_exponentials_with_mean_one() -> None:
    rng = np.random.default_rng(1)
    private, public = rng.normal(1, 1, (4000, 1)), rng.normal(0, 1, (500, 1))
    ratio = DensityRatio(epsilon=5, method="ji-elkan", regularization=0.01).fit(private=private, public=public)
    assert abs(ratio.mean(0) - 1) < 0.25
    again = DensityRatio(
        epsilon=100,
        method="ji-elkan",
        regularization=0.01,
        basis=lambda x: [1, x[0], x[0] ** 2],
        basis_bounds=(-9, 9),
        delta=1e-6,
    ).fit(private=private, public=public)
    assert abs(again.mean(0) - 1) < 0.3
    assert again.guarantee_.delta == Fraction(1, 10**6)
