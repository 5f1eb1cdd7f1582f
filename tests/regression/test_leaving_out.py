from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sabun.regression import PrivateRidge, combine

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
