"""Loops numpy cannot express: looking up one key per person (simulation only, NOT PRIVATE), counting symbols in one pass,
drawing from one distribution per key.

Compiled by numba on first use; see docs/decisions/0041. The pseudo-random words are SplitMix64's (Steele, Lea, Flood 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

__all__ = ["count_kernel", "draw_kernel", "pick_kernel", "sampled_kernel"]


@cache
def _splitmix() -> Any:
    """The next word of a counter."""
    import numba
    import numpy as np

    @numba.njit(inline="always")  # type: ignore[untyped-decorator, unused-ignore]
    def mixed(counter: Any) -> Any:
        word = (counter ^ (counter >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return word ^ (word >> np.uint64(31))

    return mixed


@cache
def sampled_kernel() -> Callable[..., None]:
    """Fills the asked key and the symbol of each person from two pseudo-random words per person."""
    import numba
    import numpy as np

    mixed = _splitmix()

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def kernel(starts: Any, keys: Any, places: Any, seed: Any, d: Any, cuts: Any, index: Any, symbol: Any) -> None:
        mask, step, half = np.uint64(0xFFFFFFFF), np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
        counter = seed
        for person in range(len(starts) - 1):
            counter += step
            word = mixed(counter)
            counter += step
            drawn = mixed(counter)
            asked = np.int32(((word >> half) * d) >> half)
            state = 0
            # Sums of comparisons instead of branches: a wrongly guessed branch costs more than all the rest.
            for pair in range(starts[person], starts[person + 1]):
                state += (keys[pair] == asked) * (2 - ((word & mask) < places[pair]))
            row = 2 * (state == 0)
            answer = 2 * (drawn < cuts[row + 1]) - (drawn < cuts[row])
            index[person] = asked
            symbol[person] = answer + (state == 2) * (answer != 0) * (3 - 2 * answer)

    return kernel  # type: ignore[no-any-return, unused-ignore]


@cache
def pick_kernel() -> Callable[..., None]:
    """Counts the pairs picked after padding: one of max(L, padding) places per person."""
    import numba
    import numpy as np

    mixed = _splitmix()

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator, unused-ignore]
    def kernel(starts: Any, keys: Any, places: Any, seed: Any, padding: int, counts: Any) -> None:
        mask, step, half = np.uint64(0xFFFFFFFF), np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
        counter = seed
        for person in range(len(starts) - 1):
            counter += step
            word = mixed(counter)
            own = starts[person + 1] - starts[person]
            place = np.int64(((word >> half) * np.uint64(max(own, padding))) >> half)
            if place < own:
                pair = starts[person] + place
                counts[keys[pair], 0 if (word & mask) < places[pair] else 1] += 1

    return kernel  # type: ignore[no-any-return, unused-ignore]


@cache
def count_kernel() -> Callable[..., bool]:
    """Counts symbols by key in one pass; False as soon as one is out of range."""
    from sabun.compiled import compiled

    @compiled
    def kernel(symbols: Any, indices: Any, keys: int, cells: Any) -> bool:
        for report in range(len(symbols)):
            symbol, index = symbols[report], indices[report]
            if symbol < 0 or symbol > 2 or index < 0 or index >= keys:
                return False
            cells[index, symbol] += 1
        return True

    return kernel


@cache
def draw_kernel() -> Callable[..., None]:
    """Turns chances into points, row by row, by distribution functions that are even between two points.

    As `numpy.interp` would for each row; a chance below the first level gives the first point.
    """
    from sabun.compiled import compiled

    @compiled
    def kernel(points: Any, reached: Any, drawn: Any) -> None:
        last = points.shape[1] - 1
        for row in range(len(points)):
            for place in range(drawn.shape[1]):
                chance = drawn[row, place]
                low, high = 0, last + 1  # the last level that is not above the chance
                while high - low > 1:
                    middle = (low + high) // 2
                    if reached[row, middle] <= chance:
                        low = middle
                    else:
                        high = middle
                found = points[row, low]
                if low < last and chance > reached[row, low]:
                    slope = (points[row, low + 1] - found) / (reached[row, low + 1] - reached[row, low])
                    found += slope * (chance - reached[row, low])
                drawn[row, place] = found + 1e-12 * chance  # a toss between keys of which nobody holds any

    return kernel
