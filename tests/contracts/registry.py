"""Every public class that turns private rows into a release, as its room shows it in `evidence.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sabun import Ledger
from sabun.asking.directory import Room
from sabun.asking.evidence import ROWS, Specimen, specimens


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

    def ledger(self, path: Any, *, epsilon: float = 1.0) -> Ledger:
        return Ledger.create(path, name="book", unit="patient", epsilon=epsilon, delta=self.specimen.delta)


ENTRIES = tuple(Entry(room, specimen) for room, specimen in specimens())
