"""Every public class that turns private rows into a release, as its room shows it in `evidence.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from sabun import Ledger
from sabun.asking.directory import Room
from sabun.asking.evidence import ROWS, Specimen, installed, specimens


@dataclass(frozen=True)
class Entry:
    """One class with its room."""

    room: Room
    specimen: Specimen

    @property
    def name(self) -> str:
        return self.specimen.question

    @property
    def kind(self) -> str:
        return f"{self.room.name}."

    def make(self, **changes: Any) -> Any:
        return self.specimen.make(**changes)

    def fit(self, model: Any) -> Any:
        return self.specimen.fit(model, ROWS)

    def ledger(self, path: Any, *, epsilon: float = 1.0, accounting: str = "shares") -> Ledger:
        budget = {"epsilon": epsilon, "delta": self.specimen.delta, "accounting": accounting}
        return Ledger.create(path, name="book", unit="patient", **budget)


ENTRIES = tuple(Entry(room, specimen) for room, specimen in specimens())

CASES = tuple(
    pytest.param(
        entry,
        id=entry.name,
        marks=pytest.mark.skipif(
            not installed(entry.specimen.needs), reason=f"needs the extra: pip install 'sabun[{entry.specimen.needs}]'"
        ),
    )
    for entry in ENTRIES
)
"""The same as parameters of a test; a class whose extra is not installed is left out, and the reason is said."""
