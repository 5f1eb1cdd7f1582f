"""Every check of every room, case by case; `sabun audit` runs the same ones on an installed package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from sabun.asking import Room, rooms
from sabun.asking.evidence import Bench, Check, installed
from sabun.errors import MissingExtra

YARDSTICKS = {"ULSIF", "PlainClassifier"}
"""Classes with `fit` that say NOT PRIVATE: they are there to be compared with."""

CASES = [
    pytest.param(
        check,
        case,
        id=f"{room.name}: {check.name}: {check.claim} {number}",
        marks=pytest.mark.skipif(not installed(check.needs), reason=f"needs the extra: pip install 'sabun[{check.needs}]'"),
    )
    for room in rooms()
    for check in room.part("evidence").CHECKS  # type: ignore[union-attr]
    for number, case in enumerate(check.cases)
]


@pytest.mark.parametrize(("check", "case"), CASES)
def test_a_check_of_a_room_holds(check: Check, case: Mapping[str, Any]) -> None:
    check.try_case(Bench(), case)


@pytest.mark.parametrize("room", rooms(), ids=lambda room: room.name)
def test_every_mechanism_is_tried(room: Room) -> None:
    part = room.part("evidence")
    offered = getattr(part, "PROMISING", None)
    assert offered, f"{room.package}.evidence must list its mechanisms in PROMISING"
    tried = {name for check in part.CHECKS for name in check.mechanisms}  # type: ignore[union-attr]
    assert set(offered) == tried, f"write a check for it in {room.package}.whole_fit first"


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
