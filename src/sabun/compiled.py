"""How a loop becomes machine code: numba, without fast-math, so that every sum keeps its written order.

Only modules that hold loops import this one, and they are imported when the first loop is to run, so that `import sabun` stays
light. Without fast-math the compiler may neither reorder a sum nor fuse a multiplication into an addition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

__all__ = ["compiled"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def compiled(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function as machine code, kept on disk between runs where a folder is writeable; it lets other threads run."""
    machine: Callable[Parameters, Result]
    try:
        machine = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to keep it in: compile again in every process
        machine = numba.njit(nogil=True)(function)
    return machine
