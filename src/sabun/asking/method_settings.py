"""`method: str | Settings`: what serves one method only is one frozen value; the flat names it once had are taken too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, TypeVar

from sabun import checks
from sabun.asking.settings import Settings
from sabun.errors import ParameterError

__all__ = ["MethodSettings", "methodical", "settings_of"]

_Class = TypeVar("_Class", bound=type[Any])
_Kind = TypeVar("_Kind", bound="MethodSettings")


class MethodSettings(Settings):
    """The parameters of one method; like every parameter they are checked by whoever takes them, not when they are made."""

    method: ClassVar[str]
    """Its name, which alone stands for the method as it is usually set."""

    def __str__(self) -> str:
        return self.method


def settings_of(method: object, kinds: tuple[type[_Kind], ...]) -> _Kind:
    """The settings behind a name, or those that were given.

    Raises:
        ParameterError: It is neither.
    """
    if isinstance(method, kinds):
        return method
    checks.one_of(tuple(kind.method for kind in kinds), method=method)
    return next(kind for kind in kinds if kind.method == method)()


def methodical(*kinds: type[MethodSettings], former: Mapping[str, Any]) -> Callable[[_Class], _Class]:
    """Lets a class with a parameter `method` be made, changed and read by the flat names of its methods' settings.

    Settings are replaced, never changed: a clone may hold the same ones.

    Args:
        kinds: The settings of each method.
        former: The flat names, each with the value that meant "as usual" when every method took it.

    Example:
        >>> from dataclasses import dataclass
        >>> from sabun.asking import Question
        >>> @dataclass(frozen=True, kw_only=True)
        ... class Slow(MethodSettings):
        ...     method = "slow"
        ...     steps: int = 10
        >>> @methodical(Slow, former={"steps": None})
        ... class Walk(Question):
        ...     def __init__(self, *, method="slow"):
        ...         self.method = method
        >>> Walk(steps=3).method, Walk().set_params(method__steps=4).steps, Walk(steps=None).method
        (Slow(steps=3), 4, 'slow')
    """

    def folded(given: Mapping[str, Any], held: object) -> dict[str, Any]:
        own = {name: value for name, value in given.items() if name not in former and not name.startswith("method__")}
        flat = {name: value for name, value in given.items() if name in former}
        inner = {name.removeprefix("method__"): value for name, value in given.items() if name.startswith("method__")}
        if flat or inner:
            start = own.get("method", held)
            settings = settings_of(start, kinds)
            changes = _changes(settings, flat, inner, former)
            own["method"] = replace(settings, **changes) if changes else start  # type: ignore[type-var]
        return own

    def dressed(thing: _Class) -> _Class:
        made, changed = thing.__init__, thing.set_params
        usual = signature(thing).parameters["method"].default

        @wraps(made)  # whoever asks for the signature (scikit-learn does) sees today's parameters
        def construct(self: Any, *args: Any, **given: Any) -> None:
            made(self, *args, **folded(given, usual))

        @wraps(changed)
        def set_params(self: Any, **given: Any) -> Any:
            return changed(self, **folded(given, self.method))

        thing.__init__, thing.set_params = construct, set_params
        for name in former:
            setattr(thing, name, property(_reader(name, kinds, former[name]), doc=f"Of the method's settings: `{name}`."))
        return thing

    return dressed


def _changes(
    settings: MethodSettings, flat: Mapping[str, Any], inner: Mapping[str, Any], former: Mapping[str, Any]
) -> dict[str, Any]:
    """What is to be replaced; what already is so, and "as usual" for what the method has not, are left out."""
    usual = {field.name: field.default for field in fields(settings)}  # type: ignore[arg-type]
    for name in inner:
        if name not in usual:
            raise ParameterError(f"method {settings.method!r} must be told one of {', '.join(usual)}; got {name!r}.")
    for name, value in flat.items():
        unset = name in usual or _same(value, former[name])
        checks.require(unset, f"{former[name]!r} for method {settings.method!r}, which does without", **{name: value})
    wanted = {name: usual[name] if _same(value, former[name]) else value for name, value in flat.items() if name in usual}
    return {name: value for name, value in (wanted | dict(inner)).items() if not _same(value, getattr(settings, name))}


def _same(one: object, other: object) -> bool:
    """Equal plain values; arrays, functions and the like only when they are one object."""
    return one is other or (type(one) is type(other) and isinstance(one, str | int | float) and one == other)


def _reader(name: str, kinds: tuple[type[MethodSettings], ...], usual: object) -> Callable[[Any], Any]:
    return lambda thing: getattr(settings_of(thing.method, kinds), name, usual)
