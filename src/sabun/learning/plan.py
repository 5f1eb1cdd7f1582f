"""What a training run would cost, before anybody touches data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Self, final

from sabun import checks
from sabun.asking import Forecast
from sabun.learning.card import warnings_for
from sabun.learning.choices import Choices
from sabun.learning.dpadam import DpAdam
from sabun.learning.dpsgd import DpSgd
from sabun.learning.features import Features, Labels
from sabun.learning.forecasting import DROWNED, drowned, foretold, noise_told, trained
from sabun.learning.methods import calibrated, problem_of
from sabun.learning.poisson import PoissonPlan
from sabun.learning.training import Method
from sabun.notebook import Rich
from sabun.privacy import plain
from sabun.records import Schema

__all__ = ["Plan"]

_REFUSED = "`sabun learning train` refuses that without --yes."
_LOST = (
    "Even if the classes lie well apart, nine tenths or more of what there is to learn would be lost to noise. This is not "
    "refused only because tables in which every column tells the classes apart could still do."
)

_GUESSING = (
    "In a table as unkind as the last forecast assumes, more than half of what there is to learn would be lost: the model may "
    "be little better than always saying the most common class."
)


@final
@dataclass(frozen=True, kw_only=True)
class Plan(Rich):
    """Cost and noise of a run, from public numbers.

    Args:
        method: How it trains.
        n_weights: Numbers that will be released.
        joint_epsilon: What they cost together.
        scope: Whether the promise is `joint` or about each weight by itself (`per-parameter`).
        delta: The same for delta.
        relation: Under which neighbours.
        steps: Noisy steps; None where there are none.
        noise_multiplier: Noise in units of the clip norm; None where it is not Gaussian.
        noise_to_signal: Standard deviation of the noise on the mean clipped gradient of one step, over the largest it can
            be (the clip norm); above about 0.05 for each weight, expect a clear loss of accuracy. None where not Gaussian.
        warnings: What a reader of the card would be told if there are as many records as one expects.
        forecasts: The accuracy that noise will cost, where the classes lie well apart and where not; none for ways of training
            about which nothing is known.
        vacuous: Whether nearly all is lost to noise even if every column tells the classes apart.
        remarks: What to know before the charge, beside the forecasts: that nearly all is lost, and whether it is refused.
    """

    method: str
    n_weights: int
    joint_epsilon: str
    scope: str
    delta: str
    relation: str
    steps: int | None
    noise_multiplier: float | None
    noise_to_signal: float | None
    warnings: tuple[str, ...] = ()
    forecasts: tuple[Forecast, ...] = ()
    vacuous: bool = False
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, choices: Choices, *, schema: Schema | None, classes: tuple[Any, ...], n_records: int, n_features: int | None
    ) -> Self:
        """The plan of those choices for a table of that size."""
        checks.whole(minimum=1, n_records=n_records)
        if schema is None:
            checks.require(n_features is not None, "given when there is no schema", n_features=n_features)
            checks.whole(minimum=1, n_features=n_features)
        names = schema.names if schema is not None else tuple(f"x{i}" for i in range(n_features or 0))
        problem = problem_of(
            choices,
            features=Features(schema=schema, names=names),
            labels=Labels(classes=classes, declared=True),
            n_records=int(n_records),
        )
        method: Any = calibrated(choices, problem)
        epsilon, delta = method.guarantee.cost
        noise = float(method.multiplier) if isinstance(method, DpAdam | DpSgd) else None
        plan = (
            PoissonPlan(threshold=1 << 32, steps=method.steps) if isinstance(method, DpAdam) else getattr(method, "plan", None)
        )
        forecasts, vacuous = foretold(method, n_records, len(classes)), drowned(method, n_records)
        return cls(
            method=choices.method.method,
            n_weights=trained(method, n_records).n_weights,
            joint_epsilon=plain(epsilon),
            scope=method.guarantee.scope,
            delta=plain(Fraction(delta)),
            relation=problem.relation,
            steps=None if plan is None else plan.steps,
            noise_multiplier=noise,
            noise_to_signal=None if noise is None or plan is None else noise / (float(plan.probability) * n_records),
            warnings=warnings_for(method.guarantee, n_records),
            forecasts=forecasts,
            vacuous=vacuous,
            remarks=_remarks(method, forecasts, vacuous, most=1 - 1 / len(classes)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        forecasts = [forecast.to_dict() for forecast in self.forecasts]
        return asdict(self) | {"warnings": list(self.warnings), "forecasts": forecasts, "remarks": list(self.remarks)}

    def __str__(self) -> str:
        lines = [
            f"{self.method}: {self.n_weights} weights; all: epsilon {self.joint_epsilon}, delta {self.delta} ({self.relation})"
        ]
        if self.noise_multiplier is not None and self.noise_to_signal is not None:
            lines.append(
                f"{self.steps} steps; noise {self.noise_multiplier:.3g} times the clip norm on each sum, "
                f"{self.noise_to_signal:.2g} of the clip norm on each mean."
            )
        for told in self.forecasts:
            lines.append(
                f"{told.quantity}: about {told.middle:.2g} (in {told.often} {told.low:.2g} to {told.high:.2g}), "
                f"if {told.assumed[0]}."
            )
        return "\n".join([*lines, *self.remarks, *(f"Warning: {words}." for words in self.warnings)])


def _remarks(method: Method, forecasts: tuple[Forecast, ...], vacuous: bool, *, most: float) -> tuple[str, ...]:
    if vacuous:
        return (f"{noise_told(method)} {_REFUSED}",)
    middles = [one.middle for one in forecasts]
    if min(middles, default=0.0) >= (most - min(middles, default=0.0)) * DROWNED:
        return (_LOST,)
    return (_GUESSING,) if max(middles, default=0.0) > most / 2 else ()
