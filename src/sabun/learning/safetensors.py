"""The safetensors file format, written and read without the library: a length, a JSON header, raw numbers.

Only what our models need: little-endian float64 tensors and text metadata. Files from elsewhere are checked before use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from sabun.errors import ReleaseError
from sabun.learning.network import Floats

__all__ = ["tensors_from_bytes", "tensors_to_bytes"]

_LARGEST_HEADER = 1 << 22
_DAMAGED = "a model file must be a whole safetensors file of float64 tensors; this one is not. Ask for it again."


def tensors_to_bytes(tensors: Mapping[str, Floats], metadata: Mapping[str, str]) -> bytes:
    """The file's bytes; equal input gives equal bytes."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    at, parts = 0, []
    for name, tensor in tensors.items():
        raw = np.ascontiguousarray(tensor, dtype="<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": list(tensor.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def tensors_from_bytes(content: bytes) -> tuple[dict[str, Floats], dict[str, str]]:
    """The tensors with the metadata.

    Raises:
        ReleaseError: The bytes are damaged, or hold something else than float64 tensors.
    """
    try:
        header, body = _split(content)
        metadata = header.pop("__metadata__", {})
        tensors = {str(name): _tensor(entry, body) for name, entry in header.items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ReleaseError(_DAMAGED) from None
    return tensors, {str(key): str(value) for key, value in metadata.items()}


def _split(content: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 + length or length > _LARGEST_HEADER:
        raise ValueError
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def _tensor(entry: dict[str, Any], body: bytes) -> Floats:
    start, end = entry["data_offsets"]
    shape = tuple(int(size) for size in entry["shape"])
    whole = all(size >= 0 for size in shape) and 0 <= start <= end <= len(body)
    if entry["dtype"] != "F64" or not whole or end - start != 8 * math.prod(shape):
        raise ValueError
    return np.frombuffer(body[start:end], dtype="<f8").reshape(shape).astype(np.float64)
