"""What the density room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from functools import partial
from typing import Any

from sabun.asking.evidence import ROWS, Command, Specimen
from sabun.density import DensityRatio
from sabun.density.settings import METHODS
from sabun.density.whole_fit import CHECKS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS"]


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(private=rows, public=ROWS[:40] + 0.1)


SPECIMENS = (Specimen(question="DensityRatio", make=partial(DensityRatio, epsilon=0.5), fit=_fit),)

COMMANDS = (
    Command(
        verb="weights",
        arguments=("--private", "t.csv", "--public", "public.csv", "--bounds", "age=0:120", "--bounds", "bmi=10:60"),
        out="out.csv",
    ),
)

PROMISING = METHODS
"""The mechanisms that promise something."""
