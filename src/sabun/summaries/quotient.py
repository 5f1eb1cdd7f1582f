"""A mean from two noisy sums, and a spread from three: estimates with intervals that hold what noise may have done to each.

Notation: of a group, U = sum k and V = sum (K - k), so that U + V = K n and the mean mark is K U / (U + V). The spread uses
A = sum k^2, B = sum 2k(K - k), C = sum (K - k)^2, A + B + C = K^2 n. Only noisy sums are seen.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sabun.summaries.laws import Noise

__all__ = ["Share", "mean_share", "spread_known_size", "spread_share"]

_Line: TypeAlias = NDArray[np.float64]

_HALVINGS = 60
_PLACES = 2001
_BETWEEN = 1e-6
"""What the least spread may be below that at one of `_PLACES` means, for it may lie between two of them."""


class Share(NamedTuple):
    """Something between 0 and 1 with its interval; `found` is None where the group is too small to tell."""

    found: float | None
    low: float
    high: float


def mean_share(up: int, down: int, noise: Noise, miss: float) -> Share:
    """U / (U + V) of the exact sums, from the noisy ones.

    The interval holds every p for which (1 - p) U - p V, which is 0 for the exact sums, is explained by noise (Fieller).
    """
    size = up + down
    if size <= noise.reach_of_two(1.0, 1.0, miss):
        return Share(None, 0.0, 1.0)

    def above(p: float) -> bool:
        return up - Fraction(p) * size > noise.reach_of_two(1 - p, p, miss)

    def below(p: float) -> bool:
        return Fraction(p) * size - up > noise.reach_of_two(1 - p, p, miss)

    found = float(min(max(Fraction(up, size), Fraction(0)), Fraction(1)))
    low, inside = 0.0, found
    if above(0.0):
        for _ in range(_HALVINGS):
            middle = (low + inside) / 2
            low, inside = (middle, inside) if above(middle) else (low, middle)
    inside, high = found, 1.0
    if below(1.0):
        for _ in range(_HALVINGS):
            middle = (inside + high) / 2
            inside, high = (inside, middle) if below(middle) else (middle, high)
    return Share(found, low, high)


def spread_share(squares: tuple[int, int, int], noise: Noise, miss: float) -> Share:
    """The variance over K^2 (at most 1/4) of the exact marks, from the noisy A, B, C.

    The sum of (k - m K)^2 over a group is (1 - m)^2 A - m (1 - m) B + m^2 C; it is least at the mean, where it is n times the
    variance. Each of the three is within `reach` of the exact one, all with the stated probability.
    """
    size, reach = sum(squares), noise.reach(miss, numbers=3)
    if size <= 3 * reach:
        return Share(None, 0.0, 0.25)
    a, b, c = (float(Fraction(part, size)) for part in squares)
    t = float(Fraction(reach, size))
    m = np.linspace(0.0, 1.0, _PLACES)
    weights = np.stack([(1 - m) ** 2, -m * (1 - m), m**2])
    around = weights[0] * a + weights[1] * b + weights[2] * c

    def slack(theta: _Line) -> _Line:
        total: _Line = t * np.abs(weights - theta).sum(axis=0)
        return total

    # The exact variance v has n v <= sum (k - m K)^2 for every m, with equality for one; the difference is linear in A, B, C.
    high = float(_root(lambda theta: around - theta + slack(theta)).min())
    low = float(_root(lambda theta: around - theta - slack(theta)).min()) - _BETWEEN
    mean = min(max(a + b / 2, 0.0), 1.0)
    found = min(max((1 - mean) ** 2 * a - mean * (1 - mean) * b + mean**2 * c, 0.0), 0.25)
    low, high = max(low, 0.0), min(high + _BETWEEN, 0.25)
    return Share(min(max(found, low), high), low, high)


def spread_known_size(total: int, squares: int, width: int, size: int, noise: Noise, miss: float) -> Share:
    """The same where the size is public, from noisy K sum c and sum c^2 with c = 2k - K."""
    unit = size * width * width
    reach = Fraction(noise.reach(miss, numbers=2), unit)
    mean, square = Fraction(total, unit), Fraction(squares, unit)
    ends = [min(max(end, Fraction(-1)), Fraction(1)) for end in (mean - reach, mean + reach)]
    least = Fraction(0) if ends[0] <= 0 <= ends[1] else min(ends[0] ** 2, ends[1] ** 2)
    low = max(square - reach, Fraction(0)) - max(ends[0] ** 2, ends[1] ** 2)
    high = min(square + reach, Fraction(1)) - least
    parts = [float(min(max(part, Fraction(0)), Fraction(1))) / 4 for part in (square - mean**2, low, max(low, high))]
    return Share(min(max(parts[0], parts[1]), parts[2]), parts[1], parts[2])


def _root(decreasing: Callable[[_Line], _Line]) -> _Line:
    """Where a decreasing function of [0, 1/4], one for each place, changes its sign."""
    low, high = np.zeros(_PLACES), np.full(_PLACES, 0.25)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        positive = decreasing(middle) > 0
        low, high = np.where(positive, middle, low), np.where(positive, high, middle)
    return high
