from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from sabun.errors import ParameterError
from sabun.privacy.noise import os_coin, seeded_coin, spherical, spherical_laplace
from sabun.privacy.noise.exact import contexts


@pytest.mark.parametrize("bits", [8, 64, 128])
def test_a_normal_pair_lies_inside_its_intervals(bits: int) -> None:
    down, up = contexts(60)
    for seed in range(20):
        coin = seeded_coin(seed)
        point = spherical._disc_point(bits, coin)
        pair = spherical._normal_pair(point, down, up)
        deeper = spherical._refined(point, coin)
        with mpmath.workprec(400):
            x, y = (mpmath.mpf(v) / mpmath.mpf(2) ** deeper.bits for v in (deeper.x, deeper.y))
            s = x * x + y * y
            for interval, v in zip(pair, (x, y), strict=True):
                truth = v * mpmath.sqrt(-2 * mpmath.log(s) / s)
                assert mpmath.mpf(str(interval.low)) <= truth <= mpmath.mpf(str(interval.high))
                assert bits < 64 or interval.high - interval.low < Decimal(2) ** (16 - bits)


def test_more_bits_never_change_a_certain_coordinate() -> None:
    for seed in range(10):
        coin = seeded_coin(seed)
        points = [spherical._disc_point(40, coin) for _ in range(4)]
        first = spherical._rounded(points, 3, Fraction(50))
        second = spherical._rounded([spherical._refined(p, coin) for p in points], 3, Fraction(50))
        assert first is not None
        assert first == second


def test_an_open_coordinate_asks_for_more_bits() -> None:
    coin = seeded_coin(0)
    points = [spherical._disc_point(2, coin) for _ in range(4)]
    assert spherical._rounded(points, 3, Fraction(1000)) is None
    for _ in range(2):
        points = [spherical._refined(p, coin) for p in points]
    assert spherical._rounded(points, 3, Fraction(1000)) is not None
    assert spherical._rounded([spherical._Point(0, 0, 64)] * 2, 1, Fraction(1)) is None


def test_points_are_uniform_in_the_quarter_disc() -> None:
    coin = seeded_coin(4)
    points = [spherical._disc_point(1, coin) for _ in range(4000)]
    xy = np.array([[p.x / 2.0**p.bits, p.y / 2.0**p.bits] for p in points])
    squared = np.sort((xy**2).sum(axis=1))
    assert squared[-1] < 1
    assert np.abs(squared - np.linspace(0, 1, 4000)).max() < 0.6, "one bit only: coarse"
    assert any(p.bits > 1 for p in points), "one bit cannot place every point"


@pytest.mark.parametrize("dimension", [1, 2, 7, 500])
def test_the_vector_has_its_dimension_soon(dimension: int) -> None:
    start = time.perf_counter()
    drawn = spherical_laplace(Fraction(1000, 3), dimension=dimension, coin=os_coin())
    assert drawn.shape == (dimension,)
    assert drawn.dtype == np.int64
    assert time.perf_counter() - start < 2


def test_a_seed_repeats_the_vector() -> None:
    first, second = (spherical_laplace(9, dimension=5, coin=seeded_coin(2)).tolist() for _ in range(2))
    assert first == second


def test_huge_scales_keep_every_bit() -> None:
    drawn = spherical_laplace(1 << 200, dimension=40, coin=seeded_coin(1))
    assert drawn.dtype == object
    assert 1 << 195 < max(abs(v) for v in drawn) < 1 << 210
    assert len({v % 1024 for v in drawn}) > 30


def test_tiny_scales_give_zero() -> None:
    assert spherical_laplace(Fraction(1, 10**6), dimension=3, coin=os_coin()).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": 0, "dimension": 2}, r"scale must be a Fraction or int > 0; got 0\."),
        ({"scale": 0.5, "dimension": 2}, r"scale must be .*; got <class 'float'>\. Floats are not exact"),
        ({"scale": 1, "dimension": 0}, r"dimension must be a whole number >= 1; got 0\."),
        ({"scale": 1, "dimension": 2.0}, r"dimension must be a whole number >= 1; got 2\.0\."),
    ],
)
def test_a_broken_rule_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        spherical_laplace(**arguments, coin=os_coin())


def test_a_numpy_dimension_is_a_whole_number_like_any_other() -> None:
    drawn = spherical_laplace(2, dimension=np.uint8(5), coin=seeded_coin(3))
    assert drawn.tolist() == spherical_laplace(2, dimension=5, coin=seeded_coin(3)).tolist()
