"""The paper's Theorem 4 refuted; what a per-parameter promise hides; why clipping must come before noise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import betaincinv

from sabun.learning.network import Network
from sabun.learning.stream import Stream

EPSILON = 0.5


def laplace(generator: np.random.Generator, scale: float, shape: tuple[int, ...]) -> np.ndarray:
    """Laplace noise as a difference of exponentials; single precision is enough to count hits."""
    drawn = generator.standard_exponential(shape, dtype=np.float32)
    drawn -= generator.standard_exponential(shape, dtype=np.float32)
    return drawn * np.float32(scale)


def released_bias(label: int, batches: int, *, runs: int, inputs: int, seed: int) -> np.ndarray:
    """Whether every update of the first bias was cut to +1, for many runs of AnonymizedLearning (R1) on the counterexample.

    One layer, two classes, thresholds 1, one pass, step size 1. Batch 1 holds the target (all ones) with its label and an
    all-zero row of class 1; each later batch holds two small equal rows, one of each class.
    """
    generator = np.random.default_rng(seed)
    small, scale = 0.05, 2.0 / EPSILON
    hits = np.ones(runs, dtype=bool)
    start = np.array([0.5 - (label == 0), 0.5 - (label == 1)])
    noise = laplace(generator, scale, (runs, inputs, 2))
    update = np.clip(np.clip(start, -1, 1) + noise, -1, 1)
    weights = -update
    first = start + np.array([0.5 - 1.0, 0.5])
    bias_update = np.clip(np.clip(first, -1, 1) + laplace(generator, scale, (runs, 2)), -1, 1)
    bias = -bias_update
    hits &= bias_update[:, 0] == 1.0
    for _ in range(batches - 1):
        logits = small * weights.sum(axis=1) + bias
        share = np.exp(logits - logits.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        total = 2 * share - 1.0  # two rows, one of each class
        step = np.clip(np.clip(small * total[:, None, :], -1, 1) + laplace(generator, scale, weights.shape), -1, 1)
        weights = weights - step
        bias_step = np.clip(np.clip(total, -1, 1) + laplace(generator, scale, (runs, 2)), -1, 1)
        bias = bias - bias_step
        hits &= bias_step[:, 0] == 1.0
    return hits


def log_ratio_lower(hits: int, others: int, runs: int, error: float = 1e-2) -> float:
    """Clopper-Pearson lower bound on the log-ratio of two probabilities."""
    low = betaincinv(hits, runs - hits + 1, error / 2) if hits else 0.0
    high = betaincinv(others + 1, max(runs - others, 1e-9), 1 - error / 2)
    return math.log(low / high) if low > 0 else -math.inf


def test_theorem_4_is_false_for_four_batches() -> None:
    """Claimed: each parameter by itself is 0.5-DP. One bias leaks more, on an event fixed in advance."""
    runs = 8000
    parts = [
        [released_bias(label, 4, runs=500, inputs=1200, seed=100 * label + i).sum() for i in range(16)] for label in (1, 0)
    ]
    ahead, behind = int(sum(parts[0])), int(sum(parts[1]))
    most, least = max(ahead, behind), min(ahead, behind)
    assert log_ratio_lower(most, least, runs) > EPSILON
    # What we promise instead covers it: min(P, batches) epsilon.
    assert math.log(most / max(least, 1)) <= 4 * EPSILON


def test_theorem_4_holds_for_a_single_batch() -> None:
    runs = 4000
    counts = [int(released_bias(label, 1, runs=runs, inputs=50, seed=label).sum()) for label in (1, 0)]
    assert log_ratio_lower(max(counts), min(counts), runs) <= EPSILON


def test_noise_before_the_cut_is_unsound() -> None:
    """Reading R3: a record that moves the sum by 50 with thresholds of 1 and epsilon 1 moves the atom's log-odds by 13.7."""
    scale = 2.0

    def at_top(centre: float) -> float:
        return 1 - 0.5 * math.exp((1 - centre) / scale) if centre >= 1 else 0.5 * math.exp(-(1 - centre) / scale)

    loss = math.log(at_top(25.0) / at_top(-25.0))
    assert loss == pytest.approx(13.7, abs=0.1)
    assert loss > 1


def test_the_papers_printed_lemma_1_is_a_constant() -> None:
    printed = {min(-1.0, max(1.0, value)) for value in np.linspace(-5, 5, 11)}
    assert printed == {-1.0}


def trained(rows: np.ndarray, labels: np.ndarray, network: Network) -> np.ndarray:
    from sabun.learning.plain_training import PlainTraining
    from sabun.learning.training import Data

    training = PlainTraining(network=network, epochs=10, batch_size=10, learning_rate=0.5, bound=1.0)
    return training.run(Data(rows=rows, labels=labels), Stream(bytes(32)))


def test_all_weights_together_betray_a_record_that_each_one_hides() -> None:
    """The joint attack on LearningFirst: per-weight epsilon 1 for 69,002 weights, likelihood ratio over all of them.

    Any mechanism that is 1-DP as a whole has an attack AUC of at most e / (1 + e) = 0.731.
    """
    generator = np.random.default_rng(0)
    network = Network(sizes=(20, 3000, 2))
    rows, labels = generator.uniform(size=(20, 20)), generator.integers(0, 2, 20)
    other_rows, other_labels = rows.copy(), labels.copy()
    other_rows[0], other_labels[0] = 1.0, 1 - labels[0]
    one, two = trained(rows, labels, network), trained(other_rows, other_labels, network)
    scale = 2.0  # range 2 over epsilon 1
    scores = []
    for truth in (one, two):
        released = truth + laplace(generator, scale, (150, network.n_weights))
        scores.append((np.abs(released - two) - np.abs(released - one)).sum(axis=1))
    auc = (scores[0][:, None] > scores[1][None, :]).mean()
    assert auc > math.e / (1 + math.e)


def test_a_threshold_that_follows_the_weights_breaks_even_one_batch() -> None:
    """With scale = min(user, interval) the noise's size tells what other weights hold: an event impossible on one side."""
    narrow, wide = 1e-6, 1.0
    generator = np.random.default_rng(0)
    updates = [np.clip(laplace(generator, 2 * width / EPSILON, (4000,)), -width, width) for width in (narrow, wide)]
    beyond = [(np.abs(update) > 0.5).sum() for update in updates]
    assert beyond[0] == 0
    assert log_ratio_lower(int(beyond[1]), int(beyond[0]), 4000) > EPSILON
