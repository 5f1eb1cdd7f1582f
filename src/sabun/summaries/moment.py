"""What sum, mean and variance share: one column of numbers, read off at public marks and summed by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from sabun.privacy.noise import seeded_coin
from sabun.privacy.pricing import Price
from sabun.summaries.laws import Noise
from sabun.summaries.people import People
from sabun.summaries.ruler import Ruler, number
from sabun.summaries.sensitivity import Change, public_size
from sabun.summaries.statistic import Moments, PowerSums, Tally
from sabun.summaries.summary import Expected, Group, Terms
from sabun.telling.measures import Measure

__all__ = ["Formula", "Moment"]

_DRAWS = 2000
"""Of made-up noise, for a forecast."""

_EVENLY = "cells are spread evenly over the bounds"
_AT_A_BOUND = "19 of 20 cells lie at one bound, the others at the other one"


@final
@dataclass(frozen=True, kw_only=True)
class Formula:
    """What is worked out from the sums of a group, and back from the noisy numbers.

    Args:
        change: What one person can change in `numbers`, over all groups, under a relation.
        numbers: The whole numbers of a group that get noise; as many whatever the group.
        answer: What the noisy numbers of a group say; the number of rows is used only where it is public.
        extent: How far apart two answers about a group of that size can be.
        squared: Whether answers about a column are measured in squares of what it is; then the noise of the mean weighs more
            the farther it is from the middle of the bounds.
        divided: Whether an answer is a sum by the number of records, so that noise weighs more the fewer there are.
    """

    change: Callable[[People, str, Ruler], Change]
    numbers: Callable[[Moment, Moments], list[int]]
    answer: Callable[[Moment, Sequence[int], int, float], Group]
    extent: Callable[[Moment, int], Fraction]
    squared: bool = False
    divided: bool = True


@final
@dataclass(frozen=True, kw_only=True)
class Moment:
    """A `Recipe`: numbers worked out from the sums of each group get noise, and the answer follows from those.

    Args:
        terms: The terms.
        formula: What is worked out.
        ruler: Marks of the column.
        noise: What is added to every number.
        public: Whether the size of the one group is public.
    """

    terms: Terms
    formula: Formula
    ruler: Ruler
    noise: Noise
    public: bool

    @classmethod
    def of(cls, terms: Terms, formula: Formula) -> Self:
        """Reads marks and noise off the terms."""
        ruler, relation = Ruler.of(terms.people.summed), terms.ask.relation
        noise = Noise.of(terms.ask, formula.change(terms.people, relation, ruler))
        return cls(terms=terms, formula=formula, ruler=ruler, noise=noise, public=public_size(terms.people, relation))

    @property
    def sums(self) -> PowerSums:
        """Sizes, sums and sums of squares."""
        return PowerSums(people=self.terms.people, ruler=self.ruler)

    @property
    def mechanism(self) -> str:
        """The noise, in words."""
        return self.noise.words

    @property
    def price(self) -> Price | None:
        """What the noise costs at a Rényi order."""
        return self.noise.price(self.terms.ask.relation)

    @property
    def facts(self) -> dict[str, Any]:
        """How much noise, how fine the marks."""
        return {"noise": self.noise.size, "step": self.ruler.step}

    def draw(self, state: Tally) -> list[Group]:
        """Noise for the numbers of all groups together, then each group's answer."""
        by_group = [self.formula.numbers(self, moments) for moments in state.groups]
        noisy = self.noise.added([each for group in by_group for each in group], self.terms.ask.coin)
        count = len(by_group[0])
        parts = [noisy[start : start + count] for start in range(0, len(noisy), count)]
        return [self.formula.answer(self, part, state.rows, self.terms.miss) for part in parts]

    def expected(self, size: int, rows: int) -> Expected:
        """What to expect of cells that are spread evenly; of squares, also of cells at a bound, where noise weighs more."""
        width, squared = self.ruler.steps, self.formula.squared
        reach, errors = self._foretold((size, size * width // 2, size * width * width // 3), rows)
        told = [(errors, () if self.public and not squared else (_EVENLY,))]
        if squared:
            most, worst = self._foretold((size, size * width * 19 // 20, size * width * width * 19 // 20), rows)
            low, middle, high = map(max, errors, worst)
            reach, told = max(reach, most), [*told, ((low, middle, high), (_AT_A_BOUND,))]
        fewer = "half as many records have twice the error" if self.formula.divided else ""
        return Expected(reach, self._unit, tuple(told), number(self.formula.extent(self, size)), fewer)

    def _foretold(self, group: Moments, rows: int) -> tuple[float, tuple[float, float, float]]:
        """Half the interval of a group with these sums, and its errors exceeded in nine, five and one of ten runs."""
        numbers = self.formula.numbers(self, group)
        ends = [self.formula.answer(self, numbers, rows, miss).interval for miss in (self.terms.miss, 0.9, 0.5, 0.1)]
        reach, few, usual, high = (high / 2 - low / 2 for low, high in ends)
        return reach, self._errors(numbers, rows) or (few, usual, high)

    @property
    def _unit(self) -> str:
        """What errors are measured in, in words."""
        column = self.terms.people.summed
        measure = Measure.of(column).squared if self.formula.squared else Measure.of(column).apart
        return measure.unit or f"units of {column.name!r}{', squared' if self.formula.squared else ''}"

    def _errors(self, numbers: Sequence[int], rows: int) -> tuple[float, float, float] | None:
        """Errors exceeded in nine, five and one of ten runs, to first order in the noise; None where it drowns the group."""
        scale = max(_typical(self.noise), 1.0)
        if len(numbers) == 1 or scale > 2.0**900:  # one number: its interval is as exact
            return None

        def found(changed: int | None) -> float | None:
            moved = [each + round(scale) * (place == changed) for place, each in enumerate(numbers)]
            answer: float | None = self.formula.answer(self, moved, rows, self.terms.miss).found
            return answer

        start, *moved = (found(place) for place in (None, *range(len(numbers))))
        if start is None or any(each is None for each in moved):
            return None
        slopes = np.array([each - start for each in moved if each is not None])
        errors = np.abs(_made_up(self.noise, len(slopes)) @ slopes)
        low, middle, high = (float(np.quantile(errors, share)) for share in (0.1, 0.5, 0.9))
        return low, middle, high


def _typical(noise: Noise) -> float:
    """The scale of the noise, or for Gaussian noise its standard deviation; the largest float for what lies beyond."""
    try:
        return math.sqrt(noise.size) if noise.gaussian else float(noise.size)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)


def _made_up(noise: Noise, numbers: int) -> NDArray[np.float64]:
    """Noise in units of `_typical`, always the same: for a plan, never for a release."""
    uniform = (seeded_coin(0).words(2 * _DRAWS * numbers) >> np.uint64(11)).astype(float) / 2.0**53 + 2.0**-54
    one, other = uniform.reshape(2, _DRAWS, numbers)
    drawn: NDArray[np.float64] = (
        np.sqrt(-2 * np.log(one)) * np.cos(2 * np.pi * other) if noise.gaussian else np.log(one / other)
    )
    return drawn
