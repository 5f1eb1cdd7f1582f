"""The regression room, as the house finds it."""

from __future__ import annotations

from sabun.asking.directory import Room

__all__ = ["ROOM"]

ROOM = Room(
    name="regression", order=3, job="one linear model from organisations that cannot share data", questions=("PrivateRidge",)
)
