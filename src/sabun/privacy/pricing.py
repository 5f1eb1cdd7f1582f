"""The price of a release: what it is made of, beside the (epsilon, delta) it promises.

A ledger that counts by a Rényi order books what the parts cost at that order instead of what (epsilon, delta) alone tells.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from sabun import checks
from sabun.errors import ParameterError
from sabun.privacy.amounts import compact
from sabun.privacy.events import KINDS, Cost, Event, event_from_dict
from sabun.privacy.guarantee import RELATIONS
from sabun.privacy.renyi import LARGEST_ORDER, best_order, threshold

__all__ = ["Price"]

_MOST_EVENTS = 1000
_LARGEST = Fraction(10**100)
"""A cost above this says nothing that (epsilon, delta) does not say better, and might be too long to write."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What is run for one release; public, and fixed before anything is drawn.

    Guarantee: none by itself. It says that the release is (a function of) all these runs, each with the parameters stated,
    between neighbours of this relation; whoever states it must have proved it, as with a `Guarantee`.

    Args:
        events: The runs, one after another.
        relation: Between which tables their parameters hold.

    Example:
        >>> from sabun.privacy.events import DiscreteGaussian
        >>> noise = DiscreteGaussian(sigma_squared=100, l2_squared=1)
        >>> float(Price(events=(noise,), relation="replace-one").cost(order=9).tau)
        0.045
    """

    events: tuple[Event, ...]
    relation: str

    def __post_init__(self) -> None:
        good = isinstance(self.events, tuple) and 0 < len(self.events) <= _MOST_EVENTS
        good = good and all(type(event) in KINDS for event in self.events)  # a subclass could price itself at nothing
        if not good:
            raise ParameterError(
                f"events must be a tuple of 1 to {_MOST_EVENTS} events of the kinds in sabun.privacy.events; "
                f"got {type(self.events).__name__}."
            )
        checks.one_of(RELATIONS, relation=self.relation)
        for event in self.events:
            if event.only_relation not in (None, self.relation):
                raise ParameterError(
                    f"relation must be {event.only_relation!r} for a {event.kind} event; got {self.relation!r}. "
                    f"State the price for {event.only_relation!r} neighbours: a ledger for others restates it."
                )

    def cost(self, *, order: int, steps: int = 1) -> Cost | None:
        """The cost of all events together at a whole order; None where one of them has none."""
        costs = [event.cost(order, steps=steps) for event in self.events]
        known = [cost for cost in costs if cost is not None]
        if len(known) < len(costs):
            return None
        tau, delta = (_total(parts) for parts in zip(*known, strict=True))
        return Cost(tau, min(delta, Fraction(1))) if tau <= _LARGEST else None

    def epsilon(self, *, delta: Fraction, near: Fraction) -> Fraction | None:
        """An epsilon at delta that the events imply, by one order that suits an epsilon `near` it; None where none is known."""
        order = best_order(near, tail=delta) if delta else LARGEST_ORDER
        cost = self.cost(order=order)
        if cost is None or cost.delta > delta or (delta and cost.delta == delta):
            return None
        if not delta:
            return cost.tau + Fraction(1, order)  # a pure epsilon exceeds its cost by at most ln 2 / (order - 1)
        return max(cost.tau - threshold(Fraction(0), order=order, tail=delta - cost.delta), Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {"events": [event.to_dict() for event in self.events], "relation": self.relation}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote; anything else is a ParameterError."""
        good = isinstance(record, Mapping) and set(record) == {"events", "relation"} and isinstance(record["events"], list)
        if not good:
            raise ParameterError("a price must be a JSON object with the fields 'events' and 'relation'.")
        return cls(events=tuple(map(event_from_dict, record["events"])), relation=record["relation"])


def _total(parts: Iterable[Fraction]) -> Fraction:
    return functools.reduce(lambda total, part: compact(total + part), parts, Fraction(0))
