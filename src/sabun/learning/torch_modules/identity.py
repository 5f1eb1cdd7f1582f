"""By what another process knows a loss again: names and values, never where something lies in this one's memory.

A run that is interrupted goes on only with the same loss. A lambda, or a function made inside another, has no name under which
it could be found again, so it is refused before anything is paid.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sabun.errors import ParameterError

__all__ = ["identified", "tensor_bytes"]

_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, type(None))
_ELSEWHERE = ("_parameters", "_buffers", "_modules")
"""Attributes of a torch module that are told apart: its tensors by their bytes, its modules one by one."""
_DEEPEST = 16


def identified(loss: object, *, name: str) -> Iterator[bytes]:
    """Facts that are the same wherever the same loss is given, others for another; tensors of a torch module left out.

    Raises:
        ParameterError: A part of it could not be found again by name, or has a state that cannot be read.
    """
    try:
        facts = list(_of_module(loss, name)) if isinstance(loss, nn.Module) else [repr(_told(loss, name)).encode()]
    except ParameterError:
        raise
    except Exception:  # objects that cannot be asked for their state, whatever they raise
        raise _unknown(loss, name) from None
    yield from facts


def _of_module(loss: nn.Module, name: str) -> Iterator[bytes]:
    for place, part in loss.named_modules():
        _by_name(type(part), name)
        for attribute, value in sorted(vars(part).items()):
            if _is_plain(value):
                yield repr((place, attribute, value)).encode()
            elif attribute not in _ELSEWHERE and not _is_empty(value):
                yield repr((place, attribute, _told(value, name))).encode()


def _is_empty(value: object) -> bool:
    """Whether it is one of the empty collections that torch keeps in every module."""
    return isinstance(value, Mapping | set | frozenset) and len(value) == 0


def _is_plain(value: object) -> bool:
    return isinstance(value, _PLAIN) or (isinstance(value, tuple | list) and all(map(_is_plain, value)))


def _told(thing: Any, name: str, depth: int = 0) -> Any:
    """A thing as nested tuples of texts."""
    if depth > _DEEPEST:
        raise _unknown(thing, name)
    inner = functools.partial(_told, name=name, depth=depth + 1)
    if isinstance(thing, _PLAIN):
        return type(thing).__name__, repr(thing)
    if isinstance(thing, Tensor | np.ndarray):
        return _numbers(thing, name)
    if isinstance(thing, tuple | list):
        return type(thing).__name__, *map(inner, thing)
    if isinstance(thing, set | frozenset):
        return "set", *sorted(map(inner, thing), key=repr)
    if isinstance(thing, Mapping):
        return "mapping", *sorted(((inner(key), inner(value)) for key, value in thing.items()), key=repr)
    if isinstance(thing, functools.partial):
        return "partial", inner(thing.func), inner(thing.args), inner(thing.keywords)
    if isinstance(thing, types.MethodType):
        return "method", inner(thing.__self__), _by_name(thing.__func__, name)
    if isinstance(thing, nn.Module):
        tensors = dict((*thing.named_parameters(), *thing.named_buffers()))
        return "module", _by_name(type(thing), name), *identified(thing, name=name), inner(tensors)
    if hasattr(thing, "__qualname__"):
        return _by_name(thing, name)
    if hasattr(thing, "__dict__"):
        return "object", _by_name(type(thing), name), inner(vars(thing))
    raise _unknown(thing, name)


def _by_name(thing: Any, name: str) -> str:
    """Where a function or class is found by every process that imports its module.

    Raises:
        ParameterError: It is not found there.
    """
    place, path = str(thing.__module__), str(thing.__qualname__)
    found: Any = sys.modules.get(place)
    for step in path.split("."):
        found = getattr(found, step, None)
    if found is not thing:
        raise _unknown(thing, name)
    return f"{place}:{path}"


def _numbers(thing: Any, name: str) -> tuple[str, ...]:
    if isinstance(thing, np.ndarray) and thing.dtype.hasobject:
        raise _unknown(thing, name)
    content = tensor_bytes(thing) if isinstance(thing, Tensor) else thing.tobytes()
    return "numbers", str(thing.dtype), str(tuple(thing.shape)), hashlib.sha256(content).hexdigest()


def tensor_bytes(tensor: Tensor) -> bytes:
    """The numbers of a tensor of any type, as they lie in memory."""
    return bytes(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def _unknown(thing: object, name: str) -> ParameterError:
    called = getattr(thing, "__qualname__", type(thing).__qualname__)
    return ParameterError(
        f"{name} must be known again by another process when there is a checkpoint: a function or class of a module, with "
        f"plain values at most; got {called!r}, which has no such name or state. Write it as a function of its own in a "
        "module (functools.partial gives it settings), or leave checkpoint out."
    )
