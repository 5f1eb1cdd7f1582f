"""Listens to the samplers while a whole fit runs: what was asked of them, by whom.

A room takes its samplers from `sabun.privacy.noise` by name; each of these names is replaced by a listener that notes the
parameter and then draws as before (or, to read the statistic behind the noise, gives zeros).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, final

import numpy as np

from sabun.asking.directory import rooms
from sabun.privacy import noise

__all__ = ["Draw", "Heard", "listen", "room_modules", "together", "zeros"]

SAMPLERS = ("discrete_laplace", "discrete_gaussian", "spherical_laplace", "cubical_laplace", "rounded_gaussian")


@final
@dataclass(frozen=True)
class Draw:
    """One call: the scale (or the variance of `discrete_gaussian`), and how many numbers were drawn with it."""

    law: str
    parameter: float
    count: int


@final
@dataclass
class Heard:
    """What the samplers were asked, in order; `instead` stands in for the noise where it is set."""

    draws: list[Draw] = field(default_factory=list)
    instead: Callable[[Draw], Any] | None = None

    def of(self, law: str) -> list[Draw]:
        """The calls of one sampler."""
        return [draw for draw in self.draws if draw.law == law]

    def only(self, law: str) -> Draw:
        """The one call there was; it must have been of that sampler."""
        [draw] = self.draws
        if draw.law != law:
            raise ValueError(f"{draw.law} was drawn, not {law}.")
        return draw


def zeros(draw: Draw) -> Any:
    """No noise at all, to see the statistic behind it."""
    return np.zeros(draw.count, dtype=object)


def room_modules() -> list[ModuleType]:
    """Every module of a room that is loaded, wherever the room lives."""
    packages = tuple(room.package for room in rooms())
    return [
        module
        for path, module in list(sys.modules.items())
        if path in packages or path.startswith(tuple(f"{name}." for name in packages))
    ]


def listen(replace: Callable[[Any, str, Any], None]) -> Heard:
    """Replaces every name under which a room that is loaded has one of the samplers."""
    heard = Heard()
    for name in SAMPLERS:
        original = getattr(noise, name)
        listener = _listener(heard, name, original)
        found = [module for module in room_modules() if vars(module).get(name) is original]
        for module in found:
            replace(module, name, listener)
    one, several = "rounded_gaussian", "rounded_gaussians"
    for module in room_modules():
        if vars(module).get(several) is vars(noise)[several]:
            replace(module, several, together(_listener(heard, one, vars(noise)[one])))
    return heard


def together(listener: Callable[..., Any]) -> Callable[..., Any]:
    """Hears of several variances at once as of one after the other."""
    return lambda parts, *, coin: [listener(variance, coin=coin, size=size) for variance, size in parts]


def _listener(heard: Heard, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def listener(parameter: Any, **how: Any) -> Any:
        size = how.get("dimension", how.get("size"))
        draw = Draw(law=name, parameter=float(parameter), count=1 if size is None else int(size))
        heard.draws.append(draw)
        if heard.instead is None:
            return original(parameter, **how)
        drawn = heard.instead(draw)
        if size is not None:
            return drawn
        return drawn[0] if isinstance(drawn[0], int) else int(drawn[0])

    return listener
