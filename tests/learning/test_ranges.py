"""Ranges of their own for weights and biases, and decay: what they change, and that they change no promise."""

from __future__ import annotations

import hashlib
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from learning.learning_samples import data, points, problem
from sabun.errors import ParameterError
from sabun.learning import PrivateClassifier
from sabun.learning.anonymized_learning import AnonymizedLearning
from sabun.learning.learning_first import LearningFirst
from sabun.learning.methods import calibrated
from sabun.learning.network import Network
from sabun.learning.plain_training import PlainTraining
from sabun.learning.ranges import Ranges, bound_of, noisy_within, parts_of
from sabun.learning.settings import (
    AnonymizedLearningSettings,
    AnonymizingFirstSettings,
    DpSgdSettings,
    LaplaceSgdSettings,
    LearningFirstSettings,
)
from sabun.learning.stream import Stream
from sabun.learning.training import Run, train, unheard
from sabun.learning.typed import chosen
from sabun.privacy.noise import Grid, os_coin

NETWORK = Network(sizes=(3, 3, 2))
BIASES = [9, 10, 11, 18, 19]
RANGES = Ranges(weights=(-0.25, 0.5), biases=(0.125, 1.125))
GRID = Grid(-3)


def fitted(method: Any, **more: Any) -> PrivateClassifier:
    X, y = points(60)
    terms: dict[str, Any] = {"epsilon": 2, "classes": [0, 1], "hidden": (3,), "epochs": 2, "relation": "replace-one"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivateClassifier(method=method, random_state=3, **terms | more).fit(X, y)


def test_every_coordinate_is_in_the_part_of_its_kind() -> None:
    weights, biases = parts_of(RANGES, NETWORK, GRID)
    assert biases.places.tolist() == BIASES
    assert sorted([*weights.places, *biases.places]) == list(range(NETWORK.n_weights))
    assert (weights.low, weights.high, weights.width) == (-2, 4, 6)
    assert (biases.low, biases.high, biases.width) == (1, 9, 8)
    [one] = parts_of(0.5, NETWORK, GRID)
    assert (one.low, one.high) == (-4, 4)


@pytest.mark.parametrize("end", [0, 1])
def test_the_law_of_each_kind_is_that_of_its_own_width(end: int) -> None:
    """At one end of a range, the released number is that end with probability 1 / (1 + r), r = exp(-epsilon / width)."""
    parts, n = parts_of(RANGES, NETWORK, GRID), NETWORK.n_weights
    far = np.full(n, (-1e9, 1e9)[end])
    drawn = np.array([noisy_within(far, parts, GRID, epsilon=Fraction(2), coin=os_coin()) for _ in range(1500)])
    for part in parts:
        ratio = np.exp(-2 / part.width)
        expected = 1 / (1 + ratio)
        hit = np.isclose(drawn[:, part.places], (part.low, part.high)[end] / 8)
        # 1,500 draws of 5 or 15 coordinates: five standard errors, once in two million.
        assert abs(hit.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / hit.size)
        assert drawn[:, part.places].min() >= part.low / 8
        assert drawn[:, part.places].max() <= part.high / 8


def test_what_is_no_number_counts_as_zero_and_is_cut() -> None:
    parts = parts_of(RANGES, NETWORK, GRID)
    odd = np.full(NETWORK.n_weights, np.nan)
    odd[0], odd[1] = np.inf, -np.inf
    tight = noisy_within(odd, parts, GRID, epsilon=Fraction(10**6), coin=os_coin())  # next to no noise
    assert tight[BIASES] == pytest.approx(0.125)
    assert tight[:3].tolist() == [0.5, -0.25, 0.0]


def test_learning_first_keeps_weights_and_biases_in_ranges_of_their_own() -> None:
    clf = fitted(LearningFirstSettings(weight_range=(-0.25, 0.5), bias_range=(0.125, 1.0)))
    for matrix, bias in clf.model_.network.layers(clf.model_.weights):
        assert matrix.min() >= -0.25
        assert matrix.max() <= 0.5
        assert bias.min() >= 0.125
        assert bias.max() <= 1.0
    facts = clf.release_.provenance.parameters
    assert list(facts["weight_range"]) == [-0.25, 0.5]
    assert "weight_bound" not in facts
    plain = fitted("learning-first")
    assert plain.release_.provenance.parameters["weight_bound"] == 0.5
    assert clf.guarantee_.joint_epsilon == plain.guarantee_.joint_epsilon
    assert clf.guarantee_.epsilon == plain.guarantee_.epsilon


def test_plain_training_stays_in_the_ranges_too() -> None:
    training = PlainTraining(network=NETWORK, epochs=3, batch_size=10, learning_rate=5.0, bound=RANGES)
    found = training.run(data(100), Stream(bytes(32)))
    assert found[BIASES].min() >= 0.125
    assert np.delete(found, BIASES).min() >= -0.25
    assert np.delete(found, BIASES).max() <= 0.5


def test_anonymized_learning_has_a_range_for_changes_of_biases() -> None:
    settings = AnonymizedLearningSettings(update_range=(-0.1, 0.2), bias_update_range=(-0.5, 0.0))
    clf = fitted(settings, epochs=1, learning_rate=1.0)
    start = clf.model_.network.initial()
    batches = -(-60 // 50)
    move = (clf.model_.weights - start) * 50
    biases = np.zeros(len(start), dtype=bool)
    for _, bias in clf.model_.network.layers(marks := np.zeros(len(start))):
        bias[:] = 1
    biases = marks != 0
    assert move[biases].min() >= -1e-6
    assert move[biases].max() <= 0.5 * batches + 1e-6
    assert move[~biases].min() >= -0.2 * batches - 1e-6
    assert move[~biases].max() <= 0.1 * batches + 1e-6
    usual = fitted("anonymized-learning", epochs=1)
    assert clf.guarantee_.joint_epsilon == usual.guarantee_.joint_epsilon
    assert list(clf.release_.provenance.parameters["bias_update_range"]) == [-0.5, 0.0]


def test_decay_shrinks_weights_and_leaves_biases() -> None:
    """One step with the same noise: the difference is rate * decay / batch of the weights it started from."""
    given = problem(relation="replace-one", delta=Fraction(0))
    network = given.network((4,))
    terms: dict[str, Any] = {"problem": given, "network": network, "epochs": 1, "batch_size": 100, "learning_rate": 2.0}
    terms |= {"threshold": 0.1, "update_epsilon": Fraction(1)}
    one, other = (AnonymizedLearning(**terms, decay=decay) for decay in (0.0, 0.3))
    found = []
    for method in (one, other):
        [state] = method.states(data(100), Stream(bytes(32)), progress=unheard, start=method.first())
        found.append(state.weights)
    expected = 2.0 * 0.3 / 100 * network.without_biases(network.initial())
    np.testing.assert_allclose(found[0] - found[1], expected, atol=1e-12)
    assert one.guarantee == other.guarantee
    assert one.account == other.account


@pytest.mark.parametrize("settings", [DpSgdSettings, LaplaceSgdSettings])
def test_decay_changes_the_weights_and_no_promise(settings: Any) -> None:
    usual, decayed = fitted(settings()), fitted(settings(weight_decay=0.5))
    assert np.linalg.norm(decayed.model_.weights) < np.linalg.norm(usual.model_.weights)
    assert decayed.guarantee_ == usual.guarantee_
    assert decayed.release_.provenance.parameters["weight_decay"] == 0.5
    assert "weight_decay" not in usual.release_.provenance.parameters
    assert decayed.release_.provenance.parameters["account"] == usual.release_.provenance.parameters["account"]


def test_the_usual_decay_of_plain_training_is_the_papers() -> None:
    assert LearningFirstSettings().weight_decay == AnonymizingFirstSettings().weight_decay == 0.001


FINGERPRINTS = {
    "learning-first": "51d004e60a9f3ea7",
    "anonymized-learning": "e9464581b3df4661",
}
"""Taken before there were ranges and decay: a checkpoint that was written then goes on now."""


@pytest.mark.parametrize("method", FINGERPRINTS)
def test_checkpoints_from_before_there_were_ranges_still_belong_to_their_runs(method: str) -> None:
    assert fingerprint(method) == FINGERPRINTS[method]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (DpSgdSettings(), DpSgdSettings(weight_decay=0.1)),
        (LaplaceSgdSettings(), LaplaceSgdSettings(weight_decay=0.1)),
        (AnonymizedLearningSettings(), AnonymizedLearningSettings(weight_decay=0.1)),
        (AnonymizedLearningSettings(), AnonymizedLearningSettings(bias_update_range=(-0.1, 0.1))),
        (LearningFirstSettings(), LearningFirstSettings(weight_decay=0.1)),
        (LearningFirstSettings(), LearningFirstSettings(weight_range=(-0.5, 0.5))),
    ],
)
def test_another_setting_is_another_run(one: Any, other: Any) -> None:
    assert fingerprint(one) != fingerprint(other)


def fingerprint(method: Any) -> str:
    X, y = points(60)
    terms: dict[str, Any] = {"epsilon": 2, "classes": [0, 1], "hidden": (3,), "epochs": 2, "relation": "replace-one"}
    clf = PrivateClassifier(method=method, random_state=3, **terms)
    choices = clf._checked()
    about, table = clf._opened(choices, X, y)
    run = Run(name="any", method=calibrated(choices, about), data=table, problem=about)
    return hashlib.sha256(b"".join(run.fingerprint())).hexdigest()[:16]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (LearningFirstSettings(weight_range=(0.5, -0.5)), "weight_range must be None or two numbers"),
        (LearningFirstSettings(bias_range=(0.5,)), "bias_range must be None or two numbers"),  # type: ignore[arg-type]
        (AnonymizedLearningSettings(update_range=(float("nan"), 1)), "update_range must be None or two numbers"),
        (AnonymizedLearningSettings(bias_update_range=(0.0, 1e-9)), "bias_update_range must be None or two numbers"),
        (DpSgdSettings(weight_decay=-1), "weight_decay must be between 0 and 1"),
        (LearningFirstSettings(weight_decay=float("inf")), "weight_decay must be between 0 and 1"),
    ],
)
def test_ranges_and_decay_have_rules(settings: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        PrivateClassifier(method=settings, epsilon=1)


def test_ranges_are_typed_as_low_and_high() -> None:
    told = chosen("learning-first", ["weight-range=-0.5:1", "weight-decay=0.01"])["method"]
    assert told == LearningFirstSettings(weight_range=(-0.5, 1.0), weight_decay=0.01)
    with pytest.raises(ParameterError, match="bias_range must be low:high, two numbers; got '3'"):
        chosen("learning-first", ["bias-range=3"])


def test_a_range_given_alone_leaves_the_other_at_the_bound() -> None:
    assert bound_of(0.5, None, None) == 0.5
    assert bound_of(0.5, (-1, 2), None) == Ranges(weights=(-1.0, 2.0), biases=(-0.5, 0.5))
    method = LearningFirst(
        problem=problem(relation="replace-one", delta=Fraction(0)),
        training=PlainTraining(network=NETWORK, epochs=1, batch_size=10, learning_rate=0.1, bound=RANGES),
        weight_epsilon=Fraction(1),
    )
    assert train(method, data(50), coin=os_coin(), progress=unheard)["weights"].shape == (NETWORK.n_weights,)


def test_noise_on_an_update_is_for_one_of_its_passes() -> None:
    """With E passes an update has epsilon / E: from the lower end it passes the middle with chance exp(-epsilon/2E) / 2."""
    given = problem(relation="replace-one", delta=Fraction(0))
    terms: dict[str, Any] = {"problem": given, "network": given.network((4,)), "batch_size": 10, "learning_rate": 1.0}
    method = AnonymizedLearning(**terms, epochs=4, threshold=RANGES, update_epsilon=Fraction(4))
    far = np.full(method.network.n_weights, -1e9)
    drawn = np.array([method._noisy(far, method.parts, Stream(bytes([place] * 32)), 0) for place in range(100)])
    expected = np.exp(-0.5) / 2
    for part in method.parts:
        passed = drawn[:, part.places] > sum(part.ends) / 2
        # At least 600 draws: five standard errors are below 0.1; one pass instead of four would give 0.068.
        assert abs(passed.mean() - expected) < 5 * np.sqrt(expected * (1 - expected) / passed.size)
