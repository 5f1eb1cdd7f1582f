"""Noisy sufficient statistics: the sums of products with exact discrete noise, which add up over organisations.

Notation: sums are whole numbers in units of UNIT**-2. `ssp-gauss` adds discrete Gaussian noise of variance V to the
diagonal of A
and to c, V/2 above the diagonal, V/u**2 to q and V/w**2 to n. `ssp-laplace` adds one spherical Laplace vector to whole
multiples of the sums.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun import checks
from sabun.privacy.calibration import discrete_gaussian_variance
from sabun.privacy.certified import sqrt_up
from sabun.privacy.events import DiscreteGaussian
from sabun.privacy.noise import Coin, discrete_gaussian, spherical_laplace
from sabun.privacy.pricing import Price
from sabun.regression.design import UNIT
from sabun.regression.sensitivity import count_weight, square_weight, sufficient_l2_squared
from sabun.regression.sharing import shares_of
from sabun.regression.statistic import Totals
from sabun.regression.study import STAGED, Study

__all__ = [
    "NoiseLevel",
    "Weights",
    "add_noise",
    "clamped",
    "gauss_level",
    "gauss_variance",
    "laplace_scale",
    "listed_sums",
    "named_sums",
    "noise_level",
    "price_of",
    "weights_of",
]

_GRID = UNIT**2
_DIAGONAL, _ABOVE = 10, 14  # 14/10 is the largest short fraction below sqrt(2)
_LARGEST = 2**62
_MOST_NOISE = 2.0**55


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Whole numbers that the released sums are multiples of."""

    diagonal: int
    above: int
    moment: int
    square: int
    count: int


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """Variance of the noise in row units; public."""

    gram: float
    above: float
    moment: float
    square: float
    count: float


def gauss_variance(study: Study) -> Fraction:
    """V: the parameter of the discrete Gaussian on the diagonal of A, in squared units of the grid; rounded up."""
    return _variance(study.relation, int(study.records_per_person), Fraction(study.epsilon), Fraction(study.delta or 0))


@functools.lru_cache(maxsize=256, typed=True)
def _variance(relation: str, records_per_person: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    moved = _moved(relation, records_per_person)
    return discrete_gaussian_variance(l2_squared=moved, epsilon=epsilon, delta=delta)  # proof: variance-up


def _moved(relation: str, records_per_person: int) -> Fraction:
    """The squared L2 sensitivity in squared units of the grid."""
    return Fraction(sufficient_l2_squared(relation, records_per_person=records_per_person) * _GRID**2)


def price_of(study: Study) -> Price | None:
    """What a ledger with a Rényi order may book for a release; None where epsilon and delta are all that is known."""
    if study.method != "ssp-gauss":
        return None
    moved = _moved(study.relation, int(study.records_per_person))
    noise = DiscreteGaussian(sigma_squared=gauss_variance(study), l2_squared=moved)
    return Price(events=(noise,), relation=study.relation)  # proof: price


def laplace_scale(study: Study) -> Fraction:
    """Scale of the spherical Laplace noise on the weighted whole numbers; rounded up."""
    l2_squared = sufficient_l2_squared(study.relation, records_per_person=study.records_per_person)
    scale = _DIAGONAL * _GRID * sqrt_up(l2_squared) / Fraction(study.epsilon)
    return Fraction(math.ceil(scale * 2**20), 2**20)  # proof: scale-up


def weights_of(study: Study) -> Weights:
    """What each kind of sum is multiplied by before the noise."""
    if study.method in ("ssp-gauss", *STAGED):
        return Weights(diagonal=1, above=1, moment=1, square=1, count=1)
    square, count = _DIAGONAL * square_weight(study.relation), _DIAGONAL * count_weight(study.relation) * _GRID
    return Weights(diagonal=_DIAGONAL, above=_ABOVE, moment=_DIAGONAL, square=int(square), count=int(count))


@functools.lru_cache(maxsize=256)
def noise_level(study: Study) -> NoiseLevel:
    """How much noise a release of this study has, from public facts alone; with `staged` its first sums, before any radius.

    Raises:
        ParameterError: The noise would not fit into 64-bit whole numbers.
    """
    if study.method in STAGED:
        return gauss_level(study, shares_of(study, None).first)
    pure = study.method == "ssp-laplace"
    variance = laplace_scale(study) ** 2 * (_dimension(study) + 1) if pure else gauss_variance(study)
    advice = "The noise would not fit into 64-bit numbers."
    good = math.sqrt(variance) * math.sqrt(_dimension(study)) < _MOST_NOISE
    checks.require(good, "larger for so many records per person", advice, epsilon=str(study.epsilon))
    if not pure:
        return gauss_level(study, variance)
    weights, spread = weights_of(study), float(variance)
    return _in_row_units(
        study,
        gram=spread / weights.diagonal**2,
        above=spread / weights.above**2,
        moment=spread / weights.moment**2,
        square=spread / weights.square**2,
        count=spread / weights.count**2 if weights.count else 0.0,
    )


def gauss_level(study: Study, variance: Fraction) -> NoiseLevel:
    """The noise of sums whose diagonal has Gaussian noise of that variance, in squared units of the grid."""
    u, w, spread = float(square_weight(study.relation)), float(count_weight(study.relation)), float(variance)
    count = spread / (w * _GRID) ** 2 if w else 0.0
    return _in_row_units(study, gram=spread, above=spread / 2, moment=spread, square=spread / u**2, count=count)


def _in_row_units(study: Study, *, gram: float, above: float, moment: float, square: float, count: float) -> NoiseLevel:
    r = study.design.shrink
    whole = float(_GRID**2)
    return NoiseLevel(
        gram=gram / (whole * r**4),
        above=above / (whole * r**4),
        moment=moment / (whole * r**2),
        square=square / whole,
        count=count,
    )


def add_noise(study: Study, totals: Totals, coin: Coin) -> dict[str, Any]:
    """The released value: weighted sums plus noise, whole numbers only.

    Guarantee: (epsilon, delta) of the study for its relation, see `sufficient.proof.md`. Sizes depend on the study alone.
    """
    weights = weights_of(study)
    exact, own = listed_sums(study, totals, weights)
    draw = _gauss_noise if study.method == "ssp-gauss" else _laplace_noise
    return named_sums(study, clamped(exact, draw(study, own, coin)), rows=totals.rows)


def listed_sums(study: Study, totals: Totals, weights: Weights) -> tuple[list[int], list[bool]]:
    """The weighted sums in the order in which they are released, and which of the products of features are squares. PRIVATE."""
    width, products = study.width, totals.products.tolist()
    upper = [(i, j) for i in range(width) for j in range(i, width)]
    exact = [products[i][j] * (weights.diagonal if i == j else weights.above) for i, j in upper]
    exact += [products[i][width] * weights.moment for i in range(width)]
    exact.append(products[width][width] * weights.square)
    if study.relation == "add-remove":
        exact.append(totals.rows * weights.count)
    return exact, [i == j for i, j in upper]


def clamped(exact: Sequence[int], noise: Sequence[int]) -> list[int]:
    """Sums with their noise, within a fixed public limit."""
    return [max(-_LARGEST, min(_LARGEST, value + extra)) for value, extra in zip(exact, noise, strict=True)]  # proof: add


def _gauss_noise(study: Study, diagonal: Sequence[bool], coin: Coin) -> list[int]:
    variance, width = gauss_variance(study), study.width
    on = iter(_whole(discrete_gaussian(variance, coin=coin, size=2 * width)))  # proof: full-variance
    off = iter(_whole(discrete_gaussian(variance / 2, coin=coin, size=len(diagonal) - width)))  # proof: half-variance
    noise = [next(on) if own else next(off) for own in diagonal] + list(on)
    noise.append(discrete_gaussian(variance / square_weight(study.relation) ** 2, coin=coin))  # proof: square-variance
    if study.relation == "add-remove":
        per_row = variance / (count_weight(study.relation) * _GRID) ** 2
        noise.append(discrete_gaussian(per_row, coin=coin))  # proof: count-variance
    return noise


def _laplace_noise(study: Study, diagonal: Sequence[bool], coin: Coin) -> list[int]:
    del diagonal  # the weights make all coordinates alike
    return _whole(spherical_laplace(laplace_scale(study), dimension=_dimension(study), coin=coin))  # proof: spherical


def _dimension(study: Study) -> int:
    return study.width * (study.width + 3) // 2 + 1 + (study.relation == "add-remove")


def _whole(draws: np.ndarray[Any, Any]) -> list[int]:
    return [int(draw) for draw in draws]


def named_sums(study: Study, noisy: list[int], *, rows: int) -> dict[str, Any]:
    """The released numbers under their names."""
    triangle = study.width * (study.width + 1) // 2
    public_rows = study.relation == "replace-one"
    return {
        "gram": noisy[:triangle],
        "moment": noisy[triangle : triangle + study.width],
        "square": noisy[triangle + study.width],
        "count": None if public_rows else noisy[-1],
        "rows": rows if public_rows else None,
    }
