from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from regression.worlds import totals, unit_study
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import Study
from sabun.regression.plausibility import FALSE_ALARM, _joint, _Noise, _sums_that_cannot_be
from sabun.regression.sufficient import add_noise, noise_level
from sabun.regression.sums import Sums, sums_of

ROWS = 1000


def boxed(**terms: Any) -> Study:
    facts: dict[str, Any] = {"features": Schema.of_bounds([(-1, 1)] * 4), "target": Column.number("y", lower=-1, upper=1)}
    return Study(**(facts | {"epsilon": 1, "method": "ssp-gauss"} | terms))


def honest(study: Study, seed: int, rows: int = ROWS, corner: bool = False) -> Sums:
    dice = np.random.default_rng(seed)
    size = (rows, len(study.features.columns))
    X = np.sign(dice.normal(size=size)) if corner else dice.uniform(-1, 1, size)
    y = np.sign(X[:, 0]) if corner else (X @ np.full(size[1], 0.3) + dice.normal(0, 0.1, rows)).clip(-1, 1)
    return sums_of(study, add_noise(study, totals(study.design, X, y), seeded_coin(seed)))


def changed(sums: Sums, **parts: Any) -> Sums:
    facts = {name: getattr(sums, name) for name in ("gram", "moment", "square", "rows", "noise")}
    return Sums(**(facts | parts))


def told(study: Study, sums: Sums) -> list[str]:
    return [what for what, bad in _sums_that_cannot_be(study, study.design, sums).items() if bad]


@pytest.mark.parametrize("corner", [True, False])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("mechanism", ["ssp-gauss", "ssp-laplace"])
@pytest.mark.parametrize("radius", [None, "0.8"])
def test_honest_releases_are_never_told_apart(radius: str | None, mechanism: str, relation: str, corner: bool) -> None:
    """Rows in the corners of the box use every bound up to its end."""
    for place, epsilon in enumerate(("0.1", "1", "100", "100000") if mechanism == "ssp-gauss" else ("0.5", "100")):
        study = boxed(method=mechanism, relation=relation, clip_radius=radius, epsilon=epsilon)
        for rows in (1, 300):
            for seed in range(3):
                assert told(study, honest(study, 100 * place + seed, rows, corner)) == []


def test_an_empty_table_is_plausible_where_its_size_is_private() -> None:
    study = boxed(relation="add-remove", epsilon=10**5)
    nobody = totals(study.design, np.zeros((0, 4)), np.zeros(0))
    assert told(study, sums_of(study, add_noise(study, nobody, seeded_coin(0)))) == []


def test_products_with_the_target_that_do_not_belong_to_the_features_are_told() -> None:
    """Each entry is possible by itself, together they have an eigenvalue far below what noise of 9.6 can give."""
    study = boxed()
    sums = honest(study, 0, 4000)
    together = ["products of features and target that no data can have together"]
    for moment in (np.full(5, 0.4 * 4000), -4 * sums.moment):
        forged = changed(sums, moment=moment)
        assert np.linalg.eigvalsh(_joint(forged, _Noise.of(study, forged))[0])[0] < -100
        assert told(study, forged) == together


def test_more_length_than_rows_can_have_is_told() -> None:
    study = unit_study(4)
    sums = honest(study, 0)
    for gram in (ROWS * np.eye(4), np.full((4, 4), float(ROWS))):
        assert np.trace(gram) > 3 * ROWS
        assert told(study, changed(sums, gram=gram)) == ["products of features that are too large"]


def test_a_constant_that_does_not_count_the_rows_is_told() -> None:
    study = boxed()
    sums = honest(study, 0)
    gram = sums.gram.copy()
    gram[-1, -1] /= 2
    assert told(study, changed(sums, gram=gram)) == ["a square of the constant that does not fit the number of rows"]
    shortened = boxed(clip_radius=1)
    gram = honest(shortened, 0).gram.copy()
    gram[-1, -1] /= 1.3
    assert told(shortened, changed(honest(shortened, 0), gram=gram)) == [], "shortened rows have a shorter constant"


def test_what_is_possible_for_some_table_is_not_told() -> None:
    study = boxed()
    sums = honest(study, 0)
    assert told(study, changed(sums, moment=-sums.moment)) == []


@pytest.mark.parametrize("mechanism", ["ssp-gauss", "ssp-laplace"])
def test_the_edge_is_where_the_noise_ends_and_not_far_beyond(mechanism: str) -> None:
    """Pure noise of 40 draws stays inside; half of the edge does not hold it."""
    study = unit_study(5, method=mechanism, epsilon="0.1")
    lows = []
    for seed in range(40):
        sums = honest(study, seed, 1)
        noise = _Noise.of(study, sums)
        lows.append(-np.linalg.eigvalsh(_joint(sums, noise)[0])[0] / noise.edge(6))
    assert max(lows) < 1
    assert max(lows) > (0.35 if mechanism == "ssp-gauss" else 0.25)


def test_the_noise_of_the_joint_matrix_is_nowhere_larger_than_that_of_the_products() -> None:
    for mechanism in ("ssp-gauss", "ssp-laplace"):
        for relation in ("replace-one", "add-remove"):
            study = boxed(method=mechanism, relation=relation)
            sums, level = honest(study, 0, 10), noise_level(study)
            noise = _Noise.of(study, sums)
            scale = _joint(sums, noise)[1]
            assert noise.gram >= level.gram
            assert noise.gram / 2 >= level.above
            assert scale**2 * noise.moment <= noise.gram / 2 * (1 + 1e-12)
            assert scale**4 * noise.square <= noise.gram * (1 + 1e-12)


@pytest.mark.parametrize("of", [1, 2, 40, 10**4])
def test_all_numbers_of_a_test_together_raise_no_more_false_alarms_than_it_may(of: int) -> None:
    """Sub-Gaussian numbers, in either direction: whatever they are, the chance that one of them reaches so far is this."""
    noise = _Noise(gram=1.0, moment=1.0, square=1.0, count=1.0, grid=0.0)
    for variance in (0.01, 1.0, 9.0):
        assert of * math.exp(-(noise.reach(variance, of=of) ** 2) / (2 * variance)) <= FALSE_ALARM / 20
