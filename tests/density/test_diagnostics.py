from __future__ import annotations

import numpy as np
import pytest

from sabun.density import CoverageWarning, DensityRatio


def normal(mean: float, rows: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 1, (rows, 1))


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("epsilon", [0.1, 1, 10])
def test_a_covered_table_raises_no_alarm(mean: float, epsilon: float) -> None:
    ratio = DensityRatio(epsilon=epsilon).fit(private=normal(mean, 5000, 1), public=normal(0, 500))
    assert ratio.diagnostics_.covered
    assert ratio.diagnostics_.effective_size > 100


@pytest.mark.parametrize("mean", [3.0, 4.0, 6.0])
@pytest.mark.parametrize("epsilon", [1, 10])
def test_a_table_off_the_public_support_raises_the_alarm(mean: float, epsilon: float) -> None:
    with pytest.warns(CoverageWarning, match="public"):
        ratio = DensityRatio(epsilon=epsilon).fit(private=normal(mean, 5000, 1), public=normal(0, 500))
    assert not ratio.diagnostics_.covered
    assert ratio.diagnostics_.to_dict()["notes"]


def test_no_shift_does_no_harm() -> None:
    rng = np.random.default_rng(2)
    shares = []
    for seed in range(3):
        ratio = DensityRatio(epsilon=0.1, random_state=seed)
        ratio.fit(private=rng.normal(size=(2000, 20)), public=rng.normal(size=(600, 20)))
        shares.append(ratio.diagnostics_.effective_size / 600)
    assert np.median(shares) > 0.9


def test_few_effective_rows_are_mentioned() -> None:
    ratio = DensityRatio(epsilon=1).fit(private=0.3 * normal(0, 2000, 1), public=normal(0, 40))
    assert any("worth only" in note for note in ratio.diagnostics_.notes)
