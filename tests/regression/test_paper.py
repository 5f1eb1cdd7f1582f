from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from regression.worlds import clinic, totals, unit_study
from sabun.errors import BudgetExceeded
from sabun.ledger import Ledger
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, Study
from sabun.regression.paper import least_delta, printed_estimate
from sabun.regression.promise import guarantee_of


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.0027), (0.5, 0.0125), (1.0, 0.0226), (2.0, 0.038), (10.0, 0.089)])
def test_the_delta_of_eq_8_is_the_figure_in_the_errata(epsilon: float, delta: float) -> None:
    assert least_delta(epsilon, claimed=epsilon) == pytest.approx(delta, rel=0.02)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_the_delta_agrees_with_numerical_integration(ridge: float) -> None:
    epsilon, bound = 1.0, 1.0
    total, rate = ridge + 2 / epsilon, epsilon / (2 * (bound + 1))

    def excess(a: float) -> float:
        f = rate * (1 + total) / 2 * math.exp(-rate * (1 + total) * abs(a - 1 / (1 + total)))
        g = rate * total / 2 * math.exp(-rate * total * abs(a))
        return max(g - math.exp(epsilon) * f, 0.0)

    pieces = [quad(excess, low, high, limit=400)[0] for low, high in ((-200, -1), (-1, 0), (0, 1), (1, 200))]
    assert least_delta(epsilon, claimed=epsilon, coef_bound=bound, ridge=ridge) >= sum(pieces) - 1e-6


def test_no_epsilon_makes_delta_vanish() -> None:
    assert least_delta(6.0, claimed=1.0) > 9e-7
    assert least_delta(50.0, claimed=10.0) > 0


@pytest.mark.parametrize(("record", "centre", "scale"), [(0.0, 0.0, 2.0), (1.0, 1 / 3, 4 / 3)])
def test_draws_have_the_densities_that_were_integrated(record: float, centre: float, scale: float) -> None:
    study = unit_study(1, method="paper", ridge=0, clip_radius=None)
    coin = seeded_coin(0)
    data = totals(study.design, np.full((1, 1), record), np.full(1, record))
    drawn = [printed_estimate(study, data, coin)["estimate"][0] for _ in range(700)]
    assert stats.kstest(drawn, stats.laplace(centre, scale).cdf).pvalue > 1e-4
    assert stats.kstest(drawn, stats.laplace(centre, scale * 1.4).cdf).pvalue < 1e-3


def test_its_guarantee_says_that_there_is_none() -> None:
    X, y = clinic(300)
    model = PrivateRidge(epsilon=1, method="paper", x_bounds=[(0, 120), (10, 60)], y_bounds=(0, 100)).fit(X, y)
    assert model.guarantee_.epsilon == math.inf
    assert "no bound holds" in str(model.guarantee_)
    assert "not differentially private for any epsilon" in model.release_.provenance.notes[0]


def test_a_ledger_refuses_it(tmp_path) -> None:
    ledger = Ledger.create(tmp_path / "b", name="b", epsilon=100, delta="1e-3")
    with pytest.raises(BudgetExceeded):
        PrivateRidge(epsilon=1, method="paper", x_bounds=[(0, 120), (10, 60)], y_bounds=(0, 100), ledger=ledger).fit(
            *clinic(50)
        )
    assert ledger.spent.epsilon == 0


@pytest.mark.parametrize("epsilon", [700, 701, 1000, 10**9])
def test_the_printed_method_is_told_apart_at_any_epsilon(epsilon: int) -> None:
    assert least_delta(float(epsilon), claimed=float(epsilon)) >= 0
    study = Study(
        features=Schema.of_bounds([(-1, 1)]), target=Column.number("y", lower=-1, upper=1), epsilon=epsilon, method="paper"
    )
    assert guarantee_of(study).epsilon == float("inf")
