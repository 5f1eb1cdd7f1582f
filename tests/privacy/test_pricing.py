"""What a price implies beside what it promises."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sabun.privacy.events import Approximate, Event, Gaussian
from sabun.privacy.pricing import Price

OF_DELTA = Approximate(epsilon=Fraction(1, 2), delta=Fraction(1, 10**6))


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("beside", [(), (Gaussian(noise_multiplier=20),), (OF_DELTA,)], ids=len)
def test_what_events_state_of_delta_is_not_there_for_the_order(count: int, beside: tuple[Event, ...]) -> None:
    """The nearer delta comes to what they state, the less is left to turn an order into epsilon; at it, nothing is known."""
    events = (Approximate(epsilon=Fraction(1, 4), delta=Fraction(1, 10**6), count=count), *beside)
    price = Price(events=events, relation="replace-one")
    stated = sum(event.count * event.delta for event in events if isinstance(event, Approximate))
    near = [price.epsilon(delta=stated * (1 + Fraction(1, 10**digits)), near=Fraction(1)) for digits in (0, 3, 6, 12, 24)]
    known = [epsilon for epsilon in near if epsilon is not None]
    assert len(known) == len(near)
    assert known == sorted(known)
    assert known[-1] > known[0] + 1
    for less in (stated, stated / 2, Fraction(0)):
        assert price.epsilon(delta=less, near=Fraction(1)) is None
