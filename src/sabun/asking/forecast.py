"""What a plan foretells: an error with an interval, and what was assumed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from sabun.errors import InternalError

__all__ = ["Forecast", "Planned"]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The error to expect, as a weather forecast would say it.

    A forecast is checked like one: the realised error lies between a third of `middle` and three times as much in nine of ten
    cases, on tables nobody tuned on.

    Args:
        quantity: What is foretold, in words and with its unit, e.g. "error of the count, in records".
        low: In nine of ten runs the error is not below this.
        middle: The typical error (median).
        high: In nine of ten runs the error is not above this.
        assumed: Everything assumed about the table, one sentence each; printed with the forecast.
    """

    quantity: str
    low: float
    middle: float
    high: float
    assumed: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.middle <= self.high or math.isnan(self.high):
            raise InternalError("a forecast must be in order: low, middle, high.")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        numbers = {"low": self.low, "middle": self.middle, "high": self.high}
        return {"quantity": self.quantity, **numbers, "assumed": list(self.assumed)}


@runtime_checkable
class Planned(Protocol):
    """What every room's plan has, so that a command can show it before it charges.

    `forecasts` holds one where the user told what the table is like, and an optimistic and a pessimistic one where not.
    """

    @property
    def forecasts(self) -> tuple[Forecast, ...]:
        """The error to expect."""
        ...

    @property
    def vacuous(self) -> bool:
        """Whether even the kindest forecast says that the answer will tell nothing."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        ...
