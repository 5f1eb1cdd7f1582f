"""Roundings that floats get wrong: centres placed so that the float lies on one side of an edge, the truth on the other."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from sabun.learning import gaussian
from sabun.learning.gaussian import rounded_gaussian
from sabun.learning.stream import NOISE, Stream

GRID = 2.0**-10
"""The public grid for sigma = 1."""


class _Placed:
    """A stream whose first points are given; all further ones are its own."""

    def __init__(self, points: NDArray[np.int64]) -> None:
        self._inner, self._points = Stream(bytes(32)), points

    def coin(self, purpose: int, step: int) -> object:
        own, points = self._inner.coin(purpose, step), self._points
        if purpose != NOISE:
            return own

        class Coin:
            def words(self, count: int) -> NDArray[np.uint64]:
                words = own.words(count).copy()
                words[: points.size] = points.ravel().view(np.uint64)
                return words

        return Coin()


def _true_normals(points: NDArray[np.int64]) -> list[mpmath.mpf]:
    """The first normal of each pair, for the middle of the 63 bits that are known."""
    found = []
    for x, y in points.tolist():
        a, b = (mpmath.mpf(2 * (w if w >= 0 else ~w) + 1) / mpmath.mpf(2) ** 64 for w in (x, y))
        square = a * a + b * b
        found.append((1 if x >= 0 else -1) * a * mpmath.sqrt(-2 * mpmath.log(square) / square))
    return found


def _points(room: str) -> NDArray[np.int64]:
    """Points of the disc: anywhere, or near its edge, where the logarithm loses most digits."""
    rng = np.random.default_rng(8)
    if room == "anywhere":
        x, y = rng.uniform(0.3, 0.6, (2, 200))
    else:
        angle, gap = rng.uniform(0.2, 1.3, 200), rng.uniform(1.2, 4.0, 200) * 2.0**-30
        x, y = np.cos(angle) * (1 - gap / 2), np.sin(angle) * (1 - gap / 2)
    signs = rng.choice([-1, 1], (200, 2))
    low = rng.integers(0, 1 << 20, (200, 2))  # floats leave the last bits of a word at zero
    return ((np.column_stack([x, y]) * 2.0**63).astype(np.int64) + low) * signs


@pytest.mark.parametrize(("room", "least"), [("anywhere", 2.0**-46), ("edge", 2.0**-36)])
def test_a_float_on_the_wrong_side_of_an_edge_does_not_decide(room: str, least: float) -> None:
    points = _points(room)
    stream = _Placed(points)
    pairs = gaussian._Pairs(len(points), stream, 0)  # type: ignore[arg-type]
    floats = np.concatenate([normals for _, normals in pairs])[::2]
    centre, expected = np.zeros(2 * len(points)), np.zeros(len(points))
    crafted = np.zeros(len(points), dtype=bool)
    with mpmath.workdps(60):
        for i, true in enumerate(_true_normals(points)):
            # Half a grid step above a multiple of the grid, less half of what the float is wrong by.
            wrong = mpmath.mpf(float(floats[i])) - true
            edge = mpmath.floor(true / GRID) + mpmath.mpf(1) / 2
            centre[2 * i] = float(edge * GRID - true - wrong / 2)
            exact, seen = (centre[2 * i] + true) / GRID, (centre[2 * i] + floats[i]) / GRID
            expected[i] = float(mpmath.floor(exact + mpmath.mpf(1) / 2))
            crafted[i] = abs(exact - edge) > least and float(np.rint(seen)) != expected[i]
    assert crafted.sum() >= 20, "the points must really fool a float"
    found = rounded_gaussian(centre, sigma=1.0, stream=stream, step=0)[::2] / GRID  # type: ignore[arg-type]
    assert found[crafted].tolist() == expected[crafted].tolist()
