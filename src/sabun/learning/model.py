"""A trained classifier, ready to answer; public once it has been released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.features import Features, Labels
from sabun.learning.network import Floats, Network

__all__ = ["Model", "described"]


@final
@dataclass(frozen=True, kw_only=True)
class Model:
    """Weights with what is needed to use them.

    Args:
        network: The shape.
        weights: One flat vector.
        features: How rows become inputs.
        classes: Labels in the order of the outputs.
    """

    network: Network
    weights: Floats = field(repr=False)
    features: Features = field(repr=False)
    classes: tuple[Any, ...]

    def predict_proba(self, X: object) -> Floats:
        """Class probabilities, one row for each row of X.

        Raises:
            DataError: The table does not have the columns the model was trained on.
        """
        return self.network.probabilities(self.weights, self.features.rows(X))

    def of_encoded(self, rows: Floats) -> Floats:
        """The same, of rows that were encoded under the model's schema."""
        return self.network.probabilities(self.weights, self.features.inputs(rows))

    def predict(self, X: object) -> NDArray[Any]:
        """The most likely class of each row of X."""
        return np.asarray(np.array(self.classes)[self.predict_proba(X).argmax(axis=1)])

    def score(self, X: object, y: object) -> float:
        """The share of rows whose class is predicted right. Computed on private rows it is private: do not publish it."""
        labels = Labels(classes=self.classes, declared=True)
        return float((self.predict_proba(X).argmax(axis=1) == labels.codes(y)).mean())

    def tensors(self) -> dict[str, Floats]:
        """The weights by layer, in the order and orientation of torch.nn.Linear."""
        result: dict[str, Floats] = {}
        for place, (matrix, bias) in enumerate(self.network.layers(self.weights)):
            result[f"{2 * place}.weight"], result[f"{2 * place}.bias"] = matrix.T, bias
        return result

    def to_dict(self) -> dict[str, Any]:
        """Everything but the weights, in plain JSON types."""
        return described(self.network.sizes, self.features, self.classes)


def described(sizes: Sequence[int], features: Features, classes: Sequence[Any]) -> dict[str, Any]:
    """All that decides a prediction, but for the weights, in plain JSON types."""
    return {"sizes": list(sizes), "classes": list(classes), "features": features.to_dict()}
