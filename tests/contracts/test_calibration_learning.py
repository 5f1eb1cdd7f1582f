"""A whole fit of every method of `sabun.learning`: is the noise that is drawn what the promise needs?

What every draw costs is worked out from what one record can change; all costs together are the promise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.typing import NDArray

from contracts.laws import enough, gaussian_sigma, rho_of, sampled_gaussian_delta
from contracts.watch import Heard, zeros
from sabun.learning import PrivateClassifier, clipping, dpadam, dpsgd, standardizing
from sabun.learning.synthesis import structure
from sabun.records import Column, Schema

TRIED = {
    *(
        "dp-adam",
        "dp-sgd",
        "noisy-centroids",
        "laplace-sgd",
        "objective-perturbation",
        "anonymizing-first",
        "learning-first",
        "anonymized-learning",
    ),
    *("bayes-net", "microaggregation", "histogram"),
}

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


TABLE = np.random.default_rng(0).uniform(-1, 1, (30, 2))
LABELS = ["a", "b"] * 15
SCHEMA = Schema(
    columns=[
        Column.number("x", lower=-1, upper=1),
        Column.number("y", lower=-1, upper=1),
        Column.category("z", ["u", "v", "w"], missing="u"),
    ]
)
FRAME = pandas.DataFrame({"x": TABLE[:, 0], "y": TABLE[:, 1], "z": ["u", "v", "w"] * 10})


def _classifier(method: str, X: Any = TABLE, y: Any = LABELS, **how: Any) -> PrivateClassifier:
    few = {"n_synthetic": 50} if method == "anonymizing-first" else {}
    facts: dict[str, Any] = {"epsilon": 1.0, "hidden": (), "classes": ["a", "b"]} | few | how
    return PrivateClassifier(method=method, **facts).fit(X, y)


@pytest.fixture
def noisy_sums(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, NDArray[np.float64]]]:
    """(sigma, the sum of clipped gradients) of each step of DP-SGD, both in units of the clip norm."""
    found: list[tuple[float, NDArray[np.float64]]] = []
    original = dpsgd.rounded_gaussian

    def listener(centre: Any, *, sigma: float, **how: Any) -> Any:
        found.append((float(sigma), centre.copy()))
        return original(centre, sigma=sigma, **how)

    for module in (dpsgd, dpadam, standardizing):
        monkeypatch.setattr(module, "rounded_gaussian", listener)
    return found


def _one_record(relation: str, epsilon: float, delta: float) -> tuple[float, float]:
    """What a record may cost when it is added or removed: a replacement is two such steps."""
    return (epsilon, delta) if relation == "add-remove" else (epsilon / 2, delta / (1 + math.exp(epsilon / 2)))


@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_training_on_everybody_is_gaussian_noise(relation: str, steps: int, noisy_sums: list[tuple[float, Any]]) -> None:
    n_public = 30 if relation == "add-remove" else None
    model = _classifier("dp-sgd", delta=1e-3, sampling_rate=1.0, epochs=steps, relation=relation, n_public=n_public)
    assert len(noisy_sums) == steps
    needed = gaussian_sigma(*_one_record(relation, 1.0, 1e-3)) * math.sqrt(steps)
    assert all(enough(sigma, needed, waste=1.01) for sigma, _ in noisy_sums)
    assert (model.guarantee_.epsilon, model.guarantee_.delta, model.guarantee_.relation) == (1, Fraction(1, 1000), relation)


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_whole_steps_and_the_scaling_of_inputs_add_up(
    relation: str, standardize: bool, noisy_sums: list[tuple[float, Any]]
) -> None:
    n_public = 30 if relation == "add-remove" else None
    how: dict[str, Any] = {"delta": 1e-3, "epochs": 3, "relation": relation, "n_public": n_public, "schema": SCHEMA}
    model = _classifier("dp-adam", X=FRAME, standardize=standardize, **how)
    assert len(noisy_sums) == 3 + standardize
    # Two number columns and the count: a record adds (z, z^2 - 1/2) twice and 1, at most sqrt(2 * 5/4 + 1) long.
    lengths = [math.sqrt(2 * 1.25 + 1)] * standardize + [1.0] * 3
    moved = 1 if relation == "add-remove" else 2
    told = sum((moved * length / sigma) ** 2 for length, (sigma, _) in zip(lengths, noisy_sums, strict=True))
    assert enough(1 / math.sqrt(told), gaussian_sigma(1.0, 1e-3), waste=1.01)
    assert (model.guarantee_.epsilon, model.guarantee_.delta, model.guarantee_.relation) == (1, Fraction(1, 1000), relation)


def test_one_record_moves_what_inputs_are_scaled_by_as_far_as_it_may(noisy_sums: list[tuple[float, Any]]) -> None:
    farthest = pandas.DataFrame({"x": [1.0, -1.0], "y": [-1.0, 1.0], "z": ["u", "v"]})
    for row in (farthest[:1], farthest[1:]):
        _classifier("dp-adam", X=row, y=["a"], schema=SCHEMA, delta=1e-3, epochs=1, n_public=1)
        centre = noisy_sums.pop(0)[1]
        assert np.linalg.norm(centre) == pytest.approx(math.sqrt(2 * 1.25 + 1), rel=1e-12)
        noisy_sums.clear()


def test_a_private_number_of_records_is_paid_for_by_whole_steps(heard: Heard, noisy_sums: list[tuple[float, Any]]) -> None:
    _classifier("dp-adam", delta=1e-3, epochs=1, relation="add-remove")
    for_count = 1 / heard.only("discrete_laplace").parameter
    assert enough(0.005, for_count, waste=1.01)
    [(sigma, _)] = noisy_sums
    assert gaussian_sigma(1.0, 1e-3) < sigma <= gaussian_sigma(1.0 - for_count, 1e-3) * 1.01


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_training_on_batches_needs_less_noise_but_enough(relation: str, noisy_sums: list[tuple[float, Any]]) -> None:
    _classifier(
        "dp-sgd", delta=1e-3, sampling_rate=0.5, epochs=1, relation=relation, n_public=30 if "add" in relation else None
    )
    [(sigma, _), (same, _)] = noisy_sums
    assert sigma == same
    epsilon, delta = _one_record(relation, 1.0, 1e-3)
    assert sampled_gaussian_delta(sigma, rate=0.5, steps=2, epsilon=epsilon) <= delta
    assert sampled_gaussian_delta(sigma * 0.99, rate=0.5, steps=2, epsilon=epsilon) > delta


def test_a_private_number_of_records_is_paid_for(heard: Heard, noisy_sums: list[tuple[float, Any]]) -> None:
    _classifier("dp-sgd", delta=1e-3, sampling_rate=1.0, epochs=1, relation="add-remove")
    for_count = 1 / heard.only("discrete_laplace").parameter
    assert enough(0.02, for_count, waste=1.01)
    [(sigma, _)] = noisy_sums
    assert gaussian_sigma(1.0, 1e-3) < sigma <= gaussian_sigma(1.0 - for_count, 1e-3) * 1.01


@pytest.mark.parametrize("clip_norm", [0.01, 1.0])
@pytest.mark.parametrize("hidden", [(), (3,)])
def test_one_record_moves_a_sum_of_gradients_by_one(
    clip_norm: float, hidden: tuple[int, ...], noisy_sums: list[tuple[float, Any]]
) -> None:
    """The sum over a single record is what that record adds; its gradient is far longer than the clip norm."""
    how: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 1, "hidden": hidden, "clip_norm": clip_norm}
    _classifier("dp-sgd", X=[[1000.0, -1000.0]], y=["a"], relation="add-remove", n_public=1, **how)
    [(_, centre)] = noisy_sums
    assert 0.999 <= np.linalg.norm(centre) <= 1 + 1e-6


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_pure_training_pays_for_every_step(relation: str, rate: float, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[float] = []
    original = clipping.ClippedSum.__call__

    def listener(self: Any, *rest: Any) -> Any:
        total = original(self, *rest)
        sums.append(float(np.abs(total).sum()))
        return total

    monkeypatch.setattr(clipping.ClippedSum, "__call__", listener)
    how: dict[str, Any] = {"relation": relation, "n_public": 1 if relation == "add-remove" else None}
    model = _classifier("laplace-sgd", X=[[1000.0, -1000.0]], y=["a"], sampling_rate=rate, epochs=2, clip_norm=0.1, **how)
    steps = heard.of("discrete_laplace")
    assert len(steps) == 2 / rate
    assert max(sums) <= 1 + 1e-6
    assert max(sums) > 0.999 or rate < 1
    # The grid has 2^30 steps to the clip norm; a step of e0 costs ln(1 + q (e^e0 - 1)) to those who may not take part.
    spent = sum(math.log1p(rate * math.expm1(2.0**30 / step.parameter)) for step in steps)
    assert enough(_one_record(relation, 1.0, 0.0)[0], spent, waste=1.01)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1, 0)


def test_a_private_number_of_records_is_paid_for_in_pure_training(heard: Heard) -> None:
    _classifier("laplace-sgd", sampling_rate=1.0, epochs=2, relation="add-remove")
    size, *steps = heard.of("discrete_laplace")
    assert enough(1.0, 1 / size.parameter + sum(2.0**30 / step.parameter for step in steps), waste=1.01)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_noisy_centroids_pay_for_the_scaling_and_for_one_class(relation: str, heard: Heard) -> None:
    model = _classifier("noisy-centroids", X=FRAME, schema=SCHEMA, relation=relation)
    pooled, *classes = heard.of("cubical_laplace")
    # Five inputs, squares of two, the count; then five inputs and the count for each class. A row moves one class's sums, a
    # replacement those of two, or one twice as far.
    assert [draw.count for draw in (pooled, *classes)] == [8, 6, 6]
    moved = 1 if relation == "add-remove" else 2
    spent = moved * (2.0**24 / pooled.parameter + max(2.0**12 / draw.parameter for draw in classes))
    assert enough(1.0, spent, waste=1.0001)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1, 0)


def test_one_record_moves_its_class_by_one_step_of_the_grid(heard: Heard) -> None:
    """Without noise the pooled sums of a row are whole steps up to 2^24, those of its class up to 2^12."""
    heard.instead = zeros
    model = _classifier("noisy-centroids", X=FRAME[:1], y=["a"], schema=SCHEMA)
    assert np.isfinite(model.model_.weights).all()
    assert len(heard.of("cubical_laplace")) == 3


def test_the_perturbed_objective_adds_up(heard: Heard) -> None:
    model = _classifier("objective-perturbation", regularisation=5)
    objective, output = heard.of("spherical_laplace")
    assert objective.count == output.count == 3
    # A record's gradient has length at most 1; the loss curves by at most 1/4 along it.
    spent = 2 * 2.0**20 / objective.parameter + math.log1p(1 / (4 * 5))
    # The found point is within (1e-4 + rounding of the noise) / lambda of the minimiser; twice that, in steps of the grid.
    apart = 2 * (1e-4 + math.sqrt(3) * 2.0**-21) / 5 * 2.0**24 + math.sqrt(3)
    assert enough(1.0, spent + apart / output.parameter, waste=1.01)
    assert model.guarantee_.epsilon == 1


def test_the_papers_two_ways_of_training_have_noise_for_one_weight(heard: Heard) -> None:
    model = _classifier("learning-first", weight_bound=0.5, epochs=1)
    assert enough(heard.only("discrete_laplace").parameter, 2 * 0.5 * 2.0**20 / 1.0, waste=1.01)
    assert (model.guarantee_.scope, model.guarantee_.epsilon, model.guarantee_.joint_epsilon) == ("per-parameter", 1, 6)
    heard.draws.clear()
    model = _classifier("anonymized-learning", threshold=0.25, epochs=3, batch_size=10)
    steps = heard.of("discrete_laplace")
    assert len(steps) == 3 * 3
    assert all(enough(step.parameter, 2 * 0.25 * 2.0**24 * 3 / 1.0, waste=1.01) for step in steps)
    assert model.guarantee_.epsilon == 3, "three batches of a pass see each weight, which depends on all of them"
    assert model.guarantee_.joint_epsilon == 6


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_synthetic_table_from_a_histogram_has_noise_for_the_cells_that_change(relation: str, heard: Heard) -> None:
    how: dict[str, Any] = {"schema": SCHEMA, "synthesis": "histogram", "bins": 2, "relation": relation, "epochs": 1}
    _classifier("anonymizing-first", X=FRAME, **how)
    assert enough(heard.only("discrete_laplace").parameter, 1 if relation == "add-remove" else 2, waste=1.01)


def test_a_table_of_group_means_has_noise_for_a_member_of_each_group(heard: Heard) -> None:
    _classifier("anonymizing-first", X=FRAME, schema=SCHEMA, synthesis="microaggregation", group_size=7, epochs=1)
    # A replacement shifts one member of each of the five groups: by 1 in each number, by 2 in the category and in the label.
    assert enough(heard.only("discrete_laplace").parameter, 5 * (1 + 1 + 2 + 2) * 2.0**10, waste=1.01)


@pytest.mark.parametrize("delta", [None, 1e-5])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_synthetic_table_from_a_network_adds_up(
    relation: str, delta: float | None, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices: list[float] = []
    original = structure._exponential

    def listener(pairs: Any, scores: Any, rate: Fraction, coin: Any) -> Any:
        choices.append(float(rate))
        return original(pairs, scores, rate, coin)

    monkeypatch.setattr(structure, "_exponential", listener)
    model = _classifier("anonymizing-first", X=FRAME, schema=SCHEMA, delta=delta, relation=relation, bins=2, epochs=1)
    changed, moved = (1, 4) if relation == "add-remove" else (2, 8)
    tree = [2 * moved * rate for rate in choices]
    assert len(tree) == 2
    if delta is None:
        counts = heard.of("discrete_laplace")
        spent = sum(changed / draw.parameter for draw in counts) + sum(tree)
        assert enough(1.0, spent, waste=1.01)
    else:
        counts = heard.of("discrete_gaussian")
        spent = sum(changed / (2 * draw.parameter) for draw in counts) + sum(each**2 / 2 for each in tree)
        assert enough(rho_of(1, delta), spent, waste=1.01)
    assert len(counts) == len(heard.draws) == 1 + 3
    assert (model.guarantee_.epsilon, float(model.guarantee_.delta)) == (1, delta or 0.0)


def test_a_joint_epsilon_is_shared_by_all_weights(heard: Heard) -> None:
    model = _classifier("learning-first", weight_bound=0.5, epochs=1, joint_epsilon=3)
    assert enough(heard.only("discrete_laplace").parameter, 2 * 0.5 * 2.0**20 / (3 / 6), waste=1.01)
    assert model.guarantee_.joint_epsilon == 3
    heard.draws.clear()
    model = _classifier("anonymized-learning", threshold=0.25, epochs=3, batch_size=10, joint_epsilon=3, delta=1e-4)
    # A record is in one batch of each of the three passes, where it moves each of the six sums across their whole range.
    each = [2 * 0.25 * 2.0**24 / step.parameter for step in heard.of("discrete_laplace")]
    assert enough(rho_of(3, 1e-4), 3 * 6 * max(each) ** 2 / 2, waste=1.01)
    assert model.guarantee_.epsilon <= 3


def test_a_wild_row_moves_the_perturbed_minimum_no_farther(heard: Heard) -> None:
    """Without noise: a row's gradient has length at most 1, whatever is in it: replacing it moves the minimum by 2 / lambda."""
    heard.instead = zeros
    found = []
    for wild in ([1000.0, 1000.0], [-1000.0, -1000.0]):
        model = _classifier("objective-perturbation", X=[[0.0, 0.0]] * 4 + [wild], y=["b"] * 5, regularisation=5)
        found.append(
            np.asarray(model.release_["weights"]) * math.sqrt(3)
        )  # rows are divided by the longest (x, y, 1) within -1..1
    moved = float(np.linalg.norm(found[0] - found[1]))
    assert 0.05 < moved <= 2 / 5 * (1 + 1e-3)


def test_wild_rows_move_a_noisy_update_no_farther_than_its_range(heard: Heard) -> None:
    """Noise of the whole range drowns every sum that was cut to it: all updates end at the lower, or all at the upper end."""
    found = []
    for sign in (-1, 1):
        heard.instead = lambda draw, sign=sign: np.full(draw.count, sign * 2 * 2**22)
        how: dict[str, Any] = {"threshold": 0.25, "epochs": 1, "batch_size": 4, "learning_rate": 1.0, "epsilon": 1.0}
        model = _classifier("anonymized-learning", X=[[1e6, -1e6]] * 4, y=["a", "a", "a", "b"], **how)
        found.append(np.asarray(model.release_["weights"]))
    np.testing.assert_allclose(found[0] - found[1], 2 * 0.25 / 4, rtol=1e-12)
