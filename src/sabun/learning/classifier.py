"""The public class: train a network on personal records, hand the model over."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from sabun import checks
from sabun.errors import DataError
from sabun.learning.anonymized_learning import AnonymizedLearning
from sabun.learning.anonymizing_first import AnonymizingFirst
from sabun.learning.card import Card, warn_of_delta, warnings_for
from sabun.learning.features import Features, Labels, must_not_be_input
from sabun.learning.folder import model_bytes, save_folder, software
from sabun.learning.methods import calibrated, must_round_by_row
from sabun.learning.model import Model
from sabun.learning.network import Floats, Network
from sabun.learning.plan import Plan
from sabun.learning.settings import Settings
from sabun.learning.stream import Stream
from sabun.learning.synthetic_table import SyntheticTable
from sabun.learning.training import NOISY_COUNT, Data, Method, Problem, Progress, Run, unheard
from sabun.learning.update_bounds import compared
from sabun.ledger import Ledger
from sabun.privacy import exact_positive
from sabun.privacy.amounts import AmountLike
from sabun.privacy.noise import Coin, coin_for
from sabun.records import Schema, open_source
from sabun.release import Release, publish, refuse_seeded

__all__ = ["PrivateClassifier"]

_KIND = "learning.classifier"
_READ_OFF = "the list of labels was read off y, where one person's label may stand alone: the promise assumes that it is public"


class PrivateClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear model or network whose weights can be published.

    Guarantee: the released weights, all together, are (epsilon, delta)-differentially private under `relation`, for methods
    `dp-sgd`, `laplace-sgd`, `objective-perturbation` and `anonymizing-first`. For the paper's `learning-first` and
    `anonymized-learning`, epsilon is the paper's: per parameter; `guarantee_.joint_epsilon` says what it adds up to.

    Args:
        method: `dp-sgd`, `laplace-sgd` (pure), `objective-perturbation` (pure, linear, two classes), `anonymizing-first`
            (synthetic table first; pure without a delta), `learning-first`, `anonymized-learning`.
        epsilon: The price, read exactly as written.
        delta: None is 1e-5 for `dp-sgd` (less where a public number of records asks for less), 0 otherwise.
        hidden: Sizes of hidden layers; () is linear; "auto" picks from public numbers.
        schema: Public bounds and categories; None takes plain numbers as they are.
        classes: The public list of labels; None takes them from y, with a warning, and the guarantee says so.
        relation: None is the ledger's, or `add-remove` (`replace-one` for methods that know no other).
        n_public: The number of records, if it is public under `add-remove`; otherwise a noisy one is paid for.
        clip_norm: To which each example's gradient is cut (L2; L1 for `laplace-sgd`).
        sampling_rate: The probability to take part in a step.
        epochs: Expected number of steps each record takes part in.
        batch_size: For methods with fixed batches.
        learning_rate: None picks by method.
        momentum: For the noisy methods.
        precision: `double`, which the proof covers; `single` is faster (`dp-sgd` only), and the guarantee says so.
        threshold: For `anonymized-learning`: sums are cut to plus or minus this.
        weight_bound: For `learning-first`: weights are cut to plus or minus this.
        regularisation: For `objective-perturbation`.
        joint_epsilon: For the paper's two methods: solve for the per-parameter epsilon with this joint one.
        synthesis: For `anonymizing-first`: `bayes-net`, `microaggregation` or `histogram`.
        n_synthetic: Rows of the synthetic table; with `microaggregation` there are as many as records, whose number is public.
        bins: Cells of a number column in a synthetic table.
        group_size: For `microaggregation`.
        ledger: The book to charge, or None.
        checkpoint: Folder to resume from after a crash; it holds a secret key, see `LIMITS.md`.
        progress: Called with the share done and a few words.
        random_state: None for a private result; an int simulates, NOT PRIVATE.

    Attributes:
        classes_, n_features_in_, model_, guarantee_, release_, card_; synthetic_ after `anonymizing-first`.

    Example:
        >>> rows = [[i / 100, 1 - i / 100] for i in range(100)]
        >>> labels = [int(i >= 50) for i in range(100)]
        >>> clf = PrivateClassifier(epsilon=8, delta=1e-3, classes=[0, 1], random_state=1).fit(rows, labels)
        >>> clf.guarantee_.epsilon, clf.guarantee_.simulated
        (Fraction(8, 1), True)
    """

    def __init__(
        self,
        *,
        method: str = "dp-sgd",
        epsilon: AmountLike = 1.0,
        delta: AmountLike | None = None,
        hidden: Sequence[int] | str = "auto",
        schema: Schema | None = None,
        classes: Sequence[Any] | None = None,
        relation: str | None = None,
        n_public: int | None = None,
        clip_norm: float = 1.0,
        sampling_rate: float = 0.1,
        epochs: int | None = None,
        batch_size: int = 50,
        learning_rate: float | None = None,
        momentum: float = 0.9,
        precision: str = "double",
        threshold: float = 0.1,
        weight_bound: float = 0.5,
        regularisation: AmountLike | None = None,
        joint_epsilon: AmountLike | None = None,
        synthesis: str = "bayes-net",
        n_synthetic: int = 30_000,
        bins: int = 16,
        group_size: int = 1000,
        ledger: Ledger | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        random_state: int | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.hidden = hidden
        self.schema = schema
        self.classes = classes
        self.relation = relation
        self.n_public = n_public
        self.clip_norm = clip_norm
        self.sampling_rate = sampling_rate
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.precision = precision
        self.threshold = threshold
        self.weight_bound = weight_bound
        self.regularisation = regularisation
        self.joint_epsilon = joint_epsilon
        self.synthesis = synthesis
        self.n_synthetic = n_synthetic
        self.bins = bins
        self.group_size = group_size
        self.ledger = ledger
        self.checkpoint = checkpoint
        self.progress = progress
        self.random_state = random_state
        self._check()

    def _settings(self) -> Settings:
        names = Settings.__dataclass_fields__
        return Settings(**{name: getattr(self, name) for name in names})

    def _check(self) -> Settings:
        settings = self._settings()
        checks.require(self.schema is None or isinstance(self.schema, Schema), "a Schema or None", schema=self.schema)
        checks.require(self.ledger is None or isinstance(self.ledger, Ledger), "a Ledger or None", ledger=self.ledger)
        checks.require(self.progress is None or callable(self.progress), "a function or None", progress=self.progress)
        if self.classes is not None:
            Labels(classes=tuple(self.classes), declared=True)
        if self.checkpoint is not None:
            checks.require(isinstance(self.checkpoint, str | os.PathLike), "the name of a folder", checkpoint=self.checkpoint)
            checks.require(self.random_state is None, "None when there is a checkpoint", random_state=self.random_state)
        coin_for(self.random_state)
        return settings

    def fit(self, X: object, y: object) -> Self:
        """Trains once, charges once; a second call is a second release.

        Args:
            X: A 2-D array or list of rows, a frame, or the name of a file (with a schema).
            y: One label for each row.

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: The table does not fit the schema.
            BudgetExceeded: The ledger refuses; nothing was trained.
        """
        settings, coin = self._check(), coin_for(self.random_state)
        refuse_seeded(coin, self.ledger)
        problem, data = self._opened(settings, X, y)
        method = calibrated(settings, problem)
        must_round_by_row(method)
        self.release_ = self._released(problem, method, data, coin)
        self._learned(problem, method)
        count = self.release_.value.get(NOISY_COUNT)
        warn_of_delta(self.guarantee_, count, n_public=problem.n_public)  # last: a warning may be made to raise
        return self

    def _opened(self, settings: Settings, X: object, y: object) -> tuple[Problem, Data]:
        must_not_be_input(y, self.schema)
        features, labels = Features.of(X, self.schema), Labels.of(y, self.classes)
        if not labels.declared:
            warn(f"{_READ_OFF}. Pass classes=[...].", stacklevel=3)
        codes = labels.codes(y)
        table = None
        if self.schema is not None:
            table = open_source(X, schema=self.schema).matrix()
        rows = features.rows(X) if table is None else features.inputs(table)
        if len(rows) != len(codes):
            raise DataError("X and y must have as many rows as each other; they do not.")
        problem = self._problem(settings, features, labels, len(rows))
        return problem, Data(rows=rows, labels=codes, table=table if self.method == "anonymizing-first" else None)

    def _problem(self, settings: Settings, features: Features, labels: Labels, n_rows: int) -> Problem:
        relation = settings.stated_relation(None if self.ledger is None else self.ledger.relation)
        # Under replace-one the number of records is public by definition; under add-remove only if the caller declares it.
        n_public = n_rows if relation == "replace-one" else self.n_public
        if n_public == 0:
            raise DataError("a table must have at least one row; got none.")
        return Problem(
            features=features,
            labels=labels,
            epsilon=exact_positive(self.epsilon, name="epsilon"),
            delta=settings.stated_delta(n_public),
            relation=relation,
            unit="record" if self.ledger is None else self.ledger.unit,
            n_public=n_public,
        )

    def _released(self, problem: Problem, method: Method, data: Data, coin: Coin) -> Release:
        run, heard = Run(name=self.method, method=method, data=data, problem=problem), self.progress or unheard
        about: dict[str, Any] = {"schema_hash": None if self.schema is None else self.schema.hash}
        about["subject"] = () if self.schema is None else self.schema.names
        if self.checkpoint is not None:
            from sabun.learning.checkpoint import train_resumably

            return train_resumably(self.checkpoint, kind=_KIND, run=run, ledger=self.ledger, progress=heard, **about)
        return publish(
            kind=_KIND,
            guarantee=run.guarantee,
            parameters=run.facts,
            draw=lambda: run.train(Stream.fresh(coin), heard),
            ledger=self.ledger,
            coin=coin,
            **about,
        )

    def _learned(self, problem: Problem, method: Method) -> None:
        release = self.release_
        self.guarantee_ = release.guarantee
        self.classes_ = problem.labels.array()
        self.n_features_in_ = len(problem.features.names)
        network = Network(sizes=tuple(method.parameters["sizes"]))
        self.model_ = Model(
            network=network,
            weights=np.array(release["weights"], dtype=np.float64),
            features=problem.features,
            classes=problem.labels.classes,
        )
        facts, count = _facts(self.method, problem, method), release.value.get(NOISY_COUNT)
        warnings = warnings_for(release.guarantee, count or problem.n_public, noisy=count is not None)
        if isinstance(method, AnonymizedLearning) and self.schema is not None:
            facts["intervals"], more = compared(
                network, self.model_.weights, threshold=method.threshold, batch_size=method.batch_size
            )
            warnings += more
        if not problem.labels.declared:
            warnings += (_READ_OFF,)
        if not np.isfinite(self.model_.weights).all():
            warnings += ("training diverged: some weights are not finite numbers. Choose a smaller learning_rate",)
        self.card_ = Card(
            guarantee=release.guarantee,
            account=method.account,
            model=self.model_.to_dict(),
            parameters=facts,
            sha256=hashlib.sha256(model_bytes(self.model_)).hexdigest(),
            software=software(),
            randomness="operating system entropy, 256-bit key for each run"
            if not release.guarantee.simulated
            else "seeded: NOT PRIVATE",
            warnings=warnings,
        )
        if isinstance(method, AnonymizingFirst) and self.schema is not None:
            matrix, codes = method.table(release.value)
            self.synthetic_ = SyntheticTable.of(release, matrix, codes, schema=self.schema, classes=problem.labels.classes)

    def predict(self, X: object) -> NDArray[Any]:
        """The most likely class of each row."""
        return self._model().predict(X)

    def predict_proba(self, X: object) -> Floats:
        """Class probabilities in the order of `classes_`."""
        return self._model().predict_proba(X)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of rows predicted right. Measured on private rows it is private too: do not publish it."""
        checks.require(sample_weight is None, "None", sample_weight=type(sample_weight).__name__)
        return self._model().score(X, y)

    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("PrivateClassifier must be fitted first: call fit(X, y).")
        return self.model_

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False, allow_per_parameter: bool = False) -> None:
        """Writes a folder with model.safetensors, card.json and release.json.

        Args:
            path: The folder.
            overwrite: Replace files that are there.
            allow_per_parameter: Says that a promise about each weight by itself is understood not to be a joint one.

        Raises:
            SimulatedError: The model came from a seeded coin.
            ParameterError: The promise is per-parameter, and `allow_per_parameter` is False.
            DataError: A file exists, or cannot be written.
        """
        self._model()
        save_folder(
            path,
            model=self.model_,
            card=self.card_,
            release=self.release_,
            overwrite=overwrite,
            allow_per_parameter=allow_per_parameter,
        )

    def plan(self, *, n_records: int, n_features: int | None = None, n_classes: int = 2) -> Plan:
        """What `fit` would cost and how large its noise would be, from public numbers alone.

        Args:
            n_records: How many records one expects.
            n_features: Inputs of the network; from the schema when there is one.
            n_classes: How many classes; from `classes` when given.
        """
        settings = self._check()
        return Plan.of(
            settings,
            schema=self.schema,
            classes=tuple(range(n_classes)) if self.classes is None else tuple(self.classes),
            n_records=n_records,
            n_features=n_features,
            ledger_relation=None if self.ledger is None else self.ledger.relation,
        )


def _facts(name: str, problem: Problem, method: Method) -> dict[str, Any]:
    """Public settings in plain JSON types."""
    plain = (str, int, float, list, type(None))
    facts = {key: value if isinstance(value, plain) else str(value) for key, value in method.parameters.items()}
    return facts | {"method": name, "n_public": "private" if problem.n_public is None else problem.n_public}
