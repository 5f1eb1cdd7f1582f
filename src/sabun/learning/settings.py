"""What a caller can choose about a training run, each way of training with settings of its own; all of it is public."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, final

from sabun import checks
from sabun.asking import MethodSettings
from sabun.learning.shards import shards_for
from sabun.privacy.amounts import AmountLike, exact_positive

__all__ = [
    "FORMER",
    "GAUSSIAN",
    "KINDS",
    "LARGE",
    "LEAST_EPSILON",
    "METHODS",
    "SYNTHESES",
    "AnonymizedLearningSettings",
    "AnonymizingFirstSettings",
    "DpAdamSettings",
    "DpSgdSettings",
    "LaplaceSgdSettings",
    "LearningFirstSettings",
    "NoisyCentroidsSettings",
    "ObjectivePerturbationSettings",
    "TrainingSettings",
]

FORMER: Mapping[str, Any] = {
    "clip_norm": 1.0,
    "sampling_rate": 0.1,
    "batch_size": 50,
    "momentum": 0.9,
    "precision": "double",
    "standardize": True,
    "threshold": 0.1,
    "weight_bound": 0.5,
    "regularization": None,
    "joint_epsilon": None,
    "synthesis": "bayes-net",
    "n_synthetic": 30_000,
    "bins": 16,
    "group_size": 1000,
}
"""What `PrivateClassifier` takes by flat names, most of them once for every method, with the value that means "as usual"."""

SYNTHESES = ("bayes-net", "microaggregation", "histogram")
_SMALL, LARGE = 1e-6, 1e6
LEAST_EPSILON = Fraction(1, 10**6)
_REPLACE_ONE = ("replace-one",)


class TrainingSettings(MethodSettings):
    """What the settings of all ways of training share."""

    pure: ClassVar[bool] = False
    """Whether it needs no delta and takes none."""

    @property
    def relations(self) -> Sequence[str]:
        """Those it can promise anything about, the usual one first."""
        return ("add-remove", *_REPLACE_ONE)

    def check(self) -> None:
        """Refuses a setting that breaks its rule."""
        for field in fields(self):  # type: ignore[arg-type]
            _RULES[field.name](field.name, getattr(self, field.name))
        if isinstance(self, DpAdamSettings | DpSgdSettings):
            shards_for(self)


@final
@dataclass(frozen=True, kw_only=True)
class DpAdamSettings(TrainingSettings):
    """The default: full-batch steps of Adam on clipped gradients with Gaussian noise, inputs scaled first.

    Args:
        clip_norm: The L2 norm to which each example's gradient is cut.
        standardize: Whether a tenth of the budget pays for means and spreads of numbers and shares of labels, by which inputs
            are centred and brought to one scale; False centres numbers by their bounds alone, and draws no weight towards zero.
        precision: `double`, which the proof covers; `single` is faster, and the guarantee says so.
        processes: How many processes of this machine sum gradients, over torch.distributed; one tosses all coins.
        shards: In how many parts the rows are summed, which decides the last bits; None for as many as processes.
    """

    method = "dp-adam"

    clip_norm: float = 1.0
    standardize: bool = True
    precision: str = "double"
    processes: int = 1
    shards: int | None = None


@final
@dataclass(frozen=True, kw_only=True)
class DpSgdSettings(TrainingSettings):
    """The former default: clipped gradients of Poisson batches with Gaussian noise, momentum, inputs between 0 and 1.

    Args:
        clip_norm: The L2 norm to which each example's gradient is cut.
        sampling_rate: The probability to take part in a step.
        momentum: Share of the last update that is kept.
        precision: `double`, which the proof covers; `single` is faster, and the guarantee says so.
        weight_decay: Weights, not biases, shrink by this share of the rate in each step; costs nothing.
        processes: As in `DpAdamSettings`.
        shards: As in `DpAdamSettings`.
    """

    method = "dp-sgd"

    clip_norm: float = 1.0
    sampling_rate: float = 0.1
    momentum: float = 0.9
    precision: str = "double"
    weight_decay: float = 0.0
    processes: int = 1
    shards: int | None = None


@final
@dataclass(frozen=True, kw_only=True)
class LaplaceSgdSettings(TrainingSettings):
    """The same with pure epsilon: an L1 norm, Laplace noise.

    Args:
        clip_norm: The L1 norm to which each example's gradient is cut.
        sampling_rate: The probability to take part in a step.
        momentum: Share of the last update that is kept.
        weight_decay: Weights, not biases, shrink by this share of the rate in each step; costs nothing.
    """

    method = "laplace-sgd"
    pure = True

    clip_norm: float = 1.0
    sampling_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 0.0


@final
@dataclass(frozen=True, kw_only=True)
class NoisyCentroidsSettings(TrainingSettings):
    """Pure epsilon for small tables: noisy means of each class, a linear model between them. It has no settings."""

    method = "noisy-centroids"
    pure = True


@final
@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbationSettings(TrainingSettings):
    """A linear model of two classes with pure epsilon.

    Args:
        regularization: Weight of the squared length in the objective; None picks by epsilon.
    """

    method = "objective-perturbation"
    pure = True

    regularization: AmountLike | None = None

    @property
    def relations(self) -> Sequence[str]:
        """Replacing a record only."""
        return _REPLACE_ONE


@final
@dataclass(frozen=True, kw_only=True)
class AnonymizingFirstSettings(TrainingSettings):
    """A synthetic table first, ordinary training on it afterwards; pure without a delta.

    Args:
        synthesis: `bayes-net`, `microaggregation` or `histogram`.
        n_synthetic: Rows of the synthetic table; with `microaggregation` there are as many as records, whose number is public.
        bins: Cells of a number column in a synthetic table.
        group_size: For `microaggregation`.
        batch_size: Synthetic rows in an update.
        weight_decay: The paper's lambda, on weights and not on biases.
    """

    method = "anonymizing-first"

    synthesis: str = "bayes-net"
    n_synthetic: int = 30_000
    bins: int = 16
    group_size: int = 1000
    batch_size: int = 50
    weight_decay: float = 0.001

    @property
    def relations(self) -> Sequence[str]:
        """Groups of a fixed size need a public number of records."""
        return _REPLACE_ONE if self.synthesis == "microaggregation" else super().relations


@final
@dataclass(frozen=True, kw_only=True)
class LearningFirstSettings(TrainingSettings):
    """The paper's: noise on each trained weight. Epsilon is the paper's, per parameter.

    Args:
        weight_bound: Weights and biases are cut to plus or minus this.
        batch_size: Records in an update.
        joint_epsilon: Solve for the per-parameter epsilon with this joint one.
        weight_decay: The paper's lambda, on weights and not on biases.
        weight_range: The paper's least and largest weight; None for plus or minus `weight_bound`.
        bias_range: The same for biases.
    """

    method = "learning-first"
    pure = True

    weight_bound: float = 0.5
    batch_size: int = 50
    joint_epsilon: AmountLike | None = None
    weight_decay: float = 0.001
    weight_range: tuple[float, float] | None = None
    bias_range: tuple[float, float] | None = None

    @property
    def relations(self) -> Sequence[str]:
        """Replacing a record only."""
        return _REPLACE_ONE


@final
@dataclass(frozen=True, kw_only=True)
class AnonymizedLearningSettings(TrainingSettings):
    """The paper's: noise on each batch update. Epsilon is the paper's, per parameter.

    Args:
        threshold: Sums are cut to plus or minus this.
        batch_size: Records in a batch; the divisor of the update.
        joint_epsilon: Solve for the per-parameter epsilon with this joint one.
        weight_decay: The paper's lambda, on weights and not on biases; costs nothing.
        update_range: The paper's least and largest change of a weight; None for plus or minus `threshold`.
        bias_update_range: The same for a bias.
    """

    method = "anonymized-learning"

    threshold: float = 0.1
    batch_size: int = 50
    joint_epsilon: AmountLike | None = None
    weight_decay: float = 0.0
    update_range: tuple[float, float] | None = None
    bias_update_range: tuple[float, float] | None = None

    @property
    def relations(self) -> Sequence[str]:
        """Replacing a record only."""
        return _REPLACE_ONE


KINDS: tuple[type[TrainingSettings], ...] = (
    DpAdamSettings,
    DpSgdSettings,
    NoisyCentroidsSettings,
    LaplaceSgdSettings,
    ObjectivePerturbationSettings,
    AnonymizingFirstSettings,
    LearningFirstSettings,
    AnonymizedLearningSettings,
)
METHODS = tuple(kind.method for kind in KINDS)
GAUSSIAN = (DpAdamSettings, DpSgdSettings)
"""Those whose noise is Gaussian, so that they need a delta."""


def _within(low: float, high: float, words: str) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        checks.require(checks.is_number(value) and low <= value <= high, words, **{name: value})

    return check


def _at_least(minimum: int) -> Callable[[str, Any], None]:
    return lambda name, value: checks.whole(minimum=minimum, **{name: value})


def _anything(name: str, value: Any) -> None:
    """Checked together with another setting."""


def _among(*words: str) -> Callable[[str, Any], None]:
    return lambda name, value: checks.one_of(words, **{name: value})


def _among_booleans(name: str, value: Any) -> None:
    checks.require(isinstance(value, bool), "True or False", **{name: value})


def _amount(least: Fraction) -> Callable[[str, Any], None]:
    def check(name: str, value: Any) -> None:
        if value is not None:
            checks.require(exact_positive(value, name=name) >= least, f"at least {float(least)}", **{name: value})

    return check


def _range(name: str, value: Any) -> None:
    """A least and a largest number, apart; widths and sizes within the limits that one bound has."""
    if value is None:
        return
    listed = (
        isinstance(value, tuple | list)
        and len(value) == 2
        and all(map(checks.is_number, value))
        and not any(end != end for end in value)
    )
    apart = f"None or two numbers, the second at least {2 * _SMALL} above the first"
    checks.require(listed, apart, **{name: value})
    checks.require(all(-LARGE <= end <= LARGE for end in value), f"within plus or minus {LARGE:.0f}", **{name: value})
    checks.require(value[1] - value[0] >= 2 * _SMALL, apart, **{name: value})


# Far below, sums would be lost in rounding or on the noise's grid, where nothing is cut any more.
_BOUND = _within(_SMALL, LARGE, f"between {_SMALL} and {LARGE:.0f}")
_RULES: dict[str, Callable[[str, Any], None]] = {
    "clip_norm": _BOUND,
    "threshold": _BOUND,
    "weight_bound": _BOUND,
    "sampling_rate": _within(2.0**-32, 1, "above 0 and at most 1"),
    "standardize": _among_booleans,
    "momentum": _within(0, 0.999999, "at least 0 and below 1"),
    "weight_decay": _within(0, 1, "between 0 and 1"),
    "weight_range": _range,
    "bias_range": _range,
    "update_range": _range,
    "bias_update_range": _range,
    "precision": _among("double", "single"),
    "synthesis": _among(*SYNTHESES),
    "batch_size": _at_least(1),
    "n_synthetic": _at_least(1),
    "group_size": _at_least(1),
    "bins": _at_least(2),
    "processes": _anything,
    "shards": _anything,
    "regularization": _amount(Fraction(0)),
    # An epsilon so small that its noise cannot be drawn is refused before anything is charged.
    "joint_epsilon": _amount(LEAST_EPSILON),
}
