"""A trained classifier, ready to answer; public once it has been released."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import ReleaseError
from sabun.learning.features import Features, Labels
from sabun.learning.network import Floats, Network

__all__ = ["Model"]


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
        return {"sizes": list(self.network.sizes), "classes": list(self.classes), "features": self.features.to_dict()}

    @classmethod
    def from_parts(cls, record: dict[str, Any], tensors: dict[str, Floats]) -> Model:
        """Reads what `to_dict` and `tensors` wrote.

        Raises:
            ReleaseError: They do not fit together.
        """
        network = Network(sizes=tuple(record["sizes"]))
        weights = np.empty(network.n_weights)
        for place, (matrix, bias) in enumerate(network.layers(weights)):
            given = tensors.get(f"{2 * place}.weight"), tensors.get(f"{2 * place}.bias")
            if given[0] is None or given[1] is None or given[0].shape != matrix.T.shape or given[1].shape != bias.shape:
                raise ReleaseError("a model's tensors must fit the sizes on its card; they do not. Ask for the files again.")
            matrix[:], bias[:] = given[0].T, given[1]
        return cls(
            network=network, weights=weights, features=Features.from_dict(record["features"]), classes=tuple(record["classes"])
        )
