from __future__ import annotations

import inspect
import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.errors import DataError, ParameterError
from sabun.outliers import local_bound, outlier_degrees, smooth_bound
from sabun.outliers.enclosing import _certified, _fits_exactly, densest_ball, enumerate_balls, fits, smallest_ball


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
    assert enumerate_balls(pair, 1.0, as_printed=True) == []


def test_algorithm_1_as_printed_never_looks_at_the_last_two_records() -> None:
    rng = np.random.default_rng(0)
    for n in range(3, 8):
        cloud = np.round(rng.normal(size=(n, 2)) * 2) / 2
        printed = {ball.members for ball in enumerate_balls(cloud, 1.0, as_printed=True)}
        repaired = {ball.members for ball in enumerate_balls(cloud, 1.0)}
        assert printed < repaired
        assert max(max(members) for members in printed) == n - 3
        # What it does look at, it finds: on the records before the last two, no larger ball is left out.
        seen = [members for members in repaired if max(members) <= n - 3]
        assert max(map(len, printed)) == max(map(len, seen))


def test_algorithm_1_lists_every_subset_that_fits_and_refuses_many_records() -> None:
    cloud = np.round(np.random.default_rng(5).normal(size=(6, 2)) * 2) / 2
    subsets = [s for size in range(1, 7) for s in itertools.combinations(range(6), size)]
    fitting = {s for s in subsets if smallest_ball(cloud[list(s)])[1] <= 1 + 1e-9}
    assert {ball.members for ball in enumerate_balls(cloud, 1.0)} == fitting
    with pytest.raises(DataError, match="at most 20 records"):
        enumerate_balls(np.zeros((21, 1)), 1.0)
    with pytest.raises(ParameterError, match="as_printed"):
        enumerate_balls(cloud, 1.0, as_printed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_branch_and_bound_agrees_with_trying_every_subset(d: int) -> None:
    rng = np.random.default_rng(d)
    for _ in range(8):
        cloud = np.round(rng.normal(size=(7, d)) * 2) / 2
        largest = max(len(ball.members) for ball in enumerate_balls(cloud, 1.0))
        subsets = [s for size in range(1, 8) for s in itertools.combinations(range(7), size)]
        assert largest == densest_ball(cloud, 1.0)
        assert largest == max(len(s) for s in subsets if smallest_ball(cloud[list(s)])[1] <= 1 + 1e-9)


Points = NDArray[np.float64]


def outliers(points: Points, k: int, radius: float) -> int:
    return int((outlier_degrees(points, radius=radius) < k).sum()) if len(points) else 0


def three_around(rng: np.random.Generator, offset: float, radius: float) -> tuple[Points, Points] | None:
    """Three points on the rim of a ball far from the origin, with the place they are all within the radius of."""
    centre = offset + rng.integers(0, 1000, size=2).astype(float)
    rim = []
    for start in (0, 120, 240):
        for _ in range(40):
            angle = np.deg2rad(start + rng.uniform(-25, 25))
            point = centre + radius * np.array([np.cos(angle), np.sin(angle)])
            squared = float(((point - centre) ** 2).sum())
            if radius**2 * (1 - 3e-16 * offset) < squared <= radius**2:
                rim.append(point)
                break
    return (np.array(rim), centre) if len(rim) == 3 else None


def test_the_exact_cover_is_not_below_the_change_far_from_the_origin() -> None:
    rng, seen = np.random.default_rng(3), 0
    for offset in (1e7, 1e8, 1e9):
        for _ in range(150):
            found = three_around(rng, offset, 0.3)
            if found is None:
                continue
            rim, centre = found
            seen += 1
            assert densest_ball(rim, 0.3) == 3
            before, after = np.vstack([rim, [[0.0, 0.0]]]), np.vstack([rim, [centre]])
            change = abs(outliers(before, 1, 0.3) - outliers(after, 1, 0.3))
            bounds = [local_bound(before, k=1, radius=0.3, cover=cover) for cover in ("exact", "link-core", "degeneracy")]
            assert change <= bounds[0] <= bounds[1] <= bounds[2]
    assert seen > 100


def test_the_exact_cover_holds_two_ends_of_a_ball_at_time_stamps() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        radius = int(rng.integers(1_000_000, 2_000_000)) * 2.0**-22
        x = 1.7e9 + int(rng.integers(0, 10**6))
        ends = np.array([[x - radius], [x + radius], [0.0]])
        moved = np.array([[x - radius], [x + radius], [x]])
        change = abs(outliers(ends, 1, radius) - outliers(moved, 1, radius))
        assert local_bound(ends, k=1, radius=radius, cover="exact") >= change
        assert densest_ball(ends, radius) == 2
        bounds = [smooth_bound(t, k=1, radius=radius, beta=0.5, cover="exact") for t in (ends, moved)]
        assert abs(np.log(bounds[0] / bounds[1])) <= 0.5 + 1e-12


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e7, 1e9])
def test_the_exact_cover_is_above_the_truth_grows_and_by_at_most_one(offset: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        radius = float(rng.choice([1.0, 0.3, 0.7, 5.0]))
        centre = offset + rng.integers(0, 100, size=2).astype(float)
        angles = rng.choice(np.arange(12), size=5) * np.pi / 6
        cloud = centre + radius * np.column_stack([np.cos(angles), np.sin(angles)])
        squared = (cloud[:, 0] - centre[0]) ** 2 + (cloud[:, 1] - centre[1]) ** 2
        held = densest_ball(cloud, radius)
        assert held >= int((squared <= radius * radius).sum())
        for j in range(len(cloud)):
            assert held - 1 <= densest_ball(np.delete(cloud, j, axis=0), radius) <= held


@pytest.mark.parametrize("d", [1, 2, 3])
def test_certificates_agree_with_rational_numbers(d: int) -> None:
    rng, open_cases = np.random.default_rng(d), 0
    for _ in range(150):
        cloud = rng.integers(0, 9, size=(int(rng.integers(1, 6)), d)) / 4
        radius = float(rng.choice([0.25, 0.5, 0.5**0.5, 1.0, 1.25]))
        verdict = _certified((cloud - cloud[0]) / radius, 1e-12)
        exact = _fits_exactly(cloud, radius)
        open_cases += verdict is None
        assert verdict is None or verdict == exact
        assert fits(cloud, radius) == exact
    assert open_cases < 15


def test_rational_numbers_decide_on_the_border() -> None:
    """The tolerance's own edge: two points at exactly twice the widened radius, then one float farther."""
    edge = 2.0 * float(np.sqrt((1.0 + 1e-9) ** 2))
    widened = Fraction((1.0 + 1e-9) ** 2)
    seen = set()
    for steps in range(-3, 4):
        far = edge + steps * 2.0**-51
        pair = np.array([[0.0], [far]])
        assert _certified(pair, 1e-12) is None
        seen.add(fits(pair, 1.0))
        assert fits(pair, 1.0) == (Fraction(far) ** 2 / 4 <= widened)
    assert seen == {True, False}


def test_many_equal_records_do_not_exhaust_the_stack() -> None:
    usual = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 40)
        held = densest_ball(np.zeros((60, 1)), 1.0)
    finally:
        sys.setrecursionlimit(usual)
    assert held == 60
