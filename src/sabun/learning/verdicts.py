"""From scores of canaries to lower bounds on epsilon, and how sure they are; proved in verdicts.proof.md."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Floats
from sabun.privacy import Guarantee
from sabun.privacy.events import Event

__all__ = ["Declared", "Verdict", "epsilon_lower_bound", "free_verdict"]

_SURE = 0.4
"""The share of all canaries that is guessed to be in, and the share that is guessed to be out: the surest ones."""
_LOSSES = tuple(range(21))
"""Epsilons, in halves, at which the trade-off of a declared mechanism is looked up."""


@final
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one way of looking found.

    Args:
        name: What is looked at, and what is assumed.
        epsilon_lower: With that confidence the true epsilon is at least this, at the claimed delta. Where a mechanism is
            declared: that of a Gaussian mechanism with the errors that were found.
        refuted: Whether the claim, or the declared mechanism, is too good to be true.
        evidence: The figures.
        without_noise: What the same audit finds where nobody adds noise; None where that cannot be told.
        without_clipping: The same where nobody clips.
    """

    name: str
    epsilon_lower: float
    refuted: bool
    evidence: str
    without_noise: Verdict | None = None
    without_clipping: Verdict | None = None

    def __str__(self) -> str:
        said = f"{self.name}: epsilon >= {self.epsilon_lower:.3g}, {self.word} ({self.evidence})"
        if self.without_noise is None or self.without_clipping is None:
            return f"{said}. What it would find without noise is not known: its power is not, either."
        return (
            f"{said}. Without noise: {self.without_noise.epsilon_lower:.3g}, {self.without_noise.word}; "
            f"without clipping: {self.without_clipping.epsilon_lower:.3g}, {self.without_clipping.word}."
        )

    @property
    def word(self) -> str:
        """The verdict."""
        return "REFUTED" if self.refuted else "not refuted"


def free_verdict(
    name: str, score: Floats, inside: NDArray[np.bool_], confidence: float, promise: Guarantee
) -> tuple[Verdict, int, int]:
    """The bound of Steinke et al. from the surest guesses; nothing is assumed of what was trained."""
    each = max(1, int(_SURE * len(score)))
    order = np.argsort(-score, kind="stable")  # proof: guesses-from-the-model
    correct = int(inside[order[:each]].sum() + (~inside[order[-each:]]).sum())
    claimed, delta = map(float, promise.cost)
    bound = epsilon_lower_bound(
        canaries=len(score), guesses=2 * each, correct=correct, delta=delta, error=1 - confidence
    )  # proof: one-bound
    evidence = f"{correct} of {2 * each} guesses right"
    return Verdict(name=name, epsilon_lower=bound, refuted=bound > claimed, evidence=evidence), 2 * each, correct


@final
@dataclass(frozen=True, kw_only=True)
class Declared:
    """What any attack on the declared mechanism has to leave: pairs (e, d) with misses + exp(e) false alarms >= 1 - d.

    Args:
        delta: At which epsilons are told.
        pairs: Each holds for the declared mechanism, under the neighbours of the promise.
        gaussian: Whether its noise is.
    """

    delta: float
    pairs: tuple[tuple[float, float], ...]
    gaussian: bool

    @classmethod
    def of(cls, promise: Guarantee, events: Sequence[Event], *, paired: bool) -> Declared:
        """From the promise, and from the events behind it where there are some.

        Args:
            promise: The claim.
            events: What the accountant saw.
            paired: Whether events are about add-remove neighbours whatever the promise is about.
        """
        claimed, delta = map(float, promise.cost)
        curve = _curve(tuple(events)) if events else ()
        if paired and promise.relation == "replace-one":
            curve = tuple((2 * e, (1 + math.exp(e)) * d) for e, d in curve)  # proof: two-steps
        return cls(delta=delta, pairs=((claimed, delta), *curve), gaussian=bool(events))

    def allowed(self, alarms: float) -> float:
        """The smallest share of misses that any attack with so many false alarms can have."""
        sides = [max(1 - d - math.exp(e) * alarms, (1 - d - alarms) * math.exp(-e)) for e, d in self.pairs]
        return max(0.0, *sides)

    def verdict(self, name: str, scores: Sequence[Floats], inside: NDArray[np.bool_], confidence: float) -> Verdict:
        """Whether errors are fewer than the declared mechanism allows; scores are independent between canaries."""
        error = (1 - confidence) / (2 * len(scores))  # proof: shares
        rates = []
        for score in scores:
            wrong = (int((~inside & (score > 0)).sum()), int((inside & (score <= 0)).sum()))
            # Of all canaries, not of those that were out or in: which ones these are is part of what is drawn.
            rates.append([min(1.0, 2 * _at_most(count, len(inside), error)) for count in wrong])  # proof: both-errors
        spare = [misses - self.allowed(alarms) for alarms, misses in rates]
        bounds = [self._epsilon(*one) for one in rates]
        refuted = min(spare) < 0  # proof: below-the-curve
        alarms, misses = rates[int(np.argmin(spare) if refuted else np.argmax(bounds))]
        evidence = (
            f"at most {alarms:.1%} false alarms with {misses:.1%} misses; declared noise leaves at least "
            f"{self.allowed(alarms):.1%} misses"
        )
        return Verdict(name=name, epsilon_lower=max(bounds), refuted=refuted, evidence=evidence)

    def _epsilon(self, alarms: float, misses: float) -> float:
        """That of a Gaussian mechanism with such errors; otherwise what the errors show by themselves."""
        if self.gaussian:
            return _gaussian_epsilon(alarms, misses, self.delta)
        pairs = ((alarms, misses), (misses, alarms))
        return max(0.0, *(math.log(max(1 - self.delta - b, 1e-300) / a) for a, b in pairs))


@functools.lru_cache(maxsize=32)
def _curve(events: tuple[Event, ...]) -> tuple[tuple[float, float], ...]:
    """Pairs (epsilon, delta) that hold for all events together, by one composition of their losses."""
    runs = [loss.self_compose(event.count) for event in events if (loss := event.privacy_loss()) is not None]
    if len(runs) < len(events):
        return ()
    total = functools.reduce(lambda left, right: left.compose(right), runs)
    return tuple((half / 2, float(total.get_delta_for_epsilon(half / 2)) + 1e-9) for half in _LOSSES)


def _at_most(count: int, trials: int, error: float) -> float:
    """Clopper and Pearson's upper end for a probability."""
    from scipy.special import betaincinv

    return 1.0 if count >= trials else float(betaincinv(count + 1, trials - count, 1 - error))


def _gaussian_epsilon(alarms: float, misses: float, delta: float) -> float:
    """Epsilon at delta of Gaussian noise for which a test has these errors (Dong-Roth-Su 2022, Cor. 2.13)."""
    from scipy.special import ndtr, ndtri

    mu = float(-ndtri(min(alarms, 1 - 1e-16)) - ndtri(min(misses, 1 - 1e-16)))
    if mu <= 0:
        return 0.0

    def needed(epsilon: float) -> float:
        return float(ndtr(-epsilon / mu + mu / 2) - math.exp(epsilon) * ndtr(-epsilon / mu - mu / 2))

    low, high = 0.0, 200.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) > delta else (low, middle)
    return low


def epsilon_lower_bound(*, canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """The largest epsilon that so many right guesses refute, at that probability of error.

    Steinke-Nasr-Jagielski 2023, Thm. 5.2: under (epsilon, delta)-DP, P[correct >= v] <= f(v) + 2 m delta max_i (f(v - i) -
    f(v)) / i, where f(v) = P[Binomial(guesses, e^epsilon / (1 + e^epsilon)) >= v]. See audit.proof.md.

    Example:
        >>> epsilon_lower_bound(canaries=1000, guesses=100, correct=50, delta=1e-5, error=0.05)
        0.0
        >>> round(epsilon_lower_bound(canaries=1000, guesses=100, correct=95, delta=0, error=0.05), 2)
        2.17
    """
    if _chance(0.0, canaries, guesses, correct, delta) > error:
        return 0.0
    low, high = 0.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _chance(middle, canaries, guesses, correct, delta) <= error else (low, middle)
    return low


def _chance(epsilon: float, canaries: int, guesses: int, correct: int, delta: float) -> float:
    """A bound on the probability of at least that many right guesses."""
    from scipy.special import bdtrc

    if correct == 0:
        return 1.0
    hit = 1.0 / (1.0 + math.exp(-epsilon))
    # P[Binomial >= v] for v = 0, ..., correct
    tails = np.concatenate([[1.0], bdtrc(np.arange(correct), guesses, hit)])
    slope = ((tails[:-1] - tails[-1]) / np.arange(correct, 0, -1)).max()
    return float(min(1.0, tails[-1] + 2 * canaries * delta * slope))  # proof: delta-term
