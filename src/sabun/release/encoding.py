"""Trees to canonical JSON, with one spelling for each tree; FORMAT.md describes it.

JSON has no arrays of bytes, no fractions and no infinities, so these are tagged objects:
`{"array": base64, "dtype": "<f8", "shape": [3]}`, `{"fraction": "1/3"}`, `{"float": "nan"}`. A mapping of the caller's own that
has one of these words as a key is wrapped as `{"mapping": {...}}`, so nothing can be mistaken for a tag.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Mapping
from fractions import Fraction
from types import NoneType
from typing import Any

import numpy as np

from sabun.errors import ReleaseError
from sabun.foreign import one_line, parse_json
from sabun.release.tree import DEEPEST, DTYPES, Frozen, read_only

__all__ = ["canonical", "check_amount", "decode", "decode_mapping", "encode", "exactly", "parse"]

_TAGS = frozenset({"array", "float", "fraction", "mapping"})
_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_FRACTION = re.compile(r"-?[0-9]{1,4000}(/[0-9]{1,4000})?", re.ASCII)
_MOST_DIMENSIONS = 32
_AS_IT_IS = (int, str, bool, NoneType)


def canonical(document: object) -> bytes:
    """The one way a document is written: sorted keys, no spaces, UTF-8, shortest floats that round-trip."""
    line = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return line.encode("utf-8")


def parse(content: bytes) -> Any:
    """Reads the JSON of a release."""
    return parse_json(content, what="a release", error=ReleaseError)


def exactly(record: object, fields: set[str], where: str, *, optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A JSON object with exactly these fields."""
    if not isinstance(record, dict):
        raise ReleaseError(f"{where} must be a JSON object; got {_kind(record)}.")
    for name in sorted(fields - set(record)):
        raise ReleaseError(f"{where} must have the field {name!r}; it is missing.")
    for name in sorted(set(record) - fields - optional):
        raise ReleaseError(f"{where} must not have the field {name!r}; it is not part of this format.")
    return record


def check_amount(text: object, where: str) -> None:
    """Refuses an amount that is not a short plain fraction (reading "1e999999999" would never end)."""
    if text is not None and not (isinstance(text, str) and (text == "inf" or _FRACTION.fullmatch(text))):
        raise ReleaseError(f"{where} must be an exact fraction as text, such as '1/10', or 'inf'; got {_kind(text)}.")


def encode(tree: Any) -> Any:
    """A frozen tree as JSON types."""
    if type(tree) in _AS_IT_IS:  # most of a tree, and to ask whether a number is a mapping takes long
        return tree
    if isinstance(tree, Mapping):
        branches = {key: encode(value) for key, value in tree.items()}
        return {"mapping": branches} if _TAGS & set(branches) else branches
    if isinstance(tree, tuple):
        return [encode(item) for item in tree]
    if isinstance(tree, np.ndarray):
        text = base64.b64encode(tree.tobytes()).decode("ascii")
        return {"array": text, "dtype": tree.dtype.str, "shape": list(tree.shape)}
    if isinstance(tree, Fraction):
        return {"fraction": str(tree)}
    if isinstance(tree, float) and not math.isfinite(tree):
        return {"float": "nan" if math.isnan(tree) else "inf" if tree > 0 else "-inf"}
    return tree


def decode(record: Any, where: str, depth: int = 0) -> Any:
    """JSON types as a tree; tags become what they stand for."""
    if depth > DEEPEST:
        raise ReleaseError(f"{where} must nest at most {DEEPEST} deep; got a deeper one.")
    if isinstance(record, list):
        return tuple(decode(item, f"{where}[{place}]", depth + 1) for place, item in enumerate(record))
    if not isinstance(record, dict):
        return record
    tags = _TAGS & set(record)
    if not tags:
        return {key: decode(value, f"{where}.{one_line(key)}", depth + 1) for key, value in record.items()}
    if len(tags) > 1:
        raise ReleaseError(f"{where} must have one tag; got {', '.join(sorted(tags))}.")
    (tag,) = tags
    return _TAGGED[tag](record, where, depth)


def decode_mapping(record: Any, where: str) -> Frozen:
    """The same for a place where only a mapping may stand."""
    tree = decode(record, where)
    if not isinstance(tree, dict):
        raise ReleaseError(f"{where} must be a JSON object of names and values; got {_kind(record)}.")
    return Frozen(tree, where=where)


def _mapping(record: dict[str, Any], where: str, depth: int) -> Any:
    inner = exactly(record, {"mapping"}, where)["mapping"]
    if not isinstance(inner, dict):
        raise ReleaseError(f"{where}.mapping must be a JSON object; got {_kind(inner)}.")
    return {key: decode(value, f"{where}.{one_line(key)}", depth + 1) for key, value in inner.items()}


def _non_finite(record: dict[str, Any], where: str, depth: int) -> float:
    del depth
    word = exactly(record, {"float"}, where)["float"]
    if not isinstance(word, str) or word not in _NON_FINITE:
        raise ReleaseError(f"{where}.float must be 'nan', 'inf' or '-inf'; got {_kind(word)}.")
    return _NON_FINITE[word]


def _fraction(record: dict[str, Any], where: str, depth: int) -> Fraction:
    del depth
    text = exactly(record, {"fraction"}, where)["fraction"]
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ReleaseError(f"{where}.fraction must be text such as '1/3'; got {_kind(text)}.")
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ReleaseError(f"{where}.fraction must have a denominator above 0; got 0.") from None


def _array(record: dict[str, Any], where: str, depth: int) -> np.ndarray[Any, Any]:
    del depth
    exactly(record, {"array", "dtype", "shape"}, where)
    dtype, content, shape = (
        record["dtype"],
        _bytes(record["array"], f"{where}.array"),
        _shape(record["shape"], f"{where}.shape"),
    )
    if dtype not in DTYPES:
        raise ReleaseError(f"{where}.dtype must be one of {', '.join(DTYPES)}; got {dtype!r:.40}.")
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    if needed != len(content):
        raise ReleaseError(f"{where} must hold {needed} bytes for its shape; got {len(content)}.")
    if dtype == "|b1" and content.strip(b"\x00\x01"):
        raise ReleaseError(f"{where} must hold 0 or 1 in each byte of a boolean array; got another byte.")
    try:
        return read_only(content, dtype, shape)
    except (ValueError, OverflowError):
        raise ReleaseError(f"{where}.shape must be one that fits in memory; got a larger one.") from None


_TAGGED = {"array": _array, "float": _non_finite, "fraction": _fraction, "mapping": _mapping}


def _shape(shape: object, where: str) -> tuple[int, ...]:
    if (
        not isinstance(shape, list)
        or len(shape) > _MOST_DIMENSIONS
        or not all(type(size) is int and size >= 0 for size in shape)
    ):
        raise ReleaseError(f"{where} must be a list of at most {_MOST_DIMENSIONS} whole numbers >= 0.")
    return tuple(shape)


def _bytes(text: object, where: str) -> bytes:
    try:
        if isinstance(text, str):
            return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        pass
    raise ReleaseError(f"{where} must be base64 text; it is not.")


def _kind(record: object) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "null" if record is None else names.get(type(record), type(record).__name__)
