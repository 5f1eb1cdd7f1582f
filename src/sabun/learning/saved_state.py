"""Where a run stands, as JSON and back; a file may come from anybody, so shapes are those of a state that is known."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from sabun.learning.training import State

__all__ = ["largest", "state_from", "state_record"]

_ARRAYS = ("weights", "velocity")
_BESIDE = 1 << 20
"""Bytes of a file with states that are no numbers of theirs, at most: names, a fingerprint, a receipt."""


def state_record(state: State) -> dict[str, Any]:
    """A state in JSON types, to the last bit."""
    return {"step": state.step} | {name: base64.b64encode(getattr(state, name).tobytes()).decode() for name in _ARRAYS}


def state_from(record: Mapping[str, Any], like: State) -> State:
    """Reads what `state_record` wrote.

    Raises:
        ValueError: The arrays have not the shapes of `like`, or a part cannot be read; KeyError, TypeError, OverflowError too.
    """
    arrays = {name: np.frombuffer(base64.b64decode(record[name]), dtype=np.float64) for name in _ARRAYS}
    if any(array.shape != getattr(like, name).shape for name, array in arrays.items()):
        raise ValueError
    return State(step=int(record["step"]), **arrays)


def largest(like: State, *, states: int) -> int:
    """How many bytes a file with so many states of that shape has at most: base64 writes three bytes as four."""
    return _BESIDE + states * sum(-(-getattr(like, name).nbytes // 3) * 4 for name in _ARRAYS)
