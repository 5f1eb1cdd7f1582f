"""Immutable trees of plain values: what a release may hold.

A tree is a number, a text, None, a boolean, an exact fraction, a numpy array, or a list or mapping of trees. Freezing copies
everything, so that no later change of the caller's objects can change what was released. Arrays are kept as bytes, and each
access makes a new array over them: numpy lets anybody set the `dtype` or `shape` of an array, also of a read-only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any, final

import numpy as np

from sabun.errors import ParameterError
from sabun.foreign import one_line
from sabun.privacy.amounts import is_short

__all__ = ["DEEPEST", "DTYPES", "Frozen", "freeze", "read_only"]

DTYPES = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1", "|b1")
"""The closed list of array types, as numpy writes them (little-endian)."""

DEEPEST = 16
"""How deep lists and mappings may nest."""

_PLAIN = (int, str, float, bool)
_SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1


@dataclass(frozen=True, slots=True)
class _Array:
    """An array at rest."""

    content: bytes
    dtype: str
    shape: tuple[int, ...]


class _Holding(tuple[Any, ...]):
    """A list with an array somewhere in it; all others are handed out as they are kept."""

    __slots__ = ()


@final
class Frozen(Mapping[str, Any]):
    """A mapping that cannot change, in sorted order, with everything inside it frozen too.

    Example:
        >>> tree = Frozen({"b": [1, 2], "a": 0.5})
        >>> tree
        Frozen({'a': 0.5, 'b': (1, 2)})
    """

    __slots__ = ("_items",)
    _items: Mapping[str, Any]

    # Built in __new__: an __init__ could be called again, and would change what is there.
    def __new__(cls, items: Mapping[str, Any], *, where: str = "value", depth: int = 0) -> Frozen:
        """Copies a mapping; `where` names it in messages, `depth` says how deep it is nested."""
        if type(items) is Frozen and depth == 0:
            return items  # nothing in it can have changed since it was copied
        self = super().__new__(cls)
        object.__setattr__(self, "_items", MappingProxyType(_branches(items, where, depth + 1)))
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a frozen mapping must not change; build a new one instead.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a frozen mapping must not change; build a new one instead.")

    def __getitem__(self, key: str) -> Any:
        return _shown(self._items[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Frozen({dict(self)!r})"

    def __reduce__(self) -> tuple[type[Frozen], tuple[dict[str, Any]]]:
        return Frozen, (dict(self),)


def freeze(value: object, where: str) -> Any:
    """Copies a tree into its immutable form.

    Messages name the place and the type, never the value: a value may be private until the noise is in it.

    Raises:
        ParameterError: Something in the tree is not of the closed list of types.
    """
    return _shown(_kept(value, where, 0))


def _kept(value: object, where: str, depth: int) -> Any:
    """The form a tree is stored in."""
    if depth > DEEPEST:
        raise ParameterError(f"{where} must nest at most {DEEPEST} deep; got a deeper list or mapping. Flatten it.")
    if type(value) in _PLAIN:  # most of a tree, and to ask whether a number is a mapping takes long
        return _leaf(value, where)
    if isinstance(value, Mapping):
        return Frozen(value, where=where, depth=depth)
    if isinstance(value, list | tuple):
        value = tuple(value)  # once: what is looked at must be what is kept
        if _are_short(value) and depth < DEEPEST:
            return value
        parts = tuple(_kept(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(value))
        return _Holding(parts) if any(isinstance(part, _Array | _Holding) for part in parts) else parts
    if isinstance(value, np.ndarray):
        return _array(value, where)
    return _leaf(value, where)


def _are_short(values: Sequence[object]) -> bool:
    """Whether these are whole numbers of at most 64 bits; long lists of them need no name for each place."""
    return all(type(value) is int and _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER for value in values)


def _shown(tree: Any) -> Any:
    """The form a tree is handed out in: new arrays each time."""
    if isinstance(tree, _Array):
        return read_only(tree.content, tree.dtype, tree.shape)
    return tuple(map(_shown, tree)) if isinstance(tree, _Holding) else tree


def read_only(content: bytes, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array over immutable bytes: its write flag cannot be switched on again."""
    return np.ndarray(shape, dtype=np.dtype(dtype), buffer=content)


def _branches(items: object, where: str, depth: int) -> dict[str, Any]:
    if not isinstance(items, Mapping):
        raise ParameterError(f"{where} must be a mapping from names to values; got {type(items).__name__}.")
    for key in items:
        if not isinstance(key, str) or not key:
            raise ParameterError(f"{where} must have non-empty text as names; got a key of type {type(key).__name__}.")
        _text(str(key), where)
    return {str(key): _kept(items[key], f"{where}.{one_line(key)}", depth) for key in sorted(items)}


def _array(value: np.ndarray[Any, Any], where: str) -> _Array:
    if type(value) is np.memmap:  # what joblib reads back; its bytes are copied here
        value = np.asarray(value)
    if type(value) is not np.ndarray:  # a masked array would carry the values its mask hides
        raise ParameterError(f"{where} must be a plain numpy array; got {type(value).__name__}. Use numpy.array(...).")
    little = value.dtype.newbyteorder("<")
    if little.str not in DTYPES:
        raise ParameterError(
            f"{where} must be an array of {', '.join(DTYPES)}; got {value.dtype}. Convert it with .astype(float), or to a list."
        )
    return _Array(value.astype(little).tobytes(), little.str, value.shape)


def _leaf(value: object, where: str) -> Any:
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        return _integer(int(value), where)
    if isinstance(value, float | np.float64 | np.float32 | np.float16):
        return float(value)
    if isinstance(value, str):
        return _text(str(value), where)
    if isinstance(value, Fraction):
        return _fraction(value, where)
    raise ParameterError(
        f"{where} must be a number, a text, None, a boolean, a Fraction, an array, or a list or mapping of these; "
        f"got {type(value).__name__}."
    )


def _integer(value: int, where: str) -> int:
    if not _SMALLEST_INTEGER <= value <= _LARGEST_INTEGER:
        raise ParameterError(f"{where} must be an integer of at most 64 bits; got a longer one. Write it as text.")
    return value


def _fraction(value: Fraction, where: str) -> Fraction:
    if not is_short(value):
        raise ParameterError(f"{where} must be a fraction of at most 4000 digits; got a longer one. Round it.")
    return Fraction(value)


def _text(value: str, where: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ParameterError(f"{where} must be valid Unicode text; got one with a lone surrogate.") from None
    return value
