from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regression.worlds import unit_study
from sabun.regression import PrivateRidge, combine
from sabun.regression.contribution import read_all
from sabun.regression.leaving_out import _seen, _sets, worth_pooling
from sabun.regression.mixing import Axes
from sabun.regression.study import STAGED

TERMS: dict[str, Any] = {"x_bounds": [(-1, 1)] * 5, "y_bounds": (-1, 1)}
SLOPES = np.array([0.3, -0.2, 0.1, 0.25, -0.15])


def tables(sizes: tuple[int, ...], seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    found = [np.clip(0.4 * rng.normal(size=(rows, 5)), -1, 1) for rows in sizes]
    return [(X, np.clip(X @ SLOPES + 0.05 * rng.normal(size=len(X)), -1, 1)) for X in found]


def released(sizes: tuple[int, ...], seed: int = 0, **terms: Any) -> list[Any]:
    return [
        PrivateRidge(epsilon=1, random_state=100 * seed + at, organisation=f"{at}: {len(y)}", **TERMS, **terms)
        .fit(X, y)
        .release_
        for at, (X, y) in enumerate(tables(sizes, seed))
    ]


def off(model: Any) -> float:
    return float(np.mean((model.coef_ - SLOPES) ** 2))


def test_small_organisations_do_not_drown_a_large_one() -> None:
    """A hundred rows have as much noise as two thousand; with five such pooled, the error was fifty times the large one's."""
    many = [released((2000, *[100] * 5), seed) for seed in range(6)]
    alone, all_of_them = (np.mean([off(combine(part)) for part in parts]) for parts in ([one[:1] for one in many], many))
    assert all_of_them < 1.5 * alone < 0.01


def test_who_is_left_out_is_told() -> None:
    releases = released((100, 2000, 60))
    model = combine(releases)
    (note,) = [note for note in model.findings if note.startswith("Left out")]
    assert "0: 100, 2: 60." in note
    assert note in str(model)
    assert model.coef_ == pytest.approx(combine(releases[1:2]).coef_)
    assert {one.organisation: one.largest_shift for one in model.influences}["2: 60"] == 0
    X, y = tables((40,), seed=1)[0]
    assert any(note.startswith("Left out") for note in combine(releases, X, y).findings)
    assert any(note.startswith("Left out") for note in combine(releases, X, y, method="guard").findings)


@pytest.mark.parametrize("sizes", [(1200, 1000, 800), (300, 300)])
def test_tables_of_about_one_size_are_kept(sizes: tuple[int, ...]) -> None:
    assert not any(note.startswith("Left out") for note in combine(released(sizes)).findings)


def test_the_former_default_combines_as_it_did() -> None:
    assert not any(note.startswith("Left out") for note in combine(released((2000, 60), method="ssp-gauss")).findings)


def test_a_small_table_that_tells_something_is_kept() -> None:
    """Large tables have little noise beside sampling: nothing is gained by leaving a quarter of the rows out."""
    X = [np.random.default_rng(at).uniform(-1, 1, (rows, 1)) for at, rows in enumerate((60_000, 20_000))]
    terms: dict[str, Any] = {"epsilon": 8, "x_bounds": [(-1, 1)], "y_bounds": (-1, 1)}
    releases = [
        PrivateRidge(random_state=at, organisation=str(at), **terms)
        .fit(one, np.clip(0.3 * one[:, 0] + 0.3 * np.random.default_rng([at]).normal(size=len(one)), -1, 1))
        .release_
        for at, one in enumerate(X)
    ]
    assert not any(note.startswith("Left out") for note in combine(releases).findings)


@pytest.mark.parametrize("method", ["staged", "ssp-gauss", "ssp-laplace"])
@pytest.mark.parametrize("home", [0, 40])
def test_a_loud_promise_does_not_drown_a_quiet_one(method: str, home: int) -> None:
    """As many rows under a tenth of epsilon: one such in the pool, and its error was 7 to 14 times that of the quiet one."""
    with_them, alone = [], []
    for seed in range(4):
        parts = tables((3000, 3000, 3000), seed)
        releases = [
            PrivateRidge(epsilon=epsilon, method=method, random_state=100 * seed + at, organisation=epsilon + "#" * at, **TERMS)
            .fit(*part)
            .release_
            for at, (epsilon, part) in enumerate(zip(("0.3", "3", "0.3"), parts, strict=True))
        ]
        own = tables((home,), 50 + seed) if home else [()]
        models = [combine(some, *own[0]) for some in (releases, releases[1:2])]
        (note,) = [note for note in models[0].findings if note.startswith("Left out")]
        assert "0.3, 0.3##." in note
        with_them.append(off(models[0]))
        alone.append(off(models[1]))
    assert with_them == pytest.approx(alone)


@pytest.mark.parametrize(
    "others", [[("3", "staged", 300), ("3", "ssp-gauss", 6000)], [("0.3", "staged", 6000), ("3", "ssp-gauss", 6000)]]
)
def test_beside_other_kinds_loud_and_small_tables_are_left_out_too(others: list[tuple[str, str, int]]) -> None:
    """Each kind was looked at whole: a pool had 8 to 28 times the error of its best release."""
    plans = [("3", "staged", 6000), *others]
    for seed in range(3):
        parts = tables(tuple(rows for _, _, rows in plans), seed)
        releases = [
            PrivateRidge(epsilon=epsilon, method=method, random_state=10 * seed + at, organisation=str(at), **TERMS)
            .fit(*part)
            .release_
            for at, ((epsilon, method, _), part) in enumerate(zip(plans, parts, strict=True))
        ]
        assert off(combine(releases)) == pytest.approx(off(combine(releases[:1])))


@pytest.mark.parametrize("home", [0, 40])
def test_an_organisation_with_small_residuals_does_not_drown_in_others(home: int) -> None:
    """Equal rows, equal promises: sums are added up as they are, and the pool had 30 times the error of the tidy one alone."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        releases = []
        for at, deviation in enumerate((0.15, 0.01, 0.15)):
            X = np.clip(0.4 * rng.normal(size=(6000, 5)), -1, 1)
            y = np.clip(X @ SLOPES + deviation * rng.normal(size=6000), -1, 1)
            one = PrivateRidge(epsilon=3, random_state=10 * seed + at, organisation=f"{deviation}#{at}", **TERMS)
            releases.append(one.fit(X, y).release_)
        own = tables((home,), 70 + seed) if home else [()]
        model = combine(releases, *own[0])
        assert off(model) == pytest.approx(off(combine(releases[1:2], *own[0])))
        (note,) = [note for note in model.findings if note.startswith("Left out")]
        assert "0.15#0, 0.15#2." in note


def test_residuals_of_about_one_size_leave_nobody_out() -> None:
    rng, releases = np.random.default_rng(1), []
    for at, deviation in enumerate((0.1, 0.15, 0.12)):
        X = np.clip(0.4 * rng.normal(size=(4000, 5)), -1, 1)
        y = np.clip(X @ SLOPES + deviation * rng.normal(size=4000), -1, 1)
        releases.append(PrivateRidge(epsilon=2, random_state=at, organisation=str(at), **TERMS).fit(X, y).release_)
    assert not any(note.startswith("Left out") for note in combine(releases).findings)


def test_a_loud_table_is_kept_where_its_rows_make_up_for_it() -> None:
    """Four and a half times the rows make up for half of epsilon."""
    loud, quiet = (
        PrivateRidge(epsilon=epsilon, random_state=at, organisation=epsilon, **TERMS).fit(*tables((rows,), at)[0]).release_
        for at, (epsilon, rows) in enumerate((("0.5", 9000), ("1", 2000)))
    )
    assert not any(note.startswith("Left out") for note in combine([loud, quiet]).findings)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("method", ["staged", "rounds", "ssp-gauss", "ssp-laplace"])
def test_one_promise_for_all_leaves_out_by_rows_alone(method: str, relation: str) -> None:
    """Bit for bit: looked at are those with more than a half, a quarter, ... of the largest number of rows."""
    study = unit_study(5, method=method, relation=relation)
    for sizes in ((2000, 100, 60), (2000, 1100, 1000, 400, 90), (700, 600), (3000, 1500, 750, 374)):
        sums = [contribution.sums() for contribution in read_all(released(sizes, len(sizes), method=method, relation=relation))]
        wanted, least = [sums], max(one.rows for one in sums)
        while least >= 1:
            least /= 2
            wanted += [[one for one in sums if one.rows > least]]
        once = [one for at, one in enumerate(wanted) if all(len(one) != len(other) for other in wanted[:at])]
        assert [list(map(id, one)) for one in _sets(sums)] == [list(map(id, one)) for one in once]
        assert (_seen(sums) == Axes.of(sums).seen).all()
        if method not in STAGED:
            assert worth_pooling(study, sums) == sums
