from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.learning_samples import example_gradients
from sabun.errors import ParameterError
from sabun.learning.network import Network
from sabun.learning.plain_training import PlainTraining
from sabun.learning.stream import Stream
from sabun.learning.training import Data
from sabun.learning.update_bounds import update_intervals

SHAPES = [(4, 2), (4, 5, 3), (3, 6, 5, 2)]


def loss(network: Network, weights: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> float:
    return float(-np.log(network.probabilities(weights, rows)[np.arange(len(rows)), labels]).sum())


@pytest.mark.parametrize("sizes", SHAPES)
def test_gradients_are_the_slopes_of_the_loss(sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(1)
    network = Network(sizes=sizes)
    weights = generator.normal(size=network.n_weights)
    rows, labels = generator.normal(size=(6, sizes[0])), generator.integers(0, sizes[-1], 6)
    total = network.summed(network.activity(weights, rows, labels))
    for place in range(0, network.n_weights, 3):
        step = np.zeros_like(weights)
        step[place] = 1e-6
        slope = (loss(network, weights + step, rows, labels) - loss(network, weights - step, rows, labels)) / 2e-6
        assert slope == pytest.approx(total[place], abs=1e-5)


@pytest.mark.parametrize("sizes", SHAPES)
def test_ghost_norms_equal_the_norms_of_written_out_gradients(sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(2)
    network = Network(sizes=sizes)
    weights = generator.normal(size=network.n_weights)
    rows, labels = generator.normal(size=(9, sizes[0])), generator.integers(0, sizes[-1], 9)
    gradients = example_gradients(network, weights, rows, labels)
    activity = network.activity(weights, rows, labels)
    np.testing.assert_allclose(network.squared_norms(activity), (gradients**2).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(network.l1_norms(activity), np.abs(gradients).sum(axis=1), rtol=1e-12)


def test_the_sum_is_of_products_and_not_the_product_of_sums() -> None:
    network = Network(sizes=(2, 2))
    rows, labels = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
    activity = network.activity(network.initial(), rows, labels)
    total = network.summed(activity)
    product_of_sums = np.outer(rows.sum(axis=0), activity.errors[0].sum(axis=1))
    assert not np.allclose(total[:4].reshape(2, 2), product_of_sums)


def test_starting_weights_are_the_same_for_everybody() -> None:
    network = Network(sizes=(5, 4, 2))
    assert (network.initial() == network.initial()).all()
    assert (Network(sizes=(5, 2)).initial() == 0).all()
    assert 0.1 < network.initial()[:20].std() < 2


def test_a_network_needs_inputs_and_classes() -> None:
    with pytest.raises(ParameterError, match="sizes must be at least inputs and classes"):
        Network(sizes=(3,))
    with pytest.raises(ParameterError, match="size must be a whole number >= 1"):
        Network(sizes=(3, 0, 2))


def test_plain_training_learns_two_blobs() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 600)
    rows = generator.normal(0, 0.5, (600, 2)) + 2.0 * labels[:, None]
    network = Network(sizes=(2, 8, 2))
    training = PlainTraining(network=network, epochs=20, batch_size=50, learning_rate=0.1, decay=0.001)
    weights = training.run(Data(rows=rows, labels=labels), Stream(bytes(32)))
    assert (network.probabilities(weights, rows).argmax(axis=1) == labels).mean() > 0.97


def test_bounded_training_stays_inside_its_bound() -> None:
    generator = np.random.default_rng(0)
    data = Data(rows=generator.normal(size=(200, 3)) * 50, labels=generator.integers(0, 2, 200))
    training = PlainTraining(network=Network(sizes=(3, 6, 2)), epochs=3, batch_size=20, learning_rate=5.0, bound=0.25)
    assert np.abs(training.run(data, Stream(bytes(32)))).max() <= 0.25


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), sizes=st.sampled_from(SHAPES))
def test_one_records_gradient_lies_inside_the_corrected_intervals(seed: int, sizes: tuple[int, ...]) -> None:
    generator = np.random.default_rng(seed)
    network = Network(sizes=sizes)
    weights = generator.normal(size=network.n_weights) * 2
    low, high = update_intervals(network, weights)
    rows, labels = generator.uniform(size=(20, sizes[0])), generator.integers(0, sizes[-1], 20)
    gradients = example_gradients(network, weights, rows, labels)
    assert (low <= high).all()
    assert (gradients >= low - 1e-12).all()
    assert (gradients <= high + 1e-12).all()


def test_the_papers_equation_21_gives_a_negative_range_where_ours_does_not() -> None:
    network = Network(sizes=(1, 1, 2))
    weights = np.array([0.1, -1.0, 1.0, -1.0, 0.0, 0.0])
    paper_most = 0.1 * 1 - 1.0  # max(y) = max(x), as printed: below zero, so that the range [0.9, -0.9] has negative width
    assert paper_most < 0
    low, high = update_intervals(network, weights)
    assert (high - low >= 0).all()
