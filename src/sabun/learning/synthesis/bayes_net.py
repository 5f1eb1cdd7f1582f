"""A Bayesian network with the label at its root: the sound form of "anonymise first" today.

The label explains every column, and each column but the first is also explained by one other. The private facts are the
noisy label counts, the tree (`structure`), the noisy three-way counts (`marginals`); everything after them is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.learning.network import Floats
from sabun.learning.synthesis.domain import Codes, Domain
from sabun.learning.synthesis.marginals import conditional, noisy_counts
from sabun.learning.synthesis.structure import grow_tree
from sabun.privacy import rho_of
from sabun.privacy.noise import Coin

__all__ = ["BayesNet"]

_LABEL, _TREE, _COUNTS = Fraction(5, 100), Fraction(25, 100), Fraction(70, 100)


@final
@dataclass(frozen=True, kw_only=True)
class BayesNet:
    """Settings of one synthesis: everything here is public.

    Args:
        domain: The public cells.
        classes: How many labels.
        epsilon: For the whole; with `delta` the noise is Gaussian.
        delta: 0 for pure epsilon.
        relation: add-remove or replace-one.
    """

    domain: Domain
    classes: int
    epsilon: Fraction
    delta: Fraction
    relation: str

    @property
    def rho(self) -> Fraction:
        """The zCDP budget, 0 for pure epsilon."""
        return rho_of(self.epsilon, self.delta) if self.delta else Fraction(0)

    @property
    def tree_epsilon(self) -> Fraction:
        """What the tree costs: a quarter of epsilon, or the pure epsilon whose rho is a quarter."""
        if not self.delta:
            return _TREE * self.epsilon
        draws = max(len(self.domain.sizes) - 1, 1)
        # m - 1 draws of e0 each are (m - 1) e0^2 / 2-zCDP together; a dyadic e0 just below keeps the sum within its share.
        each = Fraction(int(float(2 * _TREE * self.rho / draws) ** 0.5 * 2**40), 2**40)
        return each * draws

    def account(self) -> dict[str, Any]:
        """The numbers from which anybody can recompute the promise."""
        columns = len(self.domain.sizes)
        draws = max(columns - 1, 1)
        tree = [str(self.tree_epsilon / draws)] * (columns - 1)
        if self.delta:
            return {"rule": "parts", "pure": tree, "rho": str((_LABEL + _COUNTS) * self.rho), "delta": str(self.delta)}
        counts = [str(_LABEL * self.epsilon), *[str(_COUNTS * self.epsilon / columns)] * columns]
        return {"rule": "parts", "pure": [*counts, *tree], "rho": "0", "delta": "0"}

    def draw(self, codes: Codes, labels: NDArray[np.int64], *, n_rows: int, coin: Coin) -> tuple[Codes, NDArray[np.int64]]:
        """Synthetic cells with labels: as many rows as asked for, whatever the number of records."""
        sizes, columns = self.domain.sizes, len(self.domain.sizes)
        tree = grow_tree(codes, labels, sizes, self.classes, epsilon=self.tree_epsilon, relation=self.relation, coin=coin)
        shares = conditional(*self._counts(labels, (self.classes,), _LABEL, coin))
        made_labels = _pick(np.broadcast_to(shares, (n_rows, self.classes)), coin)
        made = np.zeros((n_rows, columns), dtype=np.int64)
        for child, parent in tree:
            shape = (self.classes, sizes[child]) if parent is None else (self.classes, sizes[parent], sizes[child])
            cells = labels if parent is None else labels * sizes[parent] + codes[:, parent]
            noisy, deviation = self._counts(cells * sizes[child] + codes[:, child], shape, _COUNTS / columns, coin)
            table = conditional(noisy, deviation)
            chosen = table[made_labels] if parent is None else table[made_labels, made[:, parent]]
            made[:, child] = _pick(chosen, coin)
        return made, made_labels

    def _counts(self, cells: NDArray[np.int64], shape: tuple[int, ...], share: Fraction, coin: Coin) -> tuple[Floats, float]:
        noisy, deviation = noisy_counts(
            cells, int(np.prod(shape)), epsilon=share * self.epsilon, rho=share * self.rho, relation=self.relation, coin=coin
        )
        return noisy.reshape(shape), deviation


def _pick(probabilities: Floats, coin: Coin) -> NDArray[np.int64]:
    """One code for each row of probabilities; these draws protect nobody, the counts behind them do."""
    uniform = coin.words(len(probabilities)).astype(np.float64) * 2.0**-64
    edges = np.cumsum(probabilities, axis=1)
    codes = (uniform[:, None] * edges[:, -1:] >= edges).sum(axis=1)
    return np.asarray(np.minimum(codes, probabilities.shape[1] - 1), dtype=np.int64)
