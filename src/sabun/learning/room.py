"""The learning room, as the house finds it."""

from __future__ import annotations

from sabun.asking.directory import Room

__all__ = ["ROOM"]

ROOM = Room(
    name="learning",
    order=5,
    job="a network trained on personal records, to hand over",
    questions=("PrivateClassifier", "TorchTrainer"),
)
