"""What serves some methods only, as one frozen value beside the method's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import wraps
from typing import Any, Self, TypeVar, final

from sabun.privacy.amounts import AmountLike

__all__ = ["Penalized", "named", "penalizing"]

_Class = TypeVar("_Class", bound=type[Any])
_FLAT, _OUTER = "regularization", "method__"


@final
@dataclass(frozen=True, kw_only=True)
class Penalized:
    """A method of `PrivateRidge` with its public constant on the diagonal; the study checks both.

    Args:
        method: `objpert` or `paper`; the others have no such constant.
        regularization: The constant; None for 0 with `objpert` and 1 with `paper`.
    """

    method: str = "objpert"
    regularization: AmountLike | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Both by name, as scikit-learn asks for them (`method__regularization`)."""
        del deep
        return asdict(self)

    def __sklearn_clone__(self) -> Self:
        """The same object: nobody can change it."""
        return self


def named(method: object) -> Any:
    """The method's name alone."""
    return method.method if isinstance(method, Penalized) else method


def penalizing(thing: _Class) -> _Class:
    """Lets a class with a parameter `method` be made, changed, read and unpickled by the flat names that its settings once had.

    Settings are replaced, never changed: a clone may hold the same ones.
    """

    def folding(call: Callable[..., Any], held: Callable[[Any], Any]) -> Callable[..., Any]:
        @wraps(call)  # whoever asks for the signature (scikit-learn does) sees today's parameters
        def either(self: Any, **given: Any) -> Any:
            return call(self, **_folded(given, held(self)))

        return either

    thing.__init__ = folding(thing.__init__, lambda _: "ssp-gauss")
    thing.set_params = folding(thing.set_params, lambda self: self.method)
    restore = thing.__setstate__
    thing.__setstate__ = lambda self, state: restore(self, _folded(state, "ssp-gauss"))
    thing.regularization = property(lambda self: getattr(self.method, _FLAT, None), doc="Of the method's settings.")
    return thing


def _folded(given: Mapping[str, Any], held: Any) -> dict[str, Any]:
    """The same parameters, with what belongs to the method's settings inside them."""
    inner = {name.removeprefix(_OUTER): value for name, value in given.items() if name == _FLAT or name.startswith(_OUTER)}
    own = {name: value for name, value in given.items() if name != _FLAT and not name.startswith(_OUTER)}
    method = own.get("method", held)
    if inner and (inner != {_FLAT: None} or isinstance(method, Penalized)):
        settings = method if isinstance(method, Penalized) else Penalized(method=method)
        own["method"] = replace(settings, **inner)
    return own
