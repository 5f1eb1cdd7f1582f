"""The one coin of the house: every random decision that protects a person is tossed here.

A sampler takes its coin explicitly; there is no default. All samplers are exact: the law of the output is the stated law, with
no rounding and no cut-off tail, provided that the coin's words are independent and uniform.

Example:
    >>> from fractions import Fraction
    >>> coin = seeded_coin(7)
    >>> coin.private
    False
    >>> type(discrete_laplace(Fraction(7, 3), coin=os_coin()))
    <class 'int'>
"""

from __future__ import annotations

from sabun.privacy.noise.choice import exponential_choice
from sabun.privacy.noise.coin import Coin, coin_for, os_coin, seeded_coin
from sabun.privacy.noise.cubical import cubical_laplace
from sabun.privacy.noise.discrete import discrete_gaussian, discrete_laplace
from sabun.privacy.noise.exact import bernoulli, bernoulli_exp, categorical, uniform_below
from sabun.privacy.noise.grid import Grid
from sabun.privacy.noise.normal import rounded_gaussian, rounded_gaussians
from sabun.privacy.noise.spherical import spherical_laplace

__all__ = [
    "Coin",
    "Grid",
    "bernoulli",
    "bernoulli_exp",
    "categorical",
    "coin_for",
    "cubical_laplace",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_choice",
    "os_coin",
    "rounded_gaussian",
    "rounded_gaussians",
    "seeded_coin",
    "spherical_laplace",
    "uniform_below",
]
