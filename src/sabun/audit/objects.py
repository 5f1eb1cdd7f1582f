"""What a finished object holds, however deep: every number, word and array that a pickle, a debugger or a heir could find."""

from __future__ import annotations

import datetime
import functools
import types
from collections.abc import Iterator, Mapping, Set
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np

__all__ = ["held"]

_PLAIN = (
    int,
    float,
    complex,
    str,
    bytes,
    bool,
    Fraction,
    type(None),
    np.generic,
    datetime.date,
    datetime.timedelta,
    PurePath,
    Enum,
)
_PASSED = (type, types.ModuleType, types.BuiltinFunctionType, types.MethodWrapperType, types.CodeType, property)
_DEEP = 40


def held(thing: Any) -> dict[str, Any]:
    """Every plain value in reach of an object, with the way there; arrays of numbers count as one."""
    return dict(_walk(thing, "", {}, 0))


def _walk(thing: Any, way: str, seen: dict[int, Any], deep: int) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, _PLAIN):
        yield way, thing
        return
    if isinstance(thing, _PASSED) or id(thing) in seen or deep > _DEEP:
        return
    seen[id(thing)] = thing  # kept: an id is given away again once its object is gone
    if isinstance(thing, np.ndarray) and thing.dtype.kind != "O":
        yield way, thing
        return
    yield f"{way} is", type(thing).__qualname__
    for name, part in _parts(thing):
        yield from _walk(part, f"{way}{name}", seen, deep + 1)


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield from ((f"[{name!r:.80}]", part) for name, part in thing.items())
    elif isinstance(thing, list | tuple | np.ndarray):
        yield from ((f"[{place}]", part) for place, part in enumerate(thing))
    elif isinstance(thing, Set):
        yield from ((f"{{{place}}}", part) for place, part in enumerate(sorted(thing, key=repr)))
    elif isinstance(thing, functools.partial):
        yield from ((".func", thing.func), (".args", thing.args), (".keywords", thing.keywords))
    elif isinstance(thing, types.MethodType):
        yield ".__self__", thing.__self__
    elif isinstance(thing, types.FunctionType):
        yield from _of_function(thing)
    elif hasattr(thing, "detach") and hasattr(thing, "numpy"):  # a tensor
        yield ".array", thing.detach().cpu().numpy()
    elif hasattr(thing, "to_numpy"):  # a frame, or one of its columns
        yield from ((".array", thing.to_numpy()), (".columns", list(getattr(thing, "columns", ()))))
    else:
        yield from _of_object(thing)


def _of_function(thing: types.FunctionType) -> Iterator[tuple[str, Any]]:
    names = thing.__code__.co_freevars
    for name, cell in zip(names, thing.__closure__ or (), strict=True):
        try:
            yield f".<{name}>", cell.cell_contents
        except ValueError:  # not filled yet
            continue
    yield ".defaults", thing.__defaults__
    yield ".kwdefaults", thing.__kwdefaults__


def _of_object(thing: Any) -> Iterator[tuple[str, Any]]:
    yield from ((f".{name}", part) for name, part in sorted(getattr(thing, "__dict__", {}).items()))
    for kind in type(thing).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(thing, name) and not name.startswith("__"):
                yield f".{name}", getattr(thing, name)
