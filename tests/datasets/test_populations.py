from __future__ import annotations

import numpy as np
import pytest

from sabun.datasets import density_paper, keyvalue_population
from sabun.errors import ParameterError


@pytest.mark.parametrize(
    ("shape", "mean", "variance", "variance_of_means"),
    [
        ("gaussian", "0.495063", "0.109256", None),
        ("power", "0.206598", "0.062901", None),
        ("linear", "0.510000", "0.083300", "0.346939"),
    ],
)
def test_key_value_populations_match_the_papers_table(
    shape: str, mean: str, variance: str, variance_of_means: str | None
) -> None:
    frequencies, means = keyvalue_population(shape)
    assert frequencies.shape == means.shape == (50,)
    assert f"{frequencies.mean():.6f}" == mean
    assert f"{frequencies.var():.6f}" == variance
    assert (frequencies > 0).all()
    assert (frequencies <= 1).all()
    assert (np.abs(means) <= 1).all()
    if variance_of_means is None:
        assert np.array_equal(means, 2 * frequencies - 1)
    else:
        assert f"{means.var():.6f}" == variance_of_means


def test_the_formula_printed_in_the_paper_is_not_the_power_set() -> None:
    printed = (1 + 0.1 * np.arange(50)) ** -1.1
    assert f"{printed.mean():.3f}" == "0.337"
    assert not np.allclose(printed, keyvalue_population("power").frequencies)


def test_an_unknown_population_is_refused() -> None:
    with pytest.raises(ParameterError, match="shape must be one of 'gaussian', 'power', 'linear'; got 'normal'"):
        keyvalue_population("normal")


def test_the_density_samples_have_the_papers_laws() -> None:
    public = np.concatenate([density_paper(seed).public for seed in range(400)])
    private = np.concatenate([density_paper(seed).private for seed in range(20)])
    assert density_paper(0).public.shape == (50,)
    assert density_paper(0).private.shape == (2000,)
    assert (public.mean(), public.var()) == pytest.approx((1, 1), abs=0.05)
    assert (private.mean(), private.var()) == pytest.approx((2, 0.25), abs=0.02)


def test_a_seed_is_required_and_decides_everything() -> None:
    assert np.array_equal(density_paper(3).private, density_paper(3).private)
    assert not np.array_equal(density_paper(3).private, density_paper(4).private)
    with pytest.raises(ParameterError, match="random_state must be a whole number >= 0; got None"):
        density_paper(None)  # type: ignore[arg-type]
