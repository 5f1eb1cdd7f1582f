"""What the outliers room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from sabun.asking.evidence import Command, Specimen
from sabun.outliers import OutlierCount, RegionCount, SubspaceChoice
from sabun.outliers.laws import Gaussian, Laplace, PowerTail
from sabun.outliers.settings import METHODS
from sabun.outliers.vector import PowerVector
from sabun.outliers.whole_fit import CHECKS
from sabun.records import Schema

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS", "VARIANTS"]


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(rows)


_TERMS: dict[str, Any] = {
    "schema": Schema.of_bounds({"x0": (0, 1), "x1": (0, 1)}),
    "k": 2,
    "radius": 0.2,
    "epsilon": 0.5,
}
_HALVES: dict[str, dict[str, Any]] = {"left": {"x0": (None, 0.5)}, "right": {"x0": (0.5, None)}}
_SMOOTH = (PowerTail, PowerVector, Laplace, Gaussian)
_SIDES = {"first": ["x0"], "second": ["x1"]}

SPECIMENS = (
    Specimen(question="OutlierCount", make=partial(OutlierCount, **_TERMS), fit=_fit, smooth=_SMOOTH),
    Specimen(
        question="RegionCount",
        make=partial(RegionCount, regions=_HALVES, **_TERMS),
        fit=_fit,
        smooth=_SMOOTH,
    ),
    Specimen(question="SubspaceChoice", make=partial(SubspaceChoice, subspaces=_SIDES, **_TERMS), fit=_fit, chooses=True),
)


def _variants() -> Iterator[Specimen]:
    count, regions, choice = SPECIMENS
    for relation in ("replace-one", "add-remove"):
        for method in (name for name in METHODS if name != "paper"):
            delta: dict[str, Any] = {"delta": 1e-4} if method in ("laplace", "gaussian", "global-gaussian") else {}
            room = replace(count, delta=Fraction(1, 10**3)) if delta else count
            yield room.varied(method, method=method, relation=relation, **delta)
        yield count.varied("power", method="power", relation=relation, error_bar=0)
    yield regions.varied("power")
    yield choice.varied("permute-and-flip")


VARIANTS = tuple(_variants())
"""Every method between either neighbours, with and without an error bar."""

_BOUNDS = ("--bounds", "age=0:120", "--bounds", "bmi=10:60")

COMMANDS = (
    Command(verb="count", arguments=("t.csv", *_BOUNDS, "--radius", "0.2")),
    Command(verb="choose", arguments=("t.csv", *_BOUNDS, "--radius", "0.2", "--subspace", "one=age", "--subspace", "two=bmi")),
)

PROMISING = (*(name for name in METHODS if name != "paper"), "permute-and-flip")
"""The methods that promise something; the formula as printed promises nothing."""
