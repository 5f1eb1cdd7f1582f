"""How much noise a training plan needs, from public numbers alone; proved in accounting.proof.md.

An epsilon goes in, a noise multiplier comes out. The multiplier is found by search; what is promised is what the accountant
says about the multiplier that will be used, so a poor search can only cost accuracy.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from sabun.errors import ParameterError
from sabun.learning.clipping import SENSITIVITY
from sabun.learning.poisson import PoissonPlan
from sabun.privacy import Amount, epsilon_of_rho, plain, tight_epsilon
from sabun.privacy.certified import exp_up, log_up
from sabun.privacy.events import Approximate, Event, Gaussian, SampledGaussian
from sabun.privacy.pricing import Price

__all__ = [
    "Target",
    "halved",
    "joint_of_updates",
    "laplace_step_epsilon",
    "noise_multiplier",
    "price_in",
    "sampled_laplace_epsilon",
    "scaling_multiplier",
    "spent_after",
    "training_events",
    "update_epsilon",
    "whole_events",
    "whole_multiplier",
]

_SCALING = 3.0
_CLOSE = 0.997
_DYADIC = 1 << 30
_LEAST = 0.4
"""No run has less noise than this, however large its epsilon: the accountant would need too much memory below."""


@final
@dataclass(frozen=True, kw_only=True)
class Target:
    """An (epsilon, delta) under add-remove neighbours that a training run has to stay within."""

    epsilon: Fraction
    delta: Fraction


def halved(epsilon: Fraction, delta: Fraction) -> Target:
    """The add-remove target whose two-step group privacy is the given replace-one promise.

    Guarantee: 2 target.epsilon = epsilon; (1 + e^(epsilon/2)) target.delta <= delta.
    """
    half = epsilon / 2
    growth = 1 + exp_up(half)  # proof: group-of-two
    share = delta / growth if isinstance(growth, Fraction) else Fraction(0)
    bits = 200 - min(0, share.numerator.bit_length() - share.denominator.bit_length())
    return Target(epsilon=half, delta=Fraction(math.floor(share * 2**bits), 2**bits))


def training_events(plan: PoissonPlan, multiplier: Fraction, count_epsilon: Fraction) -> tuple[Event, ...]:
    """What a DP-SGD run does, as the accountant sees it.

    Args:
        plan: Who takes part in which step.
        multiplier: Standard deviation of the noise in units of the clip norm.
        count_epsilon: What the noisy number of records costs; 0 where that number is public.
    """
    steps = SampledGaussian(
        noise_multiplier=multiplier / SENSITIVITY, sampling_probability=plan.probability, count=plan.steps
    )  # proof: sensitivity-margin
    return (steps,) if count_epsilon == 0 else (steps, Approximate(epsilon=count_epsilon))


def price_in(account: Mapping[str, Any]) -> Price | None:
    """What a ledger with a Rényi order may book for a run: the steps that its account lists, if it does."""
    if account["rule"] not in ("sampled-gaussian", "gaussian"):
        return None
    relation = account["relation"] if account["rule"] == "gaussian" else "add-remove"
    return Price.from_dict({"events": account["events"], "relation": relation})  # proof: price


def spent_after(step: int, events: Sequence[Event], target: Target, relation: str) -> str:
    """What the first steps of a run with these events cost by themselves, in words, under the relation of its promise.

    Args:
        step: How many.
        events: Those of the steps first, under add-remove neighbours or those of the promise.
        target: At whose delta.
        relation: Of the promise where the events are under add-remove; else add-remove too, for nothing is left to restate.
    """
    steps, *others = events
    spent = tight_epsilon([dataclasses.replace(steps, count=step), *others], delta=target.delta)
    return plain(spent if relation == "add-remove" else 2 * spent)


@functools.lru_cache(maxsize=128)
def noise_multiplier(plan: PoissonPlan, target: Target, count_epsilon: Fraction) -> Fraction:
    """A small noise multiplier for which the accountant confirms the target.

    Raises:
        ParameterError: No multiplier below 10^6 is enough.
    """

    def spent(multiplier: Fraction) -> Amount:
        return tight_epsilon(training_events(plan, multiplier, count_epsilon), delta=target.delta)

    return _smallest(spent, target.epsilon, start=_first_guess(plan, target))


def scaling_multiplier(multiplier: Fraction, steps: int) -> Fraction:
    """Noise on what inputs are scaled by, in units of its sensitivity: a ninth of what all steps together tell, so a tenth."""
    return multiplier * Fraction(math.ceil(_SCALING * _DYADIC / math.sqrt(steps)), _DYADIC)


def whole_events(multiplier: Fraction, steps: int, *, moved: int, count_epsilon: Fraction, scaled: bool) -> tuple[Event, ...]:
    """What a full-batch run does, as the accountant sees it, under the relation of its promise.

    Args:
        multiplier: Standard deviation of the noise in units of the clip norm.
        steps: How many.
        moved: Rows that one neighbour step takes out or puts in.
        count_epsilon: What the noisy number of records costs; 0 where that number is public.
        scaled: Whether means, spreads and shares of the inputs are released too.
    """
    found: list[Event] = [Gaussian(noise_multiplier=multiplier / (moved * SENSITIVITY), count=steps)]  # proof: whole-sums
    if scaled:
        found.append(Gaussian(noise_multiplier=scaling_multiplier(multiplier, steps) / moved))  # proof: scaling
    return (*found, Approximate(epsilon=count_epsilon)) if count_epsilon else tuple(found)


@functools.lru_cache(maxsize=128)
def whole_multiplier(steps: int, target: Target, *, moved: int, count_epsilon: Fraction, scaled: bool) -> Fraction:
    """A small noise multiplier for which the accountant confirms the target of a full-batch run.

    Raises:
        ParameterError: No multiplier below 10^6 is enough.
    """

    def spent(multiplier: Fraction) -> Amount:
        events = whole_events(multiplier, steps, moved=moved, count_epsilon=count_epsilon, scaled=scaled)
        return tight_epsilon(events, delta=target.delta)

    plan = PoissonPlan(threshold=1 << 32, steps=steps)
    return _smallest(spent, target.epsilon, start=moved * _first_guess(plan, target))


def _first_guess(plan: PoissonPlan, target: Target) -> float:
    """The central-limit value (Dong-Roth-Su 2022, section 5): mu = q sqrt(T (e^(1/sigma^2) - 1)), then epsilon of mu."""
    epsilon, delta = float(target.epsilon), float(target.delta)
    root = math.sqrt(max(-2 * math.log(delta), 1.0))
    mu = math.sqrt(2 * epsilon + root**2) - root
    budget = (mu / (float(plan.probability) * math.sqrt(plan.steps))) ** 2
    return 1 / math.sqrt(max(math.log1p(budget), 1e-12))


def _smallest(spent: Callable[[Fraction], Amount], epsilon: Fraction, *, start: float) -> Fraction:
    """Secant steps on the logarithms, kept inside a bracket; returns the last multiplier that was confirmed."""
    low, high = 0.0, math.inf
    best: Fraction | None = None
    guess = min(max(start, _LEAST), 1e5)
    seen: list[tuple[float, float]] = []
    for _ in range(30):
        tried = Fraction(math.ceil(guess * _DYADIC), _DYADIC)
        found = spent(tried)
        if found <= epsilon:  # proof: confirmed
            best, high = tried, float(tried)
        else:
            low = float(tried)
        if _CLOSE * epsilon <= found <= epsilon or high <= max(low, _LEAST) * 1.001 or low > 1e6:
            break
        seen.append((math.log(float(tried)), math.log(min(max(float(found), 1e-9), 1e9))))  # a large delta alone may pay
        guess = max(_LEAST, _next_guess(seen, math.log(0.9985 * float(epsilon)), low, high))
    if best is None:
        raise ParameterError(
            f"epsilon must be large enough for noise below 1e6 times the clip norm; got {float(epsilon):.4g} (add-remove). "
            "Use a larger epsilon or delta, or fewer epochs."
        )
    return best


def _next_guess(seen: list[tuple[float, float]], aim: float, low: float, high: float) -> float:
    """Where the line through the last two (log multiplier, log epsilon) meets the aim; the first time with slope -1."""
    at, found = seen[-1]
    slope = -1.0
    if len(seen) > 1 and abs(at - seen[-2][0]) > 1e-9:
        slope = min(-0.2, (found - seen[-2][1]) / (at - seen[-2][0]))
    guess = math.exp(at + min(max((aim - found) / slope, -1.4), 1.4))
    if not low < guess < high:
        guess = (low + high) / 2 if math.isfinite(high) else 2 * low
    return guess


def sampled_laplace_epsilon(plan: PoissonPlan, step_epsilon: Fraction) -> Fraction:
    """Pure epsilon of all steps when each is `step_epsilon`-DP on its batch, add-remove: T ln(1 + q (e^e0 - 1)), rounded up.

    Guarantee: amplification by Poisson sampling (Balle-Barthe-Gaboardi 2018, Thm. 8 with delta = 0), then basic composition.
    """
    inner = 1 + plan.probability * (Fraction(exp_up(step_epsilon)) - 1)
    once = math.ceil(log_up(inner) * 10**15) * Fraction(1, 10**15)  # proof: log-up
    return plan.steps * once


def laplace_step_epsilon(plan: PoissonPlan, epsilon: Fraction) -> Fraction:
    """A large per-step epsilon for which `sampled_laplace_epsilon` stays within the target."""
    inner = 1 + (math.expm1(float(epsilon) / plan.steps)) / float(plan.probability)
    guess = Fraction(math.log(inner)).limit_denominator(10**12)
    while sampled_laplace_epsilon(plan, guess) > epsilon:  # proof: step-confirmed
        guess *= Fraction(10**9 - 1, 10**9)
    return guess


def joint_of_updates(*, n_weights: int, epsilon: Fraction, epochs: int, delta: Fraction) -> Fraction:
    """What a per-parameter epsilon of noisy batch updates adds up to for all parameters together, replace-one.

    P epsilon with delta = 0. With a delta: the smaller of that and the epsilon of P epsilon^2 / (2 epochs)-zCDP.
    """
    pure = n_weights * epsilon  # proof: pure-joint
    if delta == 0:
        return pure
    return min(pure, epsilon_of_rho(n_weights * epsilon**2 / (2 * epochs), delta=delta))  # proof: zcdp-joint


def update_epsilon(*, n_weights: int, joint_epsilon: Fraction, epochs: int, delta: Fraction) -> Fraction:
    """The largest per-parameter epsilon (three digits) whose joint figure stays within `joint_epsilon`."""
    low = joint_epsilon / n_weights
    if delta == 0:
        return low
    high = max(low, Fraction(1))
    while joint_of_updates(n_weights=n_weights, epsilon=high, epochs=epochs, delta=delta) <= joint_epsilon:
        high *= 2
    while high > low * Fraction(1001, 1000):
        middle = ((low + high) / 2).limit_denominator(10**12)
        good = joint_of_updates(n_weights=n_weights, epsilon=middle, epochs=epochs, delta=delta) <= joint_epsilon
        low, high = (middle, high) if good else (low, middle)
    return low
