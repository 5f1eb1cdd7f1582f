"""The calibration tests of the rooms (`test_calibration_*.py`) try every mechanism there is; a new one has to join them."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

from sabun.asking import Room, rooms
from sabun.errors import MissingExtra

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
    inner = [name for _, name, more in pkgutil.iter_modules(package.__path__, f"{room.package}.") if more]
    places = [package, *map(importlib.import_module, inner)]
    found = {name for place in places for name in getattr(place, "__all__", ()) if _is_fitted(place, name)}
    assert found - YARDSTICKS == set(room.questions)


def _is_fitted(place: ModuleType, name: str) -> bool:
    """Whether it is a class with `fit`; what needs an extra that is not there is one if its room says so."""
    try:
        thing = getattr(place, name)
    except MissingExtra:
        return any(name in room.questions for room in rooms())
    return inspect.isclass(thing) and hasattr(thing, "fit")
