"""Attacks on our own ways of training: what an adversary could find out, as lower bounds on epsilon; see audit.proof.md.

Canaries of `canaries` need no private row, so that what is found about a way of training by noisy sums may be published. Other
ways are attacked through the losses of strange rows among private ones: NOT PRIVATE, for the owner of the data alone.
"""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.errors import ParameterError
from sabun.learning.canaries import Seen, Stepwise, simulated, watched
from sabun.learning.classifier import PrivateClassifier
from sabun.learning.features import Features, Labels
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.membership_attack import losses
from sabun.learning.methods import calibrated, problem_of
from sabun.learning.network import Floats, Network
from sabun.learning.stream import Stream
from sabun.learning.training import Data, Problem, Progress, train, unheard
from sabun.learning.verdicts import Declared, Verdict, epsilon_lower_bound, free_verdict
from sabun.privacy import Guarantee
from sabun.privacy.noise import Coin, os_coin
from sabun.records import NumberColumn

if TYPE_CHECKING:
    from sabun.learning.torch_modules import TorchTrainer

__all__ = ["CanaryAudit", "Verdict", "canary_audit", "epsilon_lower_bound"]

_WORDS = "a lower bound; zero does not mean private"
_OWNER = "NOT PRIVATE (for the owner of the data)"
_PUBLIC = "Made without a private row: this may be published"
_WITHOUT = {"add-remove": "no row", "replace-one": "another row in its place"}
FREE, DECLARED = "assumption-free", "declared mechanism"


@final
@dataclass(frozen=True, kw_only=True)
class CanaryAudit:
    """What an audit found.

    Args:
        verdicts: Each way of looking, the one without assumptions first.
        confidence: Of each verdict by itself.
        claimed_epsilon: What the method promises.
        delta: The same for delta.
        canaries: How many were offered; each was in with probability 1/2.
        relation: The neighbours that were tested: a canary left out, or another row in its place.
        guesses: How many the first verdict dared to guess.
        correct: How many of these were right.
        publishable: Whether no private row was used.
        noise_found: Standard deviation of the noise over the declared one; None where no sums can be read off.
    """

    verdicts: tuple[Verdict, ...]
    confidence: float
    claimed_epsilon: float
    delta: float
    canaries: int
    relation: str
    guesses: int
    correct: int
    publishable: bool = False
    noise_found: float | None = None

    @property
    def epsilon_lower(self) -> float:
        """Of the verdict without assumptions."""
        return self.verdicts[0].epsilon_lower

    @property
    def refuted(self) -> bool:
        """Whether any verdict says that the claim is too good to be true."""
        return any(verdict.refuted for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        more = {"epsilon_lower": self.epsilon_lower, "refuted": self.refuted, "summary": str(self)}
        return asdict(self) | {"verdicts": [asdict(one) for one in self.verdicts]} | more

    def __str__(self) -> str:
        noise = "" if self.noise_found is None else f" The noise found is {self.noise_found:.3f} times the declared."
        return "\n".join(
            [
                f"{_PUBLIC if self.publishable else _OWNER}: epsilon {self.claimed_epsilon:.6g} is claimed; {self.canaries} "
                f"canaries, confidence {self.confidence:g} for each line.",
                *(f"  {one}" for one in self.verdicts),
                f"The claim is {'REFUTED' if self.refuted else 'not refuted'}.{noise} Without a canary there was "
                f"{_WITHOUT[self.relation]}: {self.relation} neighbours. Each figure is {_WORDS}.",
            ]
        )


def canary_audit(
    classifier: PrivateClassifier | TorchTrainer,
    X: object = None,
    y: object = None,
    *,
    canaries: int = 300,
    confidence: float = 0.99,
    progress: Progress | None = None,
) -> CanaryAudit:
    """Trains once more with canaries, each in with probability 1/2, then guesses which of them were in.

    What is trained is thrown away; nothing is charged. Methods `dp-adam`, `dp-sgd`, `laplace-sgd` and torch modules that begin
    with a linear layer are trained with frozen weights on canaries in columns of their own. They need no rows, and without rows
    the result may be published; with rows it is for their owner. The other methods need rows: strange ones are planted among
    them, and the losses of the trained model are looked at, which has little power.

    Args:
        classifier: As it would be fitted; it is not changed.
        X: Private rows, or None.
        y: Their labels.
        canaries: How many to offer.
        confidence: Of each verdict.
        progress: Called with the share done and a few words.

    Example:
        >>> from sabun.learning import PrivateClassifier
        >>> clf = PrivateClassifier(epsilon=8, delta=1e-5, classes=["no", "yes"], n_public=1000)
        >>> found = canary_audit(clf, confidence=0.999999)
        >>> found.refuted, [one.without_noise.refuted for one in found.verdicts]
        (False, [False, True, False, True])
    """
    checks.whole(minimum=10, canaries=canaries)
    checks.require(0 < confidence < 1, "between 0 and 1", confidence=confidence)
    rule = "given together with y, or both left out"
    checks.require((X is None) == (y is None), rule, X=None if X is None else type(X).__name__)
    coin = os_coin()
    inside = (coin.words(canaries) & np.uint64(1)).astype(bool)  # proof: fair-coins
    heard = progress or unheard
    if not isinstance(classifier, PrivateClassifier):
        from sabun.learning.torch_modules.widened import watched_module

        checks.require(X is None, "left out for a torch module: no row is needed", X=type(X).__name__)
        seen, run = watched_module(classifier, inside, stream=Stream.fresh(coin), progress=heard)
        return _judged(seen, inside, confidence, run.guarantee, Declared.of(run.guarantee, run.events, paired=True), coin)
    choices = classifier._checked()
    if X is None:
        problem, data = _nobody(classifier, canaries)
    else:
        problem, data = classifier._opened(choices, X, y)
    if problem.relation == "replace-one":
        problem = dataclasses.replace(problem, n_public=len(data.labels) + canaries)
    method = calibrated(choices, problem)
    if isinstance(method, Stepwise):
        found = watched(
            method, data, inside, replaced=problem.relation == "replace-one", stream=Stream.fresh(coin), progress=heard
        )
        events = () if isinstance(method, LaplaceSgd) else method.events
        declared = Declared.of(method.guarantee, events, paired=method.account["rule"] == "sampled-gaussian")
        return _judged(found, inside, confidence, method.guarantee, declared, coin, publishable=X is None)
    if X is None:
        raise ParameterError(
            f"X must be given for the method {choices.method.method!r}, whose steps cannot be looked at; got None. Pass rows "
            "and labels."
        )
    strange, decoys = (_strange(problem, canaries, coin) for _ in range(2))
    planted = [strange.where(inside)]
    if problem.relation == "replace-one":
        planted.append(decoys.where(~inside))  # proof: decoys
    model = train(method, _joined([data, *planted]), coin=coin, progress=heard)
    network = Network(sizes=tuple(model.get("sizes", method.parameters["sizes"])))
    before, after = (
        losses(network, at, strange.rows, strange.labels) for at in (network.initial(), np.asarray(model["weights"]))
    )
    verdict, guesses, correct = free_verdict("losses, " + FREE, before - after, inside, confidence, method.guarantee)
    return _told((verdict,), inside, confidence, method.guarantee, guesses, correct)


def _nobody(classifier: PrivateClassifier, canaries: int) -> tuple[Problem, Data]:
    """The problem of a table without rows: its columns and classes as declared, or a column and two classes."""
    schema, choices = classifier.schema, classifier._checked()
    names = ("x",) if schema is None else schema.names
    labels = Labels(classes=(0, 1) if classifier.classes is None else tuple(classifier.classes), declared=True)
    features = Features(schema=schema, names=names)
    problem = problem_of(choices, features=features, labels=labels, n_records=canaries)
    return problem, Data(rows=np.zeros((0, features.width)), labels=np.zeros(0, dtype=np.int64))


def _judged(
    seen: Seen,
    inside: NDArray[np.bool_],
    confidence: float,
    promise: Guarantee,
    declared: Declared,
    coin: Coin,
    *,
    publishable: bool = True,
) -> CanaryAudit:
    """All verdicts about one run, each beside what it would be without noise and without clipping."""
    generator = np.random.default_rng(coin.bits(128))
    broken = [simulated(seen, inside, generator, **{fault: False}) for fault in ("noise", "clipping")]
    verdicts = []
    counted = (0, 0)
    for what in ("scores", "last_scores"):
        prefix = "all sums" if what == "scores" else "final weights"
        found, *others = (getattr(one, what)() for one in (seen, *broken))
        free, *frees = (free_verdict(f"{prefix}, {FREE}", one[0], inside, confidence, promise) for one in (found, *others))
        held, *helds = (declared.verdict(f"{prefix}, {DECLARED}", one, inside, confidence) for one in (found, *others))
        counted = free[1:] if what == "scores" else counted
        for verdict, faults in ((free[0], [one[0] for one in frees]), (held, helds)):
            verdicts.append(dataclasses.replace(verdict, without_noise=faults[0], without_clipping=faults[1]))
    return _told(tuple(verdicts), inside, confidence, promise, *counted, publishable=publishable, noise=seen.noise(inside))


def _told(
    verdicts: tuple[Verdict, ...],
    inside: NDArray[np.bool_],
    confidence: float,
    promise: Guarantee,
    guesses: int,
    correct: int,
    *,
    publishable: bool = False,
    noise: float | None = None,
) -> CanaryAudit:
    claimed, delta = map(float, promise.cost)
    return CanaryAudit(
        verdicts=verdicts,
        confidence=confidence,
        claimed_epsilon=claimed,
        delta=delta,
        canaries=len(inside),
        relation=promise.relation,
        guesses=guesses,
        correct=correct,
        publishable=publishable,
        noise_found=noise,
    )


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
