"""The paper's interval bounds as validation of thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learning.learning_samples import SCHEMA, example_gradients, people, points
from sabun.learning import PrivateClassifier
from sabun.learning.network import Network
from sabun.learning.update_bounds import compared, update_intervals


@settings(max_examples=150, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(lambda hidden: (3, *hidden, 2)),
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([0.01, 1.0, 30.0]),
    corner=st.booleans(),
)
def test_every_records_gradient_lies_inside_the_intervals(sizes: tuple[int, ...], seed: int, size: float, corner: bool) -> None:
    generator = np.random.default_rng(seed)
    network = Network(sizes=sizes)
    weights = generator.normal(0, size, network.n_weights)
    rows = generator.uniform(0, 1, (6, 3))
    if corner:
        rows = np.round(rows)
    low, high = update_intervals(network, weights)
    found = example_gradients(network, weights, rows, generator.integers(0, 2, 6))
    slack = 1e-9 * (1 + np.abs(low) + np.abs(high))
    assert (found >= low - slack).all()
    assert (found <= high + slack).all()


def test_a_sum_over_a_batch_stays_within_reach() -> None:
    generator = np.random.default_rng(3)
    network = Network(sizes=(4, 5, 3))
    weights = generator.normal(size=network.n_weights)
    gradients = example_gradients(network, weights, generator.uniform(0, 1, (20, 4)), generator.integers(0, 3, 20))
    facts, _ = compared(network, weights, threshold=0.1, batch_size=20)
    assert np.abs(gradients.sum(axis=0)).max() <= facts["largest_batch_sum"]
    assert len(facts["mean_width_of_layers"]) == 2


def test_equation_21_as_printed_would_make_an_interval_that_nothing_is_in() -> None:
    """With w = 0.1, b = -1 the printed max(y) = max(x) is -0.9, below min(y) = 0; the corrected interval holds the truth."""
    network = Network(sizes=(1, 1, 2))
    weights = np.array([0.1, -1.0, 1.0, -1.0, 0.0, 0.0])
    most = 0.1 * 1.0 - 1.0
    assert most < max(0.0 * 0.1 - 1.0, 0.0)
    low, high = update_intervals(network, weights)
    assert (low <= high).all()
    found = example_gradients(network, weights, np.array([[1.0]]), np.array([0]))[0]
    assert (low <= found).all()
    assert (found <= high).all()


def fitted(**changes: object) -> PrivateClassifier:
    frame, label = people(120)
    settings = {"method": "anonymized-learning", "epsilon": 1, "hidden": (4,), "schema": SCHEMA, "batch_size": 10} | changes
    return PrivateClassifier(**settings).fit(frame, label)  # type: ignore[arg-type]


def test_the_card_compares_the_threshold_with_the_intervals() -> None:
    card = fitted().card_
    facts = card.to_dict()["parameters"]["intervals"]
    assert len(facts["mean_width_of_layers"]) == 2
    assert facts["largest_batch_sum_at_start"] > 0.1
    assert not any("threshold" in words for words in card.warnings)


def test_a_threshold_out_of_reach_is_warned_about_in_the_card() -> None:
    [found] = [words for words in fitted(threshold=10_000.0).card_.warnings if "threshold" in words]
    assert "the threshold 10000 is larger than any sum over a batch at the starting weights" in found
    assert "Choose a smaller threshold" in found


def test_plain_numbers_have_no_intervals() -> None:
    card = PrivateClassifier(method="anonymized-learning", hidden=(4,)).fit(*points(60)).card_
    assert "intervals" not in card.to_dict()["parameters"]


@pytest.mark.parametrize("size", [1e100, 1e200])
def test_absurd_weights_give_finite_facts(size: float) -> None:
    network = Network(sizes=(2, 3, 3, 2))
    facts, _ = compared(network, np.full(network.n_weights, size), threshold=1.0, batch_size=10)
    assert np.isfinite([*facts["mean_width_of_layers"], facts["largest_batch_sum"]]).all()
