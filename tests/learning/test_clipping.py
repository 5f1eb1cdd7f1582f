from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.learning.clipping import PIECE, SENSITIVITY, ClippedSum, likely_rows, piece_size
from sabun.learning.network import Network
from sabun.learning.passes import squared_lengths

NORMS = {"l2": np.linalg.norm, "l1": lambda vector: np.abs(vector).sum()}


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    norm=st.sampled_from(["l2", "l1"]),
    scale=st.sampled_from([1e-9, 1.0, 1e3, 1e6]),
    clip=st.sampled_from([1e-3, 1.0, 50.0]),
    hidden=st.sampled_from([(), (4,), (5, 4)]),
)
def test_adding_a_row_changes_the_sum_by_at_most_one_clip_norm(
    seed: int, norm: str, scale: float, clip: float, hidden: tuple[int, ...]
) -> None:
    generator = np.random.default_rng(seed)
    network = Network(sizes=(3, *hidden, 3))
    weights = generator.normal(size=network.n_weights) * generator.choice([0.1, 1, 30])
    rows, labels = generator.normal(size=(12, 3)) * scale, generator.integers(0, 3, 12)
    clipped = ClippedSum(network, clip_norm=clip, norm=norm, piece=64)
    with_all, without = clipped(weights, rows, labels), clipped(weights, np.delete(rows, 5, 0), np.delete(labels, 5))
    assert NORMS[norm](with_all - without) <= float(SENSITIVITY)


def test_without_clipping_the_same_test_fails() -> None:
    generator = np.random.default_rng(0)
    network = Network(sizes=(3, 2))
    rows, labels = generator.normal(size=(12, 3)) * 1e3, generator.integers(0, 2, 12)
    with_all, without = (network.summed(network.activity(network.initial(), rows[:n], labels[:n])) for n in (12, 11))
    assert np.linalg.norm(with_all - without) > float(SENSITIVITY)


def test_small_gradients_are_left_as_they_are() -> None:
    generator = np.random.default_rng(0)
    network = Network(sizes=(3, 2))
    rows, labels = generator.normal(size=(5, 3)), generator.integers(0, 2, 5)
    plain = network.summed(network.activity(network.initial(), rows, labels))
    np.testing.assert_allclose(ClippedSum(network, clip_norm=100.0)(network.initial(), rows, labels) * 100.0, plain)


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_rows_that_overflow_count_as_nothing_and_say_nothing(value: float) -> None:
    network = Network(sizes=(2, 3, 2))
    weights = np.full(network.n_weights, 1e200)
    rows = np.array([[value, value], [0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = ClippedSum(network, clip_norm=1.0)(weights, rows, np.array([0, 1]))
    assert np.isfinite(total).all()


def test_no_rows_give_zeros() -> None:
    network = Network(sizes=(2, 2))
    total = ClippedSum(network, clip_norm=1.0)(network.initial(), np.empty((0, 2)), np.empty(0, dtype=np.int64))
    assert (total == 0).all()


@pytest.mark.parametrize("piece", [16, 64, 128, 576, PIECE])
def test_the_size_of_a_piece_changes_the_sum_by_rounding_only(piece: int) -> None:
    generator = np.random.default_rng(3)
    network = Network(sizes=(7, 5, 3))
    rows, labels = generator.random((1200, 7)), generator.integers(0, 3, 1200)
    expected = sum(ClippedSum(network, clip_norm=0.5)(network.initial(), rows[i::9], labels[i::9]) for i in range(9))
    found = ClippedSum(network, clip_norm=0.5, piece=piece)(network.initial(), rows, labels)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("expected", [1e-9, 0.5, 1, 50, 64, 500, 512, 4096, 1e6])
def test_a_piece_holds_a_likely_batch_in_whole_units(expected: float) -> None:
    size = piece_size(likely_rows(expected, 0.1))
    assert size % 16 == 0
    assert 16 <= size <= 640
    assert size >= min(expected, 320)


def test_many_small_pieces_lose_nothing_to_rounding() -> None:
    network = Network(sizes=(1, 2))
    weights = np.array([0.3, -0.3, 0.0, 0.0])
    rows, labels = np.linspace(0.1, 1, 64 * 3000)[:, None], np.zeros(64 * 3000, dtype=np.int64)
    clipped = ClippedSum(network, clip_norm=1e-3, piece=64)
    parts = [clipped(weights, rows[at : at + 64], labels[at : at + 64]) for at in range(0, len(rows), 64)]
    exact = [math.fsum(part[i] for part in parts) for i in range(4)]
    np.testing.assert_allclose(clipped(weights, rows, labels), exact, rtol=34 * 2.0**-53, atol=0)


def test_lengths_known_beforehand_change_nothing_but_rounding() -> None:
    generator = np.random.default_rng(5)
    network = Network(sizes=(7, 5, 3))
    rows, labels = generator.normal(size=(100, 7)), generator.integers(0, 3, 100)
    clipped = ClippedSum(network, clip_norm=0.1, piece=64)
    known = clipped(network.initial(), rows, labels, squared_lengths(rows))
    np.testing.assert_allclose(known, clipped(network.initial(), rows, labels), rtol=1e-12, atol=1e-14)


def test_one_object_serves_many_batches_without_remembering_them() -> None:
    generator = np.random.default_rng(4)
    network = Network(sizes=(7, 5, 3))
    clipped = ClippedSum(network, clip_norm=0.5, piece=64)
    rows, labels = generator.random((40, 7)), generator.integers(0, 3, 40)
    fresh = ClippedSum(network, clip_norm=0.5, piece=64)(network.initial(), rows, labels)
    clipped(network.initial() * 2, generator.random((100, 7)) * 1e200, np.zeros(100, dtype=np.int64))
    assert np.array_equal(clipped(network.initial(), rows, labels), fresh)


def test_an_endless_row_does_not_change_how_others_are_summed() -> None:
    generator = np.random.default_rng(2)
    network = Network(sizes=(105, 32, 2))
    clipped = ClippedSum(network, clip_norm=1.0)
    rows, labels = generator.random((5, 105)), generator.integers(0, 2, 5)
    endless = np.concatenate([rows, np.full((1, 105), 1e300)])
    with_it = clipped(network.initial(), endless, np.append(labels, 0))
    assert np.array_equal(with_it, clipped(network.initial(), rows, labels))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("count", [63, 64, 65, 127])
def test_filling_rows_that_overflow_do_not_spoil_the_sum(kind: type, norm: str, count: int) -> None:
    network = Network(sizes=(1, 1, 2))
    huge = float(np.finfo(kind).max) / 4
    # The hidden unit is huge for a row of zeros and nothing for a row of ones: only rows that fill up overflow.
    weights = np.array([-huge, huge, huge, -huge, 0.0, 0.0])
    clipped = ClippedSum(network, clip_norm=1.0, norm=norm, piece=64, kind=kind)
    rows, labels = np.ones((count, 1)), np.zeros(count, dtype=np.int64)
    whole, part = clipped(weights, rows, labels), clipped(weights, rows[1:], labels[1:])
    assert np.isfinite(whole).all()
    assert np.abs(whole - part).sum() <= 2 * float(SENSITIVITY)


def test_a_square_that_vanishes_hides_no_gradient() -> None:
    network = Network(sizes=(1, 1, 1000))
    weights = np.zeros(network.n_weights)
    weights[0] = 1.3e154  # the hidden unit; its square is finite
    weights[2:1002] = -1e-152
    weights[2] = 0.0
    clipped = ClippedSum(network, clip_norm=1e-6)
    total = clipped(weights, np.ones((1, 1)), np.zeros(1, dtype=np.int64))
    assert np.linalg.norm(total) <= float(SENSITIVITY)


def test_an_example_without_a_number_hides_no_other_that_is_too_large() -> None:
    """Whether an example counts is for it alone to decide, also beside one whose norm is not a number."""
    network = Network(sizes=(1, 1, 2))
    weights, labels = np.array([1e200, 0.0, 1.0, -1.0, 0.0, 0.0]), np.zeros(2, dtype=np.int64)
    large = np.array([[1e-100], [1e-300]])
    beside = np.array([[1e-100], [np.nan]])
    with np.errstate(all="ignore"):
        alone, together = (network.squared_norms(network.activity(weights, rows, labels)) for rows in (large, beside))
    assert not np.isfinite(alone[0])
    assert not np.isfinite(together[0])
