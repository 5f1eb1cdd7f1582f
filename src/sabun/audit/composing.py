"""What several promises are together: every kind of event by its own outcomes, every condition that any of them told."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import Bench, Checklist
from sabun.asking.evidence.needed import gaussian_delta
from sabun.errors import IncompatibleGuarantees
from sabun.privacy import Guarantee, compose
from sabun.privacy.composition import tight_epsilon
from sabun.privacy.events import (
    KINDS,
    Approximate,
    BoundedRange,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    SampledGaussian,
)

__all__ = ["CHECKS"]

CHECKS = Checklist()

_Floats = NDArray[np.float64]
_DELTA = 1e-4


def _normal(centre: float, sigma: float) -> _Floats:
    """A normal number rounded to one of some hundred cells, which loses no more than the number itself."""
    edges = np.linspace(-9 * sigma, 9 * sigma + 1, 600)
    below = [0.5 * math.erfc((centre - edge) / (sigma * math.sqrt(2))) for edge in edges]
    return np.diff([0.0, *below, 1.0])


def _whole(weight: Callable[[_Floats], _Floats], steps: int, far: int = 300) -> tuple[_Floats, _Floats]:
    """Noise on the integers, without and with so many steps; nothing is left beyond the ends."""
    numbers = np.arange(-far, far + 1, dtype=np.float64)
    first, second = weight(numbers), weight(numbers - steps)
    return first / first.sum(), second / second.sum()


def _tossed(epsilon: float, delta: float) -> tuple[_Floats, _Floats]:
    heads = (1 - delta) / (1 + math.exp(-epsilon))
    first = np.array([delta, heads, 1 - delta - heads, 0.0])
    return first, first[::-1]


def _chosen(epsilon: float) -> tuple[_Floats, _Floats]:
    """Two outcomes whose log-ratios are epsilon apart, half of it on either side."""
    share = (1 - math.exp(-epsilon / 2)) / (math.exp(epsilon / 2) - math.exp(-epsilon / 2))
    second = np.array([share, 1 - share])
    return second * np.exp([epsilon / 2, -epsilon / 2]), second


def _sampled(sigma: float, rate: float, steps: int) -> tuple[_Floats, _Floats]:
    """One who is added; one who is replaced by somebody as far on the other side; from three steps on, more who are added."""

    def drawn(centre: float) -> _Floats:
        return (1 - rate) * _normal(0, sigma) + rate * _normal(centre, sigma)

    if steps == 2:
        return drawn(1), drawn(-1)
    more = [math.comb(steps, hits) * rate**hits * (1 - rate) ** (steps - hits) for hits in range(steps + 1)]
    return sum((share * _normal(hits, sigma) for hits, share in enumerate(more)), np.zeros(1)), _normal(0, sigma)


_TRIED: tuple[tuple[Event, Callable[[int], tuple[_Floats, _Floats]]], ...] = (
    (Approximate(epsilon=Fraction(3, 5), delta=Fraction(1, 10**5), count=2), lambda steps: _tossed(0.6 * steps, 1e-5)),
    (Gaussian(noise_multiplier=Fraction(7, 2), count=2), lambda steps: (_normal(steps, 3.5), _normal(0, 3.5))),
    (
        SampledGaussian(noise_multiplier=Fraction(3, 2), sampling_probability=Fraction(1, 4), count=2),
        lambda steps: _sampled(1.5, 0.25, steps),
    ),
    (
        DiscreteGaussian(sigma_squared=Fraction(100), l2_squared=Fraction(9), count=2),
        lambda steps: _whole(lambda x: np.exp(-(x**2) / 200), 3 * steps),
    ),
    (
        DiscreteLaplace(scale=Fraction(9), sensitivity=4, count=2),
        lambda steps: _whole(lambda x: np.exp(-np.abs(x) / 9), 4 * steps),
    ),
    (BoundedRange(epsilon=Fraction(4, 5), count=2), lambda steps: _chosen(0.8 * steps)),
)
"""Each kind of event with no parameter that is 1 or left out, and the outcomes of one run on two tables that lie so many
neighbour steps apart, by definition."""


@CHECKS("composition", kind=tuple(one.kind for one in KINDS))
def _two_runs_of_any_size_lose_no_less_than_their_outcomes_say(bench: Bench, kind: str) -> str:
    """All pairs of outcomes counted out: what exceeds e^epsilon is at most delta; where losses are known, not far below it."""
    [(event, apart)] = [one for one in _TRIED if one[0].kind == kind]
    first, second = apart(1)
    for field in dataclasses.fields(event):
        bench.must(getattr(event, field.name) not in (1, field.default), f"{field.name} is not tried beyond 1.")
    found = float(tight_epsilon([event], delta=_DELTA))
    bench.must(_beyond(first, second, found) <= _DELTA * (1 + 1e-6), f"epsilon {found:.4f} is too small.")
    if event.privacy_loss() is not None:
        bench.must(_beyond(first, second, 0.8 * found) > _DELTA, f"epsilon {found:.4f} is far above what is needed.")
    return f"epsilon {found:.4f} at delta {_DELTA:g}"


@CHECKS("composition", kind=tuple(one.kind for one in KINDS), order=(2, 5))
def _a_price_is_no_less_than_what_outcomes_lose_over_any_number_of_steps(bench: Bench, kind: str, order: int) -> str:
    """Moments of the outcomes of two runs, one step apart or more; whoever protects a group pays more for a larger one."""
    [(event, apart)] = [one for one in _TRIED if one[0].kind == kind]
    paid: list[float] = []
    for steps in (1, 2, 3):
        cost, (first, second) = event.cost(order, steps=steps), apart(steps)
        bench.must(cost is not None or steps > 1, "no price is known.")
        if cost is None:  # then a ledger books what is stated
            continue
        likely = second > 1e-40  # the rest adds to a moment, and may be too small for floats
        moment = (first[likely] ** order * second[likely] ** (1.0 - order)).sum()
        least, tau = 2 * math.log(moment) / (order - 1), float(cost.tau)
        bench.must(tau >= least * (1 - 1e-3) - 1e-3, f"{steps} steps cost {tau:.4f}, not {least:.4f}.")
        bench.must(not paid or tau > paid[-1], f"{steps} steps cost no more than fewer.")
        beyond = float(first[second == 0].sum())
        bench.must(float(cost.delta) >= 2 * beyond - 1e-12, f"{steps} steps: delta {float(cost.delta):.3g}.")
        paid.append(tau)
    return ", ".join(f"{tau:.3g}" for tau in paid)


def _beyond(first: _Floats, second: _Floats, epsilon: float) -> float:
    """delta of two runs at that epsilon, whichever of the neighbours comes first."""
    pairs = [np.multiply.outer(each, each) for each in (first, second)]
    return max(float(np.maximum(one - math.exp(epsilon) * two, 0).sum()) for one, two in (pairs, pairs[::-1]))


_STATED = [(Fraction(1, 10), Fraction(1, 10**7)), (Fraction(3, 7), Fraction(0)), (Fraction(2), Fraction(1, 10**9))]


@CHECKS("composition", count=[1, 2, 7])
def _stated_losses_with_a_delta_add_up(bench: Bench, count: int) -> str:
    """Sums by hand; and for the accountant the tosses that lose exactly so much, several of each kind, counted out."""
    whole = compose([Guarantee(epsilon=e, delta=d, mechanism="m") for e, d in _STATED] * count)
    delta = count * sum(d for _, d in _STATED)
    bench.must(whole.epsilon == count * sum(e for e, _ in _STATED), f"epsilon adds up to {whole.epsilon}.")
    bench.must(whole.delta == delta, f"delta adds up to {whole.delta}.")
    room = 20 * delta
    found = float(tight_epsilon([Approximate(epsilon=e, delta=d, count=count) for e, d in _STATED], delta=room))
    bench.must(
        _missed(count, found) <= float(room) * (1 + 1e-6), f"delta is {_missed(count, found):.3g} at epsilon {found:.4f}."
    )
    bench.must(_missed(count, found * 0.9 - 0.01) > float(room), f"epsilon {found:.4f} is far above what is needed.")
    return f"{count} of each: epsilon {found:.4f}, {float(whole.epsilon):.4f} by sums"


def _missed(count: int, epsilon: float) -> float:
    """delta of so many tosses of each kind, with odds e^epsilon, each betrayed with its delta (Kairouz, Oh, Viswanath 2015)."""
    safe, missed = 1.0, 0.0
    for _, delta in _STATED:
        safe *= (1 - float(delta)) ** count
    for heads in itertools.product(range(count + 1), repeat=len(_STATED)):
        ways, logs = 1.0, 0.0
        for (each, _), many in zip(_STATED, heads, strict=True):
            ways *= math.comb(count, many) / (1 + math.exp(float(each))) ** count
            logs += many * float(each)
        against = sum((count - many) * float(each) for (each, _), many in zip(_STATED, heads, strict=True))
        missed += ways * max(math.exp(logs) - math.exp(epsilon + against), 0.0)
    return 1 - safe * (1 - missed)


@CHECKS("composition", count=[1, 3, 20])
def _gaussian_noise_of_several_runs_adds_up_in_squares(bench: Bench, count: int) -> str:
    """k runs of deviation s are one run of deviation s / sqrt(k): Balle and Wang's formula, neither below nor far above."""
    delta, told = 1e-5, []
    kinds: list[tuple[Event, float]] = [
        (Gaussian(noise_multiplier=Fraction(8), count=count), 8.0),
        (DiscreteGaussian(sigma_squared=Fraction(64 * 10**6), l2_squared=Fraction(10**6), count=count), 8.0),
    ]
    for event, sigma in kinds:
        found = float(tight_epsilon([event], delta=delta))
        exact = gaussian_delta(sigma / math.sqrt(count), found)
        bench.must(exact <= delta * (1 + 1e-6), f"{type(event).__name__}: delta is {exact:.3g} at epsilon {found:.4f}.")
        loose = gaussian_delta(sigma / math.sqrt(count), found * 0.8)
        bench.must(loose > delta, f"{type(event).__name__}: epsilon {found:.4f} is far above what is needed.")
        told.append(f"{found:.4f}")
    return f"{count} runs: epsilon {' and '.join(told)}"


@CHECKS("composition", count=[1, 4])
def _laplace_and_gaussian_noise_together_lose_no_less_than_either(bench: Bench, count: int) -> None:
    pure = DiscreteLaplace(scale=Fraction(20), sensitivity=1, count=count)
    normal = Gaussian(noise_multiplier=Fraction(10), count=count)
    both = float(tight_epsilon([pure, normal], delta=1e-5))
    alone = [float(tight_epsilon([one], delta=1e-5)) for one in (pure, normal)]
    bench.must(both >= max(alone) and both <= sum(alone) * (1 + 1e-6), f"{both} together, {alone} alone.")
    heads = 1 / (1 + math.exp(-count / 20))
    most = heads * gaussian_delta(10 / math.sqrt(count), both - count / 20)
    bench.must(most <= 1e-5 * 1.2 or both >= alone[1] + count / 20 * 0.3, "less than noise of that size loses.")


_EVERY: tuple[Event, ...] = (
    Approximate(epsilon=Fraction(1, 10), delta=Fraction(1, 10**7)),
    Gaussian(noise_multiplier=Fraction(80)),
    SampledGaussian(noise_multiplier=Fraction(8), sampling_probability=Fraction(1, 10)),
    DiscreteGaussian(sigma_squared=Fraction(80**2), l2_squared=Fraction(1)),
    DiscreteLaplace(scale=Fraction(100)),
    BoundedRange(epsilon=Fraction(1, 10)),
)


@CHECKS("composition")
def _every_kind_of_event_counts_beside_every_other_and_as_often_as_it_ran(bench: Bench) -> str:
    """Two kinds together lose more than either; so many runs of one are so many events of one run, at any price."""
    bench.must({type(one) for one in _EVERY} == set(KINDS), "a kind of event is not tried here.")
    delta = 3e-7  # less than five runs of the first state together
    alone = {one.kind: tight_epsilon([one], delta=delta) for one in _EVERY}
    for one, other in itertools.combinations(_EVERY, 2):
        both, more = tight_epsilon([one, other], delta=delta), max(alone[one.kind], alone[other.kind])
        bench.must(both > more or both == more == math.inf, f"{one.kind} and {other.kind}: {float(both):.4f} together.")
    for one in _EVERY:
        many, copies = dataclasses.replace(one, count=5), [one] * 5
        found, added = (float(tight_epsilon(events, delta=delta)) for events in ([many], copies))
        bench.must(math.isclose(found, added, rel_tol=1e-3), f"{one.kind}: {found} for 5 runs, {added} added up.")
        for order, steps in ((3, 1), (9, 1), (9, 2)):
            each, all_ = one.cost(order, steps=steps), many.cost(order, steps=steps)
            bench.must((each is None) == (all_ is None), f"{one.kind}: a price for some runs only.")
            if each is not None and all_ is not None:
                near = all(abs(whole - 5 * part) <= 1e-9 * whole for whole, part in zip(all_, each, strict=True))
                bench.must(near, f"{one.kind}: 5 runs cost {all_}, one {each}.")
    return f"{len(_EVERY)} kinds, {len(_EVERY) * (len(_EVERY) - 1) // 2} pairs"


@CHECKS("composition", order=[3, 9])
def _a_sampled_gaussian_over_two_steps_costs_what_the_triangle_says(bench: Bench, order: int) -> str:
    """D_a(P, R) <= (a - 1/2) / (a - 1) D_2a(P, Q) + D_(2a-1)(Q, R), each integrated on a line, neither below nor far above."""
    probability, sigma = 0.1, 2.0
    event = SampledGaussian(noise_multiplier=Fraction(2), sampling_probability=Fraction(1, 10))
    x = np.linspace(-60.0, 90.0, 300_001)
    plain = np.exp(-(x**2) / (2 * sigma**2)) / math.sqrt(2 * math.pi * sigma**2)
    ratio = (1 - probability) + probability * np.exp((2 * x - 1) / (2 * sigma**2))

    def divergence(alpha: int) -> float:
        return math.log(float(np.sum(plain * ratio**alpha) * (x[1] - x[0]))) / (alpha - 1)

    needed = (order - 0.5) / (order - 1) * divergence(2 * order) + divergence(2 * order - 1)
    for steps, least in ((1, divergence(order)), (2, needed)):
        found = event.cost(order, steps=steps)
        bench.must(found is not None, "no price is known.")
        assert found is not None
        bench.enough(float(found.tau), least, slack=1e-6, waste=1 + 1e-6)
    return f"order {order}: {needed:.6f}"


_PLAIN: dict[str, Any] = {
    "epsilon": Fraction(1, 2),
    "delta": Fraction(1, 10**6),
    "relation": "add-remove",
    "unit": "patient",
    "assumptions": ("the clock is right",),
    "mechanism": "m",
}
_OTHERWISE: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": Fraction(1, 3)},
    "delta": {"delta": Fraction(1, 10**7)},
    "relation": {"relation": "replace-one"},
    "unit": {"unit": "visit"},
    "model": {"model": "local", "relation": "local"},
    "scope": {"scope": "per-parameter", "joint_epsilon": 3, "joint_delta": Fraction(1, 10)},
    "assumptions": {"assumptions": ("the key is kept", "the list is public")},
    "mechanism": {"mechanism": "n"},
    "joint_epsilon": {"scope": "per-parameter", "joint_epsilon": 4, "joint_delta": Fraction(1, 10)},
    "joint_delta": {"scope": "per-parameter", "joint_epsilon": 3, "joint_delta": Fraction(1, 5)},
    "simulated": {"simulated": True},
}
"""For each field of a promise, another one that differs in it."""


@CHECKS("promises", field=tuple(field.name for field in dataclasses.fields(Guarantee)))
def _a_sum_holds_what_each_of_its_parts_told_or_is_refused(bench: Bench, field: str) -> str:
    bench.must(field in _OTHERWISE, "no promise that differs in it is tried.")
    plain, other = Guarantee(**_PLAIN), Guarantee(**_PLAIN | _OTHERWISE[field])
    bench.must(getattr(plain, field) != getattr(other, field), "the two are the same.")
    refused = 0
    for parts in ((plain, other), (other, plain), (plain, plain, other), (plain, other, plain)):
        try:
            whole = compose(parts)
        except IncompatibleGuarantees:
            refused += 1
            continue
        for name in dataclasses.fields(Guarantee):
            told, each = getattr(whole, name.name), [getattr(part, name.name) for part in parts]
            bench.must(_holds(told, each), f"{name.name} of {each} together is {told!r}.")
    bench.must(refused in (0, 4), "it is refused in one order only.")
    for kept in (Guarantee.as_joint, Guarantee.as_simulated, lambda one: Guarantee.from_dict(one.to_dict())):
        bench.must(set(other.assumptions) <= set(kept(other).assumptions), "a condition is lost where it is told anew.")
    if other.relation == "add-remove":
        bench.must(set(other.assumptions) <= set(other.as_replace_one().assumptions), "a condition is lost on the way.")
    return "refused" if refused else "all of it is in the sum"


def _holds(told: Any, each: list[Any]) -> bool:
    if isinstance(told, bool):
        return told == any(each)
    if isinstance(told, tuple):
        return set(told) == {words for one in each for words in one}
    if isinstance(told, str):
        return all(one in told.split(" + ") for one in each)
    return bool(told == sum(each))


@CHECKS("promises")
def _one_seeded_part_makes_the_whole_a_simulation(bench: Bench) -> None:
    plain = Guarantee(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), relation="add-remove", mechanism="m")
    for parts in itertools.product((plain, plain.as_simulated()), repeat=3):
        bench.must(compose(parts).simulated == any(part.simulated for part in parts), "a seeded part passes for private.")
    for same in (Guarantee.as_replace_one, Guarantee.as_joint, lambda one: Guarantee.from_dict(one.to_dict())):
        bench.must(same(plain.as_simulated()).simulated and not same(plain).simulated, "a promise lost its mark on the way.")
