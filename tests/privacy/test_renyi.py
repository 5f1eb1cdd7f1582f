"""Costs at one Rényi order: never below the truth, and close to it."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabun.errors import ParameterError
from sabun.privacy import Price, analytic_gaussian_sigma, epsilon_of_rho, rho_of
from sabun.privacy.events import (
    Approximate,
    BoundedRange,
    Cost,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    SampledGaussian,
)
from sabun.privacy.renyi import (
    best_order,
    bounded_range_cost,
    grouped,
    largest_pure,
    pure_cost,
    sampled_gaussian_cost,
    stepped,
    threshold,
    two_steps,
    whole_order,
)

TINY = Fraction(2, 2**64)
MILLIONTH = Fraction(1, 10**6)


def divergence(first: np.ndarray, second: np.ndarray, order: int) -> float:
    return float(np.log(np.sum(first * (first / second) ** (order - 1))) / (order - 1))


@pytest.mark.parametrize("order", [2, 3, 9, 40])
@pytest.mark.parametrize("epsilon", ["1/1000", "1/10", "1", "5"])
def test_pure_cost_is_that_of_randomized_response(epsilon, order):
    size = Fraction(epsilon)
    yes = math.exp(size) / (1 + math.exp(size))
    truth = divergence(np.array([yes, 1 - yes]), np.array([1 - yes, yes]), order)
    assert float(pure_cost(size, order=order)) == pytest.approx(truth, rel=1e-9, abs=1e-15)


@given(st.fractions(min_value=0, max_value=20), st.integers(2, 64))
def test_pure_cost_lies_between_what_is_known_of_it(epsilon, order):
    cost = pure_cost(epsilon, order=order)
    assert cost <= min(epsilon, order * epsilon**2 / 2) + TINY
    assert cost >= epsilon - Fraction(7, 10) / (order - 1)
    assert (cost == 0) == (epsilon == 0)


def test_no_pure_mechanism_on_three_outcomes_costs_more():
    ratio = 1.5
    for first in product((1.0, 1.2, ratio), repeat=3):
        for second in product((1.0, 1.2, ratio), repeat=3):
            p, q = np.array(first) / sum(first), np.array(second) / sum(second)
            worst = float(np.abs(np.log(p / q)).max())
            if worst > 0:
                size = Fraction(worst) + Fraction(1, 10**12)
                assert divergence(p, q, 6) <= float(pure_cost(size, order=6)) + 1e-12


def test_a_pure_cost_too_large_for_a_number_is_epsilon():
    assert pure_cost(Fraction(10**6), order=9) == 10**6


@pytest.mark.parametrize("order", [2, 5, 12])
def test_the_exponential_mechanism_costs_no_more_than_its_range(order):
    rate = 0.35
    for before in product(range(4), repeat=3):
        for moves in product((-1, 0, 1), repeat=3):
            costs, after = np.array(before), np.array(before) + np.array(moves)
            p, q = (np.exp(-rate * some) / np.exp(-rate * some).sum() for some in (costs, after))
            assert divergence(p, q, order) <= float(bounded_range_cost(Fraction(7, 10), order=order)) + 1e-12


def test_a_range_never_costs_more_than_the_epsilon_it_implies():
    assert bounded_range_cost(Fraction(8), order=30) == pure_cost(Fraction(8), order=30)
    assert bounded_range_cost(Fraction(1, 10), order=9) == pytest.approx(9 / 800)


@pytest.mark.parametrize("order", [2, 6])
@pytest.mark.parametrize("variance", [1, 4])
def test_discrete_gaussian_noise_costs_at_most_order_times_rho(order, variance):
    values = np.arange(-25, 26)
    p, q = (np.exp(-((values - centre) ** 2) / (2 * variance)) for centre in (0, 1))
    truth = divergence(p / p.sum(), q / q.sum(), order)
    cost = DiscreteGaussian(sigma_squared=variance, l2_squared=1).cost(order)
    assert truth <= float(cost.tau) + 1e-12
    assert float(cost.tau) == order / (2 * variance)


@pytest.mark.parametrize("order", [2, 8])
@pytest.mark.parametrize(("grid", "offset"), [(0.01, 0.0), (0.5, 0.2), (3.0, 1.4)])
def test_rounded_continuous_gaussian_noise_costs_at_most_order_times_half_mu_squared(order, grid, offset):
    sigma, moved = 1.5, 1.25
    edges = np.arange(-30.0, 32.0, grid) + offset
    p, q = (np.diff([math.erfc((centre - edge) / (sigma * math.sqrt(2))) / 2 for edge in edges]) for centre in (0.0, moved))
    inside = (p > 0) & (q > 0)  # what lies further out weighs nothing in a float
    truth = divergence(p[inside], q[inside], order)
    cost = Gaussian.of(sigma=sigma, l2_squared=moved**2).cost(order)
    assert truth <= float(cost.tau) + 1e-9
    assert float(cost.tau) == pytest.approx(order * (moved / sigma) ** 2 / 2, rel=1e-12)
    if grid == 0.01:  # a fine grid gives nothing away, so the price is not too high either
        assert truth == pytest.approx(float(cost.tau), rel=1e-4)


@given(st.floats(1e-100, 1e100), st.fractions(min_value=Fraction(1, 10**6), max_value=10**6), st.integers(1, 10**6))
def test_a_deviation_is_never_taken_for_more_noise_than_it_is(sigma, moved, count):
    event = Gaussian.of(sigma=sigma, l2_squared=moved, count=count)
    truth = moved / (2 * Fraction(sigma) ** 2) * count
    assert truth <= event.rho() <= truth * (1 + Fraction(1, 10**14))
    assert Gaussian.from_dict(event.to_dict()) == event


def test_the_price_of_an_analytic_gaussian_is_far_below_its_epsilon():
    sigma = analytic_gaussian_sigma(l2=2.0, epsilon=1, delta="1e-6")
    price = Price(events=(Gaussian.of(sigma=sigma, l2_squared=4),), relation="replace-one")
    assert price.cost(order=9) == (stepped(9 * price.events[0].rho()), 0)
    assert price.cost(order=9).tau < Fraction(3, 10)
    assert price.cost(order=9, steps=2).tau == pytest.approx(4 * price.cost(order=9).tau)


@pytest.mark.parametrize(("sigma", "moved"), [(0.0, 1), (math.inf, 1), (math.nan, 1), (-1.0, 1), (1.0, 0), (5e-324, 10**600)])
def test_a_deviation_and_a_sensitivity_are_above_zero(sigma, moved):
    with pytest.raises(ParameterError, match=r"(sigma|l2_squared) must be"):
        Gaussian.of(sigma=sigma, l2_squared=moved)


@pytest.mark.parametrize(("multiplier", "probability"), [("1.029", "1/100"), ("3/2", "1/4"), ("4", "1")])
@pytest.mark.parametrize("order", [2, 3, 8])
def test_a_sampled_gaussian_costs_what_quadrature_finds(multiplier, probability, order):
    z, q = float(Fraction(multiplier)), float(Fraction(probability))
    grid = np.linspace(-25 * z, 25 * z + order, 400_001)
    plain = np.exp(-(grid**2) / (2 * z * z)) / (z * math.sqrt(2 * math.pi))
    mixed = (1 - q) * plain + q * np.exp(-((grid - 1) ** 2) / (2 * z * z)) / (z * math.sqrt(2 * math.pi))
    step = grid[1] - grid[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        inner = np.where(plain > 0, mixed * (mixed / plain) ** (order - 1), 0)
    truth = math.log(float(inner.sum()) * step) / (order - 1)
    found = sampled_gaussian_cost(Fraction(multiplier), Fraction(probability), order=order)
    assert float(found) == pytest.approx(truth, rel=1e-6, abs=1e-9)


def test_a_sampled_gaussian_at_an_order_too_high_has_no_cost():
    assert sampled_gaussian_cost(Fraction(1, 100), Fraction(1), order=9) == math.inf
    assert sampled_gaussian_cost(Fraction(1), Fraction(1, 100), order=10_000) == math.inf
    event = SampledGaussian(noise_multiplier=1, sampling_probability="1/100")
    assert event.cost(10_000) is None
    assert Price(events=(event, Approximate(epsilon=1)), relation="add-remove").cost(order=10_000) is None


def test_two_steps_of_a_sampled_gaussian_cost_less_than_twice_its_whole_noise_and_more_than_once():
    event = SampledGaussian(noise_multiplier=2, sampling_probability="1/100", count=50)
    once, twice = event.cost(6), event.cost(6, steps=2)
    assert once is not None
    assert twice is not None
    assert 2 * once.tau < twice.tau < 50 * 6 * Fraction(4, 8)
    assert event.cost(6, steps=3) is None


def test_the_weak_triangle_inequality_holds_for_gaussians():
    rho = Fraction(1, 50)
    for order in (2, 5, 11):
        assert two_steps(2 * order * rho, (2 * order - 1) * rho, order=order) >= 4 * order * rho


@pytest.mark.parametrize("event", [Gaussian(noise_multiplier=3), DiscreteGaussian(sigma_squared=9, l2_squared=1)])
def test_a_group_moves_gaussian_noise_so_many_times_as_far(event):
    assert event.cost(8).tau == pytest.approx(8 / 18)
    assert event.cost(8, steps=3).tau == pytest.approx(9 * 8 / 18)


def test_a_stated_event_costs_its_worst_case_and_its_delta():
    event = Approximate(epsilon=1, delta="1e-7", count=3)
    assert event.cost(9) == (3 * pure_cost(Fraction(1), order=9), Fraction(3, 10**7))
    assert event.cost(9, steps=2).tau == 3 * pure_cost(Fraction(2), order=9)
    assert event.cost(9, steps=2).delta >= 3 * (1 + Fraction(math.e)) / 10**7 - TINY
    assert DiscreteLaplace(scale=4, sensitivity=2).cost(9).tau == pure_cost(Fraction(1, 2), order=9)
    assert BoundedRange(epsilon="1/10", count=7).cost(9).tau == 7 * bounded_range_cost(Fraction(1, 10), order=9)


def test_a_finished_promise_for_four_is_dear():
    assert grouped(Fraction(3), MILLIONTH, steps=1) == (3, MILLIONTH)
    epsilon, delta = grouped(Fraction(3), MILLIONTH, steps=4)
    assert epsilon == 12
    assert float(delta) == pytest.approx(1e-6 * (math.exp(12) - 1) / (math.exp(3) - 1))
    assert round(float(delta), 4) == 0.0085
    assert grouped(Fraction(30), Fraction(1, 10), steps=4) == (120, 1)
    assert grouped(math.inf, Fraction(0), steps=4) == (math.inf, 0)


@pytest.mark.parametrize("order", [2, 9, 100])
def test_a_threshold_is_the_conversion_turned_round(order):
    epsilon, tail = Fraction(3), MILLIONTH
    bound = threshold(epsilon, order=order, tail=tail)
    back = float(bound) + math.log1p(-1 / order) - math.log(order * tail) / (order - 1)
    assert back == pytest.approx(3, abs=1e-12)
    if bound > 0:  # at its own order zCDP can be no better than the best order
        assert epsilon_of_rho(bound / order, delta=tail) <= epsilon + TINY


def test_the_usual_order_leaves_most_room():
    assert [best_order(Fraction(size), tail=MILLIONTH) for size in (1, 3, 5, 10)] == [22, 9, 6, 4]
    for size in (Fraction(1, 100), Fraction(1, 3), Fraction(20)):
        best = best_order(size, tail=MILLIONTH)
        room = threshold(size, order=best, tail=MILLIONTH) / best
        assert room > 0
        for other in (best - 1, best + 1, best + 40):
            if other >= 2:
                assert threshold(size, order=other, tail=MILLIONTH) / other <= room * Fraction(1001, 1000)


@given(st.fractions(min_value=-1, max_value=8), st.integers(2, 40))
def test_the_largest_pure_question_fits_and_a_little_more_does_not(left, order):
    found = largest_pure(left, order=order)
    assert found == 0 or pure_cost(found, order=order) <= left
    assert pure_cost(found + MILLIONTH, order=order) > left


@pytest.mark.parametrize("order", [1, 0, True, 2.0, "9", 10**9])
def test_an_order_is_a_whole_number_from_two_on(order):
    with pytest.raises(ParameterError, match="order must be a whole number from 2 to"):
        whole_order(order)


def test_a_price_survives_json_and_refuses_what_is_none():
    noise = DiscreteGaussian(sigma_squared="9/2", l2_squared=2)
    price = Price(events=(noise, Approximate(epsilon="1/3", delta="1e-9")), relation="add-remove")
    assert Price.from_dict(price.to_dict()) == price
    for wrong in ({}, {"events": {}, "relation": "add-remove"}, [], {"events": [{"kind": "x"}], "relation": "add-remove"}):
        with pytest.raises(ParameterError):
            Price.from_dict(wrong)
    for events in ((), [noise], (noise, 3)):
        with pytest.raises(ParameterError, match="events must be a tuple of 1 to 1000 events"):
            Price(events=events, relation="add-remove")


@pytest.mark.parametrize("relation", ["replace-one", "local"])
def test_the_price_of_a_sampled_gaussian_is_between_add_remove_neighbours(relation):
    # Its moments are those of adding or removing one record; replacing one costs two to four times as much.
    steps = SampledGaussian(noise_multiplier=1, sampling_probability="1/100", count=100)
    assert Price(events=(steps,), relation="add-remove").cost(order=4) is not None
    for events in ((steps,), (Approximate(epsilon=1), steps)):
        with pytest.raises(ParameterError, match=f"relation must be 'add-remove' for a sampled-gaussian.*; got '{relation}'"):
            Price(events=events, relation=relation)
    with pytest.raises(ParameterError, match="relation must be 'add-remove'"):
        Price.from_dict({"events": [steps.to_dict()], "relation": relation})


def test_a_price_is_of_known_kinds_only():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Free(DiscreteGaussian):
        def cost(self, order, *, steps=1):
            return Cost(Fraction(0))

    class Mine(Event):
        kind = "mine"

    for event in (Free(sigma_squared=1, l2_squared=1), Mine(), Event()):
        with pytest.raises(ParameterError, match="events must be a tuple of 1 to 1000 events of the kinds in"):
            Price(events=(event,), relation="replace-one")


@pytest.mark.parametrize("count", [10**18 + 1, 10**5000], ids=["large", "unprintable"])
def test_an_event_has_a_number_of_runs_that_can_be_written(count):
    with pytest.raises(ParameterError, match="count must be at most"):
        BoundedRange(epsilon=1, count=count)
    with pytest.raises(ParameterError, match="sensitivity must be of at most 4000 digits"):
        DiscreteLaplace(scale=1, sensitivity=10**5000)


# --- the figures of docs/budget.md, with all of delta for the order


def least_epsilon(cost, *, tail, orders=range(2, 64)):
    """The smallest budget whose order admits a list: the list's cost less what epsilon 0 would leave."""
    return min(cost(order) - threshold(Fraction(0), order=order, tail=tail) for order in orders)


TRAINING = SampledGaussian(noise_multiplier="1.029", sampling_probability="1/100", count=1000)


def mix(order):
    noise = 5 * order * rho_of("1/2", "1e-7")
    return TRAINING.cost(order).tau + 20 * pure_cost(Fraction(1, 20), order=order) + noise


def test_a_hundred_tenths_fit_within_5_09():
    assert least_epsilon(lambda order: 100 * pure_cost(Fraction(1, 10), order=order), tail=MILLIONTH) <= Fraction("5.09")


def test_ten_discrete_gaussians_fit_within_3_16():
    rho = rho_of(1, "1e-7")
    assert least_epsilon(lambda order: 10 * order * rho, tail=MILLIONTH) <= Fraction("3.16")


def test_the_mix_fits_within_2_67_at_order_8_and_2_77_at_the_usual_order():
    tail = Fraction(3, 2 * 10**6)
    assert least_epsilon(mix, tail=tail, orders=(8,)) <= Fraction("2.67")
    usual = best_order(Fraction("2.77"), tail=tail)
    assert least_epsilon(mix, tail=tail, orders=(usual,)) <= Fraction("2.77")


def test_a_multiplier_beyond_every_float_is_rounded_down_to_one():
    noise = Gaussian.of(sigma=1e308, l2_squared="1e-300")
    assert 0 < noise.noise_multiplier < Fraction(10) ** 458
    assert noise.cost(8).tau > 0
