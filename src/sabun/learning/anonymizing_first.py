"""The paper's AnonymizingFirst: a synthetic table first, ordinary training on it afterwards.

The promise is made by the synthesis (`synthesis/*.proof.md`); training reads nothing but its result, so it costs nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import InternalError
from sabun.learning.network import Floats
from sabun.learning.plain_training import DECAY, PlainTraining
from sabun.learning.stream import NOISE, Stream
from sabun.learning.synthesis.bayes_net import BayesNet
from sabun.learning.synthesis.histogram import Histogram
from sabun.learning.synthesis.microaggregation import Microaggregation
from sabun.learning.training import KEYSTREAM, Data, Problem, Progress, State, priced, promise
from sabun.privacy import Guarantee, plain
from sabun.privacy.noise import Coin

__all__ = ["AnonymizingFirst"]

_NAMES = {
    BayesNet: "label-rooted Bayesian network",
    Histogram: "noisy histogram",
    Microaggregation: "noisy means of groups",
}


@final
@dataclass(frozen=True, kw_only=True)
class AnonymizingFirst:
    """One run, calibrated: everything here is public.

    Args:
        problem: What the promise is about.
        synthesis: How the table is anonymised.
        training: How the network learns from the synthetic table.
        n_rows: Size of the synthetic table; never the number of records.
    """

    problem: Problem
    synthesis: BayesNet | Histogram | Microaggregation
    training: PlainTraining
    n_rows: int

    @property
    def network(self) -> Any:
        """What is trained."""
        return self.training.network

    @property
    def account(self) -> Mapping[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return self.synthesis.account()

    @property
    def guarantee(self) -> Guarantee:
        """The joint promise about the table and everything learned from it."""
        return promise(
            self.problem,
            mechanism=f"AnonymizingFirst ({_NAMES[type(self.synthesis)]})",
            more=(KEYSTREAM,),
            epsilon=self.problem.epsilon,
            delta=self.problem.delta,
        )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Public settings."""
        return {
            "sizes": list(self.network.sizes),
            "synthesis": _NAMES[type(self.synthesis)],
            "n_rows": self.n_rows,
            "epochs": self.training.epochs,
            "batch_size": self.training.batch_size,
            "learning_rate": self.training.learning_rate,
            "n_public": self.problem.n_public,
            **({} if self.training.decay == DECAY else {"weight_decay": self.training.decay}),
        }

    @property
    def _shape(self) -> tuple[int, int]:
        """Rows and columns of the anonymised table, without its labels."""
        if isinstance(self.synthesis, Microaggregation):
            return self.synthesis.groups, self.problem.features.width
        return self.n_rows, len(self.problem.features.names)

    def first(self) -> State:
        """Zeros in the place of the weights, the table, its labels: all numbers that are released, one after the other."""
        rows, columns = self._shape
        return State(step=0, weights=np.zeros(self.network.n_weights + rows * (columns + 1)), velocity=np.empty(0))

    def states(self, data: Data, stream: Stream, *, progress: Progress, start: State) -> Iterator[State]:
        """One step: anonymises, then learns; the table is released with the weights."""
        if start.step == 1:
            return
        heard = priced(progress, plain(self.problem.epsilon))
        heard(0.02, "anonymising the table")
        table, made = self._anonymised(data, stream.coin(NOISE, 0))
        weights = self.training.run(made, stream, progress=lambda share, words: heard(0.3 + 0.7 * share, words))
        yield State(step=1, weights=np.concatenate([weights, table.ravel(), made.labels]), velocity=start.velocity)

    def value(self, last: State) -> Mapping[str, Any]:
        """The weights, the table, its labels."""
        rows, columns = self._shape
        weights, table, labels = np.split(last.weights, np.cumsum([self.network.n_weights, rows * columns]))
        name = "group_means" if isinstance(self.synthesis, Microaggregation) else "synthetic_table"
        of = "group_labels" if isinstance(self.synthesis, Microaggregation) else "synthetic_labels"
        return {"weights": weights, name: table.reshape(rows, columns), of: labels.astype(np.int64)}

    def table(self, value: Mapping[str, Any]) -> tuple[Floats, NDArray[np.int64]]:
        """The anonymised table in what was released, encoded under the schema, with a label for each row."""
        if not isinstance(self.synthesis, Microaggregation):
            return np.asarray(value["synthetic_table"]), np.asarray(value["synthetic_labels"])
        labels = np.repeat(np.asarray(value["group_labels"]), self.synthesis.members)
        return self.synthesis.records(np.asarray(value["group_means"])), labels

    def _anonymised(self, data: Data, coin: Coin) -> tuple[Floats, Data]:
        """The released table; the rows that are learned from it."""
        if isinstance(self.synthesis, Microaggregation):
            rows, labels = self.synthesis.means(data.rows, data.labels, coin=coin)
            return rows, Data(rows=rows, labels=labels)
        if data.table is None or self.problem.features.schema is None:
            raise InternalError("a synthetic table needs the encoded table.")
        known = data.labelled()
        assert known.table is not None
        domain = self.synthesis.domain
        codes, labels = self.synthesis.draw(domain.codes(known.table), known.labels, n_rows=self.n_rows, coin=coin)
        table = domain.matrix(codes, coin=coin).astype(np.float64)
        return table, Data(rows=self.problem.features.schema.design(table, to=(0.0, 1.0)), labels=labels)
