"""Arrays of numbers as bytes, for states that travel."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.errors import DataError

__all__ = ["packed", "unpacked"]


def packed(*arrays: NDArray[Any]) -> bytes:
    """Arrays of numbers as bytes; equal arrays give equal bytes."""
    out = io.BytesIO()
    for array in arrays:
        np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def unpacked(content: bytes) -> list[NDArray[Any]]:
    """The arrays again.

    Raises:
        DataError: They are not such bytes.
    """
    source, arrays = io.BytesIO(content), []
    try:
        while source.tell() < len(content):
            arrays.append(np.lib.format.read_array(source, allow_pickle=False))
    except (ValueError, OSError, EOFError):
        raise DataError("sums must be bytes that the same statistic packed; they are not.") from None
    return arrays
