"""Parameters that belong together, as one frozen value; their flat names are taken too."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from operator import attrgetter
from typing import Any, Self, TypeVar

from sabun.asking.names import once
from sabun.errors import ParameterError

__all__ = ["Settings", "grouped", "said_by", "same", "settled", "taking"]

_Class = TypeVar("_Class", bound=type[Any])
_Settings = TypeVar("_Settings", bound="Settings")


class Settings:
    """What a frozen dataclass of parameters derives from; scikit-learn then sees each of them (`runtime__device`)."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        del deep
        return {name: getattr(self, name) for name in _names(type(self))}

    def __sklearn_clone__(self) -> Self:
        """The same object: nobody can change it."""
        return self


def taking(
    thing: _Class, fold: Callable[[Mapping[str, Any], Callable[[str], Any]], dict[str, Any]], groups: Collection[str]
) -> _Class:
    """Has a class made, changed and unpickled through `fold`.

    Args:
        thing: The class, a `Question`.
        fold: Puts the flat names among the given parameters into their settings: those given beside, or those held.
        groups: The parameters that hold settings.
    """
    made, changed, restored = thing.__init__, thing.set_params, thing.__setstate__
    usual = {name: shown.default for name, shown in signature(thing).parameters.items() if shown.default is not shown.empty}

    @wraps(made)  # whoever asks for the signature (scikit-learn does) sees today's parameters
    def construct(self: Any, *args: Any, **given: Any) -> None:
        made(self, *args, **fold(given, usual.__getitem__))

    @wraps(changed)
    def set_params(self: Any, **given: Any) -> Any:
        return changed(self, **fold(given, lambda group: getattr(self, group)))

    def restore(self: Any, state: Mapping[str, Any]) -> None:
        """A pickle of an earlier version has flat names, and lacks what came later."""
        try:
            today = fold(state, usual.__getitem__)
        except ParameterError as error:
            raise ParameterError(f"a pickled {thing.__name__} must hold settings that this version takes; {error}") from error
        for group in groups:
            if group not in today:
                raise ParameterError(f"a pickled {thing.__name__} must hold its {group}; it does not.")
        restored(self, {name: value for name, value in usual.items() if name not in groups} | today)

    thing.__init__, thing.set_params, thing.__setstate__ = construct, set_params, restore
    return thing


def said_by(group: str, settings: Settings) -> list[tuple[str, str, Any]]:
    """What whole settings say, as `once` takes it."""
    return [(f"part of {group}", name, getattr(settings, name)) for name in _names(type(settings))]


def settled(what: str, held: _Settings, said: Iterable[tuple[str, str, Any]]) -> _Settings:
    """The settings with what was said about them; the same object where that changes nothing.

    Raises:
        ParameterError: They have no such name, or a name was given two values.
    """
    wanted, known = once(said), _names(type(held))
    for name in wanted:
        if name not in known:
            raise ParameterError(f"{what} must be told one of {', '.join(known)}; got {name!r}.")
    changes = {name: value for name, value in wanted.items() if not same(value, getattr(held, name))}
    return replace(held, **changes) if changes else held  # type: ignore[type-var]


def same(one: object, other: object) -> bool:
    """Equal plain values; arrays, functions and the like only when they are one object."""
    return one is other or (type(one) is type(other) and isinstance(one, str | int | float) and one == other)


def grouped(**kinds: type[Settings]) -> Callable[[_Class], _Class]:
    """Lets a class be asked, made and changed by the flat names of what its settings hold.

    Settings are replaced, never changed: a clone may hold the same ones. What is given twice must agree. Pickles that hold
    flat names open.

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

    def fold(given: Mapping[str, Any], held: Callable[[str], Any]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        inner: dict[str, list[tuple[str, str, Any]]] = {}
        for name, value in given.items():
            group, own = name.split("__", 1) if "__" in name else (homes.get(name, ""), name)
            if group in kinds:
                inner.setdefault(group, []).append((name, own, value))
            else:
                whole[name] = value
        for group, said in inner.items():
            start = whole[group] if group in whole else held(group)
            if not isinstance(start, kinds[group]):
                raise ParameterError(f"{group} must be a {kinds[group].__name__}; got {start!r:.60}.")
            whole[group] = settled(group, start, [*(said_by(group, start) if group in whole else ()), *said])
        return whole

    def dressed(thing: _Class) -> _Class:
        for name, group in homes.items():
            setattr(thing, name, property(attrgetter(f"{group}.{name}"), doc=f"Short for {group}.{name}."))
        return taking(thing, fold, kinds)

    return dressed


def _names(kind: type[Settings]) -> list[str]:
    return [field.name for field in fields(kind)]  # type: ignore[arg-type]
