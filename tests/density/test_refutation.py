"""Attempts to break the promise of the default method, written against the claim and not against the code."""

from __future__ import annotations

import copy
import functools
import pickle
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sabun import Column, Schema
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.mechanism import EuclideanNoise
from sabun.privacy.noise import seeded_coin

PUBLIC = np.random.default_rng(0).normal(1, 1, (60, 2))
ANY = st.floats(allow_nan=True, allow_infinity=True)
ROW = st.tuples(ANY, ANY) | st.sampled_from([(1.0, 1.0), (1e6, 1.0), (np.nan, 0.0), (-0.0, 0.0), (1e308, -1e308)])


@functools.cache
def planned(relation: str) -> DensityRatio:
    return DensityRatio(epsilon=1, relation=relation).set_public(PUBLIC)


def prepared(relation: str = "replace-one") -> DensityRatio:
    """A fresh start with the same plan."""
    ratio = copy.copy(planned(relation))
    ratio._seen = ratio._plan.start()
    return ratio


def before_noise(ratio: DensityRatio) -> tuple[list[int], EuclideanNoise]:
    """The exact vector the noise is added to, with the noise that protects it."""
    plan, seen = ratio._plan, ratio._seen
    grid = plan._lattice(seen.count)
    counted = [seen.count << grid.bits] if plan._counts else []
    return grid.embed(seen.sums) + counted, plan._noise(grid)


def length(one: list[int], other: list[int]) -> Fraction:
    return Fraction(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)))


@settings(max_examples=80, deadline=None)
@given(rows=st.lists(ROW, min_size=1, max_size=4), other=ROW)
def test_replacing_any_row_by_any_other_stays_within_the_noise(
    rows: list[tuple[float, float]], other: tuple[float, float]
) -> None:
    base = prepared().partial_fit(private=np.array(rows))
    neighbour = prepared().partial_fit(private=np.array([other, *rows[1:]]))
    (one, noise), (two, same) = before_noise(base), before_noise(neighbour)
    assert noise == same
    assert length(one, two) <= noise.l2**2


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(ROW, max_size=4), other=ROW)
def test_adding_any_row_stays_within_the_noise_when_the_count_is_private(
    rows: list[tuple[float, float]], other: tuple[float, float]
) -> None:
    base = prepared(relation="add-remove").partial_fit(private=np.array(rows).reshape(-1, 2))
    more = prepared(relation="add-remove").partial_fit(private=np.array([*rows, other]))
    (one, noise), (two, same) = before_noise(base), before_noise(more)
    assert noise == same, "dimension and scale must not depend on the number of rows"
    assert length(one, two) <= noise.l2**2
    replaced = prepared(relation="add-remove").partial_fit(private=np.array([*rows, (0.0, 0.0)]))
    assert length(before_noise(replaced)[0], two) <= noise.l2**2, "the same noise covers a replacement"


def test_a_tiny_bandwidth_does_not_break_the_bound() -> None:
    tight = 5000 + 1e-7 * np.random.default_rng(1).normal(size=(40, 3))
    ratio = DensityRatio(epsilon=1, bandwidth=1e-7, standardize=False)
    vectors = []
    for row in (*tight[:6], tight[0] + 1e-8):
        part = DensityRatio(epsilon=1, bandwidth=1e-7, standardize=False).set_public(tight).partial_fit(private=row[None])
        vectors.append(before_noise(part))
    bound = vectors[0][1].l2
    assert max(length(a, b) for a, _ in vectors for b, _ in vectors) <= bound**2
    assert ratio.bandwidth == 1e-7


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_extreme_tables_give_the_same_shapes_and_facts(relation: str) -> None:
    seen = set()
    for private in (np.ones((50, 2)), np.full((50, 2), np.nan), np.full((50, 2), 1e300), np.zeros((50, 2)), PUBLIC[:50]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            ratio = DensityRatio(epsilon=1, relation=relation).fit(private=private, public=PUBLIC)
        shapes = tuple((name, np.shape(value)) for name, value in ratio.release_.value.items())
        seen.add((shapes, str(ratio.release_.provenance.parameters), str(ratio.guarantee_)))
        assert np.isfinite(ratio.weights_).all()
    assert len(seen) == 1


def test_published_parameters_do_not_tell_the_number_of_rows_when_it_is_private() -> None:
    facts = set()
    for size in (0, 1, 7, 1000):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            ratio = DensityRatio(epsilon=1, relation="add-remove", n_public=100).fit(private=np.ones((size, 2)), public=PUBLIC)
        facts.add((str(ratio.release_.provenance.parameters), len(ratio.release_["embedding"])))
    assert len(facts) == 1


def test_no_private_cell_raises_or_warns(tmp_path: Path) -> None:
    """Warnings are errors in this suite; a coverage warning speaks of the release, not of a cell."""
    schema = Schema(columns=[Column.number("age", lower=0, upper=100), Column.category("sex", ["F", "M"])])
    public = pd.DataFrame({"age": np.arange(40.0), "sex": ["F", "M"] * 20})
    cells = ["30", "", "abc", "1e999", "-inf", "nan", "0x10", "١٢", "9" * 400]
    file = tmp_path / "private.csv"
    file.write_text("age,sex\n" + "\n".join(f'"{cell}",{sex}' for cell in cells for sex in ("F", "?", "")), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        assert DensityRatio(epsilon=1, schema=schema).fit(private=file, public=public).weights_.shape == (40,)
        numbers = pd.DataFrame({"age": pd.Series([None, "x", 3, 1e400, 10**400, object()], dtype=object)})
        assert DensityRatio(epsilon=1).fit(private=numbers, public=public[["age"]]).weights_.shape == (40,)


def test_the_order_of_rows_is_not_released() -> None:
    private = np.random.default_rng(3).normal(size=(500, 2))
    one = DensityRatio(epsilon=1, random_state=1).fit(private=private, public=PUBLIC).release_
    other = DensityRatio(epsilon=1, random_state=1).fit(private=private[::-1], public=PUBLIC).release_
    assert np.array_equal(one["embedding"], other["embedding"])


def test_scales_and_centres_come_from_the_public_table_alone() -> None:
    far, near = DensityRatio(epsilon=1), DensityRatio(epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        far.fit(private=np.full((30, 2), 1e9), public=PUBLIC)
        near.fit(private=PUBLIC[:30], public=PUBLIC)
    assert np.array_equal(far._features.scale, near._features.scale)
    assert np.array_equal(far._plan.kernel.centres, near._plan.kernel.centres)


def test_released_floats_do_not_betray_the_input() -> None:
    """The attack of Mironov: values that only one of two neighbours can produce. Both must reach any coset of the lattice."""
    grids = []
    for row in (PUBLIC[0], PUBLIC[1]):
        part = prepared().partial_fit(private=np.array([row] * 20))
        vector, noise = before_noise(part)
        coin = seeded_coin(1)
        grids.append({(value & 7) for _ in range(60) for value in noise.add(vector, coin=coin)})
    assert grids[0] == grids[1] == set(range(8))


def test_an_audit_of_the_whole_release_stays_below_epsilon() -> None:
    """Neighbours: 20 rows at one end of the public table, one of them moved to the other end."""
    public = np.linspace(-3, 3, 30).reshape(-1, 1)
    base = np.full((20, 1), -3.0)
    moved = base.copy()
    moved[0] = 3.0
    epsilon, runs = 2.0, 900
    vectors = []
    for private in (base, moved):
        part = DensityRatio(epsilon=epsilon, bandwidth=0.5).set_public(public).partial_fit(private=private)
        vectors.append(before_noise(part))
    (one, noise), (two, _) = vectors
    direction = np.array([float(b - a) for a, b in zip(one, two, strict=True)])
    direction /= np.linalg.norm(direction)
    coin = seeded_coin(9)
    scores = []
    for vector in (one, two):
        drawn = np.array([noise.add(vector, coin=coin) for _ in range(runs)], dtype=float)
        scores.append((drawn - np.array(one, dtype=float)) @ direction / float(noise.l2))
    best = 0.0
    for cut in np.linspace(0, 1.5, 16):
        hits, misses = int((scores[1] > cut).sum()), int((scores[0] > cut).sum())
        low = stats.beta.ppf(0.0005, hits, runs - hits + 1) if hits else 0.0
        high = stats.beta.ppf(0.9995, misses + 1, runs - misses)
        best = max(best, float(np.log(low / high)) if low > 0 else 0.0)
    assert 0.1 < best <= epsilon


def test_a_mutant_without_noise_would_be_caught() -> None:
    """The audit above has power: the same test on a tenth of the noise finds far more than epsilon."""
    noise = EuclideanNoise(l2=Fraction(2**20), epsilon=Fraction(10), delta=None, dimension=3)
    coin, runs = seeded_coin(2), 400
    zero = np.array([noise.add([0, 0, 0], coin=coin)[0] for _ in range(runs)], dtype=float)
    one = np.array([noise.add([2**20, 0, 0], coin=coin)[0] for _ in range(runs)], dtype=float)
    cut = 0.5 * 2**20
    hits, misses = int((one > cut).sum()), int((zero > cut).sum())
    found = np.log(stats.beta.ppf(0.001, hits, runs - hits + 1) / stats.beta.ppf(0.999, misses + 1, runs - misses))
    assert found > 1.0


def test_a_fitted_estimator_keeps_no_private_number() -> None:
    """What is handed on (pickled, copied) after the release must not hold the records or their sums."""
    private = np.full((40, 2), 1.2345678912345)
    private[0] = 0.98765432198765
    for method, options in (("rkhs", {}), ("ulsif-b", {}), ("ulsif-a", {"bounds": [(-3, 5)] * 2}), ("ji-elkan", {})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            ratio = DensityRatio(epsilon=1, method=method, n_centers=5, **options).fit(private=private, public=PUBLIC)
        stored = pickle.dumps(ratio)
        assert private[0, 0].tobytes() not in stored
        assert private[1, 0].tobytes() not in stored
        assert ratio._seen is None


@pytest.mark.parametrize("epsilon", [1e-9, 1, 1e6])
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize(
    "public", [np.array([[0.0], [1.0]]), np.array([[1e150], [-1e150], [3.0]]), np.arange(30.0).reshape(-1, 1)]
)
def test_extreme_settings_still_give_weights(epsilon: float, relation: str, public: np.ndarray) -> None:
    for delta in (None, 1e-9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            ratio = DensityRatio(epsilon=epsilon, delta=delta, relation=relation).fit(private=np.arange(20.0), public=public)
        assert np.isfinite(ratio.weights_).all()
        assert ratio.weights_.mean() == pytest.approx(1)
