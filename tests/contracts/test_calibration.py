"""The calibration tests of the rooms (`test_calibration_*.py`) try every mechanism there is; a new one has to join them."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType
from typing import Any

import pytest

from sabun.density.options import METHODS as DENSITY
from sabun.keyvalue.client import PROTOCOLS
from sabun.learning.settings import METHODS as LEARNING
from sabun.learning.settings import SYNTHESES
from sabun.outliers.setup import MECHANISMS as OUTLIERS
from sabun.regression import MECHANISMS as REGRESSION

NOT_PRIVATE = {"paper"}
"""Formulas as printed, whose guarantee is infinite: they have nothing to keep."""

TRIED = {
    "outliers": {"power", "laplace", "gaussian", "global-laplace", "global-gaussian"},
    "density": {"rkhs", "ulsif-parametric", "ulsif-a", "ulsif-b", "ulsif-c", "ji-elkan"},
    "regression": {"ssp-gauss", "ssp-laplace", "objpert"},
    "learning": {
        "dp-sgd",
        "laplace-sgd",
        "objective-perturbation",
        "anonymizing-first",
        "learning-first",
        "anonymized-learning",
    },
    "synthesis": {"bayes-net", "microaggregation", "histogram"},
    "keyvalue": {"kv3", "privkv", "privkv-tight", "privkvm", "pckv-ue", "pckv-grr", "pckv-grr+"},
}
ESTIMATORS = {
    "outliers": {"OutlierCount", "RegionCount", "SubspaceChoice"},
    "density": {"DensityRatio", "ULSIF"},
    "regression": {"PrivateRidge"},
    "learning": {"PrivateClassifier", "PlainClassifier"},
    "keyvalue": set(),
}
"""ULSIF and PlainClassifier are yardsticks that say NOT PRIVATE."""


@pytest.mark.parametrize(
    ("room", "offered"),
    [
        ("outliers", OUTLIERS),
        ("density", DENSITY),
        ("regression", REGRESSION),
        ("learning", LEARNING),
        ("synthesis", SYNTHESES),
        ("keyvalue", PROTOCOLS),
    ],
)
def test_every_mechanism_is_tried(room: str, offered: tuple[str, ...]) -> None:
    assert set(offered) - NOT_PRIVATE == TRIED[room], f"write a test for it in test_calibration_{room}.py first"


@pytest.mark.parametrize("room", ESTIMATORS)
def test_every_estimator_is_tried(room: str) -> None:
    module: ModuleType = importlib.import_module(f"sabun.{room}")
    exported: dict[str, Any] = {name: getattr(module, name) for name in module.__all__}
    found = {name for name, thing in exported.items() if inspect.isclass(thing) and hasattr(thing, "fit")}
    assert found == ESTIMATORS[room], f"write a test for it in test_calibration_{room}.py first"
