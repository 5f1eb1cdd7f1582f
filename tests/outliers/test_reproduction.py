from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sabun.datasets import load_wdbc
from sabun.outliers.ladder import Bands, Cover
from sabun.outliers.laws import PowerTail
from sabun.outliers.paper import theorem_two
from sabun.outliers.reproduction import accuracy, best_radius, reproduce, sample_of
from sabun.outliers.sensitivity import measure, rungs_of, smooth_bound


def test_a_quick_reproduction_has_all_its_parts() -> None:
    steps: list[float] = []
    made = reproduce(quick=True, progress=lambda share, _: steps.append(share))
    assert {table.name for table in made.tables} == {"radius", "noise-ionosphere", "noise-wdbc", "floor", "covers"}
    assert len(made.figures) == 4
    assert len(made.errata) >= 9
    assert steps[0] == 0
    assert steps[-1] == 1


def test_the_papers_radii_make_every_record_an_outlier_on_z_scored_data() -> None:
    for name, radius, share in (("ionosphere", 0.3, 0.043), ("wdbc", 1.3, 0.027)):
        sample = sample_of(name, seed=0)
        assert accuracy(sample, radius) == pytest.approx(share, abs=0.001)
        best = best_radius(sample)
        assert accuracy(sample, (best.low + best.high) / 2) == pytest.approx(best.accuracy)
        assert best.accuracy > 0.97


def test_the_first_rungs_on_wdbc_are_those_of_an_independent_program() -> None:
    dataset = load_wdbc()
    bad = (dataset.target == "malignant").to_numpy()
    values = dataset.data.to_numpy(dtype=float)
    chosen = np.random.default_rng(0).choice(np.flatnonzero(bad), 10, replace=False)
    points = np.vstack([values[~bad], values[chosen]])
    points = (points - points.mean(axis=0)) / points.std(axis=0)
    bands = Bands(points, k=5, radius=9.0, rungs=7)
    cover = Cover("degeneracy", points[bands.gained[: bands.gained_ends[-1]]], 9.0)
    assert bands.count == 9
    assert [rungs_of(bands, cover, cap=367, relation="replace-one", rung=t) for t in range(7)] == [2, 6, 8, 9, 10, 11, 12]


@pytest.mark.parametrize(("name", "radius"), [("ionosphere", 5.49), ("wdbc", 9.0)])
@pytest.mark.parametrize("epsilon", [0.3, 0.5, 1.0])
def test_the_default_has_fifty_times_less_noise_than_theorem_2_on_the_same_bound(
    name: str, radius: float, epsilon: float
) -> None:
    points = sample_of(name, seed=0).points
    inverse, beta = theorem_two(epsilon=epsilon, delta=1e-6)
    exact = Fraction(str(epsilon))
    law = PowerTail(epsilon=exact, beta=exact / 5)
    _, bound = measure(points, k=5, radius=radius, beta=law.beta, cover="degeneracy", relation="replace-one")
    assert inverse * smooth_bound(points, k=5, radius=radius, beta=beta) >= 50 * law.deviation(float(bound))
