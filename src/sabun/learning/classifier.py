"""The public class: train a network on personal records, hand the model over."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError

from sabun import checks
from sabun.asking import Ask, Question, methodical, renamed, settings_of
from sabun.asking.fitting import check_shape, check_target
from sabun.errors import DataError
from sabun.learning.accounting import price_in
from sabun.learning.anonymized_learning import AnonymizedLearning
from sabun.learning.anonymizing_first import AnonymizingFirst
from sabun.learning.card import Card, surely, warn_of_delta, warnings_for
from sabun.learning.choices import Choices
from sabun.learning.crew import crew_of
from sabun.learning.features import Features, Labels, must_not_be_input, read_persons
from sabun.learning.folder import model_bytes, save_folder, software
from sabun.learning.forecasting import drowned, floor_of, noise_told
from sabun.learning.methods import calibrated, must_round_by_row, problem_of
from sabun.learning.model import Model
from sabun.learning.network import Floats, Network
from sabun.learning.plan import Plan
from sabun.learning.settings import FORMER, KINDS, AnonymizingFirstSettings, TrainingSettings
from sabun.learning.stream import Stream
from sabun.learning.synthetic_table import SyntheticTable
from sabun.learning.training import NOISY_COUNT, Counting, Data, Problem, Progress, Run, unheard
from sabun.learning.update_bounds import compared
from sabun.ledger import Ledger
from sabun.privacy.amounts import AmountLike
from sabun.records import Persons, Schema, open_source
from sabun.release import Release
from sabun.telling.floor import FEW

__all__ = ["PrivateClassifier"]

_KIND = "learning.classifier"
_SHOWN = 3
_MORE = "Use a larger epsilon or fewer columns, or declare n_public if that number is public."
_FEW = (
    "few rows counted, by the noisy number of them in the release ({count}). If your table has far more, look whether y spells "
    "its labels as classes does; a row with a label that is not listed is left out."
)
_READ_OFF = "the list of labels was read off y, where one person's label may stand alone: the promise assumes that it is public"


@renamed(regularisation="regularization")
@methodical(*KINDS, former=FORMER, formerly="dp-sgd")
class PrivateClassifier(ClassifierMixin, Question):  # type: ignore[misc]
    """A linear model or network whose weights can be published.

    Guarantee: the released weights, all together, are (epsilon, delta)-differentially private under `relation`, for methods
    `dp-adam`, `dp-sgd`, `noisy-centroids`, `laplace-sgd`, `objective-perturbation` and `anonymizing-first`. For the paper's
    `learning-first` and `anonymized-learning`, epsilon is the paper's: per parameter; `guarantee_.joint_epsilon` says what it
    adds up to.

    What serves one method only is in its settings, which can stand in the place of its name:
    `method=DpAdamSettings(clip_norm=0.5)`. Each of them can be given by its own name too: `clip_norm=0.5`. Names that only
    `dp-sgd` has, the default of earlier versions, choose it where no method is given.

    Args:
        method: `dp-adam`, `dp-sgd` (the former default), `noisy-centroids` (pure, linear), `laplace-sgd` (pure),
            `objective-perturbation` (pure, linear, two classes), `anonymizing-first` (synthetic table first; pure without a
            delta), `learning-first`, `anonymized-learning`; or the settings of one.
        epsilon: The price, read exactly as written.
        delta: None is 1e-5 for `dp-adam` and `dp-sgd` (less where a public number of records asks for less), 0 otherwise.
        hidden: Sizes of hidden layers; () is linear; "auto" picks from public numbers, `dp-adam` also from the noisy number of
            records.
        epochs: Passes over the records, for `dp-adam` one to each step; for `dp-sgd` and `laplace-sgd` the expected number of
            steps each record takes part in; None picks by method. `objective-perturbation` and `noisy-centroids` have none.
        learning_rate: None picks by method; `objective-perturbation` and `noisy-centroids` have none.
        schema: Public bounds and categories; None takes plain numbers as they are, with a warning.
        classes: The public list of labels; None takes them from y, with a warning, and the guarantee says so.
        relation: None is the ledger's, or `add-remove` (`replace-one` for methods that know no other).
        n_public: The number of records, if it is public under `add-remove`; otherwise a noisy one is paid for.
        ledger: The book to charge, or None.
        retry_key: Name under which the same run gets the same model for free; only with a ledger, without a checkpoint.
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
        method: str | TrainingSettings = "dp-adam",
        epsilon: AmountLike = 1.0,
        delta: AmountLike | None = None,
        hidden: Sequence[int] | str = "auto",
        epochs: int | None = None,
        learning_rate: float | None = None,
        schema: Schema | None = None,
        classes: Sequence[Any] | None = None,
        relation: str | None = None,
        n_public: int | None = None,
        ledger: Ledger | None = None,
        retry_key: str | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        random_state: int | None = None,
    ) -> None:
        self.method = method
        self.epsilon = epsilon
        self.delta = delta
        self.hidden = hidden
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.schema = schema
        self.classes = classes
        self.relation = relation
        self.n_public = n_public
        self.ledger = ledger
        self.retry_key = retry_key
        self.checkpoint = checkpoint
        self.progress = progress
        self.random_state = random_state
        self._checked()

    def _checked(self) -> Choices:
        settings = settings_of(self.method, KINDS)
        checks.require(self.schema is None or isinstance(self.schema, Schema), "a Schema or None", schema=self.schema)
        checks.require(self.progress is None or callable(self.progress), "a function or None", progress=self.progress)
        if self.classes is not None:
            Labels(classes=tuple(self.classes), declared=True)
        ask = self._ask(relations=settings.relations)
        if self.checkpoint is not None:
            checks.require(isinstance(self.checkpoint, str | os.PathLike), "the name of a folder", checkpoint=self.checkpoint)
            checks.require(ask.coin.private, "None when there is a checkpoint", random_state=self.random_state)
            rule = "left out when there is a checkpoint, which already goes on where it stopped"
            checks.require(ask.retry_key is None, rule, retry_key=self.retry_key)
        return Choices(
            ask=ask,
            method=settings,
            delta=self.delta,
            hidden=self.hidden,
            n_public=self.n_public,
            epochs=self.epochs,
            learning_rate=self.learning_rate,
        )

    def fit(self, X: object, y: object) -> Self:
        """Trains once, charges once; a second call is a second release.

        Args:
            X: A 2-D array or list of rows, a frame, or (with a schema) the name of a file, or `persons` with several rows each.
            y: One label for each row; of persons the name of the column that holds them, for which a rule may be given too.

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: The table does not fit the schema.
            BudgetExceeded: The ledger refuses; nothing was trained.
            SimulatedError: `random_state` was given with a ledger.
        """
        choices = self._checked()
        check_target(y, owner=self)
        choices.ask.must_be_payable()
        problem, data = self._opened(choices, X, y)
        method = calibrated(choices, problem)
        must_round_by_row(method)
        if problem.n_public is None and (floor := floor_of(method)).high:  # by public facts alone
            warn(f"{floor} {_MORE}", stacklevel=2)
        elif problem.n_public is not None and drowned(method, problem.n_public):
            warn(noise_told(method), stacklevel=2)
        with crew_of(getattr(choices.method, "processes", 1)) as crew:  # started before the charge: what can fail fails here
            run = Run(name=choices.method.method, method=method, data=replace(data, crew=crew), problem=problem)
            self._learned(self._released(choices.ask, run))
        self._described(run, target=y if isinstance(y, str) else getattr(y, "name", None))
        least, count = _at_least(run, self.release_), self.release_.value.get(NOISY_COUNT)
        if problem.labels.declared and count is not None and count < FEW:  # by what is released
            warn(_FEW.format(count=count), stacklevel=2)
        warn_of_delta(self.guarantee_, least, n_public=problem.n_public)  # last: a warning may be made to raise
        return self

    def _opened(self, choices: Choices, X: object, y: object) -> tuple[Problem, Data]:
        if isinstance(X, Persons):
            return self._of_persons(choices, X, y)
        must_not_be_input(y, self.schema)
        features, labels = Features.of(X, self.schema), Labels.of(y, self.classes)
        if not labels.declared:
            warn(f"{_READ_OFF}. Pass classes=[...].", stacklevel=3)
        if self.schema is None:
            warn(_unbounded(features.names), stacklevel=3)
        codes = labels.codes(y)
        table = None
        if self.schema is not None:
            table = open_source(X, schema=self.schema).matrix()
        rows = features.rows(X) if table is None else features.inputs(table)
        if len(rows) != len(codes):
            raise DataError("X and y must have as many rows as each other; they do not.")
        problem = problem_of(choices, features=features, labels=labels, n_records=len(rows))
        kept = table if isinstance(choices.method, AnonymizingFirstSettings) else None
        return problem, Data(rows=rows, labels=codes, table=kept)

    def _of_persons(self, choices: Choices, people: Persons, target: object) -> tuple[Problem, Data]:
        rule = "left out for persons: going on needs the same rows in the same order, which is drawn anew each time"
        checks.require(self.checkpoint is None, rule, checkpoint=self.checkpoint)
        table, codes = read_persons(people, target, schema=self.schema, classes=self.classes)
        features, labels = Features.of(people, self.schema), Labels.of(None, self.classes)
        problem = problem_of(choices, features=features, labels=labels, n_records=len(table))
        kept = table if isinstance(choices.method, AnonymizingFirstSettings) else None
        data = Data(rows=features.inputs(table), labels=codes, table=kept)
        return replace(problem, persons=people.terms), data

    def _released(self, ask: Ask, run: Run) -> Release:
        """Through the one door out; a run with a checkpoint has its own, which charges, draws and hands over over days."""
        heard, subject = self.progress or unheard, () if self.schema is None else self.schema.names
        if self.checkpoint is not None:
            from sabun.learning.checkpoint import train_resumably

            digest = None if self.schema is None else self.schema.hash
            return train_resumably(
                self.checkpoint, kind=_KIND, run=run, ledger=ask.ledger, progress=heard, schema_hash=digest, subject=subject
            )
        return ask.answer(
            lambda: run.train(Stream.fresh(ask.coin), heard),
            kind=_KIND,
            promise=run.guarantee,
            facts=run.facts,
            subject=subject,
            schema=self.schema,
            price=price_in(run.facts["account"]),
        )

    def _described(self, run: Run, *, target: object) -> None:
        """Reads model, card and synthetic table off the release."""
        problem, method, release = run.problem, run.method, self.release_
        classes = tuple(release["model"]["classes"])  # of a release that a retry key brought back they may not be those of y
        self.classes_ = np.array(classes)
        self.n_features_in_ = len(problem.features.names)
        self.model_ = Model(
            network=Network(sizes=tuple(release["model"]["sizes"])),
            weights=np.array(release["weights"], dtype=np.float64),
            features=problem.features,
            classes=classes,
        )
        facts, warnings = _told(run, self.model_, _at_least(run, release))
        facts |= {"target": target} if isinstance(target, str) else {}  # whoever measures the model need not say it again
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
            self.synthetic_ = SyntheticTable.of(release, matrix, codes, schema=self.schema, classes=classes)

    def predict(self, X: object) -> NDArray[Any]:
        """The most likely class of each row."""
        return self._answering(X).predict(X)

    def predict_proba(self, X: object) -> Floats:
        """Class probabilities in the order of `classes_`."""
        return self._answering(X).predict_proba(X)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of rows predicted right. Measured on private rows it is private too: do not publish it."""
        checks.require(sample_weight is None, "None", sample_weight=type(sample_weight).__name__)
        return self._answering(X).score(X, y)

    def _answering(self, X: object) -> Model:
        model = self._model()
        check_shape(X, owner=self, columns=self.n_features_in_)
        return model

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
        return Plan.of(
            self._checked(),
            schema=self.schema,
            classes=tuple(range(n_classes)) if self.classes is None else tuple(self.classes),
            n_records=n_records,
            n_features=n_features,
        )


def _unbounded(names: Sequence[str]) -> str:
    """What to declare, for columns whose names are public."""
    columns = ", ".join(f"Column.number({name!r}, lower=..., upper=...)" for name in names[:_SHOWN])
    more = ", ..." if len(names) > _SHOWN else ""
    return (
        "without a schema numbers are taken as they are: they are neither centred nor scaled, so that a column of large "
        "numbers drowns the others, and most accuracy is lost. Declare public bounds before anything is charged: "
        f"schema=Schema(columns=[{columns}{more}])."
    )


def _at_least(run: Run, release: Release) -> int | None:
    """How many records there surely are, by the noisy count in a release; None where there is none, or it does not tell."""
    return surely(release.value.get(NOISY_COUNT), run.method.count_epsilon) if isinstance(run.method, Counting) else None


def _told(run: Run, model: Model, least: int | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a card says of the settings, in plain JSON types, with what it warns of."""
    problem, method, plain = run.problem, run.method, (str, int, float, list, type(None))
    facts: dict[str, Any] = {key: value if isinstance(value, plain) else str(value) for key, value in method.parameters.items()}
    facts |= {"method": run.name, "n_public": "private" if problem.n_public is None else problem.n_public}
    warnings = warnings_for(run.guarantee, least or problem.n_public, noisy=least is not None)
    if isinstance(method, AnonymizedLearning) and problem.features.schema is not None:
        facts["intervals"], more = compared(
            model.network, model.weights, threshold=method.threshold, batch_size=method.batch_size
        )
        warnings += more
    if not problem.labels.declared:
        warnings += (_READ_OFF,)
    if not np.isfinite(model.weights).all():
        warnings += ("training diverged: some weights are not finite numbers. Choose a smaller learning_rate",)
    return facts, warnings
