"""What mechanisms cost at one whole Rényi order, every figure certified upwards; proved in renyi.proof.md.

Notation: a is the order, tau a bound on D_a(P || Q) for the output laws P, Q on every pair of neighbours, in both directions.
Costs at one order add up under adaptive choice. A total of at most B = `threshold(E, order=a, tail=D1)` gives (E, D1).
"""

from __future__ import annotations

import decimal
import functools
import math
from decimal import Decimal
from fractions import Fraction

from sabun import checks
from sabun.privacy.amounts import Amount
from sabun.privacy.certified import exp_down, exp_up, log_up

__all__ = [
    "LARGEST_ORDER",
    "best_order",
    "bounded_range_cost",
    "grouped",
    "largest_pure",
    "pure_cost",
    "sampled_gaussian_cost",
    "stepped",
    "threshold",
    "two_steps",
    "whole_order",
]

LARGEST_ORDER = 100_000
_STEP = 2**64
_LARGEST_SAMPLED = 512
"""Above this order a sampled Gaussian has no cost here: its sum would be long, and it explodes long before."""
_UP = decimal.Context(prec=40, rounding=decimal.ROUND_CEILING, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def whole_order(order: object) -> int:
    """A Rényi order that prices are stated at.

    Raises:
        ParameterError: It is no whole number from 2 on.
    """
    good = isinstance(order, int) and not isinstance(order, bool) and 2 <= order <= LARGEST_ORDER
    checks.require(good, f"a whole number from 2 to {LARGEST_ORDER}", order=order)
    assert isinstance(order, int)
    return order


@functools.lru_cache(maxsize=1024)
def pure_cost(epsilon: Fraction, *, order: int) -> Fraction:
    """The cost of anything that is epsilon-DP: exactly that of randomized response, the worst of them.

    Example:
        >>> float(pure_cost(Fraction(1, 10), order=6)) < 6 * 0.1**2 / 2
        True
    """
    if epsilon == 0:
        return Fraction(0)
    above, below = exp_up(order * epsilon), 1 + exp_down(epsilon)
    if isinstance(above, float):  # e^5000 is no number worth having, and the loss is never above epsilon anyway
        return stepped(epsilon)
    moment = (above + Fraction(exp_up((1 - order) * epsilon))) / below
    return min(stepped(log_up(moment) / (order - 1)), stepped(epsilon))  # proof: worst-pure


def bounded_range_cost(epsilon: Fraction, *, order: int) -> Fraction:
    """The cost of a mechanism whose log-ratios lie in an interval of length epsilon, as those of the exponential mechanism."""
    return min(stepped(order * epsilon**2 / 8), pure_cost(epsilon, order=order))  # proof: bounded-range


@functools.lru_cache(maxsize=256)
def sampled_gaussian_cost(multiplier: Fraction, probability: Fraction, *, order: int) -> Amount:
    """The cost of one Gaussian on a Poisson sample under add-remove neighbours; `math.inf` where the order is too high."""
    if order > _LARGEST_SAMPLED:
        return math.inf
    total, kept, taken = Decimal(0), _decimal(1 - probability), _decimal(probability)
    for hits in range(order + 1):
        growth = exp_up(Fraction(hits * (hits - 1)) / (2 * multiplier**2))
        if isinstance(growth, float):
            return math.inf
        weight = _UP.multiply(_power(kept, order - hits), _power(taken, hits))
        term = _UP.multiply(_UP.multiply(Decimal(math.comb(order, hits)), weight), _decimal(growth))
        total = _UP.add(total, term)  # proof: sampled-moment
    return stepped(log_up(Fraction(total)) / (order - 1))


def two_steps(double: Fraction, less: Fraction, *, order: int) -> Fraction:
    """The cost over two neighbour steps from the costs of one step at the orders 2a and 2a - 1."""
    return stepped((order - Fraction(1, 2)) / (order - 1) * double + less)  # proof: weak-triangle


def threshold(epsilon: Fraction, *, order: int, tail: Fraction) -> Fraction:
    """The largest total cost at an order that is known to give (epsilon, tail); rounded down, below zero where nothing fits.

    Example:
        >>> round(float(threshold(Fraction(3), order=9, tail=Fraction(1, 10**6))), 3)
        1.665
    """
    return epsilon - _conversion(order, tail)


@functools.lru_cache(maxsize=256)
def _conversion(order: int, tail: Fraction) -> Fraction:
    bound = log_up(1 - Fraction(1, order)) + log_up(1 / (order * tail)) / (order - 1)  # proof: conversion
    return stepped(bound)


def best_order(epsilon: Fraction, *, tail: Fraction) -> int:
    """The whole order that leaves room for the most Gaussian noise: it maximises threshold / order.

    Only a choice: any order is sound, and a poor one costs accuracy.

    Example:
        >>> [best_order(Fraction(e), tail=Fraction(1, 10**6)) for e in (1, 3, 5, 10)]
        [22, 9, 6, 4]
    """
    size, log_tail = float(min(epsilon, Fraction(10**6))), float(log_up(tail))
    sparse = (min(LARGEST_ORDER, int(512 * math.pow(1.02, power))) for power in range(267))
    orders: list[int] = sorted({*range(2, 513), *sparse})

    def room(order: int) -> float:
        return (size - math.log1p(-1 / order) + (math.log(order) + log_tail) / (order - 1)) / order

    return max(orders, key=room)


def largest_pure(left: Fraction, *, order: int) -> Fraction:
    """An epsilon of six decimals whose pure cost is at most `left`; rounded down."""
    if left <= 0:
        return Fraction(0)
    low, high = 0, math.floor(left * 10**6) + 10**6  # the cost is at least epsilon - ln 2 / (a - 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if pure_cost(Fraction(middle, 10**6), order=order) <= left else (low, middle - 1)
    return Fraction(low, 10**6)


def grouped(epsilon: Amount, delta: Amount, *, steps: int) -> tuple[Amount, Amount]:
    """What an (epsilon, delta) promise about one neighbour step says about k of them.

    Guarantee: (k epsilon, delta (1 + e^epsilon + … + e^((k-1) epsilon))), rounded up.

    Example:
        >>> epsilon, delta = grouped(Fraction(3), Fraction(1, 10**6), steps=4)
        >>> epsilon, round(float(delta), 4)
        (Fraction(12, 1), 0.0085)
    """
    if steps == 1 or not delta:
        return steps * epsilon, delta
    total: Amount = Fraction(1)
    for step in range(1, steps):
        total += exp_up(step * epsilon)  # proof: group
        if total * delta >= 1:
            return steps * epsilon, Fraction(1)
    return steps * epsilon, total * delta


def stepped(value: Fraction) -> Fraction:
    """The next multiple of 2^-64 that is not below a value: sums of many stay short."""
    return Fraction(math.ceil(value * _STEP), _STEP)  # proof: up


def _decimal(value: Fraction) -> Decimal:
    return _UP.divide(Decimal(value.numerator), Decimal(value.denominator))


def _power(base: Decimal, times: int) -> Decimal:
    """A power of a positive number, rounded up by rounding every product up."""
    found, square = Decimal(1), base
    while times:
        if times & 1:
            found = _UP.multiply(found, square)
        square, times = _UP.multiply(square, square), times >> 1
    return found
