"""The density room, as the house finds it."""

from __future__ import annotations

from sabun.asking.directory import Room

__all__ = ["ROOM"]

ROOM = Room(
    name="density",
    order=2,
    job="weights for a public table that answer questions about a private one",
    questions=("DensityRatio",),
)
