"""What to expect before anything is spent: from public numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun import checks
from sabun.asking import Forecast, renamed
from sabun.errors import ParameterError
from sabun.notebook import Rich
from sabun.privacy.amounts import plain
from sabun.privacy.guarantee import LARGE_EPSILON
from sabun.regression.forecasting import OPTIMISTIC, PESSIMISTIC, Shape, errors_to_expect, length_to_expect, radius_to_expect
from sabun.regression.sensitivity import gradient_diameter, noise_share
from sabun.regression.sharing import round_terms
from sabun.regression.shortening import least_weight, remark_on_lengths
from sabun.regression.study import STAGED, STATISTICS, Study
from sabun.regression.sufficient import noise_level

__all__ = ["Plan", "plan_of"]

_RESIDUAL = 0.2
_NARROW = 3
_NOISE = 0.5
_FEW = 7
_OUTSIDE = 0.075
"""So many new draws lie beyond each end of a band. A tenth would hold four in five of the made-up tables themselves; with a
tenth 76 % of single runs held in 88 made-up cases with right shapes, for tables are never quite what was made up."""
_OFTEN = "four of five runs"
_LONG = (
    "Coefficients of such a table are about {times} times as long as coef_bound ({bound}): intervals then hold less often than "
    "they say, and pooling helps less. Agree on a larger coef_bound, or on bounds that the columns fill."
)
_LONGER = 1.05
"""What is told with two digits must be more than one."""
_APART = (
    "In a table as unkind as the last forecast assumes the public model would be mostly noise. Tell the plan what yours is "
    "like (--shape, or shape=Shape(...)), and both forecasts become one."
)
_ASSUMED = (
    "features fill their bounds evenly and independently, residuals are a tenth of the target's range, "
    "coefficients are half as long as the public guess of their length"
)


@renamed(mechanism="method", rows="n_records")
@dataclass(frozen=True, kw_only=True)
class Plan(Rich):
    """Cost and expected error of a release, without touching data.

    Errors are relative excess risks: 1 is what predicting with all coefficients 0 costs, 0 is perfect. They are those of a
    made-up table (see `assumed`), not of anybody's own: columns that crowd in a part of their bounds, or follow one another,
    leave less to see beside the same noise. `error_narrow` is the same for a table that fills a third of its bounds.
    `forecasts` are of the public model too, for a table of the shape that was told, else for a kind and an unkind one.

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
        forecasts: Of the public model's error, each with what it assumes.
        round: Epsilon and delta of each of two rounds; None with one file.
        least_weight: How much the longest possible row counts beside one that is not shortened, in the tables of `forecasts`.
        remarks: What to know before the charge, beside the forecasts: what a radius does to long rows, and where coefficients
            of a table of the told shape are longer than their bound.
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
    forecasts: tuple[Forecast, ...] = ()
    round: tuple[str, str] | None = None
    least_weight: float = 1.0
    remarks: tuple[str, ...] = ()

    @property
    def vacuous(self) -> bool:
        """Whether even the kindest forecast says that the public model will be mostly noise."""
        return min((one.middle for one in self.forecasts), default=self.error_released) > _NOISE

    @property
    def helps(self) -> bool:
        """Whether combining is expected to beat one organisation alone by a tenth; never with one organisation."""
        return self.organisations > 1 and self.error_combined < 0.9 * self.error_alone

    @property
    def assumed(self) -> str:
        """What the errors assume about a table that nobody has looked at."""
        return _ASSUMED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        forecasts = [forecast.to_dict() for forecast in self.forecasts]
        told = {"forecasts": forecasts, "remarks": list(self.remarks)}
        return asdict(self) | told | {"helps": self.helps, "vacuous": self.vacuous, "assumed": self.assumed}

    def __str__(self) -> str:
        alone = self.organisations == 1
        makers = "one organisation" if alone else f"each of {self.organisations} organisations"
        joined = "" if alone else f", own data with the releases {self.error_combined:.3g}"
        verdict = []
        if not alone:
            much = "" if self.helps else "not "
            verdict.append(f"Combining is {much}expected to help{'' if self.helps else ' one organisation much'}.")
        if not self.vacuous and max((one.middle for one in self.forecasts), default=0.0) > _NOISE and len(self.forecasts) > 1:
            verdict.append(_APART)
        if self.vacuous:
            verdict.append(
                "The public model alone would be mostly noise: use more rows, more organisations or a larger epsilon."
            )
        if Fraction(self.epsilon) > LARGE_EPSILON:
            verdict.append(f"An epsilon above {LARGE_EPSILON} is a weak promise.")
        lines = [
            f"{self.method}: epsilon {self.epsilon}, delta {self.delta} ({self.relation}) from {makers} with {self.n_records} "
            f"rows, {self.coefficients} coefficients.",
            *(
                [f"In two rounds; each by itself promises epsilon {self.round[0]}, delta {self.round[1]}."]
                if self.round
                else []
            ),
            f"Expected error (0: as good as possible, 1: no better than a constant guess) of a made-up table: own data without "
            f"privacy {self.error_alone:.3g}, public model {self.error_released:.3g}{joined}.",
            f"In that table {self.assumed}. Yours was not looked at and may be far worse: if its features fill a third of "
            f"their bounds, the public model has {self.error_narrow:.3g}.",
            *(
                f"Forecast of the public model's error: {one.middle:.2g} (in {one.often} {one.low:.2g} to {one.high:.2g}), if "
                f"{one.assumed[0]}."
                for one in self.forecasts
            ),
            *self.remarks,
        ]
        return "\n".join([*lines, *([" ".join(verdict)] if verdict else [])])


@renamed(rows="n_records")
def plan_of(study: Study, *, n_records: int, organisations: int = 1, shape: Shape | None = None) -> Plan:
    """The plan of a study for organisations of about `n_records` rows each (a public guess).

    Args:
        study: Its terms.
        n_records: Rows of each organisation.
        organisations: How many.
        shape: What the tables are like, as far as that is known without looking at them; for methods that release sums.

    Example:
        >>> from sabun.records import Column, Schema
        >>> study = Study(features=Schema.of_bounds([(0, 1)] * 4), target=Column.number("y", lower=0, upper=1), epsilon=1)
        >>> plan_of(study, n_records=1000, organisations=10).helps
        True
    """
    checks.whole(minimum=1, n_records=n_records, organisations=organisations)
    if shape is not None and not isinstance(shape, Shape):
        raise ParameterError(
            f"shape must be a Shape; got {type(shape).__name__}. Make one with Shape(spread=, r_squared=, ...)."
        )
    summed = shape is None or study.method in STATISTICS
    checks.require(summed, "one that releases sums to plan with a shape", "Others have a formula.", method=study.method)
    # Spread evenly over its bounds a feature has the mean square 1/3, divided by the squared scale of a row; where rows are
    # shortened, at most that of a coordinate in a ball.
    spread = n_records * min(1 / (3 * study.design.scale**2), 1 / (study.width + 2))
    alone = _RESIDUAL**2 * study.width / spread / _size(study)
    noise, released = _released(study, spread, organisations)
    narrow = _released(study, spread / _NARROW**2, organisations)[1]
    if study.method in STAGED:
        released, narrow = (_even(study, n_records, organisations, part) for part in (1, _NARROW))
    bounded = [min(error, 1.0) for error in (alone, released, narrow)]
    combined = 1 / (1 / bounded[0] + 1 / bounded[1]) if study.method in STATISTICS else min(bounded[:2])
    shapes = (OPTIMISTIC, PESSIMISTIC) if shape is None else (shape,)
    staged = study.method in STAGED
    radius = min(radius_to_expect(study, one, n_records=n_records) for one in shapes) if staged else math.inf
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
        forecasts=_forecasts(study, n_records, organisations, shapes, bounded),
        least_weight=least_weight(study, radius),
        remarks=(*_remark_on_rows(study, radius), *(() if shape is None else _remark_on_coefficients(study, shape))),
        round=tuple(map(plain, round_terms(study))) if study.method == "rounds" else None,  # type: ignore[arg-type]
    )


def _remark_on_rows(study: Study, radius: float) -> tuple[str, ...]:
    return tuple(f"Expected of such a table: {told[:1].lower()}{told[1:]}" for told in remark_on_lengths(study, [radius]))


def _remark_on_coefficients(study: Study, shape: Shape) -> tuple[str, ...]:
    """A column that fills a narrow corner of its bounds makes coefficients long, whatever they are in its own unit."""
    times = length_to_expect(study, shape)
    return (_LONG.format(times=f"{times:.2g}", bound=f"{float(study.coef_bound):g}"),) if times >= _LONGER else ()


def _even(study: Study, n_records: int, organisations: int, part: int) -> float:
    """The typical error where features fill their bounds, or so small a part of them, evenly; residuals as assumed."""
    spread, features = 1 / math.sqrt(3) / part, max(study.width - study.fit_intercept, 1)
    explained = _size(study) / study.design.scale**2 * spread**2 * features / study.width
    shape = Shape(
        spread=spread,
        r_squared=min(max(explained / (explained + _RESIDUAL**2), 1e-9), 1 - 1e-9),
        deviation=min(math.sqrt(explained + _RESIDUAL**2), 1.0),
    )
    return float(np.median(errors_to_expect(study, shape, n_records=n_records, organisations=organisations, runs=_FEW)))


def _forecasts(
    study: Study, n_records: int, organisations: int, shapes: Sequence[Shape], bounded: Sequence[float]
) -> tuple[Forecast, ...]:
    if study.method not in STATISTICS:  # coefficients alone: the formula, for either table
        return tuple(
            _foretold(error / 3, error, 3 * error, f"{_ASSUMED}; {table}")
            for error, table in ((bounded[1], "features fill their bounds"), (bounded[2], "they fill a third of them"))
        )
    found = []
    for one in shapes:
        errors = errors_to_expect(study, one, n_records=n_records, organisations=organisations)
        low, middle, high = (float(end) for end in np.quantile(errors, [_OUTSIDE, 0.5, 1 - _OUTSIDE], method="weibull"))
        found.append(_foretold(low, middle, high, str(one)))
    return tuple(found)


def _foretold(low: float, middle: float, high: float, assumed: str) -> Forecast:
    quantity = "error of the public model's predictions (0: as good as possible, 1: as predicting the mean)"
    return Forecast(quantity=quantity, low=low, middle=middle, high=high, assumed=(assumed,), often=_OFTEN)


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
