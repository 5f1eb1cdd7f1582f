from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from sabun.density import DensityRatio
from sabun.errors import ParameterError

PUBLIC = np.random.default_rng(0).normal(size=(200, 3))


def test_a_plan_is_what_the_release_will_be() -> None:
    private = np.random.default_rng(1).normal(size=(3000, 3))
    for options in ({}, {"delta": 1e-6}):
        ratio = DensityRatio(epsilon=0.5, **options)
        plan = ratio.plan(public=PUBLIC, n_records=3000)
        ratio.fit(private=private, public=PUBLIC)
        assert plan.rank == len(ratio.release_["embedding"])
        assert plan.noise_sd == pytest.approx(ratio.release_["noise_sd"], rel=1e-3)
        assert plan.epsilon == ratio.guarantee_.epsilon == Fraction(1, 2)


def test_more_rows_and_more_epsilon_mean_less_noise() -> None:
    noise = [DensityRatio(epsilon=e).plan(public=PUBLIC, n_records=n).noise_sd for e, n in ((0.1, 1000), (1, 1000), (1, 10**5))]
    assert noise == sorted(noise, reverse=True)


def test_our_noise_is_far_below_the_papers() -> None:
    plan = DensityRatio(epsilon=1, delta=1e-6).plan(public=PUBLIC, n_records=1000)
    assert plan.paper_noise_sd / plan.noise_sd > 30


def test_a_plan_reads_well() -> None:
    plan = DensityRatio(epsilon=0.1).plan(public=PUBLIC, n_records=1000)
    assert "Costs epsilon = 0.1 (replace-one) for 1000 private and 200 public rows." in str(plan)
    assert json.loads(json.dumps(plan.to_dict()))["epsilon"] == "1/10"


def test_impossible_sizes_are_refused() -> None:
    with pytest.raises(ParameterError, match="n_records must be a whole number >= 1; got 0"):
        DensityRatio(epsilon=1).plan(public=PUBLIC, n_records=0)
    with pytest.raises(ParameterError, match="delta must be below 1"):
        DensityRatio(epsilon=1, delta=0.01).plan(public=PUBLIC, n_records=1000)


def test_fewer_rows_of_either_table_are_foretold_to_err_more() -> None:
    """Each by itself, where the other is plenty: a plan that forgot one of the two samples would not notice."""
    public = np.random.default_rng(0).normal(size=(900, 1))
    ratio = DensityRatio(epsilon=50)
    sizes = {"few public": (public[:30], 10**6), "few private": (public, 30), "plenty": (public, 10**6)}
    found = {name: ratio.plan(public=rows, n_records=n).forecasts[0].high for name, (rows, n) in sizes.items()}
    assert found["few public"] > 3 * found["plenty"]
    assert found["few private"] > 3 * found["plenty"]


def test_a_plan_of_noise_says_why_it_is_one() -> None:
    """The error of a mean is small beside it: two tables from one population have means close together anyway."""
    poor, good = (DensityRatio(epsilon=epsilon).plan(public=PUBLIC, n_records=3000) for epsilon in ("0.0005", 1))
    assert poor.vacuous
    assert poor.forecasts[0].middle < 0.1
    assert poor.because.endswith(f"a column's mean would stay {poor.told:.0%} as uncertain as without a release")
    assert "epsilon is too small here: from 90% on an answer tells hardly anything." in str(poor)
    for plan in (poor, good):
        told = f"Where the tables differ, a column's mean would stay {plan.told:.0%} as uncertain as without a release."
        assert told in str(plan)
        assert told in plan.remarks
    assert good.because == ""
    assert "too small" not in str(good)
