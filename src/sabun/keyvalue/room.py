"""The key-value room, as the house finds it."""

from __future__ import annotations

from sabun.asking.directory import Room

__all__ = ["ROOM"]

ROOM = Room(name="keyvalue", order=4, job="(key, value) pairs from people's devices", title="Key-value")
