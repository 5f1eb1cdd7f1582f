"""What the learning room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from sabun.asking.evidence import Checklist, Command, Specimen
from sabun.learning import PrivateClassifier
from sabun.learning.canary_checks import CHECKS as OF_NETWORKS
from sabun.learning.settings import METHODS, SYNTHESES
from sabun.learning.torch_modules.whole_fit import CHECKS as OF_MODULES
from sabun.learning.whole_fit import CHECKS as OF_CLASSIFIERS

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS"]


def _fit(model: Any, rows: Any) -> Any:
    return model.fit(rows, np.where(rows[:, 0] > 0.5, "yes", "no"))


def _trainer(**changes: Any) -> Any:
    """The smallest trainer there is: one step on everybody, from weights that are all zero."""
    from torch import nn

    from sabun.learning import TorchTrainer

    module = nn.Linear(2, 2)
    for part in module.parameters():
        nn.init.zeros_(part)
    facts: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-3, "sampling_rate": 1.0, "epochs": 1, "n_public": 60}
    return TorchTrainer(module, **facts | changes)


def _fit_module(model: Any, rows: Any) -> Any:
    return model.fit(rows, (rows[:, 0] > 0.5).astype(np.int64))


SPECIMENS = (
    Specimen(
        question="PrivateClassifier",
        make=partial(PrivateClassifier, epsilon=0.5, delta=1e-3, hidden=(), epochs=2, classes=["no", "yes"], n_public=60),
        fit=_fit,
        delta=Fraction(1, 10),
    ),
    Specimen(question="TorchTrainer", make=_trainer, fit=_fit_module, delta=Fraction(1, 10), needs="learning"),
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

CHECKS = Checklist(OF_CLASSIFIERS, OF_MODULES, OF_NETWORKS)

PROMISING = (*METHODS, *SYNTHESES, "torch-modules")
"""The mechanisms that promise something."""
