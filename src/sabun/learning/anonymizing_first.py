"""The paper's AnonymizingFirst: a synthetic table first, ordinary training on it afterwards.

The promise is made by the synthesis (`synthesis/*.proof.md`); training reads nothing but its result, so it costs nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from sabun.errors import InternalError
from sabun.learning.plain_training import PlainTraining
from sabun.learning.stream import Stream
from sabun.learning.synthesis.bayes_net import BayesNet
from sabun.learning.synthesis.histogram import Histogram
from sabun.learning.synthesis.microaggregation import Microaggregation
from sabun.learning.training import Data, Problem, Progress, promise
from sabun.privacy import Guarantee
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
        }

    def train(self, data: Data, *, coin: Coin, progress: Progress) -> Mapping[str, Any]:
        """Anonymises, then learns; the table is released with the weights."""
        progress(0.02, "anonymising the table")
        made, released = self._anonymised(data, coin)
        weights = self.training.run(made, Stream.fresh(coin), progress=lambda share, words: progress(0.3 + 0.7 * share, words))
        return {"weights": weights, **released}

    def _anonymised(self, data: Data, coin: Coin) -> tuple[Data, dict[str, Any]]:
        if isinstance(self.synthesis, Microaggregation):
            rows, labels = self.synthesis.means(data.rows, data.labels, coin=coin)
            return Data(rows=rows, labels=labels), {"group_means": rows, "group_labels": labels}
        if data.table is None or self.problem.features.schema is None:
            raise InternalError("a synthetic table needs the encoded table.")
        known = data.labelled()
        assert known.table is not None
        domain = self.synthesis.domain
        codes, labels = self.synthesis.draw(domain.codes(known.table), known.labels, n_rows=self.n_rows, coin=coin)
        table = domain.matrix(codes, coin=coin)
        rows = self.problem.features.schema.design(table, to=(0.0, 1.0))
        released = {"synthetic_table": table.astype(np.float64), "synthetic_labels": labels}
        return Data(rows=rows, labels=labels), released
