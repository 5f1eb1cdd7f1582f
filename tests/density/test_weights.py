from __future__ import annotations

import numpy as np

from sabun.density.smooth import Evidence, Smoothness, fitted
from sabun.density.weights import MOST_OPEN, best_rank, chosen


def test_a_release_that_says_little_gives_even_weights() -> None:
    """Noise alone would make them uneven; a release that says much is followed as closely as its error allows."""
    rng = np.random.default_rng(4)
    table = rng.normal(size=(600, 12))
    features = Smoothness.of(table, tau2=0.5).features(table)
    points = 0.1 * table
    noise = 4e-3
    evidence = Evidence(mean=points.mean(axis=0) + noise**0.5 * rng.normal(size=12), noise=noise, ratio=1.0, rows=500.0)
    plain = fitted(points, features, evidence)
    found, opened = chosen(points, features, evidence)
    assert opened > MOST_OPEN
    assert 1 / (found.share @ found.share) > 0.9 * 600 > 1 / (plain.share @ plain.share)
    few = table[:, :1]
    features, points = Smoothness.of(few, tau2=0.5).features(few), np.hstack([np.sin(few * k) for k in range(1, 9)])
    clear = Evidence(mean=points.mean(axis=0) + 0.03, noise=1e-8, ratio=1.0, rows=1e6)
    found, opened = chosen(points, features, clear)
    assert opened < MOST_OPEN
    assert np.array_equal(found.share, fitted(points, features, clear).share)


def test_the_rank_falls_as_noise_grows() -> None:
    variances = np.logspace(0, -6, 50)
    ranks = [best_rank(variances, np.full(50, noise)) for noise in (1e-9, 1e-5, 1e-2, 1e3)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1] >= 1


def test_the_rank_minimises_the_expected_error() -> None:
    variances, noise = np.logspace(0, -4, 12), np.linspace(1, 2, 12) * 1e-3
    signal = 0.05 * variances
    errors = [(signal[:k] * noise[k - 1] / (signal[:k] + noise[k - 1])).sum() + signal[k:].sum() for k in range(1, 13)]
    assert best_rank(variances, noise) == int(np.argmin(errors)) + 1
