"""Attacks on our own promise, written from the promise alone."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sabun.errors import SabunError
from sabun.outliers import OutlierCount, RegionCount, smooth_bound
from sabun.outliers.ladder import Bands
from sabun.outliers.laws import PowerTail
from sabun.outliers.sensitivity import measure
from sabun.privacy.noise import seeded_coin


def lower_epsilon(hits: int, other: int, n: int) -> float:
    """A bound on ln(p / p') that is wrong once in a thousand (Clopper-Pearson, both sides)."""
    low = stats.beta.ppf(0.0005, hits, n - hits + 1) if hits else 0.0
    high = stats.beta.ppf(0.9995, other + 1, n - other)
    return math.log(low / high) if low > 0 else -math.inf


def draws(points: np.ndarray, epsilon: float, n: int, seed: int, *, cheat: float = 1.0) -> Counter[int]:
    law = PowerTail(epsilon=Fraction(epsilon).limit_denominator(), beta=Fraction(epsilon).limit_denominator() / 5)
    exact, bound = measure(points, k=1, radius=1.0, beta=law.beta, cover="degeneracy", relation="replace-one")
    coin = seeded_coin(seed)
    scaled = bound * Fraction(cheat)
    return Counter(min(max(exact + law.draw(scaled, coin=coin), 0), len(points)) for _ in range(n))


NEIGHBOURS = (np.array([[0.0], [2.0], [4.0]]), np.array([[0.0], [2.0], [1.0]]))


def audited(epsilon: float, n: int, *, cheat: float = 1.0) -> float:
    one, other = (draws(points, epsilon, n, seed, cheat=cheat) for seed, points in enumerate(NEIGHBOURS))
    events = [{y} for y in range(4)] + [{0, 1}, {2, 3}]
    return max(
        lower_epsilon(sum(a[y] for y in event), sum(b[y] for y in event), n)
        for event in events
        for a, b in ((one, other), (other, one))
    )


def test_the_black_box_audit_finds_no_more_than_epsilon_and_catches_a_cheat() -> None:
    assert audited(1.0, 2500) <= 1.0
    assert audited(1.0, 2500, cheat=0.4) > 1.0


def cross_polytope(d: int, k: int) -> np.ndarray:
    """k copies on every half-axis at distance r from the origin, pairwise farther apart."""
    corners = np.vstack([np.eye(d), -np.eye(d)])
    return np.repeat(corners, k, axis=0)


def test_the_papers_own_regime_breaks_its_bound_and_not_ours() -> None:
    """d = 34, k = 5: adding one record at the origin turns hundreds of outliers at once."""
    table = np.vstack([cross_polytope(34, 5), np.full((9, 34), 7.0)])
    moved = table.copy()
    moved[-1] = 0.0
    exact = [
        int((measure(t, k=5, radius=1.0, beta=Fraction(1, 10), cover="degeneracy", relation="replace-one"))[0])
        for t in (table, moved)
    ]
    change = abs(exact[0] - exact[1])
    assert change >= 340
    beta = 0.01613
    printed = [smooth_bound(t, k=5, radius=1, beta=beta, cover="paper") for t in (table, moved)]
    sound = [smooth_bound(t, k=5, radius=1, beta=beta) for t in (table, moved)]
    assert min(printed) < change <= min(sound)
    assert abs(math.log(sound[0] / sound[1])) <= beta + 1e-12


def test_random_neighbours_in_many_dimensions_never_break_smoothness() -> None:
    rng = np.random.default_rng(0)
    for d in (1, 2, 3, 8, 20):
        base = np.round(rng.normal(size=(150, d)) * 4) / 4
        for beta in (Fraction(1, 50), Fraction(1, 3)):
            radius = 0.5 * math.sqrt(d)
            q, bound = measure(base, k=4, radius=radius, beta=beta, cover="degeneracy", relation="replace-one")
            for _ in range(12):
                other = base.copy()
                # The nastiest places are those of other records, the origin, and far away.
                other[rng.integers(150)] = [base[rng.integers(150)], np.zeros(d), np.full(d, 99.0)][rng.integers(3)]
                q2, bound2 = measure(other, k=4, radius=radius, beta=beta, cover="degeneracy", relation="replace-one")
                assert abs(q - q2) <= min(bound, bound2)
                assert abs(math.log(bound / bound2)) <= float(beta) + 1e-12


def test_a_record_at_the_radius_to_the_last_bit_is_one_case_not_two() -> None:
    for radius in (0.1, 0.3, 1 / 3, 1e-150, 1e150):
        edge = np.array([[0.0], [radius], [np.nextafter(radius, np.inf)]])
        assert Bands(edge, k=1, radius=radius, rungs=2).degrees.tolist() == [1, 2, 1]


EXTREMES = [
    np.zeros((40, 3)),
    np.full((40, 3), -0.0),
    np.full((40, 3), 1e150),
    np.repeat([[1e150], [-1e150]], 20, axis=0),
    np.arange(40.0)[:, None] * 1e-150,
    np.random.default_rng(0).normal(size=(40, 60)),
]


@pytest.mark.parametrize("points", EXTREMES)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_extreme_tables_never_raise_after_the_charge(points: np.ndarray, relation: str) -> None:
    made = OutlierCount(k=3, radius=1, epsilon=0.5, relation=relation).fit(points)
    assert set(made.release_.value) == {"count", "interval", "scale_estimate"}


@pytest.mark.parametrize("mechanism", ["power", "laplace", "gaussian", "global-laplace", "global-gaussian"])
def test_very_many_columns_do_not_overflow_after_the_charge(mechanism: str) -> None:
    delta = 0 if mechanism in ("power", "global-laplace") else 1e-6
    points = np.random.default_rng(0).normal(size=(12, 1100))
    for relation in ("replace-one", "add-remove"):
        made = OutlierCount(k=3, radius=1, epsilon=3, delta=delta, mechanism=mechanism, relation=relation).fit(points)
        assert made.count_ >= 0
        made.plan(n_records=12, dimensions=1100)


def test_neighbours_give_releases_of_one_shape() -> None:
    base = np.random.default_rng(1).normal(size=(80, 2))
    shapes = set()
    for change in (base[0], np.zeros(2), np.full(2, 1e150)):
        other = base.copy()
        other[0] = change
        for made in (
            OutlierCount(k=3, radius=1, epsilon=1).fit(other),
            RegionCount(regions={"a": {"x0": (0, 1)}}, radius=1, epsilon=1).fit(other),
        ):
            shapes.add(
                (made.release_.provenance.kind, *sorted(made.release_.value), str(dict(made.release_.provenance.parameters)))
            )
    assert len(shapes) == 2


def test_no_message_of_the_room_formats_a_private_number() -> None:
    """Messages after the table is read speak of shapes and names alone."""
    bad = [np.array([[1.0], [123456.789], [np.nan]]), np.array([[987654321.5, np.inf]])]
    for table in bad:
        with pytest.raises(SabunError) as caught:
            OutlierCount(radius=1, epsilon=1).fit(table)
        assert "123456" not in str(caught.value)
        assert "987654" not in str(caught.value)


def test_add_remove_publishes_nothing_that_depends_on_the_size() -> None:
    releases = [OutlierCount(k=3, radius=1, epsilon=1, relation="add-remove").fit(np.zeros((n, 2))).release_ for n in (2, 50)]
    facts = [dict(release.provenance.parameters) for release in releases]
    assert facts[0] == facts[1]


def test_the_law_never_sees_floats() -> None:
    """A float in the calibration would be a rounding nobody proved."""
    for name in ("theta", "exponent", "beta"):
        assert isinstance(getattr(PowerTail(epsilon=Fraction(1, 3), beta=Fraction(1, 17)), name), Fraction)
    source = inspect.getsource(PowerTail.draw)
    assert "float" not in source
