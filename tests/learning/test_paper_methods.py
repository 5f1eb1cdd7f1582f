from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from learning.learning_samples import data, points, problem
from sabun.learning import PrivateClassifier
from sabun.learning.anonymized_learning import AnonymizedLearning
from sabun.learning.learning_first import LearningFirst
from sabun.learning.plain_training import PlainTraining
from sabun.learning.recompute import recompute
from sabun.learning.training import train, unheard
from sabun.privacy.noise import os_coin


def learning_first(epsilon: str = "1") -> LearningFirst:
    given = problem(relation="replace-one", delta=Fraction(0))
    training = PlainTraining(network=given.network((4,)), epochs=2, batch_size=10, learning_rate=0.1, bound=0.5)
    return LearningFirst(problem=given, training=training, weight_epsilon=Fraction(epsilon))


def anonymized(epsilon: str = "1", delta: str = "0", batch_size: int = 10) -> AnonymizedLearning:
    given = problem(relation="replace-one", delta=Fraction(delta))
    return AnonymizedLearning(
        problem=given,
        network=given.network((4,)),
        epochs=2,
        batch_size=batch_size,
        learning_rate=1.0,
        threshold=0.1,
        update_epsilon=Fraction(epsilon),
    )


def test_learning_first_says_what_all_weights_cost_together() -> None:
    method = learning_first()
    assert method.network.n_weights == 26
    assert method.guarantee.scope == "per-parameter"
    assert method.guarantee.epsilon == 1
    assert method.guarantee.joint_epsilon == 26
    assert recompute(method.account) == (26, 0)


def test_learning_first_stays_inside_its_bound_on_the_grid() -> None:
    weights = train(learning_first(), data(), coin=os_coin(), progress=unheard)["weights"]
    assert np.abs(weights).max() <= 0.5
    assert (np.ldexp(weights, 20) == np.rint(np.ldexp(weights, 20))).all()


def test_the_joint_figure_of_learning_first_is_tight() -> None:
    """P[released = -b] under a weight at -b and at +b: the ratio is e^epsilon for each weight, so e^(P epsilon) for all."""
    method = learning_first("1")
    [part] = method.parts
    steps, scale = part.high, float(part.width / method.weight_epsilon)
    ratio = np.exp(-1 / scale)
    tail = [ratio ** max(-steps - centre, 0) for centre in (-steps, steps)]  # both atoms at or below -b

    def at_or_below(edge: int, centre: int) -> float:
        distance = edge - centre
        return 1 - ratio ** (distance + 1) / (1 + ratio) if distance >= 0 else ratio**-distance / (1 + ratio)

    del tail
    loss = np.log(at_or_below(-steps, -steps) / at_or_below(-steps, steps))
    assert loss == pytest.approx(1.0, abs=1e-5)
    assert loss <= 1.0 + 1e-12


def test_a_weight_is_worth_batches_times_epsilon_and_not_epsilon() -> None:
    method = anonymized(batch_size=10)
    assert method.batches == 10
    assert method.guarantee.scope == "per-parameter"
    assert method.guarantee.epsilon == 10
    assert method.guarantee.joint_epsilon == 26
    assert recompute(method.account) == (26, 0)
    assert anonymized(batch_size=100).guarantee.epsilon == 1
    assert anonymized(batch_size=1).guarantee.epsilon == 26


def test_with_a_delta_the_promise_is_joint() -> None:
    method = anonymized(epsilon="1/10", delta="1/100000")
    assert method.guarantee.scope == "joint"
    assert method.guarantee.epsilon == recompute(method.account)[0]


def test_updates_lie_on_the_grid_inside_the_thresholds() -> None:
    from sabun.learning.stream import Stream

    method = anonymized()
    noisy = method._noisy(np.linspace(-5, 5, 26), method.parts, Stream(bytes(32)), 0)
    assert np.abs(noisy).max() <= 0.1 + 2.0**-24
    assert (np.ldexp(noisy, 24) == np.rint(np.ldexp(noisy, 24))).all()


def test_rows_without_a_label_keep_their_place() -> None:
    method, table = anonymized(), data(100)
    changed = table.labels.copy()
    changed[7] = -1
    one = method._sum(method.network.initial(), table, np.arange(6, 8))
    other = method._sum(method.network.initial(), type(table)(rows=table.rows, labels=changed), np.arange(6, 8))
    alone = method._sum(method.network.initial(), table, np.arange(6, 7))
    np.testing.assert_allclose(other, alone)
    assert not np.allclose(one, other)
    assert train(method, table, coin=os_coin(), progress=unheard)["weights"].shape == (26,)


def test_progress_of_learning_first_says_nothing_about_the_number_of_labelled_rows() -> None:
    heard: dict[int, list[str]] = {}
    for known in (40, 120):
        X, y = points(200)
        y = y.astype(object)
        y[known:] = "unknown"
        words: list[str] = heard.setdefault(known, [])
        PrivateClassifier(
            method="learning-first",
            classes=[0, 1],
            hidden=(),
            epochs=2,
            batch_size=10,
            progress=lambda share, said, words=words: words.append(said),  # type: ignore[misc]
        ).fit(X, y)
    said = ["epoch 1 of 2, epsilon so far at most 0", "epoch 2 of 2, epsilon so far at most 0"]
    assert heard[40] == heard[120] == said
