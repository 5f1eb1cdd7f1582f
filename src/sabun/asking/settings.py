"""Parameters that belong together, as one frozen value; their flat names are taken too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from operator import attrgetter
from typing import Any, Self, TypeVar

from sabun.errors import ParameterError

__all__ = ["Settings", "grouped"]

_Class = TypeVar("_Class", bound=type[Any])


class Settings:
    """What a frozen dataclass of parameters derives from; scikit-learn then sees each of them (`runtime__device`)."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        del deep
        return {name: getattr(self, name) for name in _names(type(self))}

    def __sklearn_clone__(self) -> Self:
        """The same object: nobody can change it."""
        return self


def grouped(**kinds: type[Settings]) -> Callable[[_Class], _Class]:
    """Lets a class be asked, made and changed by the flat names of what its settings hold.

    Settings are replaced, never changed: a clone may hold the same ones.

    Example:
        >>> from dataclasses import dataclass
        >>> from sabun.asking import Question
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Pace(Settings):
        ...     steps: int = 10
        >>> @grouped(pace=Pace)
        ... class Walk(Question):
        ...     def __init__(self, *, pace=Pace()):
        ...         self.pace = pace
        >>> Walk(steps=3).pace, Walk().set_params(pace__steps=4).steps
        (Pace(steps=3), 4)
    """
    homes = {name: group for group, kind in kinds.items() for name in _names(kind)}

    def folded(given: Mapping[str, Any], held: Callable[[str], Any]) -> dict[str, Any]:
        """The same parameters with each field inside its settings: those that come along, or those that are held."""
        whole: dict[str, Any] = {}
        inner: dict[str, dict[str, Any]] = {}
        for name, value in given.items():
            group, own = name.split("__", 1) if "__" in name else (homes.get(name, ""), name)
            if group in kinds:
                inner.setdefault(group, {})[own] = value
            else:
                whole[name] = value
        for group, changes in inner.items():
            whole[group] = _replaced(group, kinds[group], whole.get(group, held(group)), changes)
        return whole

    def dressed(thing: _Class) -> _Class:
        made, changed, shown = thing.__init__, thing.set_params, signature(thing).parameters

        @wraps(made)  # whoever asks for the signature (scikit-learn does) sees the settings
        def construct(self: Any, *args: Any, **given: Any) -> None:
            for name in given:
                if homes.get(name) in given:
                    raise TypeError(f"{name} is part of {homes[name]}: give one of them.")
            made(self, *args, **folded(given, lambda group: shown[group].default))

        @wraps(changed)
        def set_params(self: Any, **given: Any) -> Any:
            return changed(self, **folded(given, lambda group: getattr(self, group)))

        thing.__init__, thing.set_params = construct, set_params
        for name, group in homes.items():
            setattr(thing, name, property(attrgetter(f"{group}.{name}"), doc=f"Short for {group}.{name}."))
        return thing

    return dressed


def _names(kind: type[Settings]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]


def _replaced(group: str, kind: type[Settings], held: object, changes: Mapping[str, Any]) -> Any:
    if not isinstance(held, kind):
        raise ParameterError(f"{group} must be a {kind.__name__}; got {held!r:.60}.")
    for name in changes:
        if name not in _names(kind):
            raise ParameterError(f"{group} must be told one of {', '.join(_names(kind))}; got {name!r}.")
    return replace(held, **changes)  # type: ignore[type-var]
