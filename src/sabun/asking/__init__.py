"""One way to ask: settle the terms once, charge, draw, hand over; and where the rooms are found.

    Ask (terms, coin, ledger) ─► answer(draw) ─► Release
    Statistic (adds up) ─► Part (each piece once), from `sabun.engine`
    rooms(): whoever has a room.py

Names are loaded on first use: finding the rooms must stay quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabun.lazy import lazily

if TYPE_CHECKING:
    from sabun.asking.ask import Ask, Question
    from sabun.asking.directory import Room, room_named, rooms
    from sabun.asking.forecast import Forecast, Planned
    from sabun.asking.method_settings import MethodSettings, methodical, settings_of
    from sabun.asking.names import renamed
    from sabun.asking.settings import Settings
    from sabun.engine.statistic import Part, Statistic, probe, state_of

__all__ = [
    "Ask",
    "Forecast",
    "MethodSettings",
    "Part",
    "Planned",
    "Question",
    "Room",
    "Settings",
    "Statistic",
    "methodical",
    "probe",
    "renamed",
    "room_named",
    "rooms",
    "settings_of",
    "state_of",
]

_HOMES = {
    "Ask": "ask",
    "Forecast": "forecast",
    "MethodSettings": "method_settings",
    "Part": "sabun.engine.statistic",
    "Planned": "forecast",
    "Question": "ask",
    "Room": "directory",
    "Settings": "settings",
    "Statistic": "sabun.engine.statistic",
    "methodical": "method_settings",
    "probe": "sabun.engine.statistic",
    "renamed": "names",
    "room_named": "directory",
    "rooms": "directory",
    "settings_of": "method_settings",
    "state_of": "sabun.engine.statistic",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
