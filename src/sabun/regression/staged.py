"""Two stages in one release: weighted sums, then residuals around the model that the first sums give.

    lengths ─► R (published) ─► A, c, q with noise ─► start b, level tau (published) ─► residual sums with noise

Residuals are small where a model fits, so the noise on their sums is small too; whoever reads the release moves them back.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np

from sabun.asking import Part, Statistic, state_of
from sabun.engine import Elsewhere
from sabun.errors import DataError
from sabun.privacy.noise import Coin, rounded_gaussians
from sabun.records import Chunks
from sabun.records.files import FilePart
from sabun.regression.design import UNIT, Design, Floats
from sabun.regression.mixing import Axes
from sabun.regression.pooling import estimated
from sabun.regression.sensitivity import count_weight, residual_weights, square_weight
from sabun.regression.sharing import QUERIES, Shares, plain_radius, shares_of
from sabun.regression.stages import (
    LARGEST_START,
    LEVELS,
    RESIDUALS,
    START_BITS,
    Lengths,
    Residuals,
    Tally,
    radius_of,
    staged_design,
)
from sabun.regression.statistic import Block, Moments, Totals
from sabun.regression.study import Study
from sabun.regression.sufficient import Weights, clamped, listed_sums, named_sums
from sabun.regression.sums import Sums, first_sums

__all__ = ["Reading", "add_residual_noise", "add_staged_noise", "free_level", "level_for", "start_for"]

_GRID = UNIT**2
_ONE = Weights(diagonal=1, above=1, moment=1, square=1, count=1)
_CUT = 2.5
_FREE = 0.05
"""Residuals may reach farther where the noise that this costs is at most such a share of their sampling error."""


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Reading:
    """A table whose lengths were read, and that will be read twice more. PRIVATE.

    Args:
        part: The lengths of its rows.
        again: Gives the state of another statistic of the same table.
    """

    part: Part[Tally]
    again: Callable[[Statistic[Any]], Any]

    @property
    def state(self) -> Tally:
        """The lengths."""
        return self.part.whole()

    @staticmethod
    def first_design(study: Study) -> Design:
        """The map that lengths are read with."""
        return staged_design(study.design, plain_radius(study.design, study.clip_radius))

    def once_more(self, statistic: Statistic[Any]) -> Any:
        """The state of another statistic of the same table, after the charge.

        Raises:
            DataError: The table cannot be read again, or has another number of rows now; what a reader says of it is not passed
                on, for it may say that nothing was charged.
        """
        try:
            state = self.again(statistic)
        except DataError:
            state = None
        if state is None or state.rows != self.state.rows:
            raise DataError(
                "a table must stay where and what it is while it is read three times; it did not. "
                "The charge stays spent, nothing was released."
            )
        return state

    @classmethod
    def of(cls, study: Study, source: object) -> Reading:
        """Reads the lengths. What is in memory is encoded once; a stream that can be read only once is kept in memory.

        Raises:
            DataError: The source does not fit the declared columns.
        """
        lengths = Lengths(design=cls.first_design(study))
        stays = isinstance(source, str | os.PathLike | FilePart | Elsewhere) or (isinstance(source, Chunks) and not source.once)
        again = _Stays(source) if stays else _Held(list(lengths.blocks(source)))
        return cls(part=Part(statistic=lengths, state=again(lengths)), again=again)


@dataclass(frozen=True)
class _Stays:
    """A source that can be read as often as needed."""

    source: object

    def __call__(self, statistic: Statistic[Any]) -> Any:
        return state_of(statistic, self.source)


@dataclass(frozen=True)
class _Held:
    """Records in memory, as the statistics of this room take them."""

    blocks: Sequence[Block]

    def __call__(self, statistic: Statistic[Any]) -> Any:
        return functools.reduce(statistic.add, self.blocks, statistic.zero())


def add_staged_noise(study: Study, table: Reading, coin: Coin) -> dict[str, Any]:
    """The released value: a radius, weighted sums, a start, a level, residual sums; whole numbers only.

    Guarantee: (epsilon, delta) of the study for its relation, see `staged.proof.md`. Sizes depend on the study alone. With
    `rounds` this is the first round, without residuals, and promises what one round does.

    Raises:
        DataError: The table has another number of rows than when it was read first.
    """
    tally = table.state
    shares = shares_of(study, tally.rows if study.relation == "replace-one" else None)
    twice = study.method != "rounds" and shares.second is not None
    # All of it at once: noise does not depend on what it is added to, and many draws take little longer than one.
    asked = [] if study.clip_radius is not None or shares.length is None else [(shares.length, QUERIES)]  # proof: length-noise
    first, second = _first_parts(study, shares), _residual_parts(study, shares) if twice else []
    noise = _drawn([*asked, *first, *second], coin)
    # Where noise would choose, no row is shortened: no worse than sums alone, whatever the features are like.
    filled = _chosen(tally, shares, noise.pop(0)) if asked else 0
    step = None if study.clip_radius is not None else max(filled - shares.back, 0)
    radius = plain_radius(study.design, study.clip_radius) if step is None else radius_of(study.design, step)
    design = staged_design(study.design, radius)
    totals: Totals = table.once_more(Moments(design=design))
    value = _with_first(study, totals, noise[: len(first)]) | {"radius": step}
    if study.method == "rounds":
        return value
    if not twice:
        return value | dict.fromkeys(RESIDUALS)
    start, level = _start(study, design, first_sums(study, value), shares)
    residuals: Tally = table.once_more(Residuals(design=design, start=start, level=level))
    return value | _with_residuals(residuals, noise[len(first) :]) | {"start": list(start), "level": level}


def _chosen(tally: Tally, shares: Shares, noise: Sequence[int]) -> int:
    """The first radius of the ladder that is long enough for rows that fill the shorter ones, by bisection; else the last."""
    low, high, fresh = 0, shares.last, iter(noise)
    while low < high:
        middle = (low + high) // 2
        noisy = tally.sums[middle] + next(fresh)  # proof: length-once
        low, high = (low, middle) if noisy >= -shares.lean else (middle + 1, high)
    return low


def _first_parts(study: Study, shares: Shares) -> list[tuple[Fraction, int]]:
    variance, width = shares.first, study.width
    parts = [
        (variance, 2 * width),  # proof: first-variance
        (variance / 2, width * (width - 1) // 2),  # proof: first-half
        (variance / square_weight(study.relation) ** 2, 1),  # proof: first-square
    ]
    if study.relation == "add-remove":
        parts.append((variance / (count_weight(study.relation) * _GRID) ** 2, 1))  # proof: first-count
    return parts


def _with_first(study: Study, totals: Totals, drawn: Sequence[Sequence[int]]) -> dict[str, Any]:
    (exact, own), (on, off, *last) = listed_sums(study, totals, _ONE), drawn
    squares, products = iter(on), iter(off)
    noise = [next(squares) if square else next(products) for square in own] + [*squares, *(one for [one] in last)]
    return named_sums(study, clamped(exact, noise), rows=totals.rows)


def add_residual_noise(study: Study, residuals: Tally, shares: Shares, coin: Coin) -> dict[str, Any]:
    """The released sums of residuals; whole numbers only."""
    return _with_residuals(residuals, _drawn(_residual_parts(study, shares), coin))


def _residual_parts(study: Study, shares: Shares) -> list[tuple[Fraction, int]]:
    variance, (square, weight) = shares.second or Fraction(0), residual_weights(study.relation)
    return [
        (variance, study.width),  # proof: second-variance
        (variance / square, 1),  # proof: second-square
        (variance / (weight * UNIT**2), 1),  # proof: second-weight
    ]


def _with_residuals(residuals: Tally, drawn: Sequence[Sequence[int]]) -> dict[str, Any]:
    noisy = clamped(residuals.sums, [one for part in drawn for one in part])
    return {"residual_moment": noisy[:-2], "residual_square": noisy[-2], "residual_weight": noisy[-1]}


def _drawn(parts: Sequence[tuple[Fraction, int]], coin: Coin) -> list[list[int]]:
    return [drawn.tolist() for drawn in rounded_gaussians(parts, coin=coin)]


def _start(study: Study, design: Design, sums: Sums, shares: Shares) -> tuple[tuple[int, ...], int]:
    """The model of the first sums on its grid, and how far residuals around it may reach; post-processing."""
    axes = Axes.of([sums])
    beta, variance, paid = estimated(study, sums, axes)
    free = free_level(study, shares, sums.near, axes, variance)
    return start_for(study, design, beta), level_for(variance, paid / sums.rows, free)


def start_for(study: Study, design: Design, beta: Floats) -> tuple[int, ...]:
    """A model in row units of the study on the grid that residuals of a design are taken around."""
    scaled = beta * (design.scale / (study.design.scale * design.shrink) * 2**START_BITS)
    return tuple(int(number) for number in np.clip(np.rint(scaled), -LARGEST_START, LARGEST_START))


def level_for(variance: float, own: float, free: float) -> int:
    """Where to cut residuals around a model: far beyond their deviation, which holds that of the model itself (`own`).

    The longest step of the ladder reaches all residuals of predictions within bounds: then nothing is cut.

    Args:
        variance: Of the residuals.
        own: Of the model.
        free: How far they may reach at next to no cost.
    """
    around = max(variance + max(own, 0.0), 1e-9)
    return min(max(math.ceil(4 * math.log2(max(_CUT * math.sqrt(around), free))), LEVELS[0]), LEVELS[-1])


def free_level(study: Study, shares: Shares, near: float, axes: Axes, variance: float) -> float:
    """The tau whose noise adds a small share to the sampling error of predictions, by the first sums; 0 where it adds more.

    Over all directions of A sampling costs s2 for each, noise v / A: so v may be a share of s2 times the harmonic mean of A.

    Args:
        study: Its terms.
        shares: The noise.
        near: The radius of the first sums, in units of the study's own.
        axes: Their A.
        variance: s2.
    """
    if shares.second is None or axes.values.min() <= 0:
        return 0.0
    noise = float(shares.second) * (near / (UNIT**2 * study.design.shrink)) ** 2
    return math.sqrt(_FREE * variance / (noise * float(np.mean(1 / axes.values))))
