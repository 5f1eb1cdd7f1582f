from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.privacy import Guarantee, analytic_gaussian_delta, compose, pld_epsilon, tight_epsilon, zcdp_epsilon
from sabun.privacy.events import (
    Approximate,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    SampledGaussian,
    event_from_dict,
)

EVENTS: list[Event] = [
    Approximate(epsilon=Fraction(1, 3), delta=Fraction(1, 10**7), count=3),
    Gaussian(noise_multiplier=2, count=4),
    SampledGaussian(noise_multiplier=1, sampling_probability=Fraction(1, 100), count=100),
    DiscreteGaussian(sigma_squared=9, l2_squared=2, count=2),
    DiscreteLaplace(scale=Fraction(7, 2), sensitivity=2),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_events_survive_json(event: Event) -> None:
    assert event_from_dict(event.to_dict()) == event


def test_basic_composition_is_exact() -> None:
    assert compose([Guarantee(epsilon=0.1, mechanism="m")] * 10).epsilon == 1
    with pytest.raises(ParameterError, match=r"guarantees must be at least one guarantee; got \[\]"):
        compose([])


def _laplace_loss_epsilon(scale: float, count: int, delta: float) -> float:
    """Brute force: convolve the losses of `count` discrete Laplace mechanisms of sensitivity 1 on a fine integer grid."""
    steps = {}
    normaliser = math.tanh(1 / (2 * scale))
    for x in range(-400, 401):
        probability = normaliser * math.exp(-abs(x) / scale)
        loss = round(abs(x - 1) - abs(x))
        steps[loss] = steps.get(loss, 0.0) + probability
    law = np.array([steps.get(-1, 0.0), steps.get(0, 0.0), steps.get(1, 0.0)])
    total = np.array([1.0])
    for _ in range(count):
        total = np.convolve(total, law)
    losses = (np.arange(total.size) - count) / scale
    for epsilon in np.linspace(0, count / scale, 4001):
        if np.sum(total * np.maximum(0, 1 - np.exp(epsilon - losses))) <= delta:
            return float(epsilon)
    return count / scale


def test_pld_agrees_with_brute_force() -> None:
    brute = _laplace_loss_epsilon(10.0, 20, 1e-5)
    ours = pld_epsilon([DiscreteLaplace(scale=10, count=20)], delta=1e-5)
    assert ours is not None
    assert brute - 1e-3 <= float(ours) <= brute + 5e-3


def test_pld_of_one_gaussian_is_its_exact_curve() -> None:
    ours = pld_epsilon([Gaussian(noise_multiplier=2)], delta=1e-6)
    assert ours is not None
    assert analytic_gaussian_delta(sigma=2.0, l2=1.0, epsilon=float(ours)) <= 1e-6
    assert analytic_gaussian_delta(sigma=2.0, l2=1.0, epsilon=float(ours) - 1e-3) > 1e-6


@pytest.mark.parametrize(("multiplier", "count", "delta"), [(3, 50, 1e-9), (3, 100, 1e-8), (1, 50, 2e-10), (2, 1000, 1e-6)])
def test_pld_stays_above_the_exact_gaussian_curve(multiplier: int, count: int, delta: float) -> None:
    ours = pld_epsilon([Gaussian(noise_multiplier=multiplier, count=count)], delta=delta)
    assert ours is not None
    assert analytic_gaussian_delta(sigma=multiplier / math.sqrt(count), l2=1.0, epsilon=float(ours)) <= delta


def test_pld_keeps_away_from_deltas_it_cannot_resolve() -> None:
    assert pld_epsilon([Gaussian(noise_multiplier=3, count=50)], delta=1e-12) is None


def test_the_best_accountant_wins_and_none_is_skipped() -> None:
    lone = [Approximate(epsilon=1)]
    assert tight_epsilon(lone, delta=1e-6) <= 1
    many = [Approximate(epsilon=Fraction(1, 100), count=500)]
    assert tight_epsilon(many, delta=1e-6) < Fraction(5, 2)
    mixed = [DiscreteGaussian(sigma_squared=100, l2_squared=1), SampledGaussian(noise_multiplier=1, sampling_probability=0.1)]  # type: ignore[arg-type]
    assert zcdp_epsilon(mixed, delta=1e-6) is None
    assert pld_epsilon(mixed, delta=1e-6) is None
    assert tight_epsilon(mixed, delta=1e-6) == math.inf
    assert tight_epsilon([Approximate(epsilon=1, delta=1e-3)], delta=1e-6) == math.inf  # type: ignore[arg-type]


def test_dp_sgd_accounting_matches_a_known_figure() -> None:
    steps = SampledGaussian(noise_multiplier=1, sampling_probability=Fraction(1, 100), count=1000)
    epsilon = tight_epsilon([steps], delta=1e-5)
    assert 1.5 < float(epsilon) < 2.5


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "magic"}, r"kind must be one of .*; got 'magic'"),
        ({"kind": "gaussian", "count": 1}, r"event 'gaussian' must have exactly the fields"),
        ({"kind": "gaussian", "count": 0, "noise_multiplier": "1"}, r"count must be a whole number >= 1; got 0"),
        ({"kind": "gaussian", "count": 1, "noise_multiplier": "0"}, r"noise_multiplier must be finite and > 0"),
        (
            {"kind": "sampled-gaussian", "count": 1, "noise_multiplier": "1", "sampling_probability": "2"},
            r"sampling_probability must be above 0 and at most 1",
        ),
    ],
)
def test_bad_events_are_named(record: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        event_from_dict(record)


@pytest.mark.parametrize(
    "amount", [math.inf, "inf", "1e4500", 10**4500, Fraction(1, 10**4500)], ids=lambda amount: type(amount).__name__
)
def test_an_event_with_an_amount_that_no_file_can_hold_is_refused(amount: Any) -> None:
    for kind, name in ((Approximate, "epsilon"), (Gaussian, "noise_multiplier"), (DiscreteLaplace, "scale")):
        with pytest.raises(ParameterError, match=f"{name} must be"):
            kind(**{name: amount})
