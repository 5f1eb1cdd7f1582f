from __future__ import annotations

import numpy as np
import pytest

from sabun.density.inference import uncovered_interval
from sabun.density.law import NoiseLaw


def drawn(law: NoiseLaw, runs: int, rng: np.random.Generator) -> np.ndarray:
    direction = rng.normal(size=(runs, law.dimension))
    if not law.pure:
        return law.sd * direction
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    return direction * rng.gamma(law.dimension, law.sd / (law.dimension + 1) ** 0.5, (runs, 1))


@pytest.mark.parametrize("pure", [True, False])
@pytest.mark.parametrize("dimension", [1, 2, 40])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_quantiles_are_those_of_the_noise(pure: bool, dimension: int, level: float) -> None:
    law = NoiseLaw(sd=2.0, dimension=dimension, pure=pure)
    noise = drawn(law, 40_000, np.random.default_rng(dimension))
    for factor, expected in ((1.0, True), (0.7, False), (1.3, False)):
        one = (np.abs(noise[:, 0]) <= factor * law.reach(level)).mean()
        whole = (np.linalg.norm(noise, axis=1) <= factor * law.radius(level)).mean()
        assert (abs(one - level) < 0.012) == expected
        assert (abs(whole - level) < 0.012) == expected


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_the_uncovered_share_is_within_its_interval_as_often_as_stated(counts: bool, share: float) -> None:
    law = NoiseLaw(sd=0.02, dimension=12, pure=True)
    noise = drawn(law, 4000, np.random.default_rng(1))
    hits, reach = 0, law.reach(0.9)
    for row in noise:
        size = 1 + row[1] * counts
        low, high = uncovered_interval((share + row[0]) / size, reach / size, counts=counts)
        hits += low <= share <= high
    assert hits / 4000 > 0.88
    if share == 0.9:
        assert hits / 4000 < 0.92


def test_a_number_of_rows_that_is_lost_in_noise_tells_nothing() -> None:
    assert uncovered_interval(0.3, 1.5, counts=True) == (0.0, 1.0)
