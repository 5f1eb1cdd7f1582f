"""The safetensors file format, written without the library: a length, a JSON header, raw numbers.

Only what our models need: little-endian float64 tensors and text metadata. It is never read: a model's weights are in its
release, and the file beside it must be what is written here for them, byte by byte.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from sabun.learning.network import Floats

__all__ = ["tensors_to_bytes"]


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
