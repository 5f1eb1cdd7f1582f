"""Attacks on our own models: what an adversary could find out, as a lower bound on epsilon.

`canary_audit` is the one-run audit of Steinke, Nasr and Jagielski (2023), with its bound in audit.proof.md;
`membership_inference` looks at losses alone. Both need private rows, so their results are for the owner of the data: NOT
PRIVATE, never part of a release by themselves.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.learning.classifier import PrivateClassifier
from sabun.learning.features import Labels
from sabun.learning.methods import calibrated
from sabun.learning.model import Model
from sabun.learning.network import Floats, Network
from sabun.learning.training import Data, Problem, Progress, train, unheard
from sabun.privacy import Guarantee
from sabun.privacy.noise import Coin, os_coin
from sabun.records import NumberColumn

__all__ = ["CanaryAudit", "MembershipAttack", "canary_audit", "epsilon_lower_bound", "membership_inference"]

_WORDS = "a lower bound; zero does not mean private"
_OWNER = "NOT PRIVATE (for the owner of the data)"
_RARELY = 0.01
_WITHOUT = {"add-remove": "no row", "replace-one": "another row in its place"}


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
        relation: The neighbours that were tested: a canary left out, or another row in its place.
        guesses: How many the attack dared to guess.
        correct: How many of these were right.
    """

    epsilon_lower: float
    confidence: float
    claimed_epsilon: float
    delta: float
    canaries: int
    relation: str
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
            f"{_OWNER}: epsilon >= {self.epsilon_lower:.3g} with confidence {self.confidence:g} ({self.correct} of "
            f"{self.guesses} guesses right, {self.canaries} canaries); claimed {self.claimed_epsilon:.6g}: {verdict}. "
            f"Without a canary there was {_WITHOUT[self.relation]}: {self.relation} neighbours. This is {_WORDS}."
        )


@final
@dataclass(frozen=True, kw_only=True)
class MembershipAttack:
    """How well losses tell members from others.

    Args:
        auc: The probability that a member's loss is below another's; 0.5 is chance.
        caught: The share of members found when 1 % of the others are taken for members; 0.01 is chance.
    """

    auc: float
    caught: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"summary": str(self)}

    def __str__(self) -> str:
        return (
            f"{_OWNER}: losses tell members from others with AUC {self.auc:.3f} (0.5 is chance), and find {self.caught:.1%} of "
            f"the members at 1 % false alarms (1 % is chance). This is {_WORDS}: an average over people is no evidence of "
            "privacy; use the canary audit."
        )


def canary_audit(
    classifier: PrivateClassifier,
    X: object,
    y: object,
    *,
    canaries: int = 500,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> CanaryAudit:
    """Trains once more with random canaries among the rows, then guesses which of them were in.

    The trained model is thrown away; nothing is charged, since nothing but the audit's figures comes out. These are for the
    owner of the data. Canaries are drawn from the public domain with random labels. A canary that is not in is left out
    (add-remove), or another such row takes its place (replace-one): the neighbours of the method's own promise.

    Args:
        classifier: As it would be fitted; it is not changed.
        X: The private rows.
        y: Their labels.
        canaries: How many to offer.
        confidence: Of the bound.
        progress: Called with the share done and a few words.
    """
    checks.whole(minimum=10, canaries=canaries)
    checks.require(0 < confidence < 1, "between 0 and 1", confidence=confidence)
    choices = classifier._checked()
    problem, data = classifier._opened(choices, X, y)
    coin = os_coin()
    strange, decoys = (_strange(problem, canaries, coin) for _ in range(2))
    inside = (coin.words(canaries) & np.uint64(1)).astype(bool)  # proof: fair-coins
    planted = [strange.where(inside)]
    if problem.relation == "replace-one":
        planted.append(decoys.where(~inside))  # proof: decoys
        problem = dataclasses.replace(problem, n_public=len(data.labels) + canaries)
    joined = _joined([data, *planted])
    method = calibrated(choices, problem)
    found = train(method, joined, coin=coin, progress=progress or unheard)
    weights = np.asarray(found["weights"])
    network = Network(sizes=tuple(found.get("sizes", method.parameters["sizes"])))
    before, after = (_losses(network, at, strange.rows, strange.labels) for at in (network.initial(), weights))
    return _best_bound(before - after, inside, confidence, method.guarantee)


def _best_bound(gain: Floats, inside: NDArray[np.bool_], confidence: float, promise: Guarantee) -> CanaryAudit:
    """The best bound over several numbers of guesses, each at its share of the error (Bonferroni)."""
    order = np.argsort(-gain, kind="stable")  # proof: guesses-from-the-model
    counts = sorted({max(1, int(len(gain) * share)) for share in (0.02, 0.05, 0.1, 0.2, 0.5)})
    claimed, delta = map(float, promise.cost)
    results = []
    for each in counts:
        each = min(each, len(gain) // 2)
        correct = int(inside[order[:each]].sum() + (~inside[order[-each:]]).sum())
        error = (1 - confidence) / len(counts)  # proof: shares
        bound = epsilon_lower_bound(canaries=len(gain), guesses=2 * each, correct=correct, delta=delta, error=error)
        results.append((bound, 2 * each, correct))
    bound, guesses, correct = max(results)
    return CanaryAudit(
        epsilon_lower=bound,
        confidence=confidence,
        claimed_epsilon=claimed,
        delta=delta,
        canaries=len(gain),
        relation=promise.relation,
        guesses=guesses,
        correct=correct,
    )


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


def membership_inference(model: Model, *, members: tuple[object, object], others: tuple[object, object]) -> MembershipAttack:
    """How well the model's loss tells rows it was trained on from rows it was not.

    Args:
        model: The released model.
        members: Rows with labels that were trained on.
        others: Rows with labels that were not.
    """
    labels = Labels(classes=model.classes, declared=True)
    ours, theirs = (
        _losses(model.network, model.weights, model.features.rows(X), np.maximum(labels.codes(y), 0))
        for X, y in (members, others)
    )
    caught = float((ours < np.quantile(theirs, _RARELY, method="lower")).mean())
    return MembershipAttack(auc=_auc(-ours, -theirs), caught=caught)


def _auc(positive: Floats, negative: Floats) -> float:
    """The probability that a positive lies above a negative; ties count half."""
    both = np.sort(negative)
    below = np.searchsorted(both, positive, side="left") + np.searchsorted(both, positive, side="right")
    return float(below.sum() / (2 * len(positive) * len(negative)))


def _losses(network: Network, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> Floats:
    chosen = network.probabilities(weights, rows)[np.arange(len(rows)), labels]
    return np.asarray(-np.log(np.maximum(chosen, 1e-300)))


def _strange(problem: Problem, count: int, coin: Coin) -> Data:
    """Uniform rows of the public domain with uniform labels."""

    def uniform(size: int) -> Floats:
        return np.asarray(coin.words(size).astype(np.float64) * 2.0**-64)

    def picked(choices: int) -> NDArray[np.int64]:
        return np.minimum((uniform(count) * choices).astype(np.int64), choices - 1)

    features, labels = problem.features, picked(len(problem.labels.classes))
    if features.schema is None:
        return Data(rows=uniform(count * features.width).reshape(count, features.width) * 2 - 1, labels=labels)
    columns = []
    for column in features.schema.columns:
        if isinstance(column, NumberColumn):
            low, high = (np.log1p(end) if column.log1p else end for end in (column.lower, column.upper))
            drawn = low + uniform(count) * (high - low)
            columns.append(np.clip(np.expm1(drawn) if column.log1p else drawn, column.lower, column.upper))
        else:
            columns.append(picked(len(column.features)).astype(np.float64))
    table = np.stack(columns, axis=1)
    return Data(rows=features.inputs(table), labels=labels, table=table)


def _joined(parts: list[Data]) -> Data:
    """All rows of several tables; the encoded tables only if all have one."""
    tables = [part.table for part in parts if part.table is not None]
    return Data(
        rows=np.concatenate([part.rows for part in parts]),
        labels=np.concatenate([part.labels for part in parts]),
        table=np.concatenate(tables) if len(tables) == len(parts) else None,
    )
