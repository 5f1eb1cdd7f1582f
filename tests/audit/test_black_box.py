"""Published faults of other libraries, made again in a few lines: an audit from outside finds them, and spares sound twins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sabun.audit import mechanism
from sabun.audit.black_box import epsilon_lower_bound, replacements
from sabun.errors import ParameterError
from sabun.privacy.noise import Grid, discrete_laplace, os_coin, seeded_coin

RUNS = 6000


def floats(sampler: Callable[[np.random.Generator], float]) -> Callable[[Any], float]:
    generator = np.random.default_rng(7)
    return lambda table: float(sum(table)) + sampler(generator)


def four_uniforms(generator: np.random.Generator) -> float:
    """Laplace noise of scale 1 as a sum of four floating-point terms: the law is right, the digits are not."""
    a, b, c, d = generator.random(4)
    return math.log(1 - a) * math.cos(math.pi * b) + math.log(1 - c) * math.cos(math.pi * d)


def test_floating_point_laplace_noise_is_refuted_by_its_digits() -> None:
    """Claim 1. The event has chances near 1/5 and 0: 3000 runs show 4 or more, and 6 takes some 17,000."""
    found = mechanism(floats(four_uniforms), [([0.0], [1.0])], 1.0, runs=RUNS)
    assert found.refuted
    assert found.epsilon > 4
    assert "binary digit" in found.event
    assert epsilon_lower_bound(3400, 0, 17_000) > 6


def test_the_same_noise_on_a_grid_is_not() -> None:
    coin, grid = seeded_coin(3), Grid(-20)
    found = mechanism(
        lambda table: grid.value(grid.index(float(sum(table))) + discrete_laplace(1 << 20, coin=coin)),
        [([0.0], [1.0])],
        1.0,
        runs=RUNS,
    )
    assert not found.refuted
    assert found.epsilon > 0.5, "the bound is of use: it comes near the truth, which is 1"
    assert "not refuted" in str(found)


def regression(table: Any, generator: np.random.Generator, *, fault: bool) -> float:
    """A slope from noisy sums of x^2 and x y, all in [0, 1]; the fault takes the lower bound twice, so x^2 has no noise."""
    x, y = np.asarray(table, dtype=float).reshape(-1, 2).T
    square = abs(float(x @ x) + (0.0 if fault else generator.laplace(0, 1 / 0.5)))
    return (float(x @ y) + generator.laplace(0, 1 / 0.5)) / max(square, 1e-12)


@pytest.mark.parametrize("fault", [True, False])
def test_a_regression_whose_bounds_start_at_zero_is_found_by_the_search(fault: bool) -> None:
    generator = np.random.default_rng(1)
    corners = [(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)]
    found = mechanism(
        lambda table: regression(table, generator, fault=fault), replacements([(0.0, 0.0)], corners), 1.0, runs=RUNS
    )
    assert found.refuted is fault
    assert found.varies


def test_no_noise_at_all_is_said() -> None:
    found = mechanism(lambda table: [len(table), sum(table)], [([1, 2], [1])], 1.0, runs=400)
    assert found.refuted
    assert not found.varies
    assert "there is no noise" in str(found)


def test_a_sound_coin_is_spared_at_its_own_epsilon() -> None:
    """Randomised response at its true epsilon: the bound exceeds it once in 500 runs by design; here the noise repeats."""
    coin = seeded_coin(11)
    claim = math.log(3)

    def respond(table: Any) -> int:
        return int(table[0]) if coin.bits(2) else 1 - int(table[0])

    found = mechanism(respond, [([0], [1])], claim, runs=4000)
    assert not found.refuted
    assert found.epsilon > 0.8 * claim
    assert mechanism(respond, [([0], [1])], 0.5 * claim, runs=4000).refuted


def test_bounds_are_those_of_clopper_and_pearson() -> None:
    assert epsilon_lower_bound(0, 0, 100) == 0
    assert epsilon_lower_bound(100, 0, 100, delta=0.0) < math.log(100)
    assert epsilon_lower_bound(80, 10, 100) > epsilon_lower_bound(80, 10, 100, delta=0.1) > 0
    assert epsilon_lower_bound(50, 100, 100) == 0


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"neighbours": []}, "neighbours must be pairs"),
        ({"function": lambda table: "x"}, "must give a number"),
        ({"function": lambda table: [0.0] * int(os_coin().bits(1) + 1)}, "as many numbers each time"),
        ({"claim": 0}, "claim must be"),
        ({"runs": 3}, "runs must be"),
    ],
)
def test_what_cannot_be_audited_is_refused(how: Any, words: str) -> None:
    facts: dict[str, Any] = {"function": lambda table: 0.0, "neighbours": [([0], [1])], "claim": 1.0, "runs": 200} | how
    with pytest.raises(ParameterError, match=words):
        mechanism(**facts)


@pytest.mark.parametrize("terms", [{"delta": -1.0}, {"delta": 1.0}, {"runs": 1000.5}, {"runs": 10}])
def test_terms_that_are_none_are_refused(terms: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="must be"):
        mechanism(lambda table: 0, [([0], [1])], 1.0, **terms)
