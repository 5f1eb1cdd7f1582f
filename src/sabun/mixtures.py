"""How often each of a few kinds occurs among things whose kind is seen through noise: the shares of a mixture."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["learned_shares"]

_STEPS, _SETTLED = 40, 1e-4


def learned_shares(likelihoods: NDArray[np.float64], base: NDArray[np.float64], pseudo: float) -> NDArray[np.float64]:
    """Shares of kinds by expectation maximisation, with so many pseudo-things at the base.

    Args:
        likelihoods: How likely what was seen of each thing (a row) is under each kind (a column); a row may be scaled.
        base: The shares from which it begins; a kind that has none there is never found.
        pseudo: How many things the base counts as.

    Example:
        >>> learned_shares(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), base=np.array([0.5, 0.5]), pseudo=1.0).round(3)
        array([0.625, 0.375])
    """
    shares, things = base, len(likelihoods)
    for _ in range(_STEPS):
        evidence = np.maximum(likelihoods @ shares, 1e-300)
        new = (shares * (likelihoods.T @ (1 / evidence)) + pseudo * base) / (things + pseudo)
        moved, shares = np.abs(new - shares).sum(), new
        if moved < _SETTLED:
            break
    return shares
