"""How a model's coefficients are told; the constant where the columns of dates begin, since nobody asks about 1970-01-01."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, final

from sabun.foreign import padded
from sabun.records import NumberColumn
from sabun.regression.design import Floats
from sabun.regression.study import Study
from sabun.telling.measures import Measure

__all__ = ["Constant", "coefficient_lines", "constant_of"]


class _Model(Protocol):
    """What is asked of a model."""

    @property
    def study(self) -> Study: ...
    @property
    def covariance(self) -> Floats | None: ...
    @property
    def coef_(self) -> Floats: ...
    @property
    def intercept_(self) -> float: ...
    @property
    def feature_names_(self) -> tuple[str, ...]: ...
    @property
    def measures(self) -> tuple[Measure, ...]: ...
    def intercept_interval(self, confidence: float = ..., *, at: Mapping[str, float] | None = ...) -> tuple[float, float]: ...
    def to_dict(self) -> dict[str, Any]: ...


@final
@dataclass(frozen=True, kw_only=True)
class Constant:
    """What a model says where every number is 0, no label is there, and every date is the first one declared.

    Args:
        value: The prediction there.
        interval: Its confidence interval; None where the model knows none.
        where: The columns of dates with these days, for people; empty where there are none.
    """

    value: float
    interval: tuple[float, float] | None
    where: str


def constant_of(model: _Model) -> Constant:
    """The constant of a model: its intercept, but for columns of dates, whose 0 is 1970-01-01."""
    dated = [one for one in model.study.features.columns if isinstance(one, NumberColumn) and one.dates]
    at = {column.name: float(column.lower) for column in dated}
    steps = dict(zip(model.feature_names_, model.coef_.tolist(), strict=True))
    return Constant(
        value=model.intercept_ + sum(steps[name] * day for name, day in at.items()),
        interval=None if model.covariance is None else model.intercept_interval(at=at),
        where=", ".join(f"{column.name} {Measure.of(column).exactly(column.lower)}" for column in dated),
    )


def coefficient_lines(model: _Model) -> list[str]:
    """One line for each coefficient, the constant last."""
    rows: Sequence[dict[str, Any]] = model.to_dict()["coefficients"]
    constant = constant_of(model)
    if constant.where:
        ends = {} if constant.interval is None else {"interval": constant.interval}
        rows = [*rows[:-1], {"feature": f"intercept ({constant.where})", "coef": constant.value, **ends}]
    lines = []
    for row, measure in zip(rows, model.measures, strict=True):
        name, unit = padded(row["feature"], 24), f" {measure.word}" if measure.unit else ""
        if "interval" not in row:
            found = measure.exactly(row["coef"]) if measure.dates else f"{row['coef']:.5g}"
            lines.append(f"  {name} {found:>12}{unit}")
            continue
        low, high = measure.bare_ends(*row["interval"])
        lines.append(f"  {name} {measure.bare(row['coef'], *row['interval']):>12}   [{low}, {high}]{unit}")
    return lines
