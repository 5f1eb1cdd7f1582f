from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import minimize

from sabun.regression.ball import SCALE, Quadratic, _shortened, enclosed_minimiser

DIGITS = 300


def problem(gram: np.ndarray, linear: np.ndarray, ridge: float, bound: float) -> Quadratic:
    whole = [[int(Fraction(float(entry)) * 2**SCALE) for entry in row] for row in gram + ridge * np.eye(len(linear))]
    return Quadratic(
        curvature=np.array(whole, dtype=object),
        ridge=int(ridge * 2**SCALE),
        linear=np.array([int(Fraction(float(entry)) * 2 ** (DIGITS + SCALE)) for entry in linear], dtype=object),
        bound=int(Fraction(bound) * 2**DIGITS),
        digits=DIGITS,
    )


def grid(rng: np.random.Generator, width: int, rows: int) -> np.ndarray:
    """A Gram matrix of dyadic rows, so that it is exact."""
    x = rng.integers(-16, 17, (rows, width)) / 64
    return x.T @ x


@pytest.mark.parametrize("width", [1, 2, 5, 30])
@pytest.mark.parametrize("pull", [0.01, 1.0, 100.0])
def test_the_enclosure_agrees_with_a_general_solver(width: int, pull: float) -> None:
    rng = np.random.default_rng(width)
    gram, linear = grid(rng, width, 200), np.round(rng.normal(size=width) * pull * 8) / 8
    theta, radius = enclosed_minimiser(problem(gram, linear, 1.0, 1.0), slack=0)
    found = np.array([float(Fraction(entry, 2**DIGITS)) for entry in theta])
    assert radius < 2 ** (DIGITS - 100), "certain to more than 100 binary digits"

    def loss(t: np.ndarray) -> float:
        return float(t @ gram @ t + t @ t - 2 * linear @ t)

    ball = {"type": "ineq", "fun": lambda t: 1 - t @ t}
    other = minimize(loss, found * 0.5, constraints=[ball], method="SLSQP", options={"ftol": 1e-14, "maxiter": 500})
    inside = other.x / max(1.0, float(np.linalg.norm(other.x)))  # SLSQP may step out of the ball by its tolerance
    assert loss(found) <= loss(inside) + 1e-9 * (1 + abs(other.fun))
    assert np.linalg.norm(found - inside) < 1e-3


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_the_enclosure_holds_a_solution_of_sixty_digits(factor: float) -> None:
    rng = np.random.default_rng(3)
    gram = grid(rng, 3, 100)
    linear = np.array([0.25, -1.5, 0.75]) * factor * 8
    found = problem(gram, linear, 0.5, 1.0)
    theta, radius = enclosed_minimiser(found, slack=0)
    with mpmath.workdps(90):
        A = mpmath.matrix([[mpmath.mpf(int(e)) / 2**SCALE for e in row] for row in found.curvature])
        g = mpmath.matrix([mpmath.mpf(int(e)) / mpmath.mpf(2) ** (DIGITS + SCALE) for e in found.linear])

        def solution(mu):
            return mpmath.lu_solve(A + mu * mpmath.eye(3), g)

        mu = mpmath.mpf(0)
        if mpmath.norm(solution(mu)) > 1:
            mu = mpmath.findroot(lambda m: 1 / mpmath.norm(solution(m)) - 1, (0, mpmath.norm(g)), solver="anderson", tol=1e-80)
        true = solution(mu)
        distance = mpmath.norm(true - mpmath.matrix([mpmath.mpf(e) / mpmath.mpf(2) ** DIGITS for e in theta]))
    assert distance <= mpmath.mpf(radius) / mpmath.mpf(2) ** DIGITS + mpmath.mpf(10) ** -38


def test_the_enclosure_holds_for_every_linear_term_within_the_slack() -> None:
    rng = np.random.default_rng(4)
    gram, linear = grid(rng, 2, 50), np.array([2.0, -1.0])
    base = problem(gram, linear, 1.0, 1.0)
    slack = 2 ** (DIGITS + SCALE - 20)
    theta, radius = enclosed_minimiser(base, slack=slack)
    for angle in range(8):
        move = [int(slack * math.cos(angle) * 0.99), int(slack * math.sin(angle) * 0.99)]
        linear = base.linear + np.array(move, dtype=object)
        other = Quadratic(
            curvature=base.curvature,
            ridge=base.ridge,
            linear=linear,
            bound=base.bound,
            digits=DIGITS,
        )
        moved, own = enclosed_minimiser(other, slack=0)
        assert math.isqrt(sum((a - b) ** 2 for a, b in zip(theta, moved, strict=True))) <= radius + own


@pytest.mark.parametrize("pull", [1.0, 1e9])
def test_badly_conditioned_data_is_solved_too(pull: float) -> None:
    x = np.array([1.0, 0.5, 0.25])
    gram = np.outer(x, x) * 2.0**28
    theta, radius = enclosed_minimiser(problem(gram, x * pull, 0.5, 1.0), slack=4)
    assert radius < 2 ** (DIGITS - 60)
    assert sum(entry**2 for entry in theta) <= 2 ** (2 * DIGITS)


def test_what_is_shortened_lies_within_the_ball_whatever_its_signs() -> None:
    rng = np.random.default_rng(0)
    for width, bound in [(1, 5), (2, 100), (3, 10**3), (9, 10**6), (9, 1 << 60)]:
        for _ in range(200):
            vector = [int(x * bound) for x in rng.normal(size=width) * 3]
            found = _shortened(vector, bound)
            assert sum(entry * entry for entry in found) <= bound * bound
            assert found == vector or sum(entry * entry for entry in vector) > bound * bound
