from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.learning.poisson import PoissonPlan
from sabun.learning.stream import Stream
from sabun.privacy.noise import os_coin


def test_the_rate_is_exact_and_a_wrong_one_is_rejected() -> None:
    plan = PoissonPlan.of(sampling_rate=0.1, epochs=2)
    assert abs(plan.probability - Fraction(1, 10)) < Fraction(1, 2**32)
    stream = Stream.fresh(os_coin())
    taken = sum(len(plan.batch(20_000, stream, step)) for step in range(20))
    deviation = (400_000 * 0.09) ** 0.5
    assert abs(taken - 40_000) < 6 * deviation
    assert abs(taken - 40_000 * 1.05) > 3 * deviation


def test_rows_and_steps_are_independent() -> None:
    plan = PoissonPlan.of(sampling_rate=0.5, epochs=1)
    stream = Stream.fresh(os_coin())
    taken = np.zeros((400, 64))
    for step in range(400):
        taken[step, plan.batch(64, stream, step)] = 1
    correlations = np.corrcoef(taken.T) - np.eye(64)
    assert np.abs(correlations).max() < 0.32
    steps = np.corrcoef(taken[:-1].ravel(), taken[1:].ravel())[0, 1]
    assert abs(steps) < 0.04


def test_batches_can_be_empty_or_everybody() -> None:
    stream = Stream(bytes(32))
    assert PoissonPlan(threshold=1, steps=1).batch(10, stream, 0).size == 0
    assert PoissonPlan.of(sampling_rate=1.0, epochs=3).batch(4, stream, 0).tolist() == [0, 1, 2, 3]
    assert PoissonPlan.of(sampling_rate=0.3, epochs=1).batch(0, stream, 0).size == 0


def test_impossible_rates_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"threshold must be at most 4294967296; got 4294967297"):
        PoissonPlan(threshold=2**32 + 1, steps=1)
    with pytest.raises(ParameterError, match="steps must be a whole number >= 1; got 0"):
        PoissonPlan(threshold=1, steps=0)
