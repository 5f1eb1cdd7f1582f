"""What to expect before anything is spent: from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.asking import renamed
from sabun.privacy.amounts import plain
from sabun.privacy.guarantee import LARGE_EPSILON
from sabun.regression.sensitivity import gradient_diameter, noise_share
from sabun.regression.study import STATISTICS, Study
from sabun.regression.sufficient import noise_level

__all__ = ["Plan", "plan_of"]

_RESIDUAL = 0.2
_NARROW = 3
_ASSUMED = (
    "features fill their bounds evenly and independently, residuals are a tenth of the target's range, "
    "coefficients are half as long as coef_bound"
)


@renamed(mechanism="method", rows="n_records")
@dataclass(frozen=True, kw_only=True)
class Plan:
    """Cost and expected error of a release, without touching data.

    Errors are relative excess risks: 1 is what predicting with all coefficients 0 costs, 0 is perfect. They are those of a
    made-up table (see `assumed`), not of anybody's own: columns that crowd in a part of their bounds, or follow one another,
    leave less to see beside the same noise. `error_narrow` is the same for a table that fills a third of its bounds.

    Args:
        method: Which one.
        epsilon: Privacy of each organisation's release.
        delta: The same.
        relation: Neighbours of the guarantee.
        n_records: Rows of each organisation.
        organisations: How many organisations.
        coefficients: How many coefficients, the intercept included.
        noise: Standard deviation of the noise on one released number, in row units: what so many rows at their bounds add.
        error_alone: Expected error of one organisation's own data without privacy.
        error_released: Expected error of the public model.
        error_narrow: The same where features fill a third of their bounds.
        error_combined: Expected error of the home model: own data with the releases of the others.
    """

    method: str
    epsilon: str
    delta: str
    relation: str
    n_records: int
    organisations: int
    coefficients: int
    noise: float
    error_alone: float
    error_released: float
    error_narrow: float
    error_combined: float

    @property
    def helps(self) -> bool:
        """Whether combining is expected to beat one organisation alone by a tenth; never with one organisation."""
        return self.organisations > 1 and self.error_combined < 0.9 * self.error_alone

    @property
    def vacuous(self) -> bool:
        """Whether the public model would be mostly noise."""
        return self.error_released > 0.5

    @property
    def assumed(self) -> str:
        """What the errors assume about a table that nobody has looked at."""
        return _ASSUMED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"helps": self.helps, "assumed": self.assumed}

    def __str__(self) -> str:
        alone = self.organisations == 1
        makers = "one organisation" if alone else f"each of {self.organisations} organisations"
        joined = "" if alone else f", own data with the releases {self.error_combined:.3g}"
        verdict = []
        if not alone:
            much = "" if self.helps else "not "
            verdict.append(f"Combining is {much}expected to help{'' if self.helps else ' one organisation much'}.")
        if self.error_released > 0.5:
            verdict.append(
                "The public model alone would be mostly noise: use more rows, more organisations or a larger epsilon."
            )
        if Fraction(self.epsilon) > LARGE_EPSILON:
            verdict.append(f"An epsilon above {LARGE_EPSILON} is a weak promise.")
        lines = [
            f"{self.method}: epsilon {self.epsilon}, delta {self.delta} ({self.relation}) from {makers} with {self.n_records} "
            f"rows, {self.coefficients} coefficients.",
            f"Expected error (0: as good as possible, 1: no better than a constant guess) of a made-up table: own data without "
            f"privacy {self.error_alone:.3g}, public model {self.error_released:.3g}{joined}.",
            f"In that table {self.assumed}. Yours was not looked at and may be far worse: if its features fill a third of "
            f"their bounds, the public model has {self.error_narrow:.3g}.",
        ]
        return "\n".join([*lines, *([" ".join(verdict)] if verdict else [])])


@renamed(rows="n_records")
def plan_of(study: Study, *, n_records: int, organisations: int = 1) -> Plan:
    """The plan of a study for organisations of about `n_records` rows each (a public guess).

    Example:
        >>> from sabun.records import Column, Schema
        >>> study = Study(features=Schema.of_bounds([(0, 1)] * 4), target=Column.number("y", lower=0, upper=1), epsilon=1)
        >>> plan_of(study, n_records=1000, organisations=10).helps
        True
    """
    checks.whole(minimum=1, n_records=n_records, organisations=organisations)
    # Spread evenly over its bounds a feature has the mean square 1/3, divided by the squared scale of a row; where rows are
    # shortened, at most that of a coordinate in a ball.
    spread = n_records * min(1 / (3 * study.design.scale**2), 1 / (study.width + 2))
    alone = _RESIDUAL**2 * study.width / spread / _size(study)
    noise, released = _released(study, spread, organisations)
    bounded = [min(error, 1.0) for error in (alone, released, _released(study, spread / _NARROW**2, organisations)[1])]
    combined = 1 / (1 / bounded[0] + 1 / bounded[1]) if study.method in STATISTICS else min(bounded[:2])
    return Plan(
        method=study.method,
        epsilon=plain(Fraction(study.epsilon)),
        delta=plain(Fraction(study.delta or 0)),
        relation=study.relation,
        n_records=n_records,
        organisations=organisations,
        coefficients=study.width,
        noise=noise,
        error_alone=bounded[0],
        error_released=bounded[1],
        error_narrow=bounded[2],
        error_combined=combined,
    )


def _size(study: Study) -> float:
    """The squared length of coefficients half as long as they may be: what predicting with none of them costs."""
    return float(study.coef_bound) ** 2 / 4


def _released(study: Study, spread: float, organisations: int) -> tuple[float, float]:
    """The noise on one released number, with the relative error of the public model where each direction has that spread."""
    width, size = study.width, _size(study)
    if study.method in STATISTICS:
        level = noise_level(study)
        extra = level.moment + level.gram * (1 + 1 / width) * size / 2
        error = width * (_RESIDUAL**2 / (organisations * spread) + extra / (organisations * spread**2))
        return math.sqrt(level.gram), error / size
    bound, people = Fraction(study.coef_bound), study.records_per_person
    asked = Fraction(study.regularization or 0)
    ridge, left = noise_share(Fraction(study.epsilon), ridge=asked, records_per_person=people)
    noise = people * float(gradient_diameter(bound, study.relation) / left) * math.sqrt(width + 1)
    bias = float(ridge) / (spread + float(ridge))
    drawn = _RESIDUAL**2 * width / spread + width * (noise / 2 / (spread + float(ridge))) ** 2
    return noise, (drawn / organisations + bias**2 * size) / size
