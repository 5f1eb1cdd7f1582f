"""A whole fit of every method of `sabun.learning`: is the noise that is drawn what the promise needs?

What every draw costs is worked out from what one record can change; all costs together are the promise.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numba
import numpy as np
import pandas
from numpy.typing import NDArray

from sabun.asking.evidence import Bench, Checklist, near, zeros
from sabun.asking.evidence.needed import gaussian_sigma, rho_of, sampled_gaussian_delta
from sabun.learning import PrivateClassifier, clipping, dpadam, dpsgd, standardizing
from sabun.learning.gaussian import rounded_gaussian
from sabun.learning.network import Network
from sabun.learning.passes import Passes
from sabun.learning.synthesis import structure
from sabun.records import Column, Schema

__all__ = ["CHECKS"]

CHECKS = Checklist()


TABLE = np.random.default_rng(0).uniform(-1, 1, (30, 2))
LABELS = ["a", "b"] * 15
SCHEMA = Schema(
    columns=(
        Column.number("x", lower=-1, upper=1),
        Column.number("y", lower=-1, upper=1),
        Column.category("z", ["u", "v", "w"], missing="u"),
    )
)
FRAME = pandas.DataFrame({"x": TABLE[:, 0], "y": TABLE[:, 1], "z": ["u", "v", "w"] * 10})


def _classifier(method: str, X: Any = TABLE, y: Any = LABELS, **how: Any) -> PrivateClassifier:
    few = {"n_synthetic": 50} if method == "anonymizing-first" else {}
    facts: dict[str, Any] = {"epsilon": 1.0, "hidden": (), "classes": ["a", "b"]} | few | how
    return PrivateClassifier(method=method, **facts).fit(X, y)


def _noisy_sums(bench: Bench) -> list[tuple[float, NDArray[np.float64]]]:
    """(sigma, the sum of clipped gradients) of each step of DP-SGD, both in units of the clip norm."""
    found: list[tuple[float, NDArray[np.float64]]] = []
    original = rounded_gaussian

    def listener(centre: Any, *, sigma: float, **how: Any) -> Any:
        found.append((float(sigma), centre.copy()))
        return original(centre, sigma=sigma, **how)

    for module in (dpsgd, dpadam, standardizing):
        bench.replace(module, "rounded_gaussian", listener)
    return found


def _one_record(relation: str, epsilon: float, delta: float) -> tuple[float, float]:
    """What a record may cost when it is added or removed: a replacement is two such steps."""
    return (epsilon, delta) if relation == "add-remove" else (epsilon / 2, delta / (1 + math.exp(epsilon / 2)))


@CHECKS("dp-sgd", steps=[1, 4], relation=["add-remove", "replace-one"])
def _training_on_everybody_is_gaussian_noise(bench: Bench, relation: str, steps: int) -> None:
    noisy_sums = _noisy_sums(bench)
    n_public = 30 if relation == "add-remove" else None
    model = _classifier("dp-sgd", delta=1e-3, sampling_rate=1.0, epochs=steps, relation=relation, n_public=n_public)
    bench.must(len(noisy_sums) == steps, "there is not one noisy sum for each step.")
    needed = gaussian_sigma(*_one_record(relation, 1.0, 1e-3)) * math.sqrt(steps)
    for sigma, _ in noisy_sums:
        bench.enough(sigma, needed, waste=1.01)
    bench.must(
        (model.guarantee_.epsilon, model.guarantee_.delta, model.guarantee_.relation) == (1, Fraction(1, 1000), relation),
        "the promise is not what was asked for.",
    )


@CHECKS("dp-adam", standardize=[False, True], relation=["add-remove", "replace-one"])
def _whole_steps_and_the_scaling_of_inputs_add_up(bench: Bench, relation: str, standardize: bool) -> None:
    noisy_sums = _noisy_sums(bench)
    n_public = 30 if relation == "add-remove" else None
    how: dict[str, Any] = {"delta": 1e-3, "epochs": 3, "relation": relation, "n_public": n_public, "schema": SCHEMA}
    model = _classifier("dp-adam", X=FRAME, standardize=standardize, **how)
    bench.must(len(noisy_sums) == 3 + standardize, "there are noisy sums besides those that are reckoned with.")
    # Two number columns, a label and the count: a record adds (z, z^2 - 1/2) twice, 1/2 and 1.
    lengths = [math.sqrt(2 * 1.25 + 0.25 + 1)] * standardize + [1.0] * 3
    moved = 1 if relation == "add-remove" else 2
    told = sum((moved * length / sigma) ** 2 for length, (sigma, _) in zip(lengths, noisy_sums, strict=True))
    bench.enough(1 / math.sqrt(told), gaussian_sigma(1.0, 1e-3), waste=1.01)
    bench.must(
        (model.guarantee_.epsilon, model.guarantee_.delta, model.guarantee_.relation) == (1, Fraction(1, 1000), relation),
        "the promise is not what was asked for.",
    )


@CHECKS("dp-adam")
def _one_record_moves_what_inputs_are_scaled_by_as_far_as_it_may(bench: Bench) -> None:
    noisy_sums = _noisy_sums(bench)
    farthest = pandas.DataFrame({"x": [1.0, -1.0], "y": [-1.0, 1.0], "z": ["u", "v"]})
    for row in (farthest[:1], farthest[1:]):
        _classifier("dp-adam", X=row, y=["a"], schema=SCHEMA, delta=1e-3, epochs=1, n_public=1)
        centre = noisy_sums.pop(0)[1]
        bench.must(
            near(float(np.linalg.norm(centre)), math.sqrt(2 * 1.25 + 0.25 + 1), rel=1e-12),
            "a person's part of the standardizing sums has another length than is reckoned with.",
        )
        noisy_sums.clear()


@CHECKS("dp-adam")
def _a_private_number_of_records_is_paid_for_by_whole_steps(bench: Bench) -> None:
    heard = bench.heard
    noisy_sums = _noisy_sums(bench)
    _classifier("dp-adam", delta=1e-3, epochs=1, relation="add-remove")
    for_count = 1 / heard.only("discrete_laplace").parameter
    bench.enough(0.005, for_count, waste=1.01)
    [(sigma, _)] = noisy_sums
    bench.must(
        gaussian_sigma(1.0, 1e-3) < sigma <= gaussian_sigma(1.0 - for_count, 1e-3) * 1.01,
        "the noise is not that of what the count leaves of epsilon.",
    )


@CHECKS("dp-sgd", relation=["add-remove", "replace-one"])
def _training_on_batches_needs_less_noise_but_enough(bench: Bench, relation: str) -> None:
    noisy_sums = _noisy_sums(bench)
    _classifier(
        "dp-sgd", delta=1e-3, sampling_rate=0.5, epochs=1, relation=relation, n_public=30 if "add" in relation else None
    )
    [(sigma, _), (same, _)] = noisy_sums
    bench.must(sigma == same, "the steps have different noise.")
    epsilon, delta = _one_record(relation, 1.0, 1e-3)
    bench.must(
        sampled_gaussian_delta(sigma, rate=0.5, steps=2, epsilon=epsilon) <= delta,
        "the noise is too small for the promised delta.",
    )
    bench.must(
        sampled_gaussian_delta(sigma * 0.99, rate=0.5, steps=2, epsilon=epsilon) > delta, "the noise is larger than is needed."
    )


@CHECKS("dp-sgd")
def _a_private_number_of_records_is_paid_for(bench: Bench) -> None:
    heard = bench.heard
    noisy_sums = _noisy_sums(bench)
    _classifier("dp-sgd", delta=1e-3, sampling_rate=1.0, epochs=1, relation="add-remove")
    for_count = 1 / heard.only("discrete_laplace").parameter
    bench.enough(0.02, for_count, waste=1.01)
    [(sigma, _)] = noisy_sums
    bench.must(
        gaussian_sigma(1.0, 1e-3) < sigma <= gaussian_sigma(1.0 - for_count, 1e-3) * 1.01,
        "the noise is not that of what the count leaves of epsilon.",
    )


@CHECKS("dp-sgd", clip_norm=[0.01, 1.0], hidden=[(), (3,)])
def _one_record_moves_a_sum_of_gradients_by_one(bench: Bench, clip_norm: float, hidden: tuple[int, ...]) -> None:
    """The sum over a single record is what that record adds; its gradient is far longer than the clip norm."""
    noisy_sums = _noisy_sums(bench)
    how: dict[str, Any] = {"delta": 1e-3, "sampling_rate": 1.0, "epochs": 1, "hidden": hidden, "clip_norm": clip_norm}
    _classifier("dp-sgd", X=[[1000.0, -1000.0]], y=["a"], relation="add-remove", n_public=1, **how)
    [(_, centre)] = noisy_sums
    bench.must(0.999 <= np.linalg.norm(centre) <= 1 + 1e-6, "a gradient is not cut to the clip norm.")


@CHECKS("laplace-sgd", relation=["add-remove", "replace-one"], rate=[1.0, 0.5])
def _pure_training_pays_for_every_step(bench: Bench, relation: str, rate: float) -> None:
    heard = bench.heard
    sums: list[float] = []
    original = clipping.ClippedSum.__call__

    def listener(self: Any, *rest: Any) -> Any:
        total = original(self, *rest)
        sums.append(float(np.abs(total).sum()))
        return total

    bench.replace(clipping.ClippedSum, "__call__", listener)
    how: dict[str, Any] = {"relation": relation, "n_public": 1 if relation == "add-remove" else None}
    model = _classifier("laplace-sgd", X=[[1000.0, -1000.0]], y=["a"], sampling_rate=rate, epochs=2, clip_norm=0.1, **how)
    steps = heard.of("discrete_laplace")
    bench.must(len(steps) == 2 / rate, "there is not one noisy sum for each step.")
    bench.must(max(sums) <= 1 + 1e-6, "a person's part of a sum is longer than the clip norm.")
    bench.must(max(sums) > 0.999 or rate < 1, "no person's part of a sum comes up to the clip norm.")
    # The grid has 2^30 steps to the clip norm; a step of e0 costs ln(1 + q (e^e0 - 1)) to those who may not take part.
    spent = sum(math.log1p(rate * math.expm1(2.0**30 / step.parameter)) for step in steps)
    bench.enough(_one_record(relation, 1.0, 0.0)[0], spent, waste=1.01)
    bench.must((model.guarantee_.epsilon, model.guarantee_.delta) == (1, 0), "the promise is not what was asked for.")


@CHECKS("laplace-sgd")
def _a_private_number_of_records_is_paid_for_in_pure_training(bench: Bench) -> None:
    heard = bench.heard
    _classifier("laplace-sgd", sampling_rate=1.0, epochs=2, relation="add-remove")
    size, *steps = heard.of("discrete_laplace")
    bench.enough(1.0, 1 / size.parameter + sum(2.0**30 / step.parameter for step in steps), waste=1.01)


@CHECKS("noisy-centroids", relation=["add-remove", "replace-one"])
def _noisy_centroids_pay_for_the_scaling_and_for_one_class(bench: Bench, relation: str) -> None:
    heard = bench.heard
    model = _classifier("noisy-centroids", X=FRAME, schema=SCHEMA, relation=relation)
    pooled, *classes = heard.of("cubical_laplace")
    # Five inputs, squares of two, the count; then five inputs and the count for each class. A row moves one class's sums, a
    # replacement those of two, or one twice as far.
    bench.must([draw.count for draw in (pooled, *classes)] == [8, 6, 6], "noise was drawn for other numbers than are released.")
    moved = 1 if relation == "add-remove" else 2
    spent = moved * (2.0**24 / pooled.parameter + max(2.0**12 / draw.parameter for draw in classes))
    bench.enough(1.0, spent, waste=1.0001)
    bench.must((model.guarantee_.epsilon, model.guarantee_.delta) == (1, 0), "the promise is not what was asked for.")


@CHECKS("noisy-centroids")
def _one_record_moves_its_class_by_one_step_of_the_grid(bench: Bench) -> None:
    """Without noise the pooled sums of a row are whole steps up to 2^24, those of its class up to 2^12."""
    heard = bench.heard
    heard.instead = zeros
    model = _classifier("noisy-centroids", X=FRAME[:1], y=["a"], schema=SCHEMA)
    bench.must(np.isfinite(model.model_.weights).all(), "a weight is not finite.")
    bench.must(len(heard.of("cubical_laplace")) == 3, "noise was not drawn for each of the three sums.")


@CHECKS("objective-perturbation")
def _the_perturbed_objective_adds_up(bench: Bench) -> None:
    heard = bench.heard
    model = _classifier("objective-perturbation", regularisation=5)
    objective, output = heard.of("spherical_laplace")
    bench.must(objective.count == output.count == 3, "noise was drawn for other numbers than are released.")
    # A record's gradient has length at most 1; the loss curves by at most 1/4 along it.
    spent = 2 * 2.0**20 / objective.parameter + math.log1p(1 / (4 * 5))
    # The found point is within (1e-4 + rounding of the noise) / lambda of the minimiser; twice that, in steps of the grid.
    apart = 2 * (1e-4 + math.sqrt(3) * 2.0**-21) / 5 * 2.0**24 + math.sqrt(3)
    bench.enough(1.0, spent + apart / output.parameter, waste=1.01)
    bench.must(model.guarantee_.epsilon == 1, "the promise is not what was asked for.")


@CHECKS("learning-first", "anonymized-learning")
def _the_papers_two_ways_of_training_have_noise_for_one_weight(bench: Bench) -> None:
    heard = bench.heard
    model = _classifier("learning-first", weight_bound=0.5, epochs=1)
    bench.enough(heard.only("discrete_laplace").parameter, 2 * 0.5 * 2.0**20 / 1.0, waste=1.01)
    bench.must(
        (model.guarantee_.scope, model.guarantee_.epsilon, model.guarantee_.joint_epsilon) == ("per-parameter", 1, 6),
        "the promise is not what was asked for.",
    )
    heard.draws.clear()
    model = _classifier("anonymized-learning", threshold=0.25, epochs=3, batch_size=10)
    steps = heard.of("discrete_laplace")
    bench.must(len(steps) == 3 * 3, "there is not one draw for each batch.")
    for step in steps:
        bench.enough(step.parameter, 2 * 0.25 * 2.0**24 * 3 / 1.0, waste=1.01)
    bench.must(model.guarantee_.epsilon == 3, "three batches of a pass see each weight, which depends on all of them")
    bench.must(model.guarantee_.joint_epsilon == 6, "the promise is not what was asked for.")


@CHECKS("histogram", relation=["add-remove", "replace-one"])
def _a_synthetic_table_from_a_histogram_has_noise_for_the_cells_that_change(bench: Bench, relation: str) -> None:
    heard = bench.heard
    how: dict[str, Any] = {"schema": SCHEMA, "synthesis": "histogram", "bins": 2, "relation": relation, "epochs": 1}
    _classifier("anonymizing-first", X=FRAME, **how)
    bench.enough(heard.only("discrete_laplace").parameter, 1 if relation == "add-remove" else 2, waste=1.01)


@CHECKS("microaggregation")
def _a_table_of_group_means_has_noise_for_a_member_of_each_group(bench: Bench) -> None:
    heard = bench.heard
    _classifier("anonymizing-first", X=FRAME, schema=SCHEMA, synthesis="microaggregation", group_size=7, epochs=1)
    # A replacement shifts one member of each of the five groups: by 1 in each number, by 2 in the category and in the label.
    bench.enough(heard.only("discrete_laplace").parameter, 5 * (1 + 1 + 2 + 2) * 2.0**10, waste=1.01)


@CHECKS("bayes-net", "anonymizing-first", delta=[None, 1e-5], relation=["add-remove", "replace-one"])
def _a_synthetic_table_from_a_network_adds_up(bench: Bench, relation: str, delta: float | None) -> None:
    heard = bench.heard
    choices: list[float] = []
    original = structure._exponential

    def listener(pairs: Any, scores: Any, rate: Fraction, coin: Any) -> Any:
        choices.append(float(rate))
        return original(pairs, scores, rate, coin)

    bench.replace(structure, "_exponential", listener)
    model = _classifier("anonymizing-first", X=FRAME, schema=SCHEMA, delta=delta, relation=relation, bins=2, epochs=1)
    changed, moved = (1, 4) if relation == "add-remove" else (2, 8)
    tree = [2 * moved * rate for rate in choices]
    bench.must(len(tree) == 2, "the tree was not chosen in two steps.")
    if delta is None:
        counts = heard.of("discrete_laplace")
        spent = sum(changed / draw.parameter for draw in counts) + sum(tree)
        bench.enough(1.0, spent, waste=1.01)
    else:
        counts = heard.of("discrete_gaussian")
        spent = sum(changed / (2 * draw.parameter) for draw in counts) + sum(each**2 / 2 for each in tree)
        bench.enough(rho_of(1, delta), spent, waste=1.01)
    bench.must(len(counts) == len(heard.draws) == 1 + 3, "noise was drawn for other tables than are released.")
    bench.must(
        (model.guarantee_.epsilon, float(model.guarantee_.delta)) == (1, delta or 0.0), "the promise is not what was asked for."
    )


@CHECKS("learning-first", "anonymized-learning")
def _a_joint_epsilon_is_shared_by_all_weights(bench: Bench) -> None:
    heard = bench.heard
    model = _classifier("learning-first", weight_bound=0.5, epochs=1, joint_epsilon=3)
    bench.enough(heard.only("discrete_laplace").parameter, 2 * 0.5 * 2.0**20 / (3 / 6), waste=1.01)
    bench.must(model.guarantee_.joint_epsilon == 3, "the promise is not what was asked for.")
    heard.draws.clear()
    model = _classifier("anonymized-learning", threshold=0.25, epochs=3, batch_size=10, joint_epsilon=3, delta=1e-4)
    # A record is in one batch of each of the three passes, where it moves each of the six sums across their whole range.
    each = [2 * 0.25 * 2.0**24 / step.parameter for step in heard.of("discrete_laplace")]
    bench.enough(rho_of(3, 1e-4), 3 * 6 * max(each) ** 2 / 2, waste=1.01)
    bench.must(model.guarantee_.epsilon <= 3, "the promise is not what was asked for.")


@CHECKS("objective-perturbation")
def _a_wild_row_moves_the_perturbed_minimum_no_farther(bench: Bench) -> None:
    """Without noise: a row's gradient has length at most 1, whatever is in it: replacing it moves the minimum by 2 / lambda."""
    heard = bench.heard
    heard.instead = zeros
    found = []
    for wild in ([1000.0, 1000.0], [-1000.0, -1000.0]):
        model = _classifier("objective-perturbation", X=[[0.0, 0.0]] * 4 + [wild], y=["b"] * 5, regularisation=5)
        found.append(
            np.asarray(model.release_["weights"]) * math.sqrt(3)
        )  # rows are divided by the longest (x, y, 1) within -1..1
    moved = float(np.linalg.norm(found[0] - found[1]))
    bench.must(0.05 < moved <= 2 / 5 * (1 + 1e-3), "a person moves the minimum otherwise than is reckoned with.")


@CHECKS("anonymized-learning")
def _wild_rows_move_a_noisy_update_no_farther_than_its_range(bench: Bench) -> None:
    """Noise of the whole range drowns every sum that was cut to it: all updates end at the lower, or all at the upper end."""
    heard = bench.heard
    found = []
    for sign in (-1, 1):
        heard.instead = lambda draw, sign=sign: np.full(draw.count, sign * 2 * 2**22)
        how: dict[str, Any] = {"threshold": 0.25, "epochs": 1, "batch_size": 4, "learning_rate": 1.0, "epsilon": 1.0}
        model = _classifier("anonymized-learning", X=[[1e6, -1e6]] * 4, y=["a", "a", "a", "b"], **how)
        found.append(np.asarray(model.release_["weights"]))
    bench.must(
        np.allclose(found[0] - found[1], 2 * 0.25 / 4, rtol=1e-12, atol=0),
        "the threshold cuts otherwise than is reckoned with.",
    )


@CHECKS(
    *("dp-sgd", "dp-adam", "laplace-sgd"),
    piece=[64, 128, 208, clipping.PIECE, 640],
    sizes=[(1, 2), (3, 2), (105, 32, 2), (13, 1, 3), (64, 64, 64, 10)],
    kind=["float64", "float32"],
)
def _a_row_is_computed_the_same_wherever_it_stands(bench: Bench, piece: int, sizes: tuple[int, ...], kind: str) -> str:
    """Rows are moved, then all but one are replaced by zeros: what is left must be the same to the last bit."""
    network, generator = Network(sizes=sizes), np.random.default_rng(1)
    if not clipping.row_by_row(network, piece=piece, kind=kind):
        return f"{kind} with numba {numba.__version__}: refused before any charge"
    weights = generator.normal(size=network.n_weights)
    rows, labels = generator.normal(size=(piece, sizes[0])), generator.integers(0, sizes[-1], piece)
    passes = Passes(network, piece, kind).read(weights)
    parts = _computed(passes, rows, labels)
    for shift in (1, 3, 37):
        moved = _computed(passes, np.roll(rows, shift, axis=0), np.roll(labels, shift))
        bench.must(
            all(np.array_equal(np.roll(b, -shift, axis=-1), a) for a, b in zip(parts, moved, strict=True)),
            "a row is computed otherwise elsewhere in its piece.",
        )
    alone = _computed(passes, np.where(np.arange(piece)[:, None] == 59, rows, np.zeros_like(rows)), labels)
    bench.must(
        all(np.array_equal(a[..., 59], b[..., 59]) for a, b in zip(parts, alone, strict=True)),
        "a row is computed otherwise beside other rows.",
    )
    return f"{kind} with numba {numba.__version__}: the same bits"


def _computed(passes: Passes, rows: Any, labels: Any) -> list[NDArray[Any]]:
    """Everything that training computes of each row."""
    found = passes.both(passes.laid(rows), labels)
    norms = [passes.squared_norms(found, None), Network.l1_norms(found)]
    return [part.copy() for part in (*found.inputs, *found.errors, *norms)]
