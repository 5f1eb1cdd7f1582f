"""What the summaries room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sabun.asking.evidence import Checklist, Command, Specimen
from sabun.records import Column, Schema
from sabun.summaries import Count, Histogram, Mean, Quantiles, Sum, Variance
from sabun.summaries.whole_fit import CHECKS as OF_FITS
from sabun.summaries.whole_intervals import CHECKS as OF_INTERVALS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS", "VARIANTS"]

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
    Specimen(question="Quantiles", make=partial(Quantiles, column="x0", **_TERMS), fit=_fit, chooses=True),
)

_GROUPED = Schema(columns=(Column.number("x0", bounds=(0, 1)), Column.category("g", ["a", "b", "c"])))


def _fit_groups(model: Any, rows: Any) -> Any:
    """The second column is cut into three labels; what is no number has none."""
    labels = np.select([rows[:, 1] < 1 / 3, rows[:, 1] < 2 / 3, rows[:, 1] >= 2 / 3], ["a", "b", "c"], default="?")
    return model.fit(np.array([[cell, label] for cell, label in zip(rows[:, 0], labels, strict=True)], dtype=object))


def _variants() -> Iterator[Specimen]:
    for specimen, relation, grouped in itertools.product(SPECIMENS, ("replace-one", "add-remove"), (False, True)):
        pure = "exponential mechanism" if specimen.question == "Quantiles" else "discrete Laplace noise"
        groups: dict[str, Any] = {"schema": _GROUPED, "by": "g"} if grouped else {}
        own: dict[str, Any] = {"where": {"x0": (0.25, None)}} if grouped and "where" in specimen.make.keywords else {}  # type: ignore[attr-defined]
        fit = _fit_groups if grouped else specimen.fit
        words = f"{relation}{', by group' if grouped else ''}"
        plain = replace(specimen, fit=fit).varied(pure, setting=words, relation=relation, **groups, **own)
        yield plain
        if specimen.question != "Quantiles":
            more = plain.varied("discrete Gaussian noise", setting=f"{words}, delta=1e-6", delta=1e-6)
            yield replace(more, delta=Fraction(1, 10**5))


VARIANTS = tuple(_variants())
"""Every question between either neighbours, of everybody and by group, with and without delta."""

_TABLE = ("t.csv", "--bounds", "age=0:120", "--bounds", "bmi=10:60")

COMMANDS = (
    Command(verb="count", arguments=(*_TABLE, "--where", "age=65:")),
    *(Command(verb=verb, arguments=(*_TABLE, "--column", "bmi")) for verb in ("sum", "mean", "variance")),
    *(Command(verb=verb, arguments=(*_TABLE, "--column", "bmi")) for verb in ("histogram", "quantiles")),
)

PROMISING = ("discrete Laplace noise", "discrete Gaussian noise", "exponential mechanism")

CHECKS = Checklist(OF_FITS, OF_INTERVALS)
