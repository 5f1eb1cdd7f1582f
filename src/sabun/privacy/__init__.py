"""Promises without data: what a guarantee says, how guarantees add up, how much noise one needs.

`sabun.privacy.noise` is the only coin of the house.
"""

from sabun.privacy.amounts import Amount, AmountLike, exact, exact_positive, plain, rounded_up
from sabun.privacy.calibration import (
    analytic_gaussian_delta,
    analytic_gaussian_sigma,
    discrete_gaussian_variance,
    discrete_gaussian_variance_of_rho,
    discrete_laplace_scale,
)
from sabun.privacy.composition import compose, pld_epsilon, tight_epsilon, zcdp_epsilon
from sabun.privacy.conversion import delta_of_rho, epsilon_of_rho, rho_of
from sabun.privacy.guarantee import MODELS, RELATIONS, SCOPES, Guarantee
from sabun.privacy.pricing import Price

__all__ = [
    "MODELS",
    "RELATIONS",
    "SCOPES",
    "Amount",
    "AmountLike",
    "Guarantee",
    "Price",
    "analytic_gaussian_delta",
    "analytic_gaussian_sigma",
    "compose",
    "delta_of_rho",
    "discrete_gaussian_variance",
    "discrete_gaussian_variance_of_rho",
    "discrete_laplace_scale",
    "epsilon_of_rho",
    "exact",
    "exact_positive",
    "plain",
    "pld_epsilon",
    "rho_of",
    "rounded_up",
    "tight_epsilon",
    "zcdp_epsilon",
]
