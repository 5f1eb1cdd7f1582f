"""Older spellings of parameters, each taken under the name it has now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar

__all__ = ["renamed"]

_Thing = TypeVar("_Thing", bound=Callable[..., Any])


def renamed(**newer: str) -> Callable[[_Thing], _Thing]:
    """Lets a class or a function take older names of its parameters; what a class keeps can be read under both.

    Pickles that hold the older names open.

    Example:
        >>> from sabun.asking import Question
        >>> @renamed(key="retry_key")
        ... class Answer(Question):
        ...     def __init__(self, *, retry_key=None):
        ...         self.retry_key = retry_key
        >>> Answer(key="monday").key, Answer().set_params(key="friday").get_params()
        ('monday', {'retry_key': 'friday'})
        >>> @renamed(level="confidence")
        ... def width(*, confidence):
        ...     return confidence
        >>> width(level=0.9)
        0.9
    """

    def today(given: Mapping[str, Any]) -> dict[str, Any]:
        for old, new in newer.items():
            if old in given and new in given:
                raise TypeError(f"{old} is an older name of {new}: give one of them.")
        return {newer.get(name, name): value for name, value in given.items()}

    def taking(call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)  # whoever asks for the signature (scikit-learn does) sees today's names
        def either(*args: Any, **given: Any) -> Any:
            return call(*args, **today(given))

        return either

    def restoring(restore: Callable[[Any, Any], None] | None) -> Callable[[Any, Any], None]:
        """A pickle of an earlier version holds the older names."""

        def either(self: Any, state: Any) -> None:
            vars(self).update(today(state)) if restore is None else restore(self, today(state))

        return either

    def dressed(thing: _Thing) -> _Thing:
        if not isinstance(thing, type):
            return taking(thing)  # type: ignore[return-value]
        for method in ("__init__", "set_params"):
            if hasattr(thing, method):
                setattr(thing, method, taking(getattr(thing, method)))
        setattr(thing, "__setstate__", restoring(getattr(thing, "__setstate__", None)))  # noqa: B010 (mypy knows no such name)
        for old, new in newer.items():
            setattr(thing, old, property(attrgetter(new), doc=f"An older name of {new}."))
        return thing

    return dressed
