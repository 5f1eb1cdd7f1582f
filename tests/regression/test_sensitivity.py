from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from sabun.regression.sensitivity import (
    gradient_diameter,
    length_reach,
    noise_share,
    residual_l2_squared,
    residual_weights,
    square_weight,
    sufficient_l2_squared,
)


def row(v: np.ndarray, width: int) -> tuple[np.ndarray, float]:
    x = v[:width]
    return x / max(1.0, float(np.linalg.norm(x))), float(np.clip(v[width], -1, 1))


def statistic(x: np.ndarray, y: float, u: float, w: float) -> np.ndarray:
    outer = np.outer(x, x)
    above = np.triu_indices(len(x), 1)
    return np.concatenate([np.diag(outer), math.sqrt(2) * outer[above], x * y, [u * y * y, w]])


def largest(function, size: int, restarts: int = 12) -> float:
    rng = np.random.default_rng(0)
    found = 0.0
    for _ in range(restarts):
        start = rng.uniform(-1.5, 1.5, size)
        found = max(found, -minimize(lambda v: -function(v), start, method="Nelder-Mead", options={"maxiter": 1200}).fun)
    return found


@pytest.mark.parametrize("width", [1, 2, 3])
def test_replacing_a_row_moves_the_statistic_by_at_most_the_bound(width: int) -> None:
    u = float(square_weight("replace-one"))

    def change(v: np.ndarray) -> float:
        first, second = row(v[: width + 1], width), row(v[width + 1 :], width)
        return float(np.sum((statistic(*first, u, 0) - statistic(*second, u, 0)) ** 2))

    found, bound = largest(change, 2 * width + 2), float(sufficient_l2_squared("replace-one"))
    assert found <= bound + 1e-9
    assert width == 1 or found > bound - 1e-3, "attained from two features on"


@pytest.mark.parametrize("width", [1, 3])
def test_adding_a_row_moves_the_statistic_by_exactly_the_bound(width: int) -> None:
    found = largest(lambda v: float(np.sum(statistic(*row(v, width), 0.5, 0.5) ** 2)), width + 1, restarts=5)
    assert found == pytest.approx(float(sufficient_l2_squared("add-remove")), abs=1e-4)


def test_the_square_of_the_target_is_free_only_up_to_its_weight() -> None:
    """A test of the test: with weight 2 the same search must exceed 9/2."""

    def change(v: np.ndarray) -> float:
        return float(np.sum((statistic(*row(v[:3], 2), 2.0, 0) - statistic(*row(v[3:], 2), 2.0, 0)) ** 2))

    assert largest(change, 6) > 4.6


def test_a_person_with_three_rows_moves_the_sums_three_times_as_far() -> None:
    assert sufficient_l2_squared("replace-one", records_per_person=3) == 9 * Fraction(9, 2)


@pytest.mark.parametrize("bound", ["1/100", "1", "100", *(pytest.param(one, marks=pytest.mark.long) for one in ("1/2", "3"))])
def test_gradients_of_two_rows_are_never_further_apart_than_the_diameter(bound: str) -> None:
    coef = float(Fraction(bound))

    def distance(v: np.ndarray) -> float:
        theta = v[:2] / max(1.0, float(np.linalg.norm(v[:2]))) * coef
        (x, y), (z, t) = row(v[2:5], 2), row(v[5:], 2)
        return float(np.linalg.norm(2 * (x @ theta - y) * x - 2 * (z @ theta - t) * z))

    found, stated = largest(distance, 8, restarts=25), float(gradient_diameter(Fraction(bound), "replace-one"))
    assert found <= stated * (1 + 1e-12)
    assert found > 0.999 * stated
    assert stated < 4 * (coef + 1), "tighter than twice the gradient"


def test_the_diameter_of_one_is_the_printed_figure() -> None:
    assert float(gradient_diameter(Fraction(1), "replace-one")) == pytest.approx(5.196152, abs=1e-5)
    assert gradient_diameter(Fraction(1), "add-remove") == 4


@pytest.mark.parametrize("people", [1, 4])
@pytest.mark.parametrize("epsilon", ["1/100", "1", "10"])
def test_ridge_and_noise_share_epsilon_without_exceeding_it(epsilon: str, people: int) -> None:
    ridge, left = noise_share(Fraction(epsilon), ridge=Fraction(0), records_per_person=people)
    used = people * math.log1p(1 / float(ridge)) + float(left)
    assert used <= float(Fraction(epsilon)) * (1 + 1e-12)
    assert used > 0.999999 * float(Fraction(epsilon))


def test_a_larger_ridge_leaves_more_for_the_noise() -> None:
    small = noise_share(Fraction(1), ridge=Fraction(0), records_per_person=1)
    large = noise_share(Fraction(1), ridge=Fraction(1000), records_per_person=1)
    assert large[0] == 1000
    assert large[1] > small[1]


def test_sensitivities_do_not_wrap() -> None:
    small: Any = np.int8(100)
    three: Any = np.int8(3)
    assert sufficient_l2_squared("replace-one", records_per_person=small) == Fraction(9, 2) * 10_000
    assert gradient_diameter(Fraction(small), "replace-one") == gradient_diameter(Fraction(100), "replace-one")
    given = noise_share(Fraction(small), ridge=Fraction(three), records_per_person=small)
    assert given == noise_share(Fraction(100), ridge=Fraction(3), records_per_person=100)


def residual_change(a: float, b: float, u_squared: float) -> float:
    return (a + b) ** 2 + u_squared * (a**2 - b**2) ** 2


def test_squares_of_residuals_are_free_up_to_a_weight_of_two() -> None:
    """Opposite unit rows are the worst case; over a grid of residuals the maximum is 4, and more for a large weight."""
    grid = np.linspace(0, 1, 401)
    changes = {u: max(residual_change(a, b, u) for a in grid for b in grid) for u in (0.5, 2.0, 2.5, 4.0)}
    assert changes[0.5] == changes[2.0] == 4.0
    assert changes[2.5] == 4.0, "the derivative is below 0 in the middle, the maximum still at the end"
    assert changes[4.0] > 4.0
    square, weight = residual_weights("replace-one")
    assert (square, residual_l2_squared("replace-one")) == (2, 4 + weight)
    square, weight = residual_weights("add-remove")
    assert residual_l2_squared("add-remove", records_per_person=3) == 9 * (1 + square + weight)
    assert (length_reach("replace-one"), length_reach("add-remove", records_per_person=2)) == (1, Fraction(3, 2))


def test_random_residual_records_never_move_further() -> None:
    rng = np.random.default_rng(3)
    square, weight = (float(part) for part in residual_weights("replace-one"))
    for _ in range(3000):
        x, t, s = rng.normal(size=(2, 3)), rng.uniform(-1, 1, 2), rng.uniform(0, 1, 2)
        x /= np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
        moved = np.sum((x[0] * t[0] - x[1] * t[1]) ** 2) + square * (t[0] ** 2 - t[1] ** 2) ** 2 + weight * (s[0] - s[1]) ** 2
        assert moved <= float(residual_l2_squared("replace-one")) + 1e-12
