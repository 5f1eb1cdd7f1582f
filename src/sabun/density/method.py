"""What every way to weight a public table has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

from sabun.density.features import Features
from sabun.density.kernel import Floats
from sabun.density.statistic import PointSums, Tally
from sabun.privacy.events import Event
from sabun.privacy.noise import Coin
from sabun.privacy.pricing import Price

__all__ = ["Method", "Promise", "Target"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """The privacy that was asked for, in exact numbers."""

    epsilon: Fraction
    delta: Fraction | None
    relation: str


@dataclass(frozen=True, kw_only=True)
class Promise:
    """What a method really keeps for a private table of a public size.

    Attributes:
        epsilon: As in a guarantee.
        delta: As in a guarantee.
        mechanism: Name of what makes it private.
        assumptions: What must hold outside the code.
        facts: Public parameters worth publishing.
        events: What is drawn, where more is known than epsilon and delta.
    """

    epsilon: Fraction
    delta: Fraction
    mechanism: str
    assumptions: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Event, ...] = ()

    def price(self, relation: str) -> Price | None:
        """The events as a ledger with a Rényi order reads them; None where there are none."""
        return Price(events=self.events, relation=relation) if self.events else None


class Method(Protocol):
    """A plan made from public things only; private records come in through `draw`, as sums or as points."""

    @property
    def streams(self) -> bool:
        """Whether sums are all it needs, so that records may come in pieces."""
        ...

    def statistic(self, features: Features, table: str) -> PointSums:
        """What a method that streams sums up; `table` names the public table and the settings."""
        ...

    def promise(self, size: int) -> Promise:
        """The guarantee for a private table of that size; raises for sizes it cannot serve."""
        ...

    def draw(self, seen: Tally | Floats, coin: Coin) -> dict[str, Any]:
        """Tosses the coin; returns what is released, with `weights` in it. Private values cannot make it raise."""
        ...

    def ratio(self, released: Mapping[str, Any], points: Floats) -> Floats:
        """The ratio at other points, from what was released."""
        ...
