"""Recomputing a promise from the public numbers on a privacy card: what `sabun learning verify` does.

Each way of training writes an account: a rule with its numbers. `recompute` applies the rule with the installed version.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from sabun import checks
from sabun.learning.accounting import halved, joint_of_updates, sampled_laplace_epsilon
from sabun.learning.poisson import PoissonPlan
from sabun.privacy import Amount, epsilon_of_rho, exact, tight_epsilon
from sabun.privacy.certified import log_up
from sabun.privacy.events import Event, Gaussian, SampledGaussian, event_from_dict

__all__ = ["Joint", "recompute", "recompute_alone"]

Joint: TypeAlias = tuple[Amount, Fraction]
"""The joint (epsilon, delta) under the relation the account names."""

_MOST_EVENTS, _MOST_STEPS, _LEAST_NOISE = 8, 10**7, Fraction(1, 5)
_LEAST_WHOLE = Fraction(1, 1000)
_MOST_PARTS = 10_000
_MOST_TRIED, _LITTLE = 80, 1 + Fraction(1, 10**9)


def recompute(account: Mapping[str, Any]) -> Joint:
    """The joint (epsilon, delta) that an account proves.

    Raises:
        ParameterError: The rule is unknown or a number is missing.
    """
    rule = account.get("rule")
    checks.one_of(sorted(_RULES), rule=rule)
    needed = _FIELDS[str(rule)]
    checks.require(
        set(account) == {"rule", *needed}, f"exactly {', '.join(sorted(needed))}", **{"account fields": sorted(account)}
    )
    return _RULES[str(rule)](account)


def recompute_alone(account: Mapping[str, Any]) -> Fraction:
    """The epsilon of each weight by itself that an account proves, once `recompute` has read it.

    Raises:
        ParameterError: The rule proves nothing about single weights.
    """
    checks.one_of(("noisy-updates", "weight-noise"), rule=account["rule"])
    once = _amount(account, "epsilon")
    if account["rule"] == "weight-noise":
        return once
    return min(_whole(account, "n_weights"), _whole(account, "batches")) * once


def _amount(account: Mapping[str, Any], name: str) -> Fraction:
    read = exact(account[name], name=name)
    checks.require(isinstance(read, Fraction) and read >= 0, "finite and >= 0", **{name: account[name]})
    return Fraction(read)


def _whole(account: Mapping[str, Any], name: str) -> int:
    checks.whole(minimum=1, **{name: account[name]})
    return int(account[name])


def _sampled_gaussian(account: Mapping[str, Any]) -> Joint:
    events = [event_from_dict(record) for record in account["events"]]
    _must_be_cheap(events)
    delta = _amount(account, "delta")
    checks.one_of(("add-remove", "replace-one"), relation=account["relation"])
    if account["relation"] == "add-remove":
        return tight_epsilon(events, delta=delta), delta
    return _restated(events, delta)


def _gaussian(account: Mapping[str, Any]) -> Joint:
    """Events under the relation of the promise itself: nothing is restated."""
    events = [event_from_dict(record) for record in account["events"]]
    _must_be_cheap(events)
    checks.one_of(("add-remove", "replace-one"), relation=account["relation"])
    sampled = account["relation"] == "replace-one" and any(isinstance(event, SampledGaussian) for event in events)
    checks.require(not sampled, "about the relation of the account", events=len(events))
    delta = _amount(account, "delta")
    return tight_epsilon(events, delta=delta), delta


def _must_be_cheap(events: list[Event]) -> None:
    """A card comes from elsewhere: what it asks us to compute must be like what we write ourselves."""
    steps = sum(event.count for event in events)
    checks.require(
        0 < len(events) <= _MOST_EVENTS and steps <= _MOST_STEPS, "like those of one training run", events=len(events)
    )
    for event in events:
        noise = event.noise_multiplier if isinstance(event, SampledGaussian | Gaussian) else Fraction(1)
        least = _LEAST_NOISE if isinstance(event, SampledGaussian) else _LEAST_WHOLE
        checks.require(noise >= least, f"at least {least}", noise_multiplier=str(noise)[:40])


def _restated(events: list[Any], delta: Fraction) -> Joint:
    """The smallest replace-one epsilon of the form 2 e where the events are (e, delta / (1 + e^e))-DP: found by iteration."""
    epsilon: Amount = Fraction(0)
    # A larger e leaves less delta for each of the two steps, which asks for a larger e: from 0 the values only grow, and one
    # that needs no more is confirmed. Near the end a little is added, for the last digits may never agree; what is never
    # confirmed proves nothing.
    for tried in range(_MOST_TRIED):
        if not isinstance(epsilon, Fraction):
            break
        found = tight_epsilon(events, delta=halved(2 * epsilon, delta).delta)
        if found <= epsilon:
            return 2 * epsilon, delta
        epsilon = found * (1 if tried < _MOST_TRIED // 2 else _LITTLE)
    return math.inf, delta


def _sampled_laplace(account: Mapping[str, Any]) -> Joint:
    plan = PoissonPlan(threshold=_whole(account, "threshold"), steps=_whole(account, "steps"))
    once = sampled_laplace_epsilon(plan, _amount(account, "step_epsilon")) + _amount(account, "count_epsilon")
    checks.one_of(("add-remove", "replace-one"), relation=account["relation"])
    return once * (1 if account["relation"] == "add-remove" else 2), Fraction(0)


def _objective(account: Mapping[str, Any]) -> Joint:
    curvature = log_up(1 + Fraction(1, 4) / _amount(account, "regularisation"))
    return _amount(account, "objective_epsilon") + curvature + _amount(account, "output_epsilon"), Fraction(0)


def _weight_noise(account: Mapping[str, Any]) -> Joint:
    return _whole(account, "n_weights") * _amount(account, "epsilon"), Fraction(0)


def _noisy_updates(account: Mapping[str, Any]) -> Joint:
    delta = _amount(account, "delta")
    joint = joint_of_updates(
        n_weights=_whole(account, "n_weights"),
        epsilon=_amount(account, "epsilon"),
        epochs=_whole(account, "epochs"),
        delta=delta,
    )
    return joint, delta


def _parts(account: Mapping[str, Any]) -> Joint:
    """Epsilons of the parts of a synthetic table add up; with a delta the Gaussian parts' rho joins them as zCDP."""
    checks.require(len(account["pure"]) <= _MOST_PARTS, f"at most {_MOST_PARTS}", parts=len(account["pure"]))
    delta, pure = _amount(account, "delta"), [_amount({"part": part}, "part") for part in account["pure"]]
    rho = _amount(account, "rho")
    checks.require(len(pure) > 0 or rho > 0, "at least one", parts=len(pure))
    if rho == 0:
        return sum(pure, Fraction(0)), delta
    total = rho + sum((part**2 / 2 for part in pure), Fraction(0))
    return epsilon_of_rho(total, delta=delta), delta


_RULES: dict[str, Callable[[Mapping[str, Any]], Joint]] = {
    "sampled-gaussian": _sampled_gaussian,
    "gaussian": _gaussian,
    "sampled-laplace": _sampled_laplace,
    "objective": _objective,
    "weight-noise": _weight_noise,
    "noisy-updates": _noisy_updates,
    "parts": _parts,
}
_FIELDS: dict[str, set[str]] = {
    "sampled-gaussian": {"relation", "events", "delta"},
    "gaussian": {"relation", "events", "delta"},
    "sampled-laplace": {"relation", "threshold", "steps", "step_epsilon", "count_epsilon"},
    "objective": {"objective_epsilon", "regularisation", "output_epsilon"},
    "weight-noise": {"n_weights", "epsilon"},
    "noisy-updates": {"n_weights", "epsilon", "epochs", "batches", "delta"},
    "parts": {"pure", "rho", "delta"},
}
