"""How many records can be outliers because of one other: thirteen points in space, six in the plane."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.outliers import global_bound, outlier_degrees
from sabun.outliers.kissing import kissing_bound, region_bound
from sabun.outliers.sensitivity import measure, measure_regions
from sabun.outliers.subspace import dampened_score

Points = NDArray[np.float64]


# Thirteen points that rounding puts within 1 of the origin and farther than 1 from each other.
THIRTEEN = np.array(
    [
        [float.fromhex(x) for x in row.split()]
        for row in """
0x1.6ab08c0b9bef8p-1 -0x1.c45fbeef5fe86p-6 0x1.691c245a5a2fcp-1
-0x1.20846ac882181p-5 0x1.69839a9fb30b4p-1 0x1.6a1d22347eb18p-1
0x1.681f674bdcab0p-1 0x1.6b963826f240ap-1 -0x1.0224d1cac0b4fp-5
-0x1.d2e0534f656f9p-1 0x1.260f128fab2e3p-2 0x1.2c5a37208557dp-2
0x1.2593ed9acf184p-2 0x1.2a5074b1173d6p-2 -0x1.d34749334dfc3p-1
0x1.2d157afefa5dcp-2 -0x1.d1db08eb21409p-1 0x1.2bbb26115fc0ap-2
0x1.d2cccde11687ep-1 -0x1.262ba339a56ffp-2 -0x1.2cb78de24156dp-2
-0x1.26a6f21314a82p-2 -0x1.3261740460d88p-2 0x1.d1cd61476e3f2p-1
-0x1.227d05e2ec24dp-2 0x1.d32da789ca860p-1 -0x1.2df1a26cbd76ap-2
-0x1.6ab3048d5b1ccp-1 0x1.1e54ea5bdf033p-5 -0x1.68eef7d515853p-1
0x1.439b2802f8d77p-5 -0x1.6b0f51356e9fcp-1 -0x1.687297ad4d2ddp-1
-0x1.68726580d63e1p-1 -0x1.6b2dc5a6762b2p-1 0x1.1fa75de2d355ep-5
0x1.0000000000000p-54 0x1.0000000000000p-54 0x1.0000000000000p-54
""".strip().splitlines()
    ]
)


def count(points: Points, k: int, radius: float) -> int:
    return int((outlier_degrees(points, radius=radius) < k).sum()) if len(points) else 0


def copies(k: int) -> Points:
    return np.repeat(THIRTEEN, k, axis=0)


def test_thirteen_points_are_within_reach_of_one_place_but_not_of_each_other() -> None:
    assert len(THIRTEEN) == 13
    assert outlier_degrees(THIRTEEN, radius=1).tolist() == [0] * 13
    assert outlier_degrees(np.vstack([THIRTEEN, np.zeros(3)]), radius=1).tolist() == [1] * 13 + [13]


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("cover", ["degeneracy", "link-core"])
def test_no_bound_is_below_what_thirteen_points_do(k: int, relation: str, cover: str) -> None:
    one = np.vstack([copies(k), np.full((1, 3), 9.0)]) if relation == "replace-one" else copies(k)
    other = np.vstack([copies(k), np.zeros((1, 3))])
    change = abs(count(one, k, 1) - count(other, k, 1))
    assert change == 13 * k + (relation == "replace-one")
    assert global_bound(n=len(one) if relation == "replace-one" else None, d=3, k=k, relation=relation) >= change
    bounds = [measure(t, k=k, radius=1.0, beta=Fraction(14, 100), cover=cover, relation=relation)[1] for t in (one, other)]
    assert min(bounds) >= change
    assert abs(mpmath.log(mpmath.mpf(float(bounds[0])) / float(bounds[1]))) <= 0.14 + 1e-9


@pytest.mark.parametrize("k", [1, 5])
def test_thirteen_points_move_a_score_by_at_most_one_and_regions_by_at_most_their_bound(k: int) -> None:
    # A crowd keeps the scores away from the end of the ladder.
    crowd = np.full((300, 3), 50.0)
    one, other = (np.vstack([copies(k), crowd, place]) for place in (np.full((1, 3), 9.0), np.zeros((1, 3))))
    scores = [dampened_score(points, k=k, radius=1.0, cover="degeneracy") for points in (one, other)]
    assert abs(scores[0] - scores[1]) <= 1
    (out, first), (after, second) = (
        measure_regions(points, k=k, radius=1.0, beta=Fraction(1, 2), cover="degeneracy") for points in (one, other)
    )
    moved = int((out[:-1] != after[:-1]).sum()) + int(out[-1]) + int(after[-1])
    assert moved >= 13 * k
    assert min(first, second, region_bound(n=len(one), d=3, k=k)) >= moved


def test_one_in_the_middle_counts_from_three_dimensions_on() -> None:
    assert [kissing_bound(d) for d in (1, 2, 3, 4, 8, 24)] == [2, 6, 13, 25, 241, 196561]
    assert global_bound(n=1000, d=3, k=5) == 66
    assert global_bound(n=None, d=3, k=5, relation="add-remove") == 65


def test_in_the_plane_no_seventh_point_fits_into_a_rounded_hexagon() -> None:
    """Points a few roundings from a hexagon and its middle; the proof says that six is the most."""
    rng = np.random.default_rng(4)
    steps = [0.0, 2.0**-54, -(2.0**-54), 2.0**-53, -(2.0**-53), 2.0**-52, -(2.0**-52)]
    for _ in range(300):
        x = rng.normal(size=2) * rng.choice([0.0, 1e-16, 1.0])
        turn = rng.uniform(0, np.pi) * rng.choice([0, 1])
        angles = turn + np.arange(6) * np.pi / 3
        ring = x + np.column_stack([np.cos(angles), np.sin(angles)]) + rng.choice(steps, size=(6, 2))
        middle = x + rng.choice(steps, size=(5, 2))
        cloud = np.vstack([ring, middle])
        near_x = (cloud[:, 0] - x[0]) ** 2 + (cloud[:, 1] - x[1]) ** 2 <= 1
        squared = (cloud[:, None, 0] - cloud[None, :, 0]) ** 2 + (cloud[:, None, 1] - cloud[None, :, 1]) ** 2
        if near_x[:6].all():
            for m in np.flatnonzero(near_x[6:]) + 6:
                assert (squared[m, :6] <= 1).any()
