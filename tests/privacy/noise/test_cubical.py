"""Noise from a cube: its law by brute force and by its radius, with twins that must be told apart."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from sabun.errors import ParameterError
from sabun.privacy.noise import coin_for, cubical, cubical_laplace, os_coin, seeded_coin

RARE = 1e-7
"""How often a sound sampler may fail one of these tests."""


def probabilities(dimension: int, scale: Fraction, half: int) -> np.ndarray:
    """Of each point with coordinates up to `half`, in row-major order, by adding up q^largest over a far larger cube."""
    sides = np.arange(0, 400)
    shells = (2 * sides + 1.0) ** dimension - np.where(sides > 0, (2 * sides - 1.0) ** dimension, 0.0)
    total = float((shells * np.exp(-sides / float(scale))).sum())
    grid = np.meshgrid(*[np.arange(-half, half + 1)] * dimension, indexing="ij")
    return np.exp(-np.abs(np.array(grid)).max(axis=0) / float(scale)).ravel() / total


def tail(draws: list[Any], dimension: int, scale: Fraction, half: int) -> float:
    """The p-value of a chi-square test over the points of a cube and everything outside it."""
    expected = probabilities(dimension, scale, half)
    inside = [draw for draw in draws if np.abs(draw).max() <= half]
    index = [int(np.ravel_multi_index(tuple(draw + half), (2 * half + 1,) * dimension)) for draw in inside]
    counts = np.append(np.bincount(index, minlength=len(expected)), len(draws) - len(inside))
    return float(stats.chisquare(counts, np.append(expected, 1 - expected.sum()) * len(draws)).pvalue)


@pytest.mark.parametrize(("dimension", "scale", "half"), [(1, Fraction(3, 2), 5), (2, Fraction(2), 3), (3, Fraction(7, 3), 1)])
def test_every_point_has_its_probability(dimension: int, scale: Fraction, half: int) -> None:
    draws = [cubical_laplace(scale, dimension=dimension, coin=os_coin()) for _ in range(1500)]
    assert tail(draws, dimension, scale, half) > RARE


@pytest.mark.parametrize(
    ("name", "twin"),
    [
        ("_kept", lambda half, dimension, coin: True),
        ("_geometric", lambda scale, coin: int(GEOMETRIC(scale * Fraction(4, 5), coin))),
    ],
)
def test_a_twin_that_never_rejects_or_has_another_scale_is_noticed(
    name: str, twin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Power: at 1500 draws either twin has a chi-square statistic above 100 on 26 cells; it is missed once in a million."""
    monkeypatch.setattr(cubical, name, twin)
    draws = [cubical_laplace(Fraction(2), dimension=2, coin=os_coin()) for _ in range(1500)]
    assert tail(draws, 2, Fraction(2), 2) < RARE


GEOMETRIC = cubical._geometric


def test_coordinates_have_the_stated_deviation() -> None:
    size = 10
    draws = np.array([cubical_laplace(Fraction(10**5), dimension=size, coin=os_coin()) for _ in range(400)]) / 1e5
    stated = math.sqrt((size + 1) * (size + 2) / 3)
    # 4000 coordinates whose squares have a relative deviation below 1.4; draws of one vector share their radius.
    assert 0.75 < float((draws**2).mean()) / stated**2 < 1.3


def test_one_dimension_is_discrete_laplace() -> None:
    zero = math.tanh(1 / (2 * 1.5))
    found = sum(int(cubical_laplace(Fraction(3, 2), dimension=1, coin=os_coin())[0]) == 0 for _ in range(2000))
    assert stats.binomtest(found, 2000, zero).pvalue > RARE


def test_a_seed_repeats_and_long_numbers_fit() -> None:
    first, again = (cubical_laplace(Fraction(1, 3), dimension=3, coin=seeded_coin(4)) for _ in range(2))
    assert (first == again).all()
    assert cubical_laplace(Fraction(10**30), dimension=2, coin=coin_for(None)).dtype == object


@pytest.mark.parametrize(("scale", "dimension"), [(0, 1), (-1, 1), (0.5, 1), (1, 0), (1, 1.5)])
def test_bad_parameters_are_refused(scale: Any, dimension: Any) -> None:
    with pytest.raises(ParameterError):
        cubical_laplace(scale, dimension=dimension, coin=os_coin())
