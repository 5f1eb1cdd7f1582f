"""Passes in 32 bits: the gradients of the reference but for rounding, each column computed by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.learning import columnwise
from sabun.learning.network import Network
from sabun.learning.passes import Passes, singles, squared_lengths

SHAPES = [(1, 2), (4, 2), (4, 5, 3), (13, 9, 17, 2), (30, 8, 8, 8, 4), (105, 32, 32, 2)]


def rounded(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.float32).astype(np.float64)


def example(sizes: tuple[int, ...], count: int, seed: int = 0) -> tuple[Network, np.ndarray, np.ndarray, np.ndarray]:
    generator, network = np.random.default_rng(seed), Network(sizes=sizes)
    weights = rounded(generator.normal(size=network.n_weights))
    return network, weights, rounded(generator.normal(size=(count, sizes[0]))), generator.integers(0, sizes[-1], count)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a b + c rounded once: in doubles rounded to odd, which a second rounding cannot spoil (Boldo and Melquiond 2008)."""
    product, third = a.astype(np.float64) * b.astype(np.float64), np.broadcast_to(c, (a * b).shape).astype(np.float64)
    total = product + third
    second = total - product
    lost = (product - (total - second)) + (third - second)
    bits = total.view(np.int64)
    away = np.where((lost > 0) == (total > 0), 1, -1)
    return (bits + np.where((lost != 0) & (bits % 2 == 0), away, 0)).view(np.float64).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 20), depth=st.integers(1, 35), count=st.integers(1, 150), seed=st.integers(0, 99))
def test_a_product_is_one_chain_of_fused_steps_for_each_number(rows: int, depth: int, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    left, columns = (generator.normal(size=shape).astype(np.float32) for shape in ((rows, depth), (depth, count)))
    found = np.full((rows, count), np.nan, dtype=np.float32)
    columnwise.product(left, columns, found)
    chain, twice = np.zeros((2, rows, count), dtype=np.float32)
    for k in range(depth):
        chain = fused(left[:, k, None], columns[k], chain)
        twice = left[:, k, None] * columns[k] + twice
    assert np.array_equal(found, chain)
    assert depth < 3 or rows * count < 1000 or not np.array_equal(found, twice)


@settings(max_examples=40, deadline=None)
@given(rows=st.integers(1, 70), depth=st.integers(1, 40), count=st.integers(1, 200), seed=st.integers(0, 99))
def test_equal_columns_give_equal_bits_wherever_they_stand(rows: int, depth: int, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    left, column = (generator.normal(size=shape).astype(np.float32) for shape in ((rows, depth), (depth, 1)))
    columns, out = (
        generator.normal(size=(depth, count)).astype(np.float32) * np.float32(1e9),
        np.empty((rows, count), np.float32),
    )
    places = generator.random(count) < 0.5
    columns[:, places] = column
    columnwise.product(left, columns, out)
    assert (out[:, places] == out[:, places][:, :1]).all()


@pytest.mark.parametrize("sizes", SHAPES)
def test_what_the_passes_leave_is_the_reference_but_for_rounding(sizes: tuple[int, ...]) -> None:
    network, weights, rows, labels = example(sizes, 48)
    passes, known = Passes(network, 48, np.float64).read(weights), network.activity(weights, rows, labels)
    found = passes.both(passes.laid(rows), labels)
    for one, two in zip(found.inputs + found.errors, known.inputs + known.errors, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)
    shares = np.random.default_rng(1).random(48)
    known.scale(shares)
    np.testing.assert_allclose(passes.summed(found, shares), network.summed(known), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("sizes", SHAPES)
def test_norms_are_those_of_the_very_numbers_that_are_summed(sizes: tuple[int, ...], kind: type) -> None:
    network, weights, rows, labels = example(sizes, 16)
    passes = Passes(network, 16, kind).read(weights)
    found = passes.both(passes.laid(rows), labels)
    each = np.array([passes.summed(found, np.eye(16)[i]) for i in range(16)])
    rounding = 1e-12 if kind is np.float64 else 1e-6
    for lengths in (None, squared_lengths(rows)):
        np.testing.assert_allclose(passes.squared_norms(found, lengths), (each**2).sum(axis=1), rtol=rounding)
    np.testing.assert_allclose(network.l1_norms(found), np.abs(each).sum(axis=1), rtol=rounding)


@pytest.mark.parametrize("size", [1e-40, 1e-20, 1e18, 1e30])
def test_no_square_is_lost_or_too_large(size: float) -> None:
    network = Network(sizes=(2, 3, 2))
    weights = np.random.default_rng(0).normal(size=network.n_weights)
    rows = np.array([[size, -size], [size, size / 3]])
    passes = Passes(network, 16, np.float64).read(weights)
    found = passes.both(passes.laid(rows), np.zeros(16, dtype=np.int64))
    norms = passes.squared_norms(found, None)
    each = np.array([passes.summed(found, np.eye(16)[i]) for i in range(2)])
    np.testing.assert_allclose(np.sqrt(norms[:2]), np.linalg.norm(each, axis=1), rtol=1e-12)


def test_numbers_beyond_32_bits_are_infinite_and_nothing_is_said_of_them() -> None:
    rows = np.array([[1e300, 0.0], [1.0, -1e39]])
    assert np.isinf(singles(rows)).tolist() == [[True, False], [False, True]]
    assert np.isinf(squared_lengths(rows)).all()


def test_what_is_not_above_zero_becomes_zero() -> None:
    values = np.array([[1.0, -1.0, np.nan, 0.0, np.inf]], dtype=np.float32)
    columnwise.rectify(values)
    assert values.tolist() == [[1.0, 0.0, 0.0, 0.0, np.inf]]
    errors = np.array([[1.0, np.nan, 2.0, 3.0, 4.0]], dtype=np.float32)
    columnwise.zero_unless(errors, values)
    assert errors.tolist() == [[1.0, 0.0, 0.0, 0.0, 4.0]]


def test_lengths_do_not_depend_on_how_rows_lie_in_memory() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 33))
    lengths = squared_lengths(rows)
    assert np.array_equal(squared_lengths(np.asfortranarray(rows)), lengths)
    for count in (1, 2, 59):
        assert np.array_equal(squared_lengths(np.asfortranarray(rows[:count])), lengths[:count])
