"""Objective perturbation over a ball: the minimiser of the perturbed loss, rounded to a public grid, pure epsilon.

Notation: theta(b) minimises t'At - 2c't + R t't + b't over |t| <= B, b has density proportional to exp(-e1 |b| / s). The noise
is a continuous vector of which only a small box is known; the box is made smaller until every minimiser in it rounds to
one point of the grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from sabun.privacy.noise import Coin, spherical_laplace
from sabun.regression.ball import SCALE, Quadratic, enclosed_minimiser
from sabun.regression.design import BITS
from sabun.regression.sensitivity import gradient_diameter, noise_share
from sabun.regression.statistic import Totals
from sabun.regression.study import Study

__all__ = ["GRID_BITS", "coefficients_of", "perturbed_minimiser"]

GRID_BITS = 20
"""Released coefficients are whole multiples of 2**-20."""

_DIGITS = 300
_MORE = 64


@dataclass(frozen=True, kw_only=True)
class _Box:
    """Where a continuous vector lies: coordinate j in [low[j], low[j] + 2) 2**-bits.

    Args:
        low: The lower ends.
        bits: Binary digits after the point.
        uniform: Whether the vector is uniform in the box; if not, its density there is that of the noise.
    """

    low: tuple[int, ...]
    bits: int
    uniform: bool = False


def perturbed_minimiser(study: Study, totals: Totals, coin: Coin) -> dict[str, Any]:
    """The released value: the perturbed minimiser in multiples of 2**-20.

    Guarantee: (epsilon, 0) of the study for its relation, see `perturbation.proof.md`. Sizes depend on the study alone.
    """
    ridge, left = noise_share(
        Fraction(study.epsilon), ridge=Fraction(study.regularization or 0), records_per_person=study.records_per_person
    )
    bound = Fraction(math.ceil(Fraction(study.coef_bound) * 2**GRID_BITS), 2**GRID_BITS)  # proof: bound-on-grid
    scale = study.records_per_person * gradient_diameter(bound, study.relation) / left
    scale = Fraction(math.ceil(scale * 2**40), 2**40)  # proof: scale-up
    ridge_units = math.ceil(ridge * 2**SCALE)
    # The noise is continuous, and only a box around it is known. As long as the grid cell of the minimiser depends on where in
    # the box the noise is, more of it is drawn: to settle by rounding would tell neighbours apart near the edges of cells.
    box = _noise_box(scale, study.width, coin)
    while (rounded := _rounded(totals, ridge_units, bound, box)) is None:  # proof: until-certain
        box = _smaller(box, scale, coin)
    public_rows = study.relation == "replace-one"
    return {"coefficients": rounded, "rows": totals.rows if public_rows else None}


def coefficients_of(value: list[int]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Whole multiples of 2**-20 as floats, exactly."""
    return np.array(value, dtype=np.float64) * 2.0**-GRID_BITS


def _noise_box(scale: Fraction, width: int, coin: Coin, *, bits: int = _DIGITS + SCALE) -> _Box:
    """A box that holds the continuous noise vector, from its rounding to whole multiples of 2**(1 - bits)."""
    centre = spherical_laplace(scale * 2 ** (bits - 1), dimension=width, coin=coin)  # proof: box
    return _Box(low=tuple(2 * int(entry) - 1 for entry in centre), bits=bits)


def _rounded(totals: Totals, ridge: int, bound: Fraction, box: _Box) -> list[int] | None:
    """The grid point nearest to the minimiser for every noise vector in the box, or None if there are several."""
    width, digits = len(box.low), box.bits - SCALE
    curvature = totals.products[:-1, :-1].astype(object) * 2 ** (SCALE - 2 * BITS)
    curvature[np.arange(width), np.arange(width)] += ridge
    # In units of 2**-bits the middle of the box is low + 1, and g = c - b/2: doubling both sides keeps whole numbers whole.
    doubled = totals.products[:-1, -1].astype(object) * 2 ** (box.bits - 2 * BITS + 1) - np.array(
        [entry + 1 for entry in box.low], dtype=object
    )
    linear = np.array([int(entry) // 2 for entry in doubled], dtype=object)
    problem = Quadratic(curvature=curvature, ridge=ridge, linear=linear, bound=int(bound * 2**digits), digits=digits)
    theta, radius = enclosed_minimiser(problem, slack=width + 1)  # proof: slack
    half, step = 1 << digits - GRID_BITS - 1, digits - GRID_BITS
    lowest = [entry - radius + half >> step for entry in theta]
    highest = [entry + radius + half >> step for entry in theta]
    return lowest if lowest == highest else None  # proof: certain


def _smaller(box: _Box, scale: Fraction, coin: Coin) -> _Box:
    """The same vector in a smaller box."""
    if box.uniform:
        return _halved(box, coin)
    while (found := _accepted(box, scale, coin)) is None:
        pass
    return found


def _halved(box: _Box, coin: Coin) -> _Box:
    """More uniform bits of each coordinate."""
    low = tuple((entry << _MORE) + 2 * coin.bits(_MORE) for entry in box.low)  # proof: more-bits
    return replace(box, low=low, bits=box.bits + _MORE, uniform=True)


def _accepted(parent: _Box, scale: Fraction, coin: Coin) -> _Box | None:
    """A uniform point of the box, kept with probability exp(-(|x| - m) / scale), where m is the least |x| of the box."""
    # The density falls across the box, so a uniform point has to be tossed for. Its length is known only up to its own box, the
    # toss only to so many bits: both grow until one of the two bounds decides.
    least, box = _lengths(parent)[0], _halved(parent, coin)
    toss, digits = coin.bits(_MORE), _MORE
    for terms in range(2, 1 << 30):
        near, far = _lengths(box)
        if Fraction(toss + 1, 1 << digits) <= _exp((far - least) / scale, 2 * terms - 1):  # proof: keep
            return box
        if Fraction(toss, 1 << digits) >= _exp(max(near - least, Fraction(0)) / scale, 2 * terms):  # proof: reject
            return None
        box = _halved(box, coin)
        toss, digits = toss << _MORE | coin.bits(_MORE), digits + _MORE
    return None


def _lengths(box: _Box) -> tuple[Fraction, Fraction]:
    """Bounds of |x| over the box, below and above."""
    near = sum(max(entry, -entry - 2, 0) ** 2 for entry in box.low)
    far = sum(max(abs(entry), abs(entry + 2)) ** 2 for entry in box.low)
    unit = 1 << _MORE
    root = math.isqrt(near * unit**2)
    return Fraction(root, unit << box.bits), Fraction(math.isqrt(far * unit**2) + 1, unit << box.bits)


def _exp(exponent: Fraction, terms: int) -> Fraction:
    """The Taylor sum of exp(-exponent) to that power: below it for odd powers, above it for even ones, if exponent <= 1."""
    total = term = Fraction(1)
    for power in range(1, terms + 1):
        term *= -exponent / power
        total += term
    return total
