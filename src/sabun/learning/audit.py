"""Attacks on our own models: what an adversary could find out, as a lower bound on epsilon.

`canary_audit` is the one-run audit of Steinke, Nasr and Jagielski (2023); `membership_inference` looks at losses alone. Both
need private rows, so their results are for the owner of the data: NOT PRIVATE, never part of a release by themselves.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import DataError
from sabun.learning.classifier import PrivateClassifier
from sabun.learning.features import Features, Labels
from sabun.learning.methods import calibrated
from sabun.learning.model import Model
from sabun.learning.network import Floats, Network
from sabun.learning.training import Data, unheard
from sabun.privacy.noise import Coin, os_coin
from sabun.records import CategoryColumn

__all__ = ["CanaryAudit", "MembershipAttack", "canary_audit", "epsilon_lower_bound", "membership_inference"]

_WORDS = "a lower bound; zero does not mean private"


@final
@dataclass(frozen=True, kw_only=True)
class CanaryAudit:
    """What a one-run audit found.

    Args:
        epsilon_lower: With that confidence the true epsilon is at least this, at the claimed delta.
        confidence: Of the bound, all numbers of guesses taken together.
        claimed_epsilon: What the method promises.
        delta: The same for delta.
        canaries: How many were offered; each was trained on with probability 1/2.
        guesses: How many the attack dared to guess.
        correct: How many of these were right.
    """

    epsilon_lower: float
    confidence: float
    claimed_epsilon: float
    delta: float
    canaries: int
    guesses: int
    correct: int

    @property
    def refuted(self) -> bool:
        """Whether the claim is too good to be true."""
        return self.epsilon_lower > self.claimed_epsilon

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"refuted": self.refuted, "summary": str(self)}

    def __str__(self) -> str:
        verdict = "THE CLAIM IS REFUTED" if self.refuted else "the claim stands"
        return (
            f"epsilon >= {self.epsilon_lower:.3g} with confidence {self.confidence:g} ({self.correct} of {self.guesses} "
            f"guesses right, {self.canaries} canaries); claimed {self.claimed_epsilon:.6g}: {verdict}. "
            f"Canaries are added or left out: add-remove neighbours. This is {_WORDS}."
        )


@final
@dataclass(frozen=True, kw_only=True)
class MembershipAttack:
    """How well losses tell members from others: 0.5 is chance."""

    auc: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"auc": self.auc, "summary": str(self)}

    def __str__(self) -> str:
        return (
            f"NOT PRIVATE (for the owner of the data): losses tell members from others with AUC {self.auc:.3f}; 0.5 is chance. "
            f"An average over people is no evidence of privacy: use the canary audit. It is {_WORDS}."
        )


def canary_audit(
    classifier: PrivateClassifier, X: object, y: object, *, canaries: int = 500, confidence: float = 0.95
) -> CanaryAudit:
    """Trains once more with random canaries among the rows, then guesses which of them were in.

    The trained model is thrown away; nothing is charged, since nothing but the audit's figures comes out. These are for the
    owner of the data. Canaries are drawn from the public domain with random labels. Each is added or left out, so this tests
    add-remove neighbours; of a promise about replacing a row it tests only that half.

    Args:
        classifier: As it would be fitted; it is not changed.
        X: The private rows.
        y: Their labels.
        canaries: How many to offer.
        confidence: Of the bound.
    """
    checks.whole(minimum=10, canaries=canaries)
    checks.require(0 < confidence < 1, "between 0 and 1", confidence=confidence)
    settings = classifier._check()
    problem, data = classifier._opened(settings, X, y)
    if data.table is not None:
        raise DataError(
            "method must train on rows to be audited with canaries; 'anonymizing-first' trains on a synthetic table."
        )
    method, coin = calibrated(settings, problem), os_coin()
    rows, labels = _strange_rows(problem.features, problem.labels, canaries, coin)
    inside = (coin.words(canaries) & np.uint64(1)).astype(bool)
    joined = Data(rows=np.concatenate([data.rows, rows[inside]]), labels=np.concatenate([data.labels, labels[inside]]))
    weights = np.asarray(method.train(joined, coin=coin, progress=unheard)["weights"])
    network = Network(sizes=tuple(method.parameters["sizes"]))
    gain = _losses(network, network.initial(), rows, labels) - _losses(network, weights, rows, labels)
    epsilon, delta = method.guarantee.cost
    return _best_bound(gain, inside, confidence, float(epsilon), float(delta))


def _best_bound(gain: Floats, inside: NDArray[np.bool_], confidence: float, claimed: float, delta: float) -> CanaryAudit:
    """The best bound over several numbers of guesses, each at its share of the error (Bonferroni)."""
    order = np.argsort(-gain, kind="stable")
    counts = sorted({max(1, int(len(gain) * share)) for share in (0.02, 0.05, 0.1, 0.2, 0.5)})
    results = []
    for each in counts:
        each = min(each, len(gain) // 2)
        correct = int(inside[order[:each]].sum() + (~inside[order[-each:]]).sum())
        bound = epsilon_lower_bound(
            canaries=len(gain), guesses=2 * each, correct=correct, delta=delta, error=(1 - confidence) / len(counts)
        )
        results.append((bound, 2 * each, correct))
    bound, guesses, correct = max(results)
    return CanaryAudit(
        epsilon_lower=bound,
        confidence=confidence,
        claimed_epsilon=claimed,
        delta=delta,
        canaries=len(gain),
        guesses=guesses,
        correct=correct,
    )


def epsilon_lower_bound(*, canaries: int, guesses: int, correct: int, delta: float, error: float) -> float:
    """The largest epsilon that so many right guesses refute, at that probability of error.

    Steinke-Nasr-Jagielski 2023, Thm. 5.2: under (epsilon, delta)-DP, P[correct >= v] <= f(v) + 2 m delta max_i (f(v - i) -
    f(v)) / i, where f(v) = P[Binomial(guesses, e^epsilon / (1 + e^epsilon)) >= v].

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

    hit = 1.0 / (1.0 + math.exp(-epsilon))

    def at_least(count: int) -> float:
        return 1.0 if count <= 0 else float(bdtrc(count - 1, guesses, hit))

    tail = at_least(correct)
    slope = max(((at_least(correct - i) - tail) / i for i in range(1, correct + 1)), default=0.0)
    return min(1.0, tail + 2 * canaries * delta * slope)


def membership_inference(model: Model, *, members: tuple[object, object], others: tuple[object, object]) -> MembershipAttack:
    """How well the model's loss tells rows it was trained on from rows it was not.

    Args:
        model: The released model.
        members: Rows with labels that were trained on.
        others: Rows with labels that were not.
    """
    labels = Labels(classes=model.classes, declared=True)
    losses = []
    for X, y in (members, others):
        losses.append(_losses(model.network, model.weights, model.features.rows(X), np.maximum(labels.codes(y), 0)))
    return MembershipAttack(auc=_auc(-losses[0], -losses[1]))


def _auc(positive: Floats, negative: Floats) -> float:
    """The probability that a positive lies above a negative; ties count half."""
    both = np.sort(negative)
    below = np.searchsorted(both, positive, side="left") + np.searchsorted(both, positive, side="right")
    return float(below.sum() / (2 * len(positive) * len(negative)))


def _losses(network: Network, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> Floats:
    chosen = network.probabilities(weights, rows)[np.arange(len(rows)), labels]
    return np.asarray(-np.log(np.maximum(chosen, 1e-300)))


def _strange_rows(features: Features, labels: Labels, count: int, coin: Coin) -> tuple[Floats, NDArray[np.int64]]:
    """Uniform rows of the public domain with uniform labels."""

    def uniform(size: int) -> Floats:
        return np.asarray(coin.words(size).astype(np.float64) * 2.0**-64)

    codes = np.minimum((uniform(count) * len(labels.classes)).astype(np.int64), len(labels.classes) - 1)
    if features.schema is None:
        return uniform(count * features.width).reshape(count, features.width) * 2 - 1, codes
    parts = []
    for column in features.schema.columns:
        if isinstance(column, CategoryColumn):
            picked = np.minimum((uniform(count) * len(column.features)).astype(np.int64), len(column.features) - 1)
            parts.append(np.eye(len(column.features))[picked])
        else:
            parts.append(uniform(count)[:, None])
    return np.concatenate(parts, axis=1), codes
