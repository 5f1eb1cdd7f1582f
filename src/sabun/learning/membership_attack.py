"""Does a released model tell who was trained on? Losses, and losses beside those of other models (LiRA, Carlini et al. 2022).

What comes out is about private rows: NOT PRIVATE, for the owner of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import ParameterError
from sabun.learning.anonymizing_first import AnonymizingFirst
from sabun.learning.classifier import PrivateClassifier
from sabun.learning.features import Labels
from sabun.learning.methods import calibrated, problem_of
from sabun.learning.model import Model
from sabun.learning.network import Floats, Network
from sabun.learning.plain_training import PlainTraining
from sabun.learning.stream import Stream
from sabun.learning.training import Data, train, unheard
from sabun.privacy.noise import os_coin

__all__ = ["MembershipAttack", "losses", "membership_inference"]

_WORDS = "a lower bound; zero does not mean private"
_OWNER = "NOT PRIVATE (for the owner of the data)"
_RARELY = 0.01
_SURELY = 1e-12
_PLAIN_EPOCHS = 100
"""Of networks without privacy, which are to learn rows by heart."""
Table: TypeAlias = tuple[object, object]
Trained: TypeAlias = tuple[Network, Floats]


@final
@dataclass(frozen=True, kw_only=True)
class MembershipAttack:
    """How well a model tells members from others.

    Args:
        auc: The probability that a member scores above another; 0.5 is chance.
        caught: The share of members found when 1 % of the others are taken for members; 0.01 is chance.
        shadows: How many other models losses were compared with; 0 where losses were looked at by themselves.
        without_noise: The same attack on the same network trained without noise and clipping; None without shadows.
    """

    auc: float
    caught: float
    shadows: int = 0
    without_noise: MembershipAttack | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"summary": str(self)}

    def __str__(self) -> str:
        by = f"losses beside those of {self.shadows} other models" if self.shadows else "losses"
        power = "" if self.without_noise is None else f" Without noise and clipping: {self.without_noise.figures}."
        return (
            f"{_OWNER}: {by} tell members from others with {self.figures}; 0.5 and 1 % are chance.{power} This is {_WORDS}: an "
            "average over people is no evidence of privacy; use the canary audit."
        )

    @property
    def figures(self) -> str:
        """Both in words."""
        return f"AUC {self.auc:.3f}, and {self.caught:.1%} of the members at 1 % false alarms"


def membership_inference(
    model: Model, *, members: Table, others: Table, like: PrivateClassifier | None = None, shadows: int = 16
) -> MembershipAttack:
    """How well the model's loss tells rows it was trained on from rows it was not.

    With `like`, so many shadow models are trained as that classifier is, each on a random half of all these rows, and the loss
    of a row is judged beside its losses under models that had it and models that had not. They are thrown away and nothing is
    charged. The same is done with networks trained without privacy, to show what the attack can find.

    Args:
        model: The released model.
        members: Rows with labels that were trained on.
        others: Rows with labels that were not; about as many.
        like: How the model was trained; None looks at losses by themselves.
        shadows: How many.
    """
    labels = Labels(classes=model.classes, declared=True)
    mine, strangers = (Data(rows=model.features.rows(X), labels=np.maximum(labels.codes(y), 0)) for X, y in (members, others))
    if like is None:
        return _attack(*(_confidence(model.network, model.weights, data) for data in (mine, strangers)))
    checks.whole(minimum=4, shadows=shadows)
    coin, choices = os_coin(), like._checked()
    pool = _joined(mine, strangers)
    problem = problem_of(choices, features=model.features, labels=labels, n_records=len(pool.labels) // 2)
    method = calibrated(choices, problem)
    if isinstance(method, AnonymizingFirst):
        raise ParameterError("like must be a method that reads encoded rows; got 'anonymizing-first'. Leave like out.")
    plain = PlainTraining(network=model.network, epochs=_PLAIN_EPOCHS, batch_size=50, learning_rate=0.05)

    def private(data: Data) -> Trained:
        # Nothing is charged: nothing leaves but the attack's figures, which are for the owner.
        found = train(method, data, coin=coin, progress=unheard)
        return Network(sizes=tuple(found.get("sizes", method.parameters["sizes"]))), np.asarray(found["weights"])

    def unprotected(data: Data) -> Trained:
        return model.network, plain.run(data, Stream.fresh(coin))

    generator = np.random.default_rng(coin.bits(128))
    targets = ((model.network, model.weights), private), (unprotected(mine), unprotected)
    ours, open_ones = (_beside_others(target, again, pool, len(mine.labels), shadows, generator) for target, again in targets)
    return replace(ours, shadows=shadows, without_noise=replace(open_ones, shadows=shadows))


def _beside_others(
    target: Trained,
    again: Callable[[Data], Trained],
    pool: Data,
    members: int,
    shadows: int,
    generator: np.random.Generator,
) -> MembershipAttack:
    """Carlini et al. 2022: normal laws of the confidence in a row's label, under models with the row and models without it."""
    count = len(pool.labels)
    had = np.zeros((shadows, count), dtype=bool)
    for pair in range(0, shadows, 2):  # in pairs of halves, so that every row was in as often as not
        half = generator.permutation(count) < count // 2
        had[pair], had[pair + 1 : pair + 2] = half, ~half
    seen = np.array([_confidence(*again(pool.where(rows)), pool) for rows in had])
    means, spread = [], np.zeros(count)
    for side in (had, ~had):
        mean = np.where(side, seen, 0.0).sum(axis=0) / side.sum(axis=0)
        spread += np.where(side, (seen - mean) ** 2, 0.0).sum(axis=0)
        means.append(mean)
    variance = spread / (shadows - 2) + _SURELY
    found = _confidence(*target, pool)
    score = ((found - means[1]) ** 2 - (found - means[0]) ** 2) / (2 * variance)
    return _attack(score[:members], score[members:])


def _joined(first: Data, second: Data) -> Data:
    return Data(rows=np.concatenate([first.rows, second.rows]), labels=np.concatenate([first.labels, second.labels]))


def _attack(ours: Floats, theirs: Floats) -> MembershipAttack:
    caught = float((ours > np.quantile(theirs, 1 - _RARELY, method="higher")).mean())
    return MembershipAttack(auc=_auc(ours, theirs), caught=caught)


def _confidence(network: Network, weights: Floats, data: Data) -> Floats:
    """log(p / (1 - p)) of a row's own label, which is nearly normal where p is not."""
    loss = losses(network, weights, data.rows, data.labels)
    return np.asarray(-loss - np.log(np.maximum(-np.expm1(-loss), 1e-300)))


def losses(network: Network, weights: Floats, rows: Floats, labels: NDArray[np.int64]) -> Floats:
    """Cross entropy, a number for each row."""
    chosen = network.probabilities(weights, rows)[np.arange(len(rows)), labels]
    return np.asarray(-np.log(np.maximum(chosen, 1e-300)))


def _auc(positive: Floats, negative: Floats) -> float:
    """The probability that a positive lies above a negative; ties count half."""
    both = np.sort(negative)
    below = np.searchsorted(both, positive, side="left") + np.searchsorted(both, positive, side="right")
    return float(below.sum() / (2 * len(positive) * len(negative)))
