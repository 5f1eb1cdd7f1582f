"""What the regression room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from sabun.asking.evidence import Command, Specimen
from sabun.regression import MECHANISMS, PrivateRidge
from sabun.regression.whole_fit import CHECKS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS", "VARIANTS"]


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(rows, rows.sum(axis=1))


_TERMS = {"epsilon": 0.5, "delta": 1e-6, "x_bounds": [(0.0, 1.0), (0.0, 1.0)], "y_bounds": (0.0, 2.0), "coef_bound": 2.0}

SPECIMENS = (
    Specimen(question="PrivateRidge", make=partial(PrivateRidge, **_TERMS), fit=_fit, delta=Fraction(1, 10**5)),  # type: ignore[arg-type]
)


_UNTRACED = "its noise goes into an objective, not onto a number"


def _variants() -> Iterator[Specimen]:
    [usual] = SPECIMENS
    for method in PROMISING:
        for relation in ("replace-one", "add-remove"):
            for people in (1, 3):
                pure: dict[str, Any] = {"delta": None} if method in ("ssp-laplace", "objpert") else {}
                facts: dict[str, Any] = {"method": method, "relation": relation, "records_per_person": people}
                yield usual.varied(method, untraced=_UNTRACED if method == "objpert" else "", **facts, **pure)


COMMANDS = (
    Command(verb="fit", arguments=("t.csv", "--bounds", "age=0:120", "--bounds", "bmi=10:60", "--target", "bmi", "--yes")),
)

PROMISING = tuple(name for name in MECHANISMS if name != "paper")
"""The mechanisms that promise something; the formula as printed promises nothing."""

VARIANTS = tuple(_variants())
"""Every mechanism between either neighbours, for one and for three rows of a person."""
