from __future__ import annotations

import itertools

import numpy as np
import pytest

from sabun.outliers.enclosing import densest_ball, enumerate_balls, smallest_ball


def test_the_smallest_ball_holds_all_points_and_no_smaller_one_does() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 5):
        for _ in range(20):
            cloud = rng.normal(size=(9, d))
            centre, squared = smallest_ball(cloud)
            reach = ((cloud - centre) ** 2).sum(axis=1)
            assert reach.max() <= squared * (1 + 1e-9)
            touching = cloud[reach >= squared * (1 - 1e-6)]
            # Optimal exactly when the centre lies in the hull of the touching points (Karush-Kuhn-Tucker).
            weights = np.linalg.lstsq(np.vstack([touching.T, np.ones(len(touching))]), np.append(centre, 1), rcond=None)[0]
            assert weights.min() > -1e-6


def test_algorithm_1_repaired_finds_what_the_printed_one_misses() -> None:
    pair = np.array([[0.0], [1.5]])
    assert densest_ball(pair, 1.0) == 2
    assert max(len(ball.members) for ball in enumerate_balls(pair, 1.0)) == 2


@pytest.mark.parametrize("d", [1, 2, 3])
def test_branch_and_bound_agrees_with_trying_every_subset(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(8):
        cloud = np.round(rng.normal(size=(7, d)) * 2) / 2
        largest = max(len(ball.members) for ball in enumerate_balls(cloud, 1.0))
        subsets = [s for size in range(1, 8) for s in itertools.combinations(range(7), size)]
        assert largest == densest_ball(cloud, 1.0)
        assert largest == max(len(s) for s in subsets if smallest_ball(cloud[list(s)])[1] <= 1 + 1e-9)
