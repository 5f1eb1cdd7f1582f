from __future__ import annotations

import math

import numpy as np
import pytest

from outliers.brute import Database, count, databases, line, replaced, square
from sabun.errors import ParameterError
from sabun.outliers import local_bound, local_candidates, local_sensitivity
from sabun.outliers.paper import PrintedRungs, algorithm_two, printed_bound, theorem_one_sigma, theorem_two


def changes(database: Database, domain: list[tuple[float, ...]], k: int) -> int:
    own = count(database, k, 1.0)
    return max(abs(own - count(other, k, 1.0)) for other in replaced(database, domain))


def candidates(database: Database, centres: list[tuple[float, ...]], k: int) -> tuple[int, int]:
    """Definition 8, read off the page."""

    def distance(a: tuple[float, ...], b: tuple[float, ...]) -> float:
        return math.dist(a, b)

    degrees = [sum(distance(x, y) <= 1 for y in database) - 1 for x in database]
    exactly = [x for x, degree in zip(database, degrees, strict=True) if degree == k]
    below = [x for x, degree in zip(database, degrees, strict=True) if degree == k - 1]
    turned = max(sum(distance(x, y) <= 1 for y in exactly) for x in database)
    return turned, max(sum(distance(x, y) <= 1 for y in below) for x in centres)


HALVES = [(step / 2,) for step in range(-2, 9)]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("n", [3, 4])
def test_theorem_4_and_its_candidates_hold_on_every_small_line(k: int, n: int) -> None:
    """The places in between are among the domain, so that on a line the enumeration is the whole truth."""
    for database in databases(line(4), n):
        points = np.array(database)
        found = local_candidates(points, k=k, radius=1.0)
        assert (found.outliers, found.inliers) == candidates(database, HALVES, k)
        exact = changes(database, [*HALVES, (99.0,)], k)
        assert local_sensitivity(points, k=k, radius=1.0) == exact <= found.bound == max(found.outliers, found.inliers) + 1
        assert local_bound(points, k=k, radius=1.0, cover="exact") <= local_bound(points, k=k, radius=1.0, cover="paper")


def test_the_exact_local_sensitivity_is_reached_and_never_passed_in_the_plane() -> None:
    domain = [*square(3), (0.5, 0.5), (1.5, 0.5), (0.5, 1.5), (1.5, 1.5), (99.0, 99.0)]
    for database in [d for place, d in enumerate(databases(square(3), 4)) if place % 9 == 0]:
        points = np.array(database)
        for k in (1, 2):
            assert changes(database, domain, k) <= local_sensitivity(points, k=k, radius=1.0)
            assert local_sensitivity(points, k=k, radius=1.0) <= local_bound(points, k=k, radius=1.0, cover="paper")


def test_a_bound_without_the_moved_record_fails_the_same_test() -> None:
    """max(OC, IC) alone is too small somewhere: the enumeration above can fail."""
    assert any(
        local_sensitivity(np.array(database), k=1, radius=1.0) > local_candidates(np.array(database), k=1, radius=1.0).bound - 1
        for database in databases(line(4), 3)
    )


def test_theorem_4_is_for_replaced_records() -> None:
    with pytest.raises(ParameterError, match="replace-one"):
        local_bound([[0.0], [1.0]], k=1, radius=1.0, cover="paper", relation="add-remove")


def test_the_first_printed_rung_is_theorem_4_where_records_are_the_best_places() -> None:
    """Eq. 23 at t = 0 sums no second band; it falls short of Theorem 4 only by looking at records instead of all places."""
    for database in databases(line(5), 4):
        points = np.array(database)
        first = PrintedRungs(points, k=2, radius=1.0, cover="exact").at(0)
        assert first <= local_candidates(points, k=2, radius=1.0).bound


def test_algorithm_2_stops_before_the_largest_step_of_24() -> None:
    """N exp(-beta t) bounds the local sensitivity, not (25), which may be larger than N: what it returns is not (24)."""
    points = np.array([[0.0], [0.0], [1.0], [2.0]])
    value, steps = algorithm_two(points, k=2, radius=1.0, beta=0.05)
    assert steps == 2
    assert value < 0.8 * printed_bound(points, k=2, radius=1.0, beta=0.05)
    value, _ = algorithm_two(points, k=2, radius=1.0, beta=2.0)
    assert value == printed_bound(points, k=2, radius=1.0, beta=2.0)


def test_theorems_1_and_2_have_their_printed_constants() -> None:
    log = math.log(2 / 1e-6)
    assert theorem_one_sigma(sensitivity=3, epsilon=0.5, delta=1e-6) == pytest.approx(math.sqrt(9 * 2 * log / 0.25))
    inverse, beta = theorem_two(epsilon=0.5, delta=1e-6)
    assert (1 / inverse, beta) == (pytest.approx(0.5 / (5 * math.sqrt(2 * log))), pytest.approx(0.5 / (4 * (1 + log))))
