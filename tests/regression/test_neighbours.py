"""Attempts to break the guarantee: black-box audits, neighbours, floats, what errors and sizes reveal."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from regression.worlds import CLINIC, clinic, totals, unit_study
from sabun.privacy.noise import seeded_coin
from sabun.regression import PrivateRidge, Study
from sabun.regression.perturbation import perturbed_minimiser
from sabun.regression.statistic import Moments, Totals
from sabun.regression.sufficient import add_noise, gauss_variance
from sabun.regression.sums import sums_of

LEVEL = 0.001


def lower_bound(hits: int, others: int, trials: int, delta: float = 0.0) -> float:
    """Clopper-Pearson lower bound on epsilon at 99.8 % from how often an event happened on two neighbours."""
    low = stats.beta.ppf(LEVEL, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - LEVEL, others + 1, trials - others)
    return math.log(max(low - delta, 1e-12) / high)


def audited(study: Study, first: np.ndarray, second: np.ndarray, score, trials: int) -> float:
    """The largest lower bound over thresholds of a score; thresholds come from a first half, counts from a second."""
    coin = seeded_coin(11)
    data = [totals(study.design, table[:, :-1], table[:, -1]) for table in (first, second)]
    scores = [np.array([score(study, moments, coin) for _ in range(2 * trials)]) for moments in data]
    cut = np.quantile(np.concatenate([half[:trials] for half in scores]), [0.1, 0.3, 0.5, 0.7, 0.9])
    one, two = scores[0][trials:], scores[1][trials:]
    bounds = [lower_bound(int((one > c).sum()), int((two > c).sum()), trials, float(study.delta)) for c in cut]
    bounds += [lower_bound(int((two <= c).sum()), int((one <= c).sum()), trials, float(study.delta)) for c in cut]
    return max(bounds)


def angle_pair() -> tuple[np.ndarray, np.ndarray]:
    """The neighbours of the sensitivity lemma: unit rows at 60 degrees with opposite targets."""
    near = [math.cos(math.pi / 3), math.sin(math.pi / 3), -1.0]
    return np.array([[1.0, 0.0, 1.0]]), np.array([near])


CHANGE = np.subtract(*(totals(unit_study(2).design, t[:, :-1], t[:, -1]).products for t in angle_pair())).astype(float)


def sums_score(study: Study, moments: Totals, coin) -> float:
    """Likelihood-ratio direction between the two neighbours."""
    value = add_noise(study, moments, coin)
    weight = 14 / 10 if study.mechanism == "ssp-laplace" else 1.0
    scale = 10 if study.mechanism == "ssp-laplace" else 1
    change = CHANGE
    gram = [value["gram"][0] / scale, value["gram"][1] / (scale * weight), value["gram"][2] / scale]
    direction = [change[0, 0], 2 * change[0, 1], change[1, 1]]
    return float(np.dot(direction, gram) + np.dot(change[:2, 2], np.array(value["moment"]) / scale))


@pytest.mark.parametrize(("mechanism", "trials"), [("ssp-gauss", 1500), ("ssp-laplace", 600)])
def test_a_black_box_audit_of_the_sums_stays_below_epsilon(mechanism: str, trials: int) -> None:
    study = unit_study(2, method=mechanism)
    found = audited(study, *angle_pair(), sums_score, trials)
    assert found <= 1.0
    if mechanism == "ssp-laplace":
        assert found > -0.1, "the audit sees the neighbours at all"


def test_the_audit_catches_a_quarter_of_the_noise() -> None:
    """A test of the test: a mechanism that claims epsilon 1 with the noise of epsilon 8 is caught."""
    loud = unit_study(2, method="ssp-laplace", epsilon=8)
    assert audited(loud, *angle_pair(), sums_score, 400) > 1.0


def test_a_black_box_audit_of_objective_perturbation_stays_below_epsilon() -> None:
    study = unit_study(1, method="objpert", epsilon=2)

    def score(terms: Study, moments: Totals, coin) -> float:
        return float(perturbed_minimiser(terms, moments, coin)["coefficients"][0])

    found = audited(study, np.array([[1.0, 1.0]]), np.array([[1.0, -1.0]]), score, 300)
    assert 0.1 < found <= 2.0


def test_outputs_reachable_from_one_table_are_reachable_from_its_neighbour() -> None:
    """The float attack: plain float64 outputs betray the table; here every output is a multiple of the grid."""
    study = unit_study(1, method="objpert", epsilon=1)
    coin = seeded_coin(4)
    seen = []
    for target in (1.0, -1.0):
        moments = totals(study.design, np.ones((3, 1)), np.full(3, target))
        seen.append([perturbed_minimiser(study, moments, coin)["coefficients"][0] for _ in range(150)])
    for values in seen:
        assert all(type(value) is int and abs(value) <= 2**20 for value in values)
        odd = sum(value % 2 for value in values if abs(value) < 2**20) / max(1, sum(abs(value) < 2**20 for value in values))
        assert 0.3 < odd < 0.7, "no arithmetic pattern in the last digit"


CELL = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True), st.none(), st.text(max_size=3), st.integers(-(10**400), 10**400)
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=4),
    st.sampled_from(["staged", "ssp-gauss", "ssp-laplace", "objpert"]),
)
def test_no_cell_can_raise_warn_or_change_a_size(rows: list[tuple[Any, ...]], mechanism: str) -> None:
    table = [[row[0], row[1]] for row in rows]
    target = [row[2] for row in rows]
    fitted = PrivateRidge(epsilon=1, method=mechanism, **CLINIC).fit(table, target)
    blank = PrivateRidge(epsilon=1, method=mechanism, **CLINIC).fit([[0, 10]] * len(rows), [0] * len(rows))
    assert {k: np.shape(v) for k, v in fitted.release_.value.items()} == {
        k: np.shape(v) for k, v in blank.release_.value.items()
    }
    assert np.isfinite(fitted.coef_).all()


@pytest.mark.parametrize("mechanism", ["staged", "ssp-gauss", "ssp-laplace", "objpert"])
def test_constant_and_collinear_features_are_no_event(mechanism: str) -> None:
    X = np.tile([[60.0, 35.0]], (500, 1))
    assert np.isfinite(PrivateRidge(epsilon=1, method=mechanism, **CLINIC).fit(X, np.full(500, 50.0)).coef_).all()


def test_one_neighbours_missing_cell_does_not_move_another_row() -> None:
    """A missing cell sends its whole block through a second computation; the other rows must not notice."""
    design = unit_study(3, clip_radius="0.7").design
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (100, 3)), rng.uniform(-1, 1, 100)
    with_missing = X.copy()
    with_missing[50] = np.nan
    rest = [i for i in range(100) if i != 50]
    lone = totals(design, np.full((1, 3), np.nan), y[50:51])
    wanted = Moments(design=design).merge(totals(design, X[rest], y[rest]), lone)
    assert np.array_equal(totals(design, with_missing, y).products, wanted.products)


def test_the_private_number_of_rows_is_nowhere_in_an_add_remove_release() -> None:
    X, y = clinic(7919)
    release = PrivateRidge(epsilon=1, relation="add-remove", **CLINIC).fit(X, y).release_
    assert b"7919" not in release.to_json()
    assert release["rows"] is None


def test_noise_comes_before_scale_is_undone() -> None:
    """Dividing by r**2 first would lengthen rows past 1; the whole numbers that get noise are those of the ball."""
    study = unit_study(2, epsilon=10**5)
    X, y = np.tile([[1.0, 0.0]], (1000, 1)), np.ones(1000)
    value = add_noise(study, totals(study.design, X, y), seeded_coin(0))
    assert value["gram"][0] <= 1000 * 4096**2 + 6 * math.sqrt(gauss_variance(study))
    assert sums_of(study, value).gram[0, 0] == pytest.approx(1000, rel=1e-3)


@pytest.mark.parametrize("mechanism", ["ssp-gauss", "ssp-laplace"])
def test_several_rows_of_a_person_need_as_many_times_the_noise(mechanism: str) -> None:
    spreads = []
    for people in (1, 4):
        study = unit_study(1, method=mechanism, records_per_person=people, epsilon=2)
        coin = seeded_coin(1)
        spreads.append(np.std([add_noise(study, Moments(design=study.design).zero(), coin)["moment"][0] for _ in range(200)]))
    assert 3 < spreads[1] / spreads[0] < 5.3


def test_the_ledger_is_charged_before_the_first_coin(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sabun.ledger import Ledger
    from sabun.regression import releasing

    ledger = Ledger.create(tmp_path / "l", name="l", epsilon=1, delta="1e-5")

    def crash(*_: Any) -> dict[str, Any]:
        assert ledger.spent.epsilon == Fraction(1, 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(releasing, "add_staged_noise", crash)
    with pytest.raises(KeyboardInterrupt):
        PrivateRidge(epsilon=0.5, ledger=ledger, **CLINIC).fit(*clinic(20))
    assert ledger.spent.epsilon == Fraction(1, 2)
