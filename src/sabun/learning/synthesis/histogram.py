"""One reading of the paper's first step: a noisy histogram over all cells at once; proved in histogram.proof.md."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.learning.synthesis.domain import Codes, Domain
from sabun.privacy.noise import Coin, discrete_laplace

__all__ = ["Histogram"]

_MOST_CELLS = 2_000_000


@final
@dataclass(frozen=True, kw_only=True)
class Histogram:
    """Settings of one synthesis: everything here is public. Only for few columns: the cells multiply.

    Args:
        domain: The public cells.
        classes: How many labels.
        epsilon: For the whole.
        relation: add-remove or replace-one.
    """

    domain: Domain
    classes: int
    epsilon: Fraction
    relation: str

    def __post_init__(self) -> None:
        cells = self.classes * int(np.prod([float(size) for size in self.domain.sizes]))
        advice = "Use fewer columns or fewer bins, or synthesis='bayes-net'."
        checks.require(cells <= _MOST_CELLS, f"at most {_MOST_CELLS}", advice, **{"cells of a histogram": cells})

    def account(self) -> dict[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        return {"rule": "parts", "pure": [str(self.epsilon)], "rho": "0", "delta": "0"}

    def draw(self, codes: Codes, labels: NDArray[np.int64], *, n_rows: int, coin: Coin) -> tuple[Codes, NDArray[np.int64]]:
        """Synthetic cells with labels, drawn from the positive part of the noisy counts."""
        shape = (self.classes, *self.domain.sizes)
        cells = np.ravel_multi_index((labels, *codes.T), shape)
        counts = np.bincount(cells, minlength=int(np.prod(shape))).astype(np.int64)
        changed = 1 if self.relation == "add-remove" else 2  # proof: cells-changed
        noise = discrete_laplace(changed / self.epsilon, coin=coin, size=counts.size)  # proof: noise
        positive = np.maximum((counts + noise).astype(np.float64), 0.0)
        edges = np.cumsum(positive + 1e-9)
        drawn = np.searchsorted(edges, coin.words(n_rows).astype(np.float64) * 2.0**-64 * edges[-1], side="right")
        label, *columns = np.unravel_index(np.minimum(drawn, counts.size - 1), shape)
        return np.stack(columns, axis=1).astype(np.int64), np.asarray(label, dtype=np.int64)
