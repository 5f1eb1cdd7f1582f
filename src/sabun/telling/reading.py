"""Taking named results out of a release whose shape is only promised by its kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Unfit", "flag", "has", "number_at", "numbers_at", "pair_at", "text_at", "texts_at", "whole_at"]

Floats = NDArray[np.float64]


class Unfit(Exception):
    """A release does not hold what its kind usually holds; the page then shows it the general way."""


def has(tree: Mapping[str, Any], *names: str) -> bool:
    """Whether all the names are there with something in them."""
    return all(tree.get(name) is not None for name in names)


def number_at(tree: Mapping[str, Any], name: str) -> float:
    """A number; None and texts such as "1/3" are not."""
    value = tree.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise Unfit(name)
    try:
        return float(value)
    except OverflowError:
        raise Unfit(name) from None


def whole_at(tree: Mapping[str, Any], name: str) -> int:
    """A whole number."""
    value = tree.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value != int(value):
        raise Unfit(name)
    return int(value)


def flag(tree: Mapping[str, Any], name: str) -> bool:
    """Whether something is said to hold; missing means no."""
    return tree.get(name) is True


def text_at(tree: Mapping[str, Any], name: str) -> str:
    """A text."""
    value = tree.get(name)
    if not isinstance(value, str):
        raise Unfit(name)
    return value


def numbers_at(tree: Mapping[str, Any], name: str, *, size: int | None = None) -> Floats:
    """A line of numbers, from an array or a list; None inside a list becomes NaN."""
    value = tree.get(name)
    if isinstance(value, np.ndarray):
        found = value.astype(np.float64)
    elif isinstance(value, list | tuple) and all(_is_cell(cell) for cell in value):
        found = np.array([math.nan if cell is None else float(cell) for cell in value], dtype=np.float64)
    else:
        raise Unfit(name)
    if found.ndim != 1 or (size is not None and len(found) != size):
        raise Unfit(name)
    return found


def pair_at(tree: Mapping[str, Any], name: str) -> tuple[float, float]:
    """Two numbers, the first not above the second."""
    low, high = numbers_at(tree, name, size=2).tolist()
    if not low <= high:
        raise Unfit(name)
    return low, high


def texts_at(tree: Mapping[str, Any], name: str, *, size: int | None = None) -> tuple[str, ...]:
    """A list of texts or numbers, as texts."""
    value = tree.get(name)
    if not isinstance(value, list | tuple) or not all(isinstance(cell, str | int) for cell in value):
        raise Unfit(name)
    if size is not None and len(value) != size:
        raise Unfit(name)
    return tuple(str(cell) for cell in value)


def _is_cell(cell: object) -> bool:
    return cell is None or (isinstance(cell, int | float | Fraction) and not isinstance(cell, bool))
