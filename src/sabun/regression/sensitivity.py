"""How far one person can move what a mechanism of this room computes.

Notation: a row is (x, y) with |x| <= 1, |y| <= 1 after the public transformation. The statistic is A = sum x x', c = sum x y,
q = sum y**2 and, when the number of rows is private, n. B bounds the length of a coefficient vector.
"""

from __future__ import annotations

import math
from fractions import Fraction

from sabun.errors import InternalError
from sabun.privacy.certified import exp_down, log_up, sqrt_up

__all__ = [
    "count_weight",
    "gradient_diameter",
    "length_reach",
    "noise_share",
    "residual_l2_squared",
    "residual_weights",
    "square_weight",
    "sufficient_l2_squared",
]

_RIDGE_SHARE = Fraction(1, 10)
_SLACK = 1 + Fraction(1, 2**50)
_LEAST_RIDGE = Fraction(1, 1024)
"""Keeps the equations well conditioned when epsilon is huge; a larger ridge never costs privacy."""


def square_weight(relation: str) -> Fraction:
    """Weight of q in the statistic whose length is bounded; under replace-one it costs nothing up to sqrt(3/2)."""
    return Fraction(1) if relation == "replace-one" else Fraction(1, 2)


def count_weight(relation: str) -> Fraction:
    """Weight of n in that statistic; 0 where n is public and not released with noise."""
    return Fraction(0) if relation == "replace-one" else Fraction(1, 2)


def sufficient_l2_squared(relation: str, *, records_per_person: int = 1) -> Fraction:
    """Largest squared length of the change of (svec A, c, u q, w n) when one person's rows change.

    Guarantee: holds for every pair of neighbours of the relation, see `sensitivity.proof.md`; attained for one row a person.
    """
    if relation == "replace-one":
        one = Fraction(9, 2)  # proof: replace-nine-halves
    elif relation == "add-remove":
        one = 2 + square_weight(relation) ** 2 + count_weight(relation) ** 2  # proof: one-row
    else:
        raise InternalError("sensitivity was asked for a relation the study cannot have.")
    return one * int(records_per_person) ** 2  # proof: several-rows


def length_reach(relation: str, *, records_per_person: int = 1) -> Fraction:
    """How far one person can move a sum of what rows say of a radius: a replaced row by 1, one that comes or goes by 3/4."""
    one = Fraction(1) if relation == "replace-one" else Fraction(3, 4)  # proof: share-moves
    return one * int(records_per_person)


def residual_weights(relation: str) -> tuple[Fraction, Fraction]:
    """Squared weights of sum t**2 and of sum w**2 in the statistic of residuals; under replace-one the first costs nothing."""
    return (Fraction(2) if relation == "replace-one" else Fraction(1, 4)), Fraction(1, 16)


def residual_l2_squared(relation: str, *, records_per_person: int = 1) -> Fraction:
    """Largest squared length of the change of (sum x t, u sum t**2, h sum w**2), |x|, |t|, w <= 1, between neighbours.

    Guarantee: holds for every pair of neighbours of the relation, see `sensitivity.proof.md`.
    """
    square, weight = residual_weights(relation)
    one = 4 + weight if relation == "replace-one" else 1 + square + weight  # proof: residual-four
    return Fraction(one * int(records_per_person) ** 2)


def gradient_diameter(coef_bound: Fraction, relation: str) -> Fraction:
    """Largest |g - g'| over two rows (replace-one) or |g| over one (add-remove), g = 2 (x't - y) x, |t| <= B; rounded up."""
    coef_bound = _plain(coef_bound)
    if relation == "add-remove":
        return 2 * (coef_bound + 1)
    root = sqrt_up(1 + 8 * coef_bound**2)
    kappa = (root - 1) / (4 * coef_bound)
    widest = 4 * sqrt_up(1 - kappa**2) * (coef_bound * kappa + 1)  # proof: widest-angle
    return widest * _SLACK  # proof: slack


def noise_share(epsilon: Fraction, *, ridge: Fraction, records_per_person: int) -> tuple[Fraction, Fraction]:
    """The ridge R of objective perturbation with what is left of epsilon for its noise.

    R is at least 1 / (exp(f epsilon / k) - 1), so that the determinant costs at most a share f = 1/10 of epsilon for k rows of
    one person (and R is rounded up, what is left is rounded down).
    """
    epsilon, people = _plain(epsilon), int(records_per_person)
    least = 1 / (exp_down(_RIDGE_SHARE * epsilon / people) - 1)
    total = max(_plain(ridge), Fraction(math.ceil(least * 2**40), 2**40), _LEAST_RIDGE)
    left = epsilon - people * log_up(1 + 1 / total)  # proof: determinant-share
    return total, Fraction(math.floor(left * 2**60), 2**60)


def _plain(value: Fraction) -> Fraction:
    """The same rational, made of Python's own whole numbers: those of another library can wrap around."""
    return Fraction(int(value.numerator), int(value.denominator))
