"""The reference without privacy: what the same network learns when nobody is protected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError

from sabun import checks
from sabun.asking.fitting import check_shape, check_target
from sabun.errors import DataError
from sabun.learning.features import Features, Labels, must_not_be_input
from sabun.learning.model import Model
from sabun.learning.network import Floats, Network
from sabun.learning.plain_training import PlainTraining
from sabun.learning.stream import Stream
from sabun.learning.training import Data
from sabun.privacy.noise import coin_for
from sabun.records import Schema

__all__ = ["PlainClassifier"]


class PlainClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The networks of `PrivateClassifier` trained without any noise: NOT PRIVATE, for comparison by the owner of the data.

    It has no guarantee, no release, no card, and cannot be saved as a model folder.

    Args:
        hidden: Sizes of hidden layers; () is linear.
        schema: Public bounds and categories; None takes plain numbers as they are.
        classes: The list of labels; None takes them from y.
        epochs: Passes over the rows.
        batch_size: Rows in an update.
        learning_rate: Of the mean gradient of a batch.
        decay: The paper's lambda: each update also shrinks weights by learning_rate * decay / batch_size.
        random_state: Seed of the order of the rows; None takes another one each time.

    Attributes:
        classes_, n_features_in_, model_.

    Example:
        >>> rows = [[i / 100, 1 - i / 100] for i in range(100)]
        >>> labels = [int(i >= 50) for i in range(100)]
        >>> PlainClassifier(epochs=50).fit(rows, labels).score(rows, labels) > 0.9
        True
    """

    def __init__(
        self,
        *,
        hidden: Sequence[int] = (),
        schema: Schema | None = None,
        classes: Sequence[Any] | None = None,
        epochs: int = 20,
        batch_size: int = 50,
        learning_rate: float = 0.05,
        decay: float = 0.0,
        random_state: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.schema = schema
        self.classes = classes
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.decay = decay
        self.random_state = random_state
        self._check()

    def _check(self) -> None:
        checks.whole(minimum=1, epochs=self.epochs, batch_size=self.batch_size)
        checks.positive(learning_rate=self.learning_rate)
        checks.require(checks.is_number(self.decay) and self.decay >= 0, "a number >= 0", decay=self.decay)
        coin_for(self.random_state)

    def fit(self, X: object, y: object) -> Self:
        """Trains; rows whose label is not in the list are left out.

        Raises:
            ParameterError: A parameter breaks its rule.
            DataError: The table does not fit the schema.
        """
        self._check()
        check_target(y, owner=self)
        must_not_be_input(y, self.schema)
        features, labels = Features.of(X, self.schema), Labels.of(y, self.classes)
        rows, codes = features.rows(X), labels.codes(y)
        if len(rows) != len(codes):
            raise DataError("X and y must have as many rows as each other; they do not.")
        network = Network(sizes=(features.width, *self.hidden, len(labels.classes)))
        training = PlainTraining(
            network=network,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            decay=self.decay,
        )
        weights = training.run(Data(rows=rows, labels=codes).labelled(), Stream.fresh(coin_for(self.random_state)))
        self.classes_, self.n_features_in_ = labels.array(), len(features.names)
        self.model_ = Model(network=network, weights=weights, features=features, classes=labels.classes)
        return self

    def predict(self, X: object) -> NDArray[Any]:
        """The most likely class of each row."""
        return self._answering(X).predict(X)

    def predict_proba(self, X: object) -> Floats:
        """Class probabilities in the order of `classes_`."""
        return self._answering(X).predict_proba(X)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """The share of rows predicted right."""
        checks.require(sample_weight is None, "None", sample_weight=type(sample_weight).__name__)
        return self._answering(X).score(X, y)

    def __sklearn_tags__(self) -> Any:
        """Missing cells are taken, as by the private classifier that it stands beside."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _answering(self, X: object) -> Model:
        model = self._model()
        check_shape(X, owner=self, columns=self.n_features_in_)
        return model

    def _model(self) -> Model:
        if not hasattr(self, "model_"):
            raise NotFittedError("PlainClassifier must be fitted first: call fit(X, y).")
        return self.model_
