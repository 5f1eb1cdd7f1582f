"""Breaks that an adversarial review found, each kept as a test."""

from __future__ import annotations

import decimal
import inspect
import itertools
import sys
import warnings
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.errors import DataError, ParameterError
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice, global_bound, local_bound, outlier_degrees, smooth_bound
from sabun.outliers.enclosing import _certified, _fits_exactly, densest_ball, fits
from sabun.outliers.error_bar import ErrorBar
from sabun.outliers.intervals import Arithmetic, Interval, Uniform
from sabun.outliers.kissing import kissing_bound, region_bound
from sabun.outliers.laws import Gaussian, Laplace, Law, PowerTail
from sabun.outliers.sensitivity import measure, measure_regions
from sabun.outliers.subspace import dampened_score
from sabun.outliers.vector import PowerVector
from sabun.privacy.certified import log_down
from sabun.privacy.noise import seeded_coin

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


class Fixed(Uniform):
    """A uniform number with given first digits."""

    def __init__(self, prefix: int) -> None:
        super().__init__(seeded_coin(0))
        self._prefix = prefix


def as_mpf(value: Decimal) -> mpmath.mpf:
    exact = Fraction(value)
    return mpmath.mpf(exact.numerator) / exact.denominator


@pytest.mark.parametrize("digits", [2, 28, 200])
@pytest.mark.parametrize("prefix", [0x123456789ABCDEF0123456789ABCDEF0, 1, (1 << 128) - 2, 1 << 127])
def test_logarithms_enclose_the_truth_at_sixty_digits_under_every_decimal_context(digits: int, prefix: int) -> None:
    with decimal.localcontext(prec=digits), mpmath.workdps(120):
        reals = Arithmetic(60)
        x = reals.uniform(Fixed(prefix))
        found = reals.minus_log(x)
        assert as_mpf(found.low) <= -mpmath.log(as_mpf(x.high))
        assert as_mpf(found.high) >= -mpmath.log(as_mpf(x.low))
        point = reals.minus_log(Interval(x.low, x.low))
        assert as_mpf(point.high) - as_mpf(point.low) <= mpmath.mpf(10) ** -57 * (1 + as_mpf(point.high))


@pytest.mark.parametrize(
    "law",
    [
        PowerTail(epsilon=Fraction(7, 10), beta=Fraction(14, 100)),
        Laplace(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
        Gaussian(epsilon=Fraction(1), delta=Fraction(1, 10**6)),
    ],
)
def test_draws_do_not_depend_on_the_decimal_context_of_the_thread(law: Law) -> None:
    def draws() -> list[int]:
        coin = seeded_coin(5)
        return [law.draw(Fraction(39_000, 7), coin=coin) for _ in range(60)]

    usual = draws()
    assert len(set(usual)) > 50
    for precision, rounding in itertools.product((1, 3, 28), (decimal.ROUND_UP, decimal.ROUND_DOWN)):
        with decimal.localcontext(prec=precision, rounding=rounding):
            assert draws() == usual


def test_whole_releases_do_not_depend_on_the_decimal_context_either() -> None:
    points = np.random.default_rng(1).normal(size=(80, 2))
    halves = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}

    def released() -> list[object]:
        made = OutlierCount(k=3, radius=0.5, epsilon=1, random_state=3).fit(points)
        regions = RegionCount(regions=halves, k=3, radius=0.5, epsilon=1, random_state=3).fit(points)
        vector = PowerVector.of(epsilon=Fraction(1), outputs=3, beta=None).draw(Fraction(7, 3), coin=seeded_coin(2))
        return [made.count_, made.interval_, regions.counts_, regions.intervals_, vector]

    usual = released()
    with decimal.localcontext(prec=3):
        assert released() == usual


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
            change = abs(count(before, 1, 0.3) - count(after, 1, 0.3))
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
        change = abs(count(ends, 1, radius) - count(moved, 1, radius))
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


EXTREME = [
    (np.array([[1e150], [-1e150], [0.0], [1e-150], [2e-150]]), 1e-150),
    (np.array([[1e150, 1e150], [-1e150, 0], [0.0, 1], [1e-150, 5e-324]]), 1e150),
    (np.array([[1e150, -1e150], [1e150, 1e150], [0.0, 0.0], [1e-150, 0.0]]), 1e-150),
    (np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 1e-320]]), 1.0),
]


@pytest.mark.parametrize(("points", "radius"), EXTREME)
@pytest.mark.parametrize("cover", ["degeneracy", "link-core", "exact"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_extreme_scales_neither_raise_nor_warn(points: Points, radius: float, cover: str, relation: str) -> None:
    halves = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        OutlierCount(k=1, radius=radius, epsilon=1, cover=cover, relation=relation).fit(points)
        RegionCount(regions=halves, k=1, radius=radius, epsilon=1, cover=cover).fit(points)
        local = local_bound(points, k=1, radius=radius, cover=cover, relation=relation)
        wide = np.hstack([points, points])
        SubspaceChoice(subspaces={"a": [0], "b": [1]}, k=1, radius=radius, epsilon=1, cover=cover).fit(wide)
    assert 1 <= local <= len(points)


@pytest.mark.parametrize("beta", ["5e-40", "9e-21"])
def test_an_error_bar_needs_a_grid_that_a_logarithm_can_tell_apart(beta: str) -> None:
    rule = (
        r"beta must be at least 1e-20 with an error bar; got .*\. Ask for a larger beta or epsilon, or turn the error bar off"
    )
    with pytest.raises(ParameterError, match=rule):
        OutlierCount(k=3, radius=1, epsilon=1, beta=Fraction(beta))
    with pytest.raises(ParameterError, match=rule):
        OutlierCount(k=3, radius=1, epsilon=Fraction(beta))
    with pytest.raises(ParameterError, match=rule):
        ErrorBar(epsilon=Fraction(1), beta=Fraction(beta))
    OutlierCount(k=3, radius=1, epsilon=1, beta=Fraction(beta), error_bar=0)


def test_at_the_smallest_beta_the_index_still_moves_as_little_as_the_noise_covers() -> None:
    beta = Fraction(1, 10**20)
    bar = ErrorBar(epsilon=Fraction(3, 10), beta=beta)
    for size in (8, 12):
        rng = np.random.default_rng(0)
        for _ in range(10):
            one = rng.integers(0, 8, size=(size, 1)).astype(float)
            other = one.copy()
            other[rng.integers(size)] = rng.integers(-3, 30)
            bounds = [
                measure(t, k=3, radius=1.0, beta=beta, cover="degeneracy", relation="replace-one")[1] for t in (one, other)
            ]
            index = [log_down(bound) // bar.step for bound in bounds]
            assert abs(index[0] - index[1]) <= 4098


@pytest.mark.parametrize("rows", [[], [[1.0]], [[1.0], [2.0]], ()])
def test_under_add_remove_a_plain_list_is_refused_whatever_it_holds(rows: object) -> None:
    with pytest.raises(
        DataError, match=r"must be an array or a frame, which has its columns even without a row; got a (list|tuple)"
    ):
        OutlierCount(k=2, radius=1, epsilon=1, relation="add-remove").fit(rows)


def test_under_add_remove_an_empty_array_is_a_table_like_any_other() -> None:
    made = [OutlierCount(k=2, radius=1, epsilon=1, relation="add-remove").fit(np.zeros((n, 2))) for n in (0, 1)]
    assert made[0].release_.provenance.parameters == made[1].release_.provenance.parameters


@pytest.mark.parametrize("rows", [[[2**70], [1]], [[2**63], [-1]], [[2**62], [1]], np.array([[1], [2.5]], dtype=object)])
def test_whole_numbers_may_be_longer_than_a_machine_word(rows: object) -> None:
    assert outlier_degrees(rows, radius=1).tolist() == [0, 0]
    OutlierCount(k=1, radius=1, epsilon=1).fit(rows)


@pytest.mark.parametrize("cell", [10**400, 10**200, float("inf")])
def test_numbers_beyond_the_domain_are_refused_alike(cell: object) -> None:
    with pytest.raises(DataError, match="finite numbers of at most 1e\\+150 in size; at least one is not"):
        outlier_degrees([[cell], [1]], radius=1)


@pytest.mark.parametrize("cell", ["a", "somebody's long answer", None, 1j, b"x"])
def test_a_refusal_does_not_tell_how_long_a_text_is(cell: object) -> None:
    with pytest.raises(DataError, match=r"a table must hold numbers; got cells of type [a-z]+(128)?_?\. Declare a schema"):
        outlier_degrees([[cell], [cell]], radius=1)
