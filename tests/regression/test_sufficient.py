from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from regression.worlds import totals, unit_study
from sabun.errors import ParameterError
from sabun.privacy import delta_of_rho
from sabun.privacy.noise import os_coin, seeded_coin
from sabun.regression.design import UNIT
from sabun.regression.statistic import Moments, Totals
from sabun.regression.sufficient import add_noise, gauss_variance, noise_level, weights_of
from sabun.regression.sums import sums_of


def empty(study) -> Totals:
    return Moments(design=study.design).zero()


def draws(study, count: int) -> dict[str, np.ndarray]:
    coin = seeded_coin(5)
    released = [add_noise(study, empty(study), coin) for _ in range(count)]
    flat = {name: np.array([np.atleast_1d(r[name]) for r in released], dtype=float) for name in ("gram", "moment", "square")}
    if study.relation == "add-remove":
        flat["count"] = np.array([[r["count"]] for r in released], dtype=float)
    return flat


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["ssp-gauss", "ssp-laplace"])
def test_noise_has_the_stated_variance_and_not_another(mechanism: str, relation: str) -> None:
    study = unit_study(2, method=mechanism, relation=relation)
    found, level, weights = draws(study, 700), noise_level(study), weights_of(study)
    undo = UNIT**2 * study.design.shrink**2
    columns = {
        "gram": found["gram"][:, [0, 2]] / (weights.diagonal * undo),
        "above": found["gram"][:, [1]] / (weights.above * undo),
        "moment": found["moment"] / (weights.moment * UNIT**2 * study.design.shrink),
        "square": found["square"] / (weights.square * UNIT**2),
    }
    if relation == "add-remove":
        columns["count"] = found["count"] / weights.count
    for name, values in columns.items():
        ratio = float(np.mean(values**2)) / getattr(level, name)
        assert 0.75 < ratio < 1.25, name
    assert float(np.mean(columns["gram"] ** 2)) > 1.3 * float(np.mean(columns["above"] ** 2)), "less noise above the diagonal"


def test_calibration_reproduces_the_table_of_the_specification() -> None:
    for epsilon, wanted in (("0.1", 39.46), ("0.5", 8.68), ("1", 4.53), ("2", 2.38), ("10", 0.570)):
        variance = gauss_variance(unit_study(2, epsilon=epsilon)) / UNIT**4
        assert math.sqrt(variance / Fraction(9, 2)) == pytest.approx(wanted, rel=2e-3)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_actual_parameters_keep_the_promise_for_random_neighbours(relation: str) -> None:
    study = unit_study(3, relation=relation, records_per_person=2, epsilon="1/2")
    V = gauss_variance(study)
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(300):
        tables = [np.sign(rng.normal(size=(2, 4))) * rng.choice([1, 1, 0.5], size=(2, 4)) for _ in range(2)]
        if relation == "add-remove":
            tables[1] = tables[1][:0]
        one, two = (totals(study.design, t[:, :3], t[:, 3]) for t in tables)
        change = (one.products - two.products).astype(float)
        diagonal, above = np.diag(change)[:3], change[:3, :3][np.triu_indices(3, 1)]
        u, w = (1.0, 0.0) if relation == "replace-one" else (0.5, 0.5)
        cost = np.sum(diagonal**2) + 2 * np.sum(above**2) + np.sum(change[:3, 3] ** 2) + (u * change[3, 3]) ** 2
        cost += (w * (one.rows - two.rows) * UNIT**2) ** 2
        worst = max(worst, cost / (2 * float(V)))
    assert delta_of_rho(Fraction(worst), epsilon=study.epsilon) <= study.delta
    assert delta_of_rho(2 * Fraction(worst), epsilon=study.epsilon) > study.delta, "the search found neighbours that matter"


def test_everything_released_is_a_whole_number_of_public_size() -> None:
    study = unit_study(4, relation="add-remove")
    value = add_noise(study, empty(study), os_coin())
    assert [len(value["gram"]), len(value["moment"])] == [10, 4]
    assert all(type(entry) is int for entry in [*value["gram"], *value["moment"], value["square"], value["count"]])
    assert value["rows"] is None


def test_the_number_of_rows_is_told_only_where_it_is_public() -> None:
    assert add_noise(unit_study(1), empty(unit_study(1)), os_coin())["rows"] == 0
    assert add_noise(unit_study(1, relation="add-remove"), empty(unit_study(1)), os_coin())["rows"] is None


def test_the_size_of_a_release_does_not_depend_on_rows() -> None:
    study = unit_study(2)
    few = add_noise(study, totals(study.design, np.zeros((1, 2)), np.zeros(1)), os_coin())
    many = add_noise(study, totals(study.design, np.ones((500, 2)), np.ones(500)), os_coin())
    assert {k: np.shape(v) for k, v in few.items()} == {k: np.shape(v) for k, v in many.items()}


def test_sums_return_to_row_units() -> None:
    study = unit_study(2, epsilon=1000, delta="1e-6")
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (20_000, 2)), rng.uniform(-1, 1, 20_000)
    sums = sums_of(study, add_noise(study, totals(study.design, X, y), os_coin()))
    assert sums.gram == pytest.approx(X.T @ X, rel=0.01, abs=5)
    assert sums.moment == pytest.approx(X.T @ y, abs=5)
    assert sums.square == pytest.approx(y @ y, rel=0.01)


def test_laplace_sums_return_to_row_units() -> None:
    study = unit_study(2, epsilon=1000, method="ssp-laplace", relation="add-remove")
    X, y = np.full((5000, 2), 0.3), np.full(5000, 0.5)
    sums = sums_of(study, add_noise(study, totals(study.design, X, y), os_coin()))
    assert sums.gram == pytest.approx(X.T @ X, rel=0.01)
    assert sums.moment == pytest.approx(X.T @ y, rel=0.01)
    assert sums.rows == pytest.approx(5000, abs=3)


def test_noise_that_cannot_be_stored_is_refused_before_anything_happens() -> None:
    study = unit_study(2, epsilon="1e-6", delta="1e-100", records_per_person=10_000)
    with pytest.raises(ParameterError, match="epsilon must be larger for so many records per person"):
        noise_level(study)


@pytest.mark.parametrize("people", [np.int8(100), np.int16(256), np.uint8(16), np.int64(100)])
def test_numpy_integers_give_the_noise_of_plain_ones(people: Any) -> None:
    first, plain = unit_study(records_per_person=people), unit_study(records_per_person=int(people))
    assert type(first.records_per_person) is int
    assert gauss_variance(first) == gauss_variance(plain) > gauss_variance(unit_study()) * (int(people) ** 2 - 1)
    assert first.hash == plain.hash
