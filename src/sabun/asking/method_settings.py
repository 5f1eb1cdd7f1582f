"""`method: str | Settings`: what serves one method only is one frozen value; the flat names it once had are taken too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

from sabun import checks
from sabun.asking.settings import Settings, said_by, same, settled, taking

__all__ = ["MethodSettings", "methodical", "settings_of"]

_Class = TypeVar("_Class", bound=type[Any])
_Kind = TypeVar("_Kind", bound="MethodSettings")
_INNER = "method__"


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


def methodical(
    *kinds: type[MethodSettings], former: Mapping[str, Any], formerly: str | None = None
) -> Callable[[_Class], _Class]:
    """Lets a class with a parameter `method` be made, changed and read by the flat names of its methods' settings.

    Settings are replaced, never changed: a clone may hold the same ones. What is given twice must agree. Pickles that hold
    flat names open.

    Args:
        kinds: The settings of each method.
        former: The flat names, each with the value that meant "as usual" when every method took it.
        formerly: The method that was the default once: flat names that today's lacks speak of it where no method is given.

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

    def fold(given: Mapping[str, Any], held: Callable[[str], Any]) -> dict[str, Any]:
        own = {name: value for name, value in given.items() if name not in former and not name.startswith(_INNER)}
        flat = {name: value for name, value in given.items() if name in former}
        inner = [(name, name.removeprefix(_INNER), value) for name, value in given.items() if name.startswith(_INNER)]
        if flat or inner:
            start = own["method"] if "method" in own else _meant(held("method"), flat, [name for _, name, _ in inner])
            settings = settings_of(start, kinds)
            whole = said_by("method", settings) if isinstance(own.get("method"), MethodSettings) else []
            said = [*whole, *_flat(settings, flat, former), *inner]
            found = settled(f"method {settings.method!r}", settings, said)
            own["method"] = start if found is settings else found
        return own

    def _meant(start: Any, flat: Mapping[str, Any], inner: list[str]) -> Any:
        """The method that names speak of: the one that is held, or the former default where only that has them."""
        earlier = next((kind for kind in kinds if kind.method == formerly), None)
        if earlier is None or start != kinds[0].method:
            return start
        said = {name for name, value in flat.items() if not same(value, former[name])} | set(inner)
        today, then = ({field.name for field in fields(kind)} for kind in (kinds[0], earlier))  # type: ignore[arg-type]
        return formerly if said - today and said <= then else start

    def dressed(thing: _Class) -> _Class:
        for name in former:
            setattr(thing, name, property(_reader(name, kinds, former[name]), doc=f"Of the method's settings: `{name}`."))
        return taking(thing, fold, ("method",))

    return dressed


def _flat(settings: MethodSettings, flat: Mapping[str, Any], former: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """What flat names say; "as usual" is what it is for the method, and nothing for what the method has not."""
    usual = {field.name: field.default for field in fields(settings)}  # type: ignore[arg-type]
    for name, value in flat.items():
        unset = same(value, former[name])
        rule = f"{former[name]!r} for method {settings.method!r}, which does without"
        checks.require(unset or name in usual, rule, **{name: value})
        if name in usual:
            yield name, name, usual[name] if unset else value


def _reader(name: str, kinds: tuple[type[MethodSettings], ...], usual: object) -> Callable[[Any], Any]:
    return lambda thing: getattr(settings_of(thing.method, kinds), name, usual)
