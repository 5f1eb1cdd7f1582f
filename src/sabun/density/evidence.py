"""What the density room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from sabun.asking.evidence import ROWS, Command, Specimen
from sabun.density import DensityRatio
from sabun.density.settings import KINDS, METHODS
from sabun.density.whole_fit import CHECKS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS", "VARIANTS"]


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(private=rows, public=ROWS[:40] + 0.1)


SPECIMENS = (Specimen(question="DensityRatio", make=partial(DensityRatio, epsilon=0.5), fit=_fit),)

_OWN: dict[str, dict[str, Any]] = {
    "ulsif-a": {"n_centers": 4, "bounds": [(0.0, 1.0), (0.0, 1.0)]},
    "ulsif-b": {"n_centers": 4},
    "ulsif-c": {"n_centers": 4, "accept_publishing_raw_records": True},
    "ulsif-parametric": {"basis": lambda x: [1.0, x[0], -x[1]], "basis_bounds": (-2.0, 2.0)},
    "ji-elkan": {"clip_norm": 2.0},
}
_RAW = "the method publishes rows as they are, and its delta says so"


def _variants() -> Iterator[Specimen]:
    [usual] = SPECIMENS
    for kind in KINDS:
        for relation in kind.relations:
            for delta in (None, 1e-6) if kind.gaussian else (None,):
                room = replace(usual, delta=Fraction(1, 10**5) if kind.gaussian else Fraction(1, 2))
                told = f"{kind.method}, {relation}{', delta=1e-6' if delta else ''}"
                facts = {"method": kind.method, "relation": relation, "delta": delta, **_OWN.get(kind.method, {})}
                raw = kind.method == "ulsif-c"
                found = room.varied(kind.method, setting=told, untraced=_RAW if raw else "", **facts)
                yield replace(found, released=lambda model: model.release_["h"]) if raw else found


VARIANTS = tuple(_variants())
"""Every method between the neighbours it knows, with and without delta."""

COMMANDS = (
    Command(
        verb="weights",
        arguments=("--private", "t.csv", "--public", "public.csv", "--bounds", "age=0:120", "--bounds", "bmi=10:60"),
        out="out.csv",
    ),
)

PROMISING = METHODS
"""The mechanisms that promise something."""
