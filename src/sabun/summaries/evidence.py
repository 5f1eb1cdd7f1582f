"""What the summaries room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from functools import partial
from typing import Any

from sabun.asking.evidence import Command, Specimen
from sabun.records import Schema
from sabun.summaries import Count, Histogram, Mean, Quantiles, Sum, Variance
from sabun.summaries.whole_fit import CHECKS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS"]

_SQUARE = Schema.of_bounds({"x0": (0, 1), "x1": (0, 1)})
_TERMS: dict[str, Any] = {"schema": _SQUARE, "epsilon": 0.5}
_HALF = {"x1": (0.5, None)}


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(rows)


SPECIMENS = (
    Specimen(question="Count", make=partial(Count, where=_HALF, **_TERMS), fit=_fit),
    Specimen(question="Sum", make=partial(Sum, column="x0", **_TERMS), fit=_fit),
    Specimen(question="Mean", make=partial(Mean, column="x0", where=_HALF, **_TERMS), fit=_fit),
    Specimen(question="Variance", make=partial(Variance, column="x0", **_TERMS), fit=_fit),
    Specimen(question="Histogram", make=partial(Histogram, column="x0", bins=4, **_TERMS), fit=_fit),
    Specimen(question="Quantiles", make=partial(Quantiles, column="x0", **_TERMS), fit=_fit),
)

_TABLE = ("t.csv", "--bounds", "age=0:120", "--bounds", "bmi=10:60")

COMMANDS = (
    Command(verb="count", arguments=(*_TABLE, "--where", "age=65:")),
    *(Command(verb=verb, arguments=(*_TABLE, "--column", "bmi")) for verb in ("sum", "mean", "variance")),
    *(Command(verb=verb, arguments=(*_TABLE, "--column", "bmi")) for verb in ("histogram", "quantiles")),
)

PROMISING = ("discrete Laplace noise", "discrete Gaussian noise", "exponential mechanism")
