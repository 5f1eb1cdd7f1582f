from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sabun import Column, Schema
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.kernel import GaussianKernel
from sabun.density.support import Support

PUBLIC = np.random.default_rng(0).normal(size=(300, 2))


def rule(public: np.ndarray = PUBLIC, bandwidth: float = 1.5) -> tuple[Support, GaussianKernel]:
    kernel = GaussianKernel.of(public[:100], bandwidth=bandwidth)
    return Support.of(public, kernel), kernel


def off(points: np.ndarray, public: np.ndarray = PUBLIC) -> np.ndarray:
    support, kernel = rule(public)
    return support.off(points, kernel.whole(points))


def test_public_rows_are_on_their_own_support() -> None:
    assert off(PUBLIC).mean() < 0.01


def test_rows_outside_a_columns_range_or_far_from_every_centre_are_off() -> None:
    low, high = PUBLIC.min(axis=0), PUBLIC.max(axis=0)
    strange = np.array([[high[0] + 0.01, 0.0], [0.0, low[1] - 0.01], [np.nan, 0.0], [0.0, np.inf], [1e308, -1e308]])
    assert off(strange).all()
    assert not off(np.zeros((1, 2))).any()
    ring = np.random.default_rng(1).normal(size=(400, 2))
    ring = 3 * ring / np.linalg.norm(ring, axis=1)[:, None]
    assert off(np.zeros((1, 2)), ring).all(), "a hole in the middle of every column's range"


def test_the_rule_looks_at_one_row_at_a_time() -> None:
    rows = np.random.default_rng(2).normal(size=(500, 2)) * 2
    together = off(rows)
    assert 0.05 < together.mean() < 0.9
    assert [bool(off(row[None])[0]) for row in rows] == together.tolist()


def test_one_centre_and_twins_make_a_rule_too() -> None:
    for public in (np.zeros((2, 1)), np.array([[0.0], [1.0]]), np.repeat(PUBLIC[:5], 20, axis=0)):
        kernel = GaussianKernel.of(public[:1], bandwidth=1.0)
        support = Support.of(public, kernel)
        assert not support.off(public, kernel.whole(public)).all()


def test_a_label_that_no_public_row_has_is_off() -> None:
    schema = Schema(columns=[Column.category("kind", ["a", "b", "c"]), Column.number("x", lower=-5, upper=5)])
    rng = np.random.default_rng(0)
    public = pd.DataFrame({"kind": rng.choice(["a", "b"], 300), "x": rng.normal(size=300)})
    private = pd.DataFrame(
        {"kind": rng.choice(["a", "b", "c"], 5000, p=[0.5, 0.3, 0.2]), "x": rng.normal(size=5000).clip(-2, 2)}
    )
    with pytest.warns(CoverageWarning, match="does not cover (19|20)% to (20|21)% of the private rows"):
        ratio = DensityRatio(epsilon=1, schema=schema).fit(private=private, public=public)
    assert ratio.covered(private).tolist() == (private.kind != "c").tolist()


@pytest.mark.parametrize(("columns", "epsilon"), [(2, 0.1), (8, 1)])
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_rows_far_away_are_counted(columns: int, epsilon: float, share: float) -> None:
    """With the error of a counting query, and in every run."""
    rng = np.random.default_rng(0)
    hits = 0
    for seed in range(5):
        public, private = rng.normal(size=(400, columns)), 0.7 * rng.normal(size=(5000, columns))
        private[: int(share * 5000)] += 6
        ratio = DensityRatio(epsilon=epsilon, random_state=seed, n_centers=100).set_public(public)
        with pytest.warns() if share > 0.1 else _quiet():
            ratio.fit(private=private, public=public)
        low, high = ratio.query(0).uncovered_interval
        hits += low <= (~ratio.covered(private)).mean() <= high
        assert 0.6 * share < ratio.diagnostics_.uncovered < 1.6 * share
        assert high - low < 0.2
    assert hits >= 4


def _quiet() -> object:
    import contextlib

    return contextlib.nullcontext()
