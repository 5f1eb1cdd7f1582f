"""Which rooms are held to the tables of names, by the tests that hold them."""

from __future__ import annotations

NOT_YET = frozenset({"density", "keyvalue", "learning", "regression"})
"""Rooms that are still being converted; to be emptied."""
