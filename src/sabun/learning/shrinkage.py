"""Weights of a linear model drawn towards zero, as far as noise alone could have brought them where they are.

What all weights look like says how many of them are noise: each is taken for normal around zero, with a variance that is one of
a few multiples of the noise's, and how often each multiple occurs is learned from the weights (empirical Bayes). Weights that
stand out are left nearly as they are. Many columns that say the same together lose what each of them says less clearly than
noise: hence training goes on afterwards. A function of noisy weights and public numbers: post-processing.

Notation: w is a weight over the standard deviation of its noise, g^2 a multiple of the noise's variance; given g a weight's
mean is w g^2 / (1 + g^2).
"""

from __future__ import annotations

import math

import numpy as np

from sabun.learning.network import Floats, Network
from sabun.mixtures import learned_shares

__all__ = ["shrunk"]

_SIZES = np.concatenate([[0.0], np.geomspace(0.5, 64.0, 15)])
"""What g may be; 0 is a weight that says nothing."""
_NOTHING, _PSEUDO = 0.1, 4.0
"""Share of the weights that say nothing before any is seen, and how many weights that counts as: from a handful little is
learned, and little is drawn then."""
_FITTED = 4096
"""So many weights are enough to learn from."""


def shrunk(network: Network, weights: Floats, *, noise: float) -> Floats:
    """The weights of a network without hidden layers that says the same of nothing, and less of noise.

    Args:
        network: Its layers.
        weights: So far; the constants stay as they are.
        noise: The standard deviation of the noise in each weight.
    """
    result = weights.copy()
    matrix, _ = network.layers(result)[0]
    # What all classes have in common tells none of them; what is left has that much less noise.
    matrix -= matrix.mean(axis=1, keepdims=True)
    matrix *= _kept(np.abs(matrix) / (noise * math.sqrt(1 - 1 / network.sizes[-1])))
    return result


def _kept(found: Floats) -> Floats:
    """The share of each weight that is kept, given the sizes of all of them."""
    sizes = np.sort(found, axis=None)
    many = min(len(sizes), _FITTED)
    some = sizes[((np.arange(many) + 0.5) * len(sizes) / many).astype(np.int64)]
    base = np.append(_NOTHING, np.full(len(_SIZES) - 1, (1 - _NOTHING) / (len(_SIZES) - 1)))
    shares = learned_shares(_likelihoods(some), base, _PSEUDO * many / len(sizes))
    kept = np.empty(found.size)
    for start in range(0, found.size, _FITTED):
        part = slice(start, start + _FITTED)
        given = _likelihoods(found.ravel()[part]) * shares
        kept[part] = given @ (_SIZES**2 / (1 + _SIZES**2)) / given.sum(axis=1)
    return kept.reshape(found.shape)


def _likelihoods(found: Floats) -> Floats:
    """How likely each size is under each of `_SIZES`, over that of the likeliest."""
    variances = 1 + _SIZES**2
    logs = -0.5 * (found[:, None] ** 2 / variances + np.log(variances))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
