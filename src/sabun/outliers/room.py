"""The outliers room, as the house finds it."""

from __future__ import annotations

from sabun.asking.directory import Room

__all__ = ["ROOM"]

ROOM = Room(
    name="outliers",
    order=1,
    job="how many outliers a sensitive table has",
    questions=("OutlierCount", "RegionCount", "SubspaceChoice"),
)
