"""What several promises are together: every kind of event by its own outcomes, every condition that any of them told."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import Bench, Checklist
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


def _sampled(sigma: float, rate: float) -> tuple[_Floats, _Floats]:
    out, with_it = _normal(0, sigma), _normal(1, sigma)
    return (1 - rate) * out + rate * with_it, out


_TRIED: tuple[tuple[Event, tuple[_Floats, _Floats]], ...] = (
    (Approximate(epsilon=Fraction(3, 5), delta=Fraction(1, 10**5), count=2), _tossed(0.6, 1e-5)),
    (Gaussian(noise_multiplier=Fraction(7, 2), count=2), (_normal(1, 3.5), _normal(0, 3.5))),
    (
        SampledGaussian(noise_multiplier=Fraction(3, 2), sampling_probability=Fraction(1, 4), count=2),
        _sampled(1.5, 0.25),
    ),
    (
        DiscreteGaussian(sigma_squared=Fraction(100), l2_squared=Fraction(9), count=2),
        _whole(lambda x: np.exp(-(x**2) / 200), 3),
    ),
    (DiscreteLaplace(scale=Fraction(9), sensitivity=4, count=2), _whole(lambda x: np.exp(-np.abs(x) / 9), 4)),
    (BoundedRange(epsilon=Fraction(4, 5), count=2), _chosen(0.8)),
)
"""Each kind of event with no parameter that is 1 or left out, and the outcomes of one run on two neighbours, by definition."""


@CHECKS("composition", kind=tuple(one.kind for one in KINDS))
def _two_runs_of_any_size_lose_no_less_than_their_outcomes_say(bench: Bench, kind: str) -> str:
    """All pairs of outcomes counted out: what exceeds e^epsilon is at most delta; where losses are known, not far below it."""
    [(event, (first, second))] = [one for one in _TRIED if one[0].kind == kind]
    for field in dataclasses.fields(event):
        bench.must(getattr(event, field.name) not in (1, field.default), f"{field.name} is not tried beyond 1.")
    found = float(tight_epsilon([event], delta=_DELTA))
    bench.must(_beyond(first, second, found) <= _DELTA * (1 + 1e-6), f"epsilon {found:.4f} is too small.")
    if event.privacy_loss() is not None:
        bench.must(_beyond(first, second, 0.8 * found) > _DELTA, f"epsilon {found:.4f} is far above what is needed.")
    likely = second > 1e-40  # the rest adds to a moment, and may be too small for floats
    for order in (2, 5):
        cost = event.cost(order)
        moment = (first[likely] ** order * second[likely] ** (1.0 - order)).sum()
        bench.must(cost is not None, "no price is known.")
        assert cost is not None
        least = 2 * math.log(moment) / (order - 1)
        bench.must(float(cost.tau) >= least * (1 - 1e-3) - 1e-3, f"order {order} costs {float(cost.tau):.4f}, not {least:.4f}.")
    return f"epsilon {found:.4f} at delta {_DELTA:g}"


def _beyond(first: _Floats, second: _Floats, epsilon: float) -> float:
    """delta of two runs at that epsilon, whichever of the neighbours comes first."""
    pairs = [np.multiply.outer(each, each) for each in (first, second)]
    return max(float(np.maximum(one - math.exp(epsilon) * two, 0).sum()) for one, two in (pairs, pairs[::-1]))


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
