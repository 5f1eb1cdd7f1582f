"""What a plan foretells: an error with an interval, and what was assumed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

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
        often: How often the error is between `low` and `high`; left out, eight of ten runs, for it may miss either end, and
            nine of ten where `low` is 0.
    """

    quantity: str
    low: float
    middle: float
    high: float
    assumed: tuple[str, ...]
    often: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.often:
            object.__setattr__(self, "often", "eight of ten runs" if self.low else "nine of ten runs")
        if not 0 <= self.low <= self.middle <= self.high or math.isnan(self.high):
            raise InternalError("a forecast must be in order: low, middle, high.")

    @classmethod
    def of_tail(cls, quantity: str, exceeds: Callable[[float], float], assumed: tuple[str, ...], *, top: float) -> Self:
        """The forecast of an error with a known law.

        Args:
            quantity: What is foretold.
            exceeds: The probability that the error is above a number; it never grows.
            assumed: What is assumed about the table.
            top: An error that is never exceeded.

        Example:
            >>> Forecast.of_tail("error", lambda x: math.exp(-x), (), top=100.0)
            Forecast(quantity='error', low=0.105, middle=0.693, high=2.3, assumed=())
        """
        low, middle, high = (_least(exceeds, miss, top) for miss in (0.9, 0.5, 0.1))
        return cls(quantity=quantity, low=low, middle=middle, high=high, assumed=assumed)

    def __str__(self) -> str:
        low, middle, high = map(_plain, (self.low, self.middle, self.high))
        if self.low and low == high:  # a range whose ends read alike is none
            return f"{self.quantity}: about {middle} in {self.often}"
        return f"{self.quantity}: about {middle}, in {self.often} {f'from {low} to {high}' if self.low else f'at most {high}'}"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        numbers = {"low": self.low, "middle": self.middle, "high": self.high}
        return {"quantity": self.quantity, **numbers, "assumed": list(self.assumed)}


def _plain(error: float) -> str:
    """Three digits, as people write them: 3,110 and no 3.11e+03."""
    return f"{float(f'{error:.3g}'):,.12g}"


def _least(exceeds: Callable[[float], float], miss: float, top: float) -> float:
    """The least number that is exceeded with at most that probability, to three digits: a forecast has no more."""
    low, high = 0.0, top
    if exceeds(0.0) <= miss:
        return 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if exceeds(middle) <= miss else (middle, high)
        if high - low <= 1e-4 * high:
            break
    return float(f"{high:.3g}")


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
