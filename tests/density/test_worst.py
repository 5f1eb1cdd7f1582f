from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize

from sabun.density import worst
from sabun.density.worst import _bound, worst_case


def problem(seed: int, rows: int = 60, rank: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(rows, rank)) / 3
    values = points[:, 0] + 0.3 * rng.normal(size=rows)
    weights = rng.exponential(size=rows)
    return points, values, weights / weights.sum()


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("uncovered", [0.0, 0.15])
def test_no_weights_and_no_noise_within_the_radius_escape(uncovered: float, counts: bool) -> None:
    for seed in range(20):
        points, values, share = problem(seed)
        rng = np.random.default_rng(seed + 100)
        noise = rng.normal(size=6)
        noise *= 0.05 / np.linalg.norm(noise)
        size = 1 + noise[5] * counts
        low, high = worst_case(
            points,
            values,
            embedding=((1 - uncovered) * points.T @ share + noise[:4]) / size,
            covered=1 - (uncovered + noise[4]) / size,
            radius=0.05 / size,
            counts=counts,
        )
        assert low <= share @ values <= high


def test_it_is_the_best_bound_up_to_the_search() -> None:
    """Without noise a linear programme gives the same ends."""
    points, values, share = problem(3)
    mean = points.T @ share
    low, high = worst_case(points, values, embedding=mean, covered=1.0, radius=1e-9, counts=False)
    equal = {"A_eq": np.vstack([points.T, np.ones(60)]), "b_eq": np.append(mean, 1.0)}
    least, most = optimize.linprog(values, **equal).fun, -optimize.linprog(-values, **equal).fun
    assert low <= least + 1e-7
    assert high >= most - 1e-7
    assert high - low < 1.2 * (most - least) + 0.02


def test_a_search_that_stops_early_only_widens(monkeypatch: pytest.MonkeyPatch) -> None:
    points, values, share = problem(5)
    release = {"embedding": points.T @ share, "covered": 1.0, "radius": 0.01, "counts": False}
    full = worst_case(points, values, **release)
    monkeypatch.setattr(worst, "_STEPS", 1)
    short = worst_case(points, values, **release)
    assert short[0] <= full[0] <= share @ values <= full[1] <= short[1]


def test_it_says_nothing_when_the_covered_share_is_lost() -> None:
    points, values, share = problem(1)
    assert worst_case(points, values, embedding=points.T @ share, covered=0.1, radius=0.2, counts=False) is None
    assert worst_case(points, np.ones(60), embedding=points.T @ share, covered=1.0, radius=0.2, counts=False) == (1.0, 1.0)


@pytest.mark.parametrize("extra", [1.0, 2.0])
def test_a_bound_is_where_noise_of_the_radius_just_reaches(extra: float) -> None:
    """For any slope: b m + t q = R |(b, t sqrt a)|, with a = 2 where the number of rows has noise of its own."""
    points, values, share = problem(2)
    mean = points.T @ share
    for seed in range(20):
        slope = np.random.default_rng(seed).normal(size=4)
        found = _bound(slope, points, values, mean, 0.9, 0.2, extra)
        t = float((values - points @ slope).min()) - found
        assert slope @ mean + 0.9 * t == pytest.approx(0.2 * (slope @ slope + extra * t**2) ** 0.5)
