"""What the learning room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sabun.asking.evidence import Command, Specimen
from sabun.learning import PrivateClassifier
from sabun.learning.settings import METHODS, SYNTHESES

__all__ = ["COMMANDS", "PROMISING", "SPECIMENS"]


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(rows, np.where(rows[:, 0] > 0.5, "yes", "no"))


SPECIMENS = (
    Specimen(
        question="PrivateClassifier",
        make=partial(PrivateClassifier, epsilon=0.5, delta=1e-3, hidden=(), epochs=2, classes=["no", "yes"], n_public=60),
        fit=_fit,
        delta=Fraction(1, 10),
    ),
)

COMMANDS = (
    Command(
        verb="train",
        arguments=(
            *("t.csv", "--bounds", "age=0:120", "--bounds", "bmi=10:60", "--target", "sick", "--classes", "no,yes"),
            *("--hidden", "", "--set", "epochs=1"),
        ),
        out="model",
    ),
)

PROMISING = (*METHODS, *SYNTHESES)
"""The mechanisms that promise something."""
