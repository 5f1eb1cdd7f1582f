"""What to expect before anything is spent: from public numbers alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from sabun import checks
from sabun.privacy.amounts import plain
from sabun.privacy.guarantee import LARGE_EPSILON
from sabun.regression.sensitivity import gradient_diameter, noise_share
from sabun.regression.study import STATISTICS, Study
from sabun.regression.sufficient import noise_level

__all__ = ["Plan", "plan_of"]

_RESIDUAL = 0.2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Cost and expected error of a release, without touching data.

    Errors are relative excess risks: 1 is what predicting with all coefficients 0 costs, 0 is perfect. They assume
    features spread
    over the ball and a residual of a tenth of the target's range; real data may be better or worse.

    Args:
        mechanism: Which one.
        epsilon: Privacy of each organisation's release.
        delta: The same.
        relation: Neighbours of the guarantee.
        rows: Rows of each organisation.
        organisations: How many organisations.
        coefficients: How many coefficients, the intercept included.
        noise: Standard deviation of the noise on one released number, in row units.
        error_alone: Expected error of one organisation's own data without privacy.
        error_released: Expected error of the public model.
        error_combined: Expected error of the home model: own data with the releases of the others.
    """

    mechanism: str
    epsilon: str
    delta: str
    relation: str
    rows: int
    organisations: int
    coefficients: int
    noise: float
    error_alone: float
    error_released: float
    error_combined: float

    @property
    def helps(self) -> bool:
        """Whether combining is expected to beat one organisation alone by a tenth; never with one organisation."""
        return self.organisations > 1 and self.error_combined < 0.9 * self.error_alone

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self) | {"helps": self.helps}

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
            f"{self.mechanism}: epsilon {self.epsilon}, delta {self.delta} ({self.relation}) from {makers} with {self.rows} "
            f"rows, {self.coefficients} coefficients.",
            f"Expected error (0: as good as possible, 1: no better than a constant guess): own data without privacy "
            f"{self.error_alone:.3g}, public model {self.error_released:.3g}{joined}.",
        ]
        return "\n".join([*lines, *([" ".join(verdict)] if verdict else [])])


def plan_of(study: Study, *, rows: int, organisations: int = 1) -> Plan:
    """The plan of a study for organisations of about `rows` rows each (a public guess).

    Example:
        >>> from sabun.records import Column, Schema
        >>> study = Study(features=Schema.of_bounds([(0, 1)] * 4), target=Column.number("y", lower=0, upper=1), epsilon=1)
        >>> plan_of(study, rows=1000, organisations=10).helps
        True
    """
    checks.whole(minimum=1, rows=rows, organisations=organisations)
    width, size = study.width, float(study.coef_bound) ** 2 / 4
    spread = rows / (width + 2)
    alone = _RESIDUAL**2 * width / spread
    if study.mechanism in STATISTICS:
        level = noise_level(study)
        extra = level.moment + level.gram * (1 + 1 / width) * size / 2
        released = width * (_RESIDUAL**2 / (organisations * spread) + extra / (organisations * spread**2))
        noise = math.sqrt(level.gram)
    else:
        bound, people = Fraction(study.coef_bound), study.records_per_person
        ridge, left = noise_share(Fraction(study.epsilon), ridge=Fraction(study.ridge or 0), records_per_person=people)
        scale = people * float(gradient_diameter(bound, study.relation) / left)
        noise = scale * math.sqrt(width + 1)
        bias = float(ridge) / (spread + float(ridge))
        released = (alone + width * (noise / 2 / (spread + float(ridge))) ** 2) / organisations + bias**2 * size
    bounded = [min(error / size, 1.0) for error in (alone, released)]
    combined = 1 / (1 / bounded[0] + 1 / bounded[1]) if study.mechanism in STATISTICS else min(bounded)
    return Plan(
        mechanism=study.mechanism,
        epsilon=plain(Fraction(study.epsilon)),
        delta=plain(Fraction(study.delta or 0)),
        relation=study.relation,
        rows=rows,
        organisations=organisations,
        coefficients=width,
        noise=noise,
        error_alone=bounded[0],
        error_released=bounded[1],
        error_combined=combined,
    )
