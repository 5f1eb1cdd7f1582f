"""The two other sums of the method `staged`: how long rows are, and residuals around a public model. Both add up exactly.

Notation: |x| is the length of a row in scaled units, the constant included. The ladder of radii is R_k = sqrt(width / 2**k),
from the longest row there can be downwards, and s = |x|**2 / R**2 how far a row fills one. Residuals are e = y - z'b, exact for
whole-number rows z, targets y and a start b in multiples of 2**-START_BITS; then t = clip(e / tau) in whole numbers of
1 / UNIT.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from sabun.errors import DataError
from sabun.regression.design import FINE, UNIT, Design, Floats
from sabun.regression.statistic import BLOCK, Block, Moments, filled, must_be_in_ball

__all__ = [
    "LARGEST_START",
    "LEVELS",
    "RADII",
    "RESIDUALS",
    "SHARE",
    "START_BITS",
    "Lengths",
    "Residuals",
    "Tally",
    "enough",
    "level_of",
    "radius_of",
    "staged_design",
]

RADII = 13
"""How many radii there are to choose from."""

RESIDUALS = ("start", "level", "residual_moment", "residual_square", "residual_weight")
"""What a release calls the numbers of its second stage."""

SHARE = 2**20
"""Whole numbers of 1 / SHARE stand for how much of a radius a row fills."""

START_BITS = 16
LARGEST_START = 2**26
LEVELS = range(-40, 5)
"""tau is 2**(k/4) for these k, in half ranges of the target."""


def enough(filled: Floats, *, intercept: bool) -> Floats:
    """What a row says for a radius that it fills so far, s; a radius is long enough where rows together say 0 or more.

    With a constant no row is shorter than 1, and rows must fill three quarters together. Without one rows may be next to
    nothing, and however many there are must not matter: a row that fills less than a quarter asks for less in proportion.
    """
    if intercept:
        return np.asarray(np.minimum(filled, 1.0) - 0.75)
    return np.asarray((np.minimum(filled, 1.0) - 0.75 * np.minimum(4 * filled, 1.0)) / 0.75)


def radius_of(design: Design, step: int) -> float:
    """The radius at a step of the ladder, in scaled units."""
    return math.sqrt(design.width / 2**step)


def level_of(step: int) -> float:
    """tau at a step of its ladder; square roots are rounded alike everywhere, powers are not."""
    return math.sqrt(math.sqrt(2.0**step))


@final
@dataclass(frozen=True, kw_only=True, repr=False)
class Tally:
    """Whole numbers summed over records. PRIVATE: never leaves without noise."""

    rows: int
    sums: tuple[int, ...]

    def plus(self, other: Tally) -> Tally:
        """The records of both."""
        return Tally(rows=self.rows + other.rows, sums=tuple(a + b for a, b in zip(self.sums, other.sums, strict=True)))


@dataclass(frozen=True, kw_only=True)
class _Sums(ABC):
    """What the two statistics share: where records come from, how sums are added and written.

    Args:
        design: The public map from records to rows; it has a radius, and is `weighted`.
    """

    design: Design

    @property
    @abstractmethod
    def size(self) -> int:
        """How many sums there are."""

    @abstractmethod
    def of_block(self, values: Floats, targets: Floats, body: Floats) -> Floats:
        """The sums of at most BLOCK records, whole numbers below 2**53."""

    def blocks(self, source: object) -> Iterator[Block]:
        """As `Moments` cuts a source."""
        return Moments(design=self.design).blocks(source)

    def zero(self) -> Tally:
        """No records."""
        return Tally(rows=0, sums=(0,) * self.size)

    def add(self, state: Tally, block: Block) -> Tally:
        """With one more block."""
        values, targets = block
        body = np.empty((min(BLOCK, len(values)), values.shape[1]))
        for start in range(0, len(values), BLOCK):
            piece = values[start : start + BLOCK]
            found = self.of_block(piece, targets[start : start + BLOCK], body[: len(piece)])
            state = state.plus(Tally(rows=len(piece), sums=tuple(map(int, found.tolist()))))  # proof: whole-sums
        return state

    def merge(self, left: Tally, right: Tally) -> Tally:
        """The records of both."""
        return left.plus(right)

    def pack(self, state: Tally) -> bytes:
        """As bytes: 16 for each number."""
        return b"".join(number.to_bytes(16, "little", signed=True) for number in (state.rows, *state.sums))

    def unpack(self, content: bytes) -> Tally:
        """From bytes.

        Raises:
            DataError: They are not the bytes of such a state.
        """
        if len(content) != 16 * (1 + self.size):
            raise DataError("sums must be bytes that the same statistic packed; they are not.")
        rows, *sums = (int.from_bytes(content[at : at + 16], "little", signed=True) for at in range(0, len(content), 16))
        if rows < 0:
            raise DataError("sums must be bytes that the same statistic packed; they are not.")
        return Tally(rows=rows, sums=tuple(sums))

    def sample(self) -> Block:
        """Made-up records that fill the bounds evenly and go beyond them."""
        return Moments(design=self.design).sample()


@final
@dataclass(frozen=True, kw_only=True)
class Lengths(_Sums):
    """For each radius of the ladder, whether rows find it long enough: the sum of `enough`, in units of 1 / SHARE."""

    @property
    def name(self) -> str:
        """What is summed."""
        return "lengths of rows"

    @property
    def size(self) -> int:
        """One for each radius."""
        return RADII

    def of_block(self, values: Floats, targets: Floats, body: Floats) -> Floats:
        """The sums of at most BLOCK records."""
        del targets
        squares = self.design.fine_squares(values, body)
        if not np.isfinite(squares.sum()):
            squares = self.design.fine_squares(filled(self.design, values), body)
        filled_so_far = np.multiply.outer(2.0 ** np.arange(RADII) / (FINE**2 * self.design.width), squares)
        # Towards zero, so that rounding parts no two rows further.
        parts = np.trunc(SHARE * enough(filled_so_far, intercept=self.design.intercept))  # proof: share
        return np.asarray(parts.sum(axis=1))


@final
@dataclass(frozen=True, kw_only=True)
class Residuals(_Sums):
    """Sums of w x t, of t**2 and of w**2, where t is the residual w (y - x'b) cut to +-tau.

    Args:
        start: b in multiples of 2**-START_BITS, for whole-number rows; each at most LARGEST_START.
        level: The step of tau on its ladder.
    """

    start: tuple[int, ...]
    level: int

    @property
    def name(self) -> str:
        """What is summed."""
        return "residuals around a public model"

    @property
    def size(self) -> int:
        """A moment for each coefficient, a square, a weight."""
        return self.design.width + 2

    @cached_property
    def _slope(self) -> Floats:
        return np.array(self.start, dtype=np.float64)

    def of_block(self, values: Floats, targets: Floats, body: Floats) -> Floats:
        """The sums of at most BLOCK records."""
        constant, weights = self.design.whole_rows(values, body)
        if np.isnan(weights).any():
            constant, weights = self.design.whole_rows(filled(self.design, values), body)
        must_be_in_ball(body, constant)
        line = body @ self._slope[: body.shape[1]] + constant * self._slope[-1] * self.design.intercept
        off = self.design.whole_targets(targets, weights) * 2.0**START_BITS - line  # proof: exact-residual
        tops = np.rint(np.clip(off / (2.0**START_BITS * level_of(self.level)), -UNIT, UNIT))  # proof: cut
        moments = body.T @ tops
        last = [float(np.sum(constant * tops))] if self.design.intercept else []
        squares = np.rint(np.square(weights) * UNIT)  # proof: weight-square
        return np.concatenate([moments, last, [float(tops @ tops), float(squares.sum())]])  # proof: exact-moment


@lru_cache(maxsize=64)
def staged_design(design: Design, radius: float) -> Design:
    """The same map with rows weighted to a radius."""
    return replace(design, radius=radius, weighted=True)
