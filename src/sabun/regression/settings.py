"""What serves some methods only, as one frozen value beside the method's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar, final

from sabun.asking.settings import Settings, said_by, settled, taking
from sabun.privacy.amounts import AmountLike

__all__ = ["Penalized", "named", "penalizing"]

_Class = TypeVar("_Class", bound=type[Any])
_FLAT, _INNER = "regularization", "method__"


@final
@dataclass(frozen=True, kw_only=True)
class Penalized(Settings):
    """A method of `PrivateRidge` with its public constant on the diagonal; the study checks both.

    Args:
        method: `objpert` or `paper`; the others have no such constant.
        regularization: The constant; None for 0 with `objpert` and 1 with `paper`.
    """

    method: str = "objpert"
    regularization: AmountLike | None = None


def named(method: object) -> Any:
    """The method's name alone."""
    return method.method if isinstance(method, Penalized) else method


def penalizing(thing: _Class) -> _Class:
    """Lets a class with a parameter `method` be made, changed, read and unpickled by the flat name that its settings once had.

    Settings are replaced, never changed: a clone may hold the same ones. What is given twice must agree.
    """
    thing.regularization = property(lambda self: getattr(self.method, _FLAT, None), doc="Of the method's settings.")
    return taking(thing, _folded, ("method",))


def _folded(given: Mapping[str, Any], held: Callable[[str], Any]) -> dict[str, Any]:
    """The same parameters, with what belongs to the method's settings inside them."""
    own = {name: value for name, value in given.items() if name != _FLAT and not name.startswith(_INNER)}
    inner = [(name, name.removeprefix(_INNER), value) for name, value in given.items() if name not in own]
    if inner:
        start = own["method"] if "method" in own else held("method")
        settings = start if isinstance(start, Penalized) else Penalized(method=start)
        whole = said_by("method", settings) if start is settings else [("method", "method", start)]
        found = settled("method", settings, [*(whole if "method" in own else ()), *inner])
        own["method"] = start if found is settings else found
    return own
