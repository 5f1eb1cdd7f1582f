"""From settings to a calibrated way of training; no private row is looked at here."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from sabun import checks
from sabun.errors import BoundsError, DataError, InternalError, ParameterError
from sabun.learning.accounting import update_epsilon
from sabun.learning.anonymized_learning import AnonymizedLearning
from sabun.learning.anonymizing_first import AnonymizingFirst
from sabun.learning.centroids import NoisyCentroids
from sabun.learning.choices import Choices
from sabun.learning.clipping import row_by_row
from sabun.learning.dpadam import MOST_ROWS, DpAdam
from sabun.learning.dpsgd import DpSgd
from sabun.learning.features import Features, Labels
from sabun.learning.laplace_sgd import LaplaceSgd
from sabun.learning.learning_first import LearningFirst
from sabun.learning.network import Network
from sabun.learning.objective import LEAST_REGULARISATION, MOST_TILT, ObjectivePerturbation
from sabun.learning.plain_training import PlainTraining
from sabun.learning.poisson import PoissonPlan
from sabun.learning.ranges import bound_of
from sabun.learning.settings import (
    AnonymizedLearningSettings,
    AnonymizingFirstSettings,
    DpAdamSettings,
    DpSgdSettings,
    LaplaceSgdSettings,
    LearningFirstSettings,
    NoisyCentroidsSettings,
    ObjectivePerturbationSettings,
)
from sabun.learning.shards import shards_for
from sabun.learning.synthesis.bayes_net import BayesNet
from sabun.learning.synthesis.domain import Domain
from sabun.learning.synthesis.histogram import Histogram
from sabun.learning.synthesis.microaggregation import Microaggregation
from sabun.learning.training import Method, Problem, one_thread
from sabun.privacy import exact_positive, plain

__all__ = ["calibrated", "must_round_by_row", "problem_of"]

_LAYER = (32,)


def problem_of(choices: Choices, *, features: Features, labels: Labels, n_records: int) -> Problem:
    """What is public about a run on a table of that many rows.

    Raises:
        DataError: The number of rows is public, and there are none.
        ParameterError: Delta is so large that handing out one record in the clear would be allowed.
    """
    ask = choices.ask
    # Under replace-one the number of records is public by definition; under add-remove only if the caller declares it.
    n_public = n_records if ask.relation == "replace-one" else choices.n_public
    if n_public == 0:
        raise DataError("a table must have at least one row; got none.")
    return Problem(
        features=features,
        labels=labels,
        epsilon=ask.epsilon,
        delta=choices.stated_delta(n_public),
        relation=ask.relation,
        unit=ask.unit,
        n_public=n_public,
    )


def calibrated(choices: Choices, problem: Problem) -> Method:
    """The way of training that was chosen, with its noise fixed.

    Raises:
        ParameterError: The choices cannot meet the promise.
    """
    network = problem.network(choices.layers(problem.n_public))
    match choices.method:
        case DpAdamSettings() as own:
            return _dp_adam(own, choices, problem, network)
        case DpSgdSettings() as own:
            return _dp_sgd(own, choices, problem, network)
        case NoisyCentroidsSettings():
            return _centroids(problem, network)
        case LaplaceSgdSettings() as own:
            return _laplace_sgd(own, choices, problem, network)
        case ObjectivePerturbationSettings() as own:
            return _objective(own, problem, network)
        case AnonymizingFirstSettings() as own:
            return _anonymizing_first(own, choices, problem, network)
        case LearningFirstSettings() as own:
            return _learning_first(own, choices, problem, network)
        case AnonymizedLearningSettings() as own:
            return _anonymized_learning(own, choices, problem, network)
    raise InternalError(f"no way of training is called {choices.method}.")


def must_round_by_row(method: Method) -> None:
    """Tries the passes on made-up rows of the run's shapes, before anything is charged.

    Raises:
        ParameterError: They compute a row differently by its place, so that one record could change the others' gradients.
    """
    if not isinstance(method, DpAdam | DpSgd | LaplaceSgd):
        return
    networks = method.networks if isinstance(method, DpAdam) else (method.network,)
    with one_thread():
        sound = all(row_by_row(network, piece=method.piece, kind=method.kind) for network in networks)
    checks.require(
        sound,
        "such that this machine computes a row the same wherever it stands; it does not for these sizes",
        "Install the newest numba and NumPy, or train on another machine.",
        hidden=networks[-1].sizes[1:-1],
    )


def _dp_adam(own: DpAdamSettings, choices: Choices, problem: Problem, network: Network) -> Method:
    checks.require(
        (problem.n_public or 1) <= MOST_ROWS, f"at most {MOST_ROWS}", "Use the method 'dp-sgd'.", n_public=problem.n_public
    )
    auto = isinstance(choices.hidden, str)
    method = DpAdam(
        problem=problem,
        network=network,
        layered=problem.network(_LAYER) if auto else None,
        steps=choices.epochs or 100,
        clip_norm=float(own.clip_norm),
        learning_rate=None if choices.learning_rate is None else float(choices.learning_rate),
        standardize=own.standardize,
        precision=own.precision,
        shards=shards_for(own),
    )
    if method.layered is None or problem.n_public is None:
        return method
    # What is public is decided now; a noisy number of records decides once it is drawn.
    chosen = method.layered if problem.n_public >= method.plenty else network
    return dataclasses.replace(method, network=chosen, layered=None)


def _dp_sgd(own: DpSgdSettings, choices: Choices, problem: Problem, network: Network) -> Method:
    return DpSgd(
        problem=problem,
        network=network,
        plan=PoissonPlan.of(sampling_rate=own.sampling_rate, epochs=choices.epochs or 30),
        clip_norm=float(own.clip_norm),
        learning_rate=float(choices.learning_rate or (0.5 if len(network.sizes) > 2 else 1.0)),
        momentum=float(own.momentum),
        precision=own.precision,
        decay=float(own.weight_decay),
        shards=shards_for(own),
    )


def _centroids(problem: Problem, network: Network) -> Method:
    if problem.features.schema is None:
        raise BoundsError("schema must be given for 'noisy-centroids': means need public bounds. Declare the columns.")
    return NoisyCentroids(problem=problem, network=network)


def _laplace_sgd(own: LaplaceSgdSettings, choices: Choices, problem: Problem, network: Network) -> Method:
    epsilon = float(problem.epsilon)
    return LaplaceSgd(
        problem=problem,
        network=network,
        plan=PoissonPlan.of(sampling_rate=own.sampling_rate, epochs=choices.epochs or _passes(epsilon)),
        clip_norm=float(own.clip_norm),
        learning_rate=float(choices.learning_rate or 3.0),
        momentum=float(own.momentum),
        decay=float(own.weight_decay),
    )


def _passes(epsilon: float) -> int:
    """Fewer steps for less budget: pure composition pays for each step in full."""
    if epsilon < 0.3:
        return 5
    return 10 if epsilon < 4 else 30


def _objective(own: ObjectivePerturbationSettings, problem: Problem, network: Network) -> Method:
    classes = len(problem.labels.classes)
    checks.require(
        classes == 2, "2 for 'objective-perturbation'", "Use the method 'laplace-sgd'.", **{"number of classes": classes}
    )
    # ln(1 + 1/(4 lambda)) <= 1/(4 lambda): curvature then costs at most a twentieth of epsilon.
    default = max(5 / problem.epsilon, LEAST_REGULARISATION)
    chosen = default if own.regularization is None else exact_positive(own.regularization, name="regularization")
    checks.require(
        chosen >= LEAST_REGULARISATION,
        f"at least {LEAST_REGULARISATION}, so that the solver always ends",
        regularization=own.regularization,
    )
    method = ObjectivePerturbation(problem=problem, network=network, regularisation=chosen)
    if method.objective_epsilon <= 0:
        smallest = Fraction(1, 4) / problem.epsilon * 2
        raise ParameterError(
            f"regularization must be large enough to leave some epsilon for noise; got {own.regularization!r}. "
            f"Use at least {float(smallest):.4g}."
        )
    least = 2 * (method.dimension + 40) / MOST_TILT
    checks.require(
        method.objective_epsilon >= least,
        f"large enough that the noise can be computed with (about {float(least):.2g})",
        epsilon=plain(problem.epsilon),
    )
    return method


def _learning_first(own: LearningFirstSettings, choices: Choices, problem: Problem, network: Network) -> Method:
    training = PlainTraining(
        network=network,
        epochs=choices.epochs or 20,
        batch_size=int(own.batch_size),
        learning_rate=float(choices.learning_rate or 0.05),
        decay=float(own.weight_decay),
        bound=bound_of(own.weight_bound, own.weight_range, own.bias_range),
    )
    per_weight = problem.epsilon
    if own.joint_epsilon is not None:
        per_weight = exact_positive(own.joint_epsilon, name="joint_epsilon") / network.n_weights
    return LearningFirst(problem=problem, training=training, weight_epsilon=per_weight)


def _anonymized_learning(own: AnonymizedLearningSettings, choices: Choices, problem: Problem, network: Network) -> Method:
    epochs, per_update = choices.epochs or 1, problem.epsilon
    if own.joint_epsilon is not None:
        joint = exact_positive(own.joint_epsilon, name="joint_epsilon")
        per_update = update_epsilon(n_weights=network.n_weights, joint_epsilon=joint, epochs=epochs, delta=problem.delta)
    return AnonymizedLearning(
        problem=problem,
        network=network,
        epochs=epochs,
        batch_size=int(own.batch_size),
        learning_rate=float(choices.learning_rate or 1.0),
        threshold=bound_of(own.threshold, own.update_range, own.bias_update_range),
        update_epsilon=per_update,
        decay=float(own.weight_decay),
    )


def _anonymizing_first(own: AnonymizingFirstSettings, choices: Choices, problem: Problem, network: Network) -> Method:
    schema = problem.features.schema
    if schema is None:
        raise BoundsError(
            "schema must be given for 'anonymizing-first': a synthetic table needs public bounds and categories. "
            "Declare the columns."
        )
    classes = len(problem.labels.classes)
    synthesis: BayesNet | Histogram | Microaggregation
    if own.synthesis == "microaggregation":
        if problem.n_public is None:
            raise InternalError("groups of a fixed size need a public number of records.")
        synthesis = Microaggregation(
            schema=schema,
            classes=classes,
            epsilon=problem.epsilon,
            group_size=int(own.group_size),
            n_records=problem.n_public,
        )
    elif own.synthesis == "histogram":
        domain = Domain(schema=schema, bins=int(own.bins))
        synthesis = Histogram(domain=domain, classes=classes, epsilon=problem.epsilon, relation=problem.relation)
    else:
        synthesis = BayesNet(
            domain=Domain(schema=schema, bins=int(own.bins)),
            classes=classes,
            epsilon=problem.epsilon,
            delta=problem.delta,
            relation=problem.relation,
        )
    training = PlainTraining(
        network=network,
        epochs=choices.epochs or 10,
        batch_size=int(own.batch_size),
        learning_rate=float(choices.learning_rate or 0.2),
        decay=float(own.weight_decay),
    )
    return AnonymizingFirst(problem=problem, synthesis=synthesis, training=training, n_rows=int(own.n_synthetic))
