"""What the learning room shows of itself, for whoever checks all rooms."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from sabun.asking.evidence import Checklist, Command, Specimen
from sabun.learning import PrivateClassifier
from sabun.learning.canary_checks import CHECKS as OF_NETWORKS
from sabun.learning.settings import KINDS, METHODS, SYNTHESES, AnonymizingFirstSettings
from sabun.learning.step_checks import CHECKS as OF_STEPS
from sabun.learning.torch_modules.whole_fit import CHECKS as OF_MODULES
from sabun.learning.whole_fit import CHECKS as OF_CLASSIFIERS
from sabun.records import Schema

__all__ = ["CHECKS", "COMMANDS", "PROMISING", "SPECIMENS", "VARIANTS"]


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
    Specimen(
        question="TorchTrainer",
        make=_trainer,
        fit=_fit_module,
        delta=Fraction(1, 10),
        needs="learning",
        released=attrgetter("release_", "module"),
    ),
)

_SQUARE = Schema.of_bounds({"x0": (0, 1), "x1": (0, 1)})
_OWN: dict[str, dict[str, Any]] = {
    "dp-adam": {"epochs": 2},
    "dp-sgd": {"epochs": 1, "sampling_rate": 0.5},
    "laplace-sgd": {"epochs": 1, "sampling_rate": 0.5, "delta": None},
    "noisy-centroids": {"epochs": None, "delta": None, "schema": _SQUARE},
    "objective-perturbation": {"epochs": None, "delta": None, "schema": _SQUARE},
    "learning-first": {"epochs": 1, "delta": None},
    "anonymized-learning": {"epochs": 1, "delta": None, "batch_size": 20},
}
_UNTRACED = {"objective-perturbation": "its noise goes into an objective, not onto a number"}
_TABLES: dict[str, dict[str, Any]] = {
    "bayes-net": {"n_synthetic": 50, "bins": 2},
    "histogram": {"n_synthetic": 50, "bins": 2},
    "microaggregation": {"group_size": 7},
}


def _variants() -> Iterator[Specimen]:
    usual, trainer = SPECIMENS
    for kind in KINDS:
        for relation in kind().relations:
            sizes = (60, None) if relation == "add-remove" else (None,)
            for size in sizes:
                about: dict[str, Any] = {"relation": relation, "n_public": size}
                if kind.method != "anonymizing-first":
                    one = usual.varied(kind.method, untraced=_UNTRACED.get(kind.method, ""), method=kind.method, **about)
                    more = _OWN[kind.method]
                    yield replace(one, make=partial(one.make, **more), secret_batches="sampling_rate" in more)
                    continue
                for synthesis, own in _TABLES.items():
                    if relation in AnonymizingFirstSettings(synthesis=synthesis).relations:
                        facts: dict[str, Any] = {"method": kind.method, "synthesis": synthesis, "epochs": 1, "schema": _SQUARE}
                        yield usual.varied(kind.method, synthesis, **facts, **about, **own, delta=None)
    yield usual.varied("bayes-net", method="anonymizing-first", epochs=1, schema=_SQUARE, n_synthetic=50, bins=2, delta=1e-5)
    yield trainer.varied("torch-modules")
    yield replace(trainer.varied("torch-modules", sampling_rate=0.5, n_public=None), secret_batches=True)
    yield trainer.varied("torch-modules", relation="replace-one", n_public=None)


VARIANTS = tuple(_variants())
"""Every way of training between the neighbours it knows, with a public and a private number of records."""

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

CHECKS = Checklist(OF_CLASSIFIERS, OF_STEPS, OF_MODULES, OF_NETWORKS)

PROMISING = (*METHODS, *SYNTHESES, "torch-modules")
"""The mechanisms that promise something."""
