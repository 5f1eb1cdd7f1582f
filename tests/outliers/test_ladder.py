"""Every table of some tiny domains: the bound is never too small, and smooth over every pair of neighbours."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from outliers import brute
from sabun.outliers import (
    OutlierCount,
    RegionCount,
    SubspaceChoice,
    global_bound,
    local_bound,
    peeling,
    products,
    smooth_bound,
    tree,
)
from sabun.outliers.kissing import kissing_bound, region_bound
from sabun.outliers.ladder import Bands, Cover, Discounts, Known, largest_product
from sabun.outliers.sensitivity import measure, measure_regions, rungs_of

REPLACE = [
    (brute.line(5), 3, 1),
    (brute.line(6), 4, 1),
    (brute.line(5), 4, 2),
    (brute.line(5), 5, 2),
    (brute.line(4), 6, 3),
    (brute.square(3), 4, 1),
    (brute.square(2), 5, 2),
]
BETAS = (Fraction(1, 4), Fraction(1))


def points(database: brute.Database, d: int) -> np.ndarray:
    return np.array(database, dtype=float).reshape(len(database), d)


@pytest.mark.parametrize(("domain", "n", "k"), REPLACE)
@pytest.mark.parametrize("cover", ["degeneracy", "link-core", "exact"])
def test_replace_one_bound_is_sound_and_smooth_everywhere(
    domain: Sequence[tuple[float, ...]], n: int, k: int, cover: str
) -> None:
    d = len(domain[0])
    for beta in BETAS:
        found = {
            db: measure(points(db, d), k=k, radius=1.0, beta=beta, cover=cover, relation="replace-one")
            for db in brute.databases(domain, n)
        }
        for db, (q, bound) in found.items():
            assert q == brute.count(db, k, 1.0)
            for other in brute.replaced(db, domain):
                q_other, bound_other = found[other]
                assert abs(q - q_other) <= bound
                assert math.log(bound / bound_other) <= float(beta) + 1e-12


@pytest.mark.parametrize(("domain", "most", "k"), [(brute.line(5), 4, 1), (brute.line(4), 5, 2), (brute.square(2), 4, 1)])
@pytest.mark.parametrize("cover", ["degeneracy", "link-core"])
def test_add_remove_bound_is_sound_and_smooth_everywhere(
    domain: Sequence[tuple[float, ...]], most: int, k: int, cover: str
) -> None:
    d = len(domain[0])
    for beta in BETAS:
        found = {
            db: measure(points(db, d), k=k, radius=1.0, beta=beta, cover=cover, relation="add-remove")
            for n in range(most + 1)
            for db in brute.databases(domain, n)
        }
        for db, (q, bound) in found.items():
            for other in brute.removed(db):
                q_other, bound_other = found[other]
                assert abs(q - q_other) <= min(bound, bound_other)
                assert abs(math.log(bound / bound_other)) <= float(beta) + 1e-12


@pytest.mark.parametrize(
    ("domain", "n", "k"), [(brute.line(5), 4, 1), (brute.line(5), 4, 2), (brute.square(2), 4, 1), (brute.line(3), 2, 2)]
)
def test_region_bound_is_sound_and_smooth_everywhere(domain: Sequence[tuple[float, ...]], n: int, k: int) -> None:
    d, beta = len(domain[0]), Fraction(1, 2)
    edge = max(place[0] for place in domain) / 2
    found = {}
    for db in brute.databases(domain, n):
        outlier, bound = measure_regions(points(db, d), k=k, radius=1.0, beta=beta, cover="degeneracy")
        left = [place[0] < edge for place in db]
        assert outlier.tolist() == brute.is_outlier(db, k, 1.0)
        found[db] = (sum(outlier & left), sum(outlier & ~np.array(left)), bound)
    for db, (left, right, bound) in found.items():
        for other in brute.replaced(db, domain):
            assert abs(left - found[other][0]) + abs(right - found[other][1]) <= bound
            assert math.log(bound / found[other][2]) <= float(beta) + 1e-12


def violations(bounds: dict[brute.Database, tuple[int, float]], domain: Sequence[tuple[float, ...]], beta: float) -> int:
    """Pairs of neighbours that refute a bound."""
    return sum(
        abs(q - bounds[other][0]) > bound + 1e-9 or math.log(bound / bounds[other][1]) > beta + 1e-9
        for db, (q, bound) in bounds.items()
        for other in brute.replaced(db, domain)
    )


def test_the_printed_bound_fails_the_same_test() -> None:
    domain, k, beta = brute.line(6), 1, 1.0
    printed, sound = (
        {
            db: (brute.count(db, k, 1.0), smooth_bound(points(db, 1), k=k, radius=1, beta=beta, cover=cover))
            for db in brute.databases(domain, 3)
        }
        for cover in ("paper", "degeneracy")
    )
    assert violations(printed, domain, beta) > 0
    assert violations(sound, domain, beta) == 0


def test_a_bound_without_the_added_record_is_caught() -> None:
    """A test of the test: the degrees' own band, without R, is too small."""
    domain, k, beta = brute.line(6), 1, 1.0
    broken = {}
    for db in brute.databases(domain, 3):
        bands = Bands(points(db, 1), k=k, radius=1.0, rungs=6)
        bound = max(math.exp(-beta * t) * (t + 1 + int(bands.most[t])) for t in range(6))
        broken[db] = (brute.count(db, k, 1.0), bound)
    assert violations(broken, domain, beta) > 0


def test_counterexamples_of_the_paper() -> None:
    minimal = [[0.0], [2.0], [4.0]]
    assert smooth_bound(minimal, k=1, radius=1, beta=0.5, cover="paper") == pytest.approx(2.426, abs=1e-3)
    assert smooth_bound(minimal, k=1, radius=1, beta=0.5) == 3
    tiny = [[0.0, 0], [1, 1], [2, 0], [2, 2], [3, 1]]
    assert smooth_bound(tiny, k=1, radius=1, beta=1, cover="paper") == pytest.approx(2.207, abs=1e-3)
    assert smooth_bound(tiny, k=1, radius=1, beta=1) == 5


def test_the_papers_equality_is_too_small_on_its_own_terms() -> None:
    """(16) claims LS = |OC - IC| + 1, which is 2 here; one move changes the count by 3."""
    table = [(0.0,), (0.0,), (1.0,), (2.0,)]
    moved = max(
        abs(brute.count(tuple(table), 2, 1) - brute.count(db, 2, 1)) for db in brute.replaced(tuple(table), brute.line(5))
    )
    assert moved == 3 == local_bound([list(row) for row in table], k=2, radius=1)


def test_covers_are_ordered() -> None:
    rng = np.random.default_rng(0)
    for _ in range(25):
        cloud = rng.normal(size=(12, 3)) * 1.2
        exact, link, rough = (Cover(kind, cloud, 1.0).on(12) for kind in ("exact", "link-core", "degeneracy"))
        assert exact <= link <= rough


@pytest.mark.parametrize("kind", ["degeneracy", "link-core", "exact"])
def test_a_cover_grows_by_at_most_one_for_each_record(kind: str) -> None:
    rng = np.random.default_rng(1)
    cloud = np.round(rng.normal(size=(14, 2)) * 2) / 2
    values = [Cover(kind, cloud, 1.0).on(n) for n in range(15)]
    assert all(0 <= b - a <= 1 for a, b in itertools.pairwise(values))


def test_discounts_fall_no_faster_than_beta_exactly() -> None:
    import mpmath

    for beta in (Fraction(1, 7), Fraction(3, 100), Fraction(5)):
        discounts = Discounts.of(beta=beta, cap=10_000, slope=1, base=1)
        with mpmath.workdps(120):
            factor = mpmath.exp(mpmath.mpf(beta.numerator) / beta.denominator)
            pairs = itertools.pairwise(discounts.numerators)
            assert all(mpmath.mpf(a) <= mpmath.mpf(b) * factor for a, b in pairs)
            assert mpmath.mpf(discounts.numerators[1]) / discounts.numerators[0] * factor < 1 + mpmath.mpf(10) ** -35


def test_stopping_early_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    cloud, k, beta = rng.normal(size=(120, 2)), 3, Fraction(1, 5)
    for relation in ("replace-one", "add-remove"):
        cap = global_bound(n=120 if relation == "replace-one" else None, d=2, k=k, relation=relation)
        bands = Bands(cloud, k=k, radius=0.5, rungs=121)
        cover = Cover("degeneracy", cloud[bands.gained], 0.5)
        steps = [rungs_of(bands, cover, cap=cap, relation=relation, rung=t) for t in range(121)]
        assert steps == sorted(steps)
        plain = max(u * math.exp(-float(beta) * t) for t, u in enumerate(steps))
        assert float(measure(cloud, k=k, radius=0.5, beta=beta, cover="degeneracy", relation=relation)[1]) == pytest.approx(
            plain
        )


def test_the_search_for_the_largest_product_is_exact() -> None:
    rng = np.random.default_rng(3)
    for _ in range(60):
        sizes = np.sort(rng.integers(0, 40, size=12)).tolist()
        weights = sorted(rng.integers(1, 1000, size=12).tolist(), reverse=True)
        cloud = rng.normal(size=(40, 2))
        known, cover = Known(Cover("degeneracy", cloud, 0.4), sizes), Cover("degeneracy", cloud, 0.4)
        best = largest_product(weights, lambda t, k=known: t + k.low[t], lambda t, k=known: t + k.high[t], known.learn)
        assert best == max(w * (t + cover.on(n)) for t, (w, n) in enumerate(zip(weights, sizes, strict=True)))


@pytest.mark.parametrize(("d", "offset"), [(1, 0.0), (3, 1e8), (17, 0.0), (34, -1e6)])
def test_bits_and_lists_are_the_same_graph(d: int, offset: float) -> None:
    rng = np.random.default_rng(d)
    cloud = np.round(rng.normal(size=(200, d)) * 2) / 2 + offset
    for radius in (0.5, 1.0, 0.5 * math.sqrt(d), 1e-9):
        graphs = [tree.neighbours_within(cloud, radius * radius, 200, listed=listed) for listed in (None, 20, 0)]
        bits = products.bit_graph(cloud, radius * radius)
        unpacked = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little")[:, :200].astype(bool)
        assert (unpacked == brute.within(cloud, radius)).all()
        for size in (0, 1, 2, 63, 64, 65, 130, 200):
            found = [peeling.degeneracy_plus_one(graph, size) for graph in graphs]
            assert found == [peeling.dense_degeneracy_plus_one(bits, size)] * 3


def test_a_graph_of_bits_works_where_single_precision_does_not() -> None:
    cloud = np.array([[0.0], [1.0], [1e12]])
    assert products.bit_graph(cloud, 1.0).ravel().tolist() == [2, 1, 0]


def test_the_global_bound_is_reached_on_the_line_and_never_broken() -> None:
    for k in (1, 2):
        domain, n = brute.line(6), 2 * k + 1
        worst = max(
            abs(brute.count(db, k, 1.0) - brute.count(other, k, 1.0))
            for db in brute.databases(domain, n)
            for other in brute.replaced(db, domain)
        )
        assert worst == 2 * k + 1 == global_bound(n=n, d=1, k=k)


def test_kissing_bounds_are_not_below_known_arrangements() -> None:
    """Closed balls: in the plane six points fit, however the distances are rounded."""
    known = [
        2,
        6,
        12,
        24,
        40,
        72,
        126,
        240,
        306,
        510,
        593,
        840,
        1154,
        1932,
        2564,
        4320,
        5730,
        7654,
        11692,
        19448,
        29768,
        49896,
        93150,
    ]
    assert all(kissing_bound(d) >= least for d, least in enumerate([*known, 196560], start=1))
    assert kissing_bound(2) == 6
    assert kissing_bound(25) >= 197040
    assert [kissing_bound(d) for d in range(1, 40)] == sorted(kissing_bound(d) for d in range(1, 40))


def test_region_caps() -> None:
    assert region_bound(n=5, d=2, k=5) == 2
    assert region_bound(n=6, d=2, k=5) == 7
    assert region_bound(n=10**6, d=2, k=5) == 62


def test_large_dimensions_have_a_finite_bound() -> None:
    assert global_bound(n=1000, d=3000, k=5) == 1000
    assert global_bound(n=None, d=30, k=5, relation="add-remove") == 5 * (29 << 30)


EXTREME = [
    (np.array([[1e150], [-1e150], [0.0], [1e-150], [2e-150]]), 1e-150),
    (np.array([[1e150, 1e150], [-1e150, 0], [0.0, 1], [1e-150, 5e-324]]), 1e150),
    (np.array([[1e150, -1e150], [1e150, 1e150], [0.0, 0.0], [1e-150, 0.0]]), 1e-150),
    (np.array([[3.0, 4.0], [3.0, 4.0], [0.0, 1e-320]]), 1.0),
]


@pytest.mark.parametrize(("points", "radius"), EXTREME)
@pytest.mark.parametrize("cover", ["degeneracy", "link-core", "exact"])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_extreme_scales_neither_raise_nor_warn(points: np.ndarray, radius: float, cover: str, relation: str) -> None:
    halves = {"left": {"x0": (None, 0)}, "right": {"x0": (0, None)}}
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        OutlierCount(k=1, radius=radius, epsilon=1, cover=cover, relation=relation).fit(points)
        RegionCount(regions=halves, k=1, radius=radius, epsilon=1, cover=cover).fit(points)
        local = local_bound(points, k=1, radius=radius, cover=cover, relation=relation)
        wide = np.hstack([points, points])
        SubspaceChoice(subspaces={"a": [0], "b": [1]}, k=1, radius=radius, epsilon=1, cover=cover).fit(wide)
    assert 1 <= local <= len(points)
