"""Leave-one-out cross-validation of uLSIF in closed form, for a whole row of penalties at once.

Notation: Phi_E (N x b), Phi_D (n x b) basis values; H, h as in uLSIF; m = min(N, n). Round i leaves out the i-th row of both
tables. With B = H + lam (N-1)/N I, x = phi(e_i), y = phi(d_i) the solution without them is, by Sherman-Morrison
(Kanamori et al. 2009, sec. 4),
alpha_i = (N-1)/(N(n-1)) (n [B^-1 h + B^-1 x (x B^-1 h)/(N - x B^-1 x)] - [B^-1 y + B^-1 x (x B^-1 y)/(N - x B^-1 x)]),
clipped at zero; its score is (x alpha_i)^2 / 2 - y alpha_i. H = U diag(g) U^T is computed once, so a penalty costs one product
with U.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sabun.density.kernel import Floats

__all__ = ["loo_scores"]

_BLOCK = 1024


def loo_scores(public: Floats, private: Floats, penalties: Sequence[float], *, clip: bool = True) -> Floats:
    """The mean leave-one-out score of each penalty; the smaller the better.

    Args:
        public: Basis values of the denominator's rows (N x b).
        private: Basis values of the numerator's rows (n x b).
        penalties: Values of lam, above 0.
        clip: Whether each alpha is clipped at zero, as the final one is. Without it the score is cheaper, and another one.
    """
    rows, others = len(public), len(private)
    pairs = min(rows, others)
    values, turn = np.linalg.eigh(public.T @ public / rows)
    mean = turn.T @ private.mean(axis=0)
    # In the coordinates of U every B is diagonal, so all penalties share the one eigendecomposition.
    inverses = 1.0 / (values.clip(0.0) + np.asarray(penalties, dtype=np.float64)[:, None] * ((rows - 1) / rows))
    total = np.zeros(len(inverses))
    for start in range(0, pairs, _BLOCK):
        end = min(start + _BLOCK, pairs)
        total += _block_scores(public[start:end], private[start:end], turn, mean, inverses, (rows, others), clip)
    return total / pairs


def _block_scores(
    x: Floats, y: Floats, turn: Floats, mean: Floats, inverses: Floats, sizes: tuple[int, int], clip: bool
) -> Floats:
    rows, others = sizes
    p, q = x @ turn, y @ turn
    left = rows - (p * p) @ inverses.T  # N - x B^-1 x
    factor = (others * (p @ (inverses * mean).T) - (p * q) @ inverses.T) / left
    scores = np.empty(len(inverses))
    turned = np.empty_like(p)
    # B^-1 x appears in both brackets of alpha_i: taken together they are B^-1 (n h - y + factor x), one product for a penalty.
    for k, inverse in enumerate(inverses):
        np.multiply(p, factor[:, k, None], out=turned)
        turned -= q
        turned += others * mean
        turned *= inverse * ((rows - 1) / (rows * (others - 1)))
        # Clipping is done coordinate by coordinate, so it needs alpha itself and not its turned copy; the plain score does not.
        scores[k] = _clipped_score(x, y, turned @ turn.T) if clip else _score(p, q, turned)
    return scores


def _clipped_score(x: Floats, y: Floats, alpha: Floats) -> float:
    np.maximum(alpha, 0.0, out=alpha)
    return _score(x, y, alpha)


def _score(x: Floats, y: Floats, alpha: Floats) -> float:
    fit = np.einsum("ij,ij->i", x, alpha)
    return float(fit @ fit) / 2 - float(np.vdot(y, alpha))
