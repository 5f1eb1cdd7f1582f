"""Residuals with unlike tails: what cutting them takes away is found in the released numbers, and given back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from sabun.asking import state_of
from sabun.errors import DataError, ParameterError
from sabun.privacy.noise import seeded_coin
from sabun.records import Column, Schema
from sabun.regression import PrivateRidge, PublicModel, Study
from sabun.regression.falling import public_posterior
from sabun.regression.mixing import _TAILS, Axes, Together, _kept_of_bias, tails_shown
from sabun.regression.pooling import pooled
from sabun.regression.sharing import shares_of
from sabun.regression.staged import Reading, add_staged_noise, free_level, level_for
from sabun.regression.stages import LEVELS, level_of
from sabun.regression.statistic import Labelled, Moments
from sabun.regression.sums import Sums, home_sums, sums_of, uncut

TRUTH = np.array([0.1, 0.1, 0.1, -0.67])


def study(**terms: Any) -> Study:
    facts: dict[str, Any] = {"features": Schema.of_bounds([(-1, 1)] * 3), "target": Column.number("y", lower=-1, upper=1)}
    return Study(**(facts | {"epsilon": 1} | terms))


def spiked(rows: int, seed: int, share: float = 0.02) -> Labelled:
    """A fiftieth of the rows lies 1.5 above the line: 7 deviations of the residuals, all on one side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (rows, 3))
    return Labelled(X, -0.7 + 0.1 * X.sum(axis=1) + 1.5 * (rng.random(rows) < share))


def released(terms: Study, table: Labelled, seed: int) -> Sums:
    return sums_of(terms, add_staged_noise(terms, Reading.of(terms, table), seeded_coin(seed)))


def test_skewed_residuals_leave_no_bias() -> None:
    """With the residuals as they are cut the constant was off by 0.02, at every number of rows."""
    terms, found = study(), []
    for seed in range(8):
        one = released(terms, spiked(20_000, seed), seed)
        matrix, shift = terms.design.original_units
        found.append(matrix @ public_posterior(terms, [one]).beta + shift - TRUTH)
    # A single constant has a deviation of 0.002: half of it sampling, the rest noise of the first sums.
    assert np.abs(found).max() < 0.013
    assert abs(np.mean(found, axis=0)[-1]) < 0.005


def test_intervals_hold_the_constant_of_skewed_residuals() -> None:
    """None of 60 did while they took the residuals for symmetric; one in 20 may miss, and those of light tails do."""
    held = light = 0
    for seed in range(12):
        table = spiked(4000, seed)
        model = PrivateRidge(study=study(epsilon=3), random_state=seed).fit(*table).model_
        low, high = model.intercept_interval()
        held += low <= TRUTH[-1] <= high
        assert low <= model.intercept_ <= high
        ends, short = model.conf_int(), model.conf_int(tails="light")
        light += np.mean(np.diff(short) / np.diff(ends)) / 12
    assert held >= 10
    assert light < 0.7
    with pytest.raises(ParameterError, match="tails"):
        model.conf_int(tails="thin")
    plain = PrivateRidge(study=study(method="ssp-gauss"), random_state=0).fit(*table).model_
    assert np.array_equal(plain.conf_int(tails="light"), plain.conf_int())


def test_a_model_file_keeps_what_its_intervals_lie_around(tmp_path: Path) -> None:
    model = PrivateRidge(study=study()).fit(*spiked(2000, 0)).model_
    model.save(tmp_path / "model.json")
    again = PublicModel.load(tmp_path / "model.json")
    for tails in ("any", "light"):
        assert np.array_equal(again.conf_int(tails=tails), model.conf_int(tails=tails))
    record = json.loads((tmp_path / "model.json").read_text())
    for change in (
        {"beta": [float("inf")] * 4},
        {"error": None},
        {"doubt": None},
        {"covariance": (-np.eye(4)).tolist()},
        {"beta": [1]},
    ):
        (tmp_path / "wrong.json").write_text(json.dumps(record | {"sound": record["sound"] | change}))
        with pytest.raises(DataError, match="must be a model file"):
            PublicModel.load(tmp_path / "wrong.json")
    del record["sound"]
    (tmp_path / "earlier.json").write_text(json.dumps(record))
    earlier = PublicModel.load(tmp_path / "earlier.json")
    assert np.array_equal(earlier.conf_int(), model.conf_int(tails="light")), "as the version that wrote it told them"


def _seen(one: Sums) -> Together:
    axes = Axes.of([one])
    return Together.of([one], axes)


def test_the_first_sums_count_where_they_differ_by_more_than_noise() -> None:
    terms = study()
    plain = released(terms, spiked(4000, 1, share=0.0), 1)
    again = plain.refined
    assert again is not None
    together = _seen(plain)
    deviation, constant = np.sqrt(together.plain + together.cut), together._constant
    aside = np.linalg.svd(constant[None, :])[2][1]
    for direction, kept in ((constant, (True, False)), (aside, (False, True))):
        moved = replace(plain, refined=replace(again, moment=again.moment + 40 * deviation * direction))
        parts = _seen(moved)._kept(float(together.cut))
        assert tuple(part < 0.01 for part in parts) == kept
        assert _seen(plain)._kept(float(together.cut)) == (1.0, 1.0)
    # What the mix takes of them is as far from the first c as a deviation of the noise, and no longer 40.
    mix = _seen(replace(plain, refined=replace(again, moment=again.moment + 40 * deviation * constant)))
    estimate = public_posterior(terms, [plain]).beta
    assert np.linalg.norm(mix.mixed(estimate, 0.01).moment - plain.moment) < 6 * deviation


def test_a_look_for_bias_costs_what_it_may() -> None:
    """Normal numbers of variance 1, and errors of a fifth or of a thousandth of that without looking."""
    squares = np.linspace(0.005, 80, 8000)
    for directions, error in ((1, 0.2), (4, 0.2), (4, 1e-3)):
        kept = np.array([_kept_of_bias(square, 1.0, directions, error) for square in squares])
        cost = np.sum(chi2.pdf(squares, directions) * squares * (1 - kept) ** 2) * 0.01 / directions
        assert 0.02 * error < cost < 0.05 * error
    assert _kept_of_bias(9.0, 1.0, 3, np.inf) == pytest.approx(1 / 3)
    assert _kept_of_bias(2.0, 1.0, 3, np.inf) == 1.0
    assert _kept_of_bias(2.0, 0.0, 3, 1.0) == _kept_of_bias(2.0, 1.0, 0, 1.0) == 1.0


def test_large_squares_of_the_first_sums_tell_tails() -> None:
    terms = study()
    far, none = (released(terms, spiked(20_000, 2, share=share), 2) for share in (0.02, 0.0))
    for one, least, most in ((far, 10, 100), (none, -5, _TAILS)):
        assert least < one.tail[0] / one.tail[1] ** 0.5 < most
        assert tails_shown([one]) == (least > 0)
        assert tails_shown([uncut(one)]) == (least > 0)
    assert not tails_shown([])


def test_home_rows_without_tails_do_not_outweigh_releases_that_show_some() -> None:
    """Of 40 rows none lies far away in nearly half of all cases: alone they would know the constant to three digits."""
    terms, rng = study(), np.random.default_rng(3)
    far = released(terms, spiked(20_000, 2), 2)
    X = rng.uniform(-1, 1, (40, 3))
    near = Labelled(X, -0.7 + 0.1 * X.sum(axis=1) + 0.02 * rng.normal(size=40))
    home = home_sums(terms, state_of(Moments(design=terms.design), near))
    found = pooled(terms, [far], home)
    assert found.weighed == pytest.approx(0.044, rel=0.2), "the variance of all residuals, not that of the 40"
    assert found.doubt.home_variance == found.weighed
    calm = pooled(terms, [replace(far, tail=(0.0, 0.0))], home)
    assert calm.weighed < 0.001


def test_residuals_reach_farther_where_it_costs_little_and_in_the_end_as_far_as_there_are_any() -> None:
    terms, reach = study(epsilon=3), []
    one = released(terms, spiked(4000, 3), 3)
    for times in (1, 100, 10_000):
        sums = replace(one, gram=times * one.gram, rows=times * one.rows)
        reach.append(free_level(terms, shares_of(terms, 4000), sums.near, Axes.of([sums]), 0.04))
    assert reach[0] < 0.5
    assert reach[1:] == pytest.approx([10 * reach[0], 100 * reach[0]], rel=0.05)
    assert level_of(level_for(0.04, 0.0, 0.0)) == pytest.approx(0.5, rel=0.19)
    assert level_of(level_for(0.04, 0.0, 1.0)) == pytest.approx(1.0)
    assert level_for(0.04, 0.0, reach[-1]) == LEVELS[-1]
    assert level_of(LEVELS[-1]) == 2.0
    flat = replace(one, gram=0 * one.gram)
    assert free_level(terms, shares_of(terms, 4000), flat.near, Axes.of([flat]), 0.04) == 0.0
