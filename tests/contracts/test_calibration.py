"""The calibration tests of the rooms (`test_calibration_*.py`) try every mechanism there is; a new one has to join them."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest

from sabun.asking import Room, rooms

YARDSTICKS = {"ULSIF", "PlainClassifier"}
"""Classes with `fit` that say NOT PRIVATE: they are there to be compared with."""


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.name)
def test_every_mechanism_is_tried(room: Room) -> None:
    offered = getattr(room.part("evidence"), "PROMISING", None)
    assert offered, f"{room.package}.evidence must list its mechanisms in PROMISING"
    tests = importlib.import_module(f"contracts.test_calibration_{room.name}")
    assert set(offered) == tests.TRIED, f"write a test for it in test_calibration_{room.name}.py first"


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.name)
def test_every_estimator_is_a_question_of_its_room(room: Room) -> None:
    package = importlib.import_module(room.package)
    exported: dict[str, Any] = {name: getattr(package, name) for name in package.__all__}
    found = {name for name, thing in exported.items() if inspect.isclass(thing) and hasattr(thing, "fit")}
    assert found - YARDSTICKS == set(room.questions)
