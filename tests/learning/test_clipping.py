from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sabun.learning.clipping import SENSITIVITY, clipped_sum
from sabun.learning.network import Network

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
    views = network.layers(weights)
    with_all = clipped_sum(network, views, rows, labels, clip_norm=clip, norm=norm)
    without = clipped_sum(network, views, np.delete(rows, 5, 0), np.delete(labels, 5), clip_norm=clip, norm=norm)
    assert NORMS[norm](with_all - without) <= float(SENSITIVITY)


def test_without_clipping_the_same_test_fails() -> None:
    generator = np.random.default_rng(0)
    network = Network(sizes=(3, 2))
    rows, labels = generator.normal(size=(12, 3)) * 1e3, generator.integers(0, 2, 12)
    activity = network.activity(network.layers(network.initial()), rows, labels)
    gradients = network.weighted_sum(activity, np.ones(12)) - network.weighted_sum(activity, np.r_[np.ones(11), 0.0])
    assert np.linalg.norm(gradients) > float(SENSITIVITY)


def test_small_gradients_are_left_as_they_are() -> None:
    generator = np.random.default_rng(0)
    network = Network(sizes=(3, 2))
    rows, labels = generator.normal(size=(5, 3)), generator.integers(0, 2, 5)
    views = network.layers(network.initial())
    plain = network.weighted_sum(network.activity(views, rows, labels), np.ones(5))
    np.testing.assert_allclose(clipped_sum(network, views, rows, labels, clip_norm=100.0) * 100.0, plain)


@pytest.mark.parametrize("value", [1e308, -1e308])
def test_rows_that_overflow_count_as_nothing_and_say_nothing(value: float) -> None:
    network = Network(sizes=(2, 3, 2))
    weights = np.full(network.n_weights, 1e200)
    rows = np.array([[value, value], [0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = clipped_sum(network, network.layers(weights), rows, np.array([0, 1]), clip_norm=1.0)
    assert np.isfinite(total).all()


def test_no_rows_give_zeros() -> None:
    network = Network(sizes=(2, 2))
    total = clipped_sum(
        network, network.layers(network.initial()), np.empty((0, 2)), np.empty(0, dtype=np.int64), clip_norm=1.0
    )
    assert (total == 0).all()
