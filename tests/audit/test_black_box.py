"""Published faults of other libraries, made again in a few lines: an audit from outside finds them, and spares sound twins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sabun.audit import mechanism
from sabun.audit.black_box import epsilon_lower_bound, replacements
from sabun.errors import ParameterError
from sabun.privacy.noise import Grid, discrete_laplace, seeded_coin

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
        ({"function": lambda table: [1.0, None]}, "must give a number"),
        ({"function": lambda table: []}, "at least one number"),
        ({"function": lambda table: 1 // 0}, "it raised ZeroDivisionError"),
        ({"claim": 0}, "claim must be"),
        ({"claim": -1.0}, "claim must be"),
        ({"claim": math.nan}, "claim must be"),
        ({"claim": "1"}, "claim must be"),
        ({"delta": -1e-9}, "delta must be"),
        ({"delta": math.nan}, "delta must be"),
        ({"confidence": math.nan}, "confidence must be"),
        ({"confidence": "high"}, "confidence must be"),
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


@pytest.mark.parametrize("counts", [(-1, 0, 10), (11, 0, 10), (0, 11, 10), (1, 1, 0)])
def test_counts_that_cannot_be_have_no_bound(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ParameterError, match="must be"):
        epsilon_lower_bound(*counts)


@pytest.mark.parametrize("delta", [-0.1, math.nan, 1.0])
def test_a_delta_that_cannot_be_has_no_bound(delta: float) -> None:
    with pytest.raises(ParameterError, match="delta must be"):
        epsilon_lower_bound(5, 1, 10, delta=delta)


COIN = seeded_coin(23)
HUGE = 2**61


def noise(scale: int = 1) -> int:
    """Discrete Laplace noise for a number that moves by one: epsilon is 1/scale."""
    return int(discrete_laplace(scale, coin=COIN))


def seldom(table: Any) -> int:
    """Noise, and once in fifty runs the same result from within the range, which only one of the tables gives."""
    return 3 if table[0] and COIN.bits(7) < 3 else 2 * noise(40) // 2 * 2


def shared(table: Any) -> tuple[int, int]:
    drawn = noise(4)
    return drawn, drawn + int(table[0])


def opposed(table: Any) -> tuple[float, float]:
    drawn = float(noise(4))
    return 0.5 + drawn, int(table[0]) - drawn


def mixed(table: Any) -> list[float]:
    """Three draws for four coordinates, the fourth their sum: no pair tells."""
    drawn = [float(noise(4)) for _ in range(3)]
    return [*drawn, sum(drawn) + 3 * int(table[0])]


def failing(table: Any) -> int:
    if table[0]:
        raise ValueError("no such person")
    return noise(4)


def telling(table: Any) -> int:
    raise ValueError(f"{table[0]} people")


LEAKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "whole numbers a float cannot hold": (lambda table: HUGE + 2 * int(table[0]), "the result"),
    "the same in an array": (lambda table: np.array([HUGE, HUGE + int(table[0])]), "number 1"),
    "beyond 64 bits": (lambda table: 2**200 + int(table[0]), "the result"),
    "no number": (lambda table: math.nan if table[0] else float(noise()), "result"),
    "no number among noise": (lambda table: math.nan if table[0] and COIN.bits(1) else noise(4) / 4, "result"),
    "infinity downwards": (lambda table: -math.inf if table[0] else float(noise()), "the result"),
    "a rare atom": (seldom, "exactly 3"),
    "parity": (lambda table: 2 * noise(40) + int(table[0]), "modulo 2"),
    "parity of large numbers": (lambda table: HUGE + 2 * noise(40) + int(table[0]), "modulo 2"),
    "low bits": (lambda table: 16 * noise(40) + 5 * int(table[0]), "modulo"),
    "one noise for two": (shared, "number 0 minus number 1"),
    "opposite noise for two": (opposed, "number 0 plus number 1"),
    "noise for three of four": (mixed, "best"),
    "the size": (lambda table: [float(noise())] * (1 + int(table[0])), "the number of results"),
    "an empty result": (lambda table: [float(noise())] * int(table[0]), "the number of results"),
    "an exception": (failing, "raises"),
    "words of an exception": (telling, "raises"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_each_way_to_tell_is_found(leak: str) -> None:
    """1000 fresh runs of an event that only one table gives bound epsilon by 5; of one in 42 of them, by 0.9."""
    function, words = LEAKS[leak]
    found = mechanism(function, [([0], [1])], 0.5, runs=6000 if "rare" in leak else 2000)
    assert found.refuted, str(found)
    assert words in found.event


SOUND: dict[str, Callable[[Any], Any]] = {
    "large whole numbers": lambda table: HUGE + int(table[0]) + noise(),
    "two draws": lambda table: (noise(), noise(), int(table[0]) + noise()),
    "sizes from noise": lambda table: [1.0] * min(9, max(0, int(table[0]) + noise() + 4)),
    "failures from noise": lambda table: 1 // (int(table[0]) + noise()),
    "no number from noise": lambda table: math.sqrt(drawn) if (drawn := int(table[0]) + noise()) >= 0 else math.nan,
}


@pytest.mark.parametrize("twin", SOUND)
def test_what_comes_from_noise_alone_is_spared(twin: str) -> None:
    """All are made of one number with noise for epsilon 1; a bound at 1 - 1e-9 exceeds that once in a thousand million."""
    found = mechanism(SOUND[twin], [([0], [1])], 1.0, runs=3000, confidence=1 - 1e-9)
    assert not found.refuted, str(found)


def test_a_search_among_many_events_refutes_no_sound_mechanism_more_often_than_said() -> None:
    """At confidence 0.9 at most a tenth of the bounds exceed the truth: of 100, more than 30 do so once in 10^8."""
    wrong = 0
    for _ in range(100):
        found = mechanism(lambda table: (int(table[0]) + noise(), noise()), [([0], [1])], 1.0, runs=200, confidence=0.9)
        wrong += found.refuted
    assert wrong <= 30


def test_an_iterator_is_the_same_table_in_every_run() -> None:
    """Read by one run, it would be empty for all others, and any two tables would look alike."""
    pairs = ((iter(rows) for rows in pair) for pair in [([1, 0], [1, 1])])
    found = mechanism(lambda table: sum(table), pairs, 1.0, runs=400)
    assert found.refuted
    assert min(found.counts) == 0
    assert max(found.counts) == found.runs


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.998])
@pytest.mark.parametrize(("likely", "unlikely", "delta"), [(80, 10, 0.0), (100, 0, 0.0), (60, 20, 0.05), (30, 29, 0.0)])
def test_a_bound_is_that_of_exact_intervals_which_hold_together(
    likely: int, unlikely: int, delta: float, confidence: float
) -> None:
    """Clopper and Pearson's, by another library: each of the two ends has half of the error."""
    low = stats.binomtest(likely, 100).proportion_ci(confidence, method="exact").low
    high = stats.binomtest(unlikely, 100).proportion_ci(confidence, method="exact").high
    wanted = max(0.0, math.log(max(low - delta, 1e-300) / high))
    assert epsilon_lower_bound(likely, unlikely, 100, delta=delta, confidence=confidence) == pytest.approx(wanted, rel=1e-9)
