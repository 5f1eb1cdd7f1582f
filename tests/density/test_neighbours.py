"""Attempts to break the promise of the default method, written against the claim and not against the code."""

from __future__ import annotations

import copy
import functools
import pickle
import re
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sabun import Column, Ledger, Schema
from sabun.asking import Part
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.mechanism import EuclideanNoise
from sabun.errors import BoundsError, BudgetExceeded, DataError, ParameterError
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
    ratio._part = Part.unnumbered(ratio._part.statistic)
    return ratio


def before_noise(ratio: DensityRatio) -> tuple[list[int], EuclideanNoise]:
    """The exact vector the noise is added to, with the noise that protects it."""
    _, vector, noise = ratio._plan.protected(ratio._part.state)
    return vector, noise


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


def test_a_row_off_the_support_is_counted_and_nothing_else() -> None:
    """Just outside the public range, right beside a centre: embedded too, it would move more than the noise hides."""
    edge = PUBLIC[PUBLIC[:, 0].argmax()]
    beside = edge + np.array([1e-6, 0.0])
    for relation in ("replace-one", "add-remove"):
        part = prepared(relation).partial_fit(private=beside[None])
        assert list(part._part.state.sums) == [0] * (len(part._part.state.sums) - 1) + [1]
        off, noise = before_noise(part)
        for other in (*PUBLIC, edge):
            on = before_noise(prepared(relation).partial_fit(private=other[None]))[0]
            assert length(off, on) <= noise.l2**2


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
    private = np.random.default_rng(3).normal(1, 0.8, (500, 2))
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
    for method, options in (
        ("rkhs", {"n_centers": 5}),
        ("ulsif-b", {"n_centers": 5}),
        ("ulsif-a", {"n_centers": 5, "bounds": [(-3, 5)] * 2}),
        ("ji-elkan", {}),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoverageWarning)
            ratio = DensityRatio(epsilon=1, method=method, **options).fit(private=private, public=PUBLIC)
        stored = pickle.dumps(ratio)
        assert private[0, 0].tobytes() not in stored
        assert private[1, 0].tobytes() not in stored
        assert ratio._part is None


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


def pieces(first: float, *, broken: bool) -> Iterator[np.ndarray]:
    """A stream whose last piece may have a wrong shape."""
    yield np.array([[first, first]] + [[0.0, 0.0]] * 70_000)
    yield np.zeros((5, 2))
    if broken:
        yield np.zeros((5, 3))


def test_a_stream_that_breaks_off_leaves_nothing_behind() -> None:
    one, other = prepared(), prepared()
    for part, first in ((one, -3.0), (other, 3.0)):
        with pytest.raises(DataError):
            part.partial_fit(private=pieces(first, broken=True))
        assert part._part.state.count == 0
        assert not any(part._part.state.sums)
        part.partial_fit(private=pieces(first, broken=False))
        assert part._part.state.count == 70_006
    (a, noise), (b, _) = before_noise(one), before_noise(other)
    assert length(a, b) <= noise.l2**2


def test_a_fit_that_fails_leaves_no_sums_behind(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=1)
    ratio = DensityRatio(epsilon=2, ledger=book).set_public(PUBLIC).partial_fit(private=PUBLIC)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            ratio.fit(private=PUBLIC, public=PUBLIC)
        assert ratio._part is None
        with pytest.raises(ParameterError, match="or fit failed and kept none"):
            ratio.partial_fit(private=PUBLIC)
        with pytest.raises(ParameterError, match="or fit failed and kept none"):
            ratio.finalize()


def test_a_refused_finalize_can_be_tried_again_without_counting_twice(tmp_path: Path) -> None:
    book = Ledger.create(tmp_path / "l", name="clinic", epsilon=1)
    part = DensityRatio(epsilon=2, ledger=book).set_public(PUBLIC).partial_fit(private=PUBLIC)
    sums = list(part._part.state.sums)
    for _ in range(2):
        with pytest.raises(BudgetExceeded):
            part.finalize()
    assert (part._part.state.count, list(part._part.state.sums)) == (len(PUBLIC), sums)


def test_a_bad_public_table_does_not_leave_half_a_plan() -> None:
    part = prepared().partial_fit(private=PUBLIC)
    before = (part._plan, part._table, part._features, part._part)
    with pytest.raises(DataError):
        part.set_public(np.full((5, 2), np.nan))
    assert all(now is then for now, then in zip((part._plan, part._table, part._features, part._part), before, strict=True))


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda part: pickle.loads(pickle.dumps(part))])
def test_copies_of_a_part_are_not_counted_twice(twin: object) -> None:
    part = prepared().partial_fit(private=PUBLIC)
    again = twin(part)
    with pytest.raises(ParameterError, match="got a copy of a part that is counted already"):
        part.merge(again)
    again.partial_fit(private=PUBLIC[:3])
    assert part._part.state.count == 60, "a copy has a life of its own"
    with pytest.raises(ParameterError, match="got a copy of a part that is counted already"):
        prepared().merge(part).merge(again)


def test_copies_made_before_records_came_are_parts_like_others() -> None:
    empty = prepared()
    shards = [pickle.loads(pickle.dumps(empty)).partial_fit(private=rows) for rows in np.array_split(PUBLIC, 3)]
    merged = shards[0].merge(shards[1]).merge(shards[2])
    assert list(merged._part.state.sums) == list(prepared().partial_fit(private=PUBLIC)._part.state.sums)


@pytest.mark.parametrize(
    "other",
    [
        DensityRatio(epsilon=1).set_public(2 * PUBLIC),
        DensityRatio(epsilon=1, n_centers=20).set_public(PUBLIC),
        DensityRatio(epsilon=1, tau2=0.1).set_public(PUBLIC),
        DensityRatio(epsilon=2).set_public(PUBLIC),
        DensityRatio(epsilon=1).set_public(pd.DataFrame(PUBLIC, columns=["b", "a"])),
    ],
)
def test_parts_of_other_tables_or_settings_are_not_merged(other: DensityRatio) -> None:
    """Twice the table has the same points and the same centres; its records would be scaled otherwise."""
    with pytest.raises(ParameterError, match="both parts must be prepared with the same public table and the same settings"):
        prepared().merge(other)


def test_a_row_off_the_centres_is_part_of_the_public_table() -> None:
    centres = PUBLIC[:10]
    changed = PUBLIC.copy()
    changed[59] += 0.25
    one, other = (
        DensityRatio(epsilon=1, centers=centres, bandwidth=1.0, standardize=False).set_public(t) for t in (PUBLIC, changed)
    )
    with pytest.raises(ParameterError, match="both parts must be prepared with the same public table"):
        one.merge(other)


def test_a_pickle_with_sums_says_that_it_is_not_private() -> None:
    stored = pickle.dumps(prepared().partial_fit(private=PUBLIC))
    assert b"NOT PRIVATE: sums of private records" in stored


def outcomes(table: np.ndarray, public: np.ndarray, **options: object) -> set[str]:
    found = set()
    for _ in range(3):
        try:
            DensityRatio(**options).fit(private=table, public=public)
            found.add("weights")
        except Exception as problem:
            found.add(re.sub(r"0x[0-9a-f]+", "", repr(problem)))
    return found


def test_the_logistic_baseline_does_the_same_whatever_a_row_holds() -> None:
    """Nearly parallel columns of huge size, which made the Newton system singular for one neighbour only."""
    rng = np.random.default_rng(2)
    scale, closeness = 10.0 ** rng.uniform(6, 12), 10.0 ** rng.uniform(-11, -6)

    def table(rows: int, shift: float) -> np.ndarray:
        u = (1 + rng.random(rows)) * scale
        return np.c_[u, u + (shift + rng.normal(size=rows)) * max(1, scale * closeness)]

    public, private = table(100, 0), table(60, 3)
    changed = private.copy()
    changed[0] = np.nan
    options = {"epsilon": "0.01", "method": "ji-elkan", "standardize": False}
    assert outcomes(private, public, **options) == outcomes(changed, public, **options)
    assert all("clip_norm must be from 1e-06 to 1e+06" in text for text in outcomes(private, public, **options))


@pytest.mark.parametrize(("clip_norm", "works"), [(1e10, False), (1e3, False), (90.0, True), (None, True)])
def test_a_clip_norm_that_hardly_clips_is_judged_before_any_row(clip_norm: float | None, works: bool) -> None:
    rng = np.random.default_rng(0)
    public, private = rng.normal(size=(300, 2)), rng.normal(size=(100, 2))
    found = []
    for row in (private[0], np.full(2, 1e300), np.full(2, -1e308), np.array([np.nan, np.inf]), np.array([1e9, 1e-9])):
        changed = private.copy()
        changed[0] = row
        found.append(outcomes(changed, public, epsilon="0.01", method="ji-elkan", clip_norm=clip_norm))
    assert all(words == found[0] for words in found)
    assert (found[0] == {"weights"}) is works


def test_a_box_too_wide_for_floats_is_refused_before_any_row() -> None:
    rng = np.random.default_rng(0)
    public, private = rng.normal(size=(40, 1)) * 0.3, rng.normal(size=(50, 1))
    changed = private.copy()
    changed[17] = np.nan
    for table in (private, changed):
        with pytest.raises(BoundsError, match="bounds must be apart by a finite width above 0"):
            DensityRatio(epsilon="0.1", method="ulsif-a", bounds=[(-1e308, 1e308)]).fit(private=table, public=public)
    for table in (private, changed, np.full((50, 1), 1e308), np.full((50, 1), -np.inf)):
        wide = DensityRatio(epsilon="0.1", method="ulsif-a", bounds=[(-1e307, 1e307)], standardize=False)
        assert np.isfinite(wide.fit(private=table, public=public).release_["centres"]).all()
