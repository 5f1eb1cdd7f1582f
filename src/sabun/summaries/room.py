"""The summaries room, as the house finds it."""

from __future__ import annotations

from sabun.asking.directory import Room

__all__ = ["ROOM"]

ROOM = Room(
    name="summaries",
    title="Summaries",
    order=0,
    job="how many, how much, how it is spread: the plain answers, by public groups",
    questions=("Count", "Sum", "Mean", "Variance", "Histogram", "Quantiles"),
)
