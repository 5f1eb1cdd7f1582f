"""The minimiser of a quadratic over a ball, enclosed with certainty.

Notation: theta minimises t'(A + R) t - 2 g't over |t| <= B. A candidate from floating point is improved in whole-number
arithmetic;
then a bound on its distance from the true minimiser is computed exactly, so that how the candidate was found does not matter.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.errors import InternalError
from sabun.regression.design import Floats

__all__ = ["SCALE", "Quadratic", "enclosed_minimiser"]

SCALE = 40
"""Binary digits after the point of the curvature."""

_STEPS = 500
_SETTLED = 2**30


@dataclass(frozen=True, kw_only=True)
class Quadratic:
    """A + R, the linear term and the ball, exactly.

    Args:
        curvature: 2**40 (A + R), whole numbers (dtype object), symmetric; A has no negative eigenvalue.
        ridge: 2**40 R, above zero.
        linear: 2**(digits + 40) g, whole numbers (dtype object).
        bound: 2**digits B.
        digits: Binary digits after the point of a candidate.
    """

    curvature: NDArray[Any]
    ridge: int
    linear: NDArray[Any]
    bound: int
    digits: int


def enclosed_minimiser(problem: Quadratic, *, slack: int) -> tuple[list[int], int]:
    """A point of the ball, with a radius that holds every minimiser whose linear term lies within `slack` of this one.

    Args:
        problem: The quadratic over the ball.
        slack: Bound on the length of the change of g, in units of 2**-(digits + 40).

    Returns:
        2**digits theta and 2**digits times the radius, whole numbers.
    """
    solver = _Solver.of(problem)
    theta, shift = solver.solve(0, [0] * len(problem.linear)), 0
    # Either the free minimiser lies in the ball, or the minimiser is that of A + R + shift for the one shift that makes it as
    # long as B. Whatever the search ends with is only a candidate: `_radius` says how far off it can be.
    # One unit of the shift moves the length by up to B / R units, so nothing closer can be asked for.
    settled = _SETTLED + 4 * ((problem.bound << SCALE) // (problem.ridge << problem.digits))
    for _ in range(_STEPS):
        excess = _length(theta) - problem.bound
        if (shift == 0 and excess <= 0) or abs(excess) <= settled:
            break
        shift = max(1, shift + solver.newton(theta, shift, excess))
        theta = solver.solve(shift, theta)
    else:
        raise InternalError("the secular equation did not converge.")
    inside = _shortened(theta, problem.bound)
    return inside, _radius(problem, inside, shift, slack)


@dataclass(frozen=True)
class _Solver:
    """Solves (A + R + shift) theta = g: floating-point steps, whole-number residuals."""

    problem: Quadratic
    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, problem: Quadratic) -> _Solver:
        values, vectors = np.linalg.eigh(np.array([[_float(entry, SCALE) for entry in row] for row in problem.curvature]))
        return cls(problem, np.maximum(values, _float(problem.ridge, SCALE)), vectors)

    def solve(self, shift: int, start: list[int]) -> list[int]:
        # Refinement: residuals are exact, the inverse in floating point only has to shorten them. Each step gains about 50
        # bits; it ends where a residual no longer halves.
        theta = np.array(start, dtype=object)
        weights, smallest = self._inverse(shift), -1
        for _ in range(_STEPS):
            residual = self.problem.linear - _applied(self.problem, theta, shift)
            size = max(abs(int(entry)) for entry in residual)
            if size == 0 or 0 <= smallest <= 2 * size:
                break
            # The leading 60 bits go through floating point; `lift` remembers where they stood.
            smallest, lift = size, max(0, size.bit_length() - 60)
            step = self.vectors @ (weights * (self.vectors.T @ np.array([float(int(entry) >> lift) for entry in residual])))
            theta = theta + np.array([_times(1, move, lift - SCALE) for move in step], dtype=object)
        return [int(entry) for entry in theta]

    def newton(self, theta: list[int], shift: int, excess: int) -> int:
        """Newton's step for 1/|theta(shift)| = 1/B (Moré, Sorensen 1983)."""
        rotated = self.vectors.T @ np.array([_float(entry, self.problem.digits) for entry in theta])
        slope = float((rotated * self._inverse(shift)) @ rotated)
        return _times(excess, float(rotated @ rotated) / (slope * _float(self.problem.bound, self.problem.digits)), 0)

    def _inverse(self, shift: int) -> Floats:
        return np.asarray(1 / (self.values + _float(shift, self.problem.digits)))


def _applied(problem: Quadratic, theta: NDArray[Any], shift: int) -> NDArray[Any]:
    """2**(digits + 40) (A + R + shift) theta; only the part of the shift is rounded, down by less than 1 a coordinate."""
    extra = np.array([int(entry) * shift << SCALE >> problem.digits for entry in theta], dtype=object)
    return np.asarray(problem.curvature.dot(theta) + extra)


def _radius(problem: Quadratic, theta: list[int], shift: int, slack: int) -> int:
    """Distance bound d from R d**2 <= e d + shift B (B - |theta|), where e is the length of the residual."""
    residual = _applied(problem, np.array(theta, dtype=object), shift) - problem.linear
    error = _length([int(entry) for entry in residual]) + len(theta) + slack  # proof: residual
    gap = problem.bound - math.isqrt(sum(entry * entry for entry in theta))
    product = (shift * problem.bound * gap << SCALE) // (problem.ridge << problem.digits) + 1
    return error // problem.ridge + 1 + math.isqrt(product) + 1  # proof: distance


def _shortened(theta: list[int], bound: int) -> list[int]:
    """The vector, made no longer than `bound`."""
    length = _length(theta)
    if length <= bound:
        return theta
    # Rounding down adds less than 1 to the size of a coordinate, so less than their number to the length.
    return [entry * (bound - len(theta)) // length for entry in theta]  # proof: feasible


def _length(vector: list[int]) -> int:
    """The Euclidean length, rounded up."""
    square = sum(entry * entry for entry in vector)
    root = math.isqrt(square)
    return root + (root * root < square)


def _float(value: int, digits: int) -> float:
    """value 2**-digits, nearly."""
    shift = max(0, int(value).bit_length() - 64)
    return math.ldexp(float(int(value) >> shift), shift - digits)


def _times(value: int, factor: float, digits: int) -> int:
    """value factor 2**digits as a whole number."""
    mantissa, exponent = math.frexp(factor)
    whole, places = value * int(math.ldexp(mantissa, 53)), exponent - 53 + digits
    return whole << places if places >= 0 else whole >> -places
