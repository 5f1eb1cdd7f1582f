"""Older spellings of parameters, each taken under the name it has now."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from operator import attrgetter
from typing import Any, TypeVar

from sabun.errors import ParameterError

__all__ = ["once", "renamed"]

_Thing = TypeVar("_Thing", bound=Callable[..., Any])


def renamed(**newer: str) -> Callable[[_Thing], _Thing]:
    """Lets a class or a function take older names of its parameters; what a class keeps can be read under both.

    Pickles that hold the older names open. Two spellings of one parameter must agree.

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
        return once((name, newer.get(name, name), value) for name, value in given.items())

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


def once(given: Iterable[tuple[str, str, Any]]) -> dict[str, Any]:
    """The values by name, out of how each was given, its name, its value.

    Example:
        >>> once([("ridge", "regularization", 1), ("method__regularization", "regularization", 1.0)])
        {'regularization': 1}

    Raises:
        ParameterError: A name has two values. They are not shown: one of them may be a key.
    """
    found: dict[str, tuple[str, Any]] = {}
    for spelled, name, value in given:
        first, held = found.setdefault(name, (spelled, value))
        if not _equal(held, value):
            raise ParameterError(
                f"{name} must be given one value; got one as {first} and another as {spelled}. Leave one of them out."
            )
    return {name: value for name, (_, value) in found.items()}


def _equal(one: Any, other: Any) -> bool:
    if one is other:
        return True
    try:
        return bool(one == other)
    except (ValueError, TypeError, RuntimeError):  # arrays and tensors compare number by number
        from numpy import array_equal

        return bool(array_equal(one, other))
