"""Quantiles of a column by the exponential mechanism, by public groups; proved in quantiles.proof.md.

Notation: of a group of n cells, the quantile of a share q is a mark with at most q n cells below it and at least q n cells up
to it. A mark's cost for a rank r is the distance between r and the ranks that the mark covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun import checks
from sabun.privacy.amounts import Amount, AmountLike, exact, plain
from sabun.privacy.events import BoundedRange
from sabun.privacy.noise import Coin, exponential_choice
from sabun.privacy.pricing import Price
from sabun.summaries.ruler import Ruler, number
from sabun.summaries.sensitivity import cost_of_ranks
from sabun.summaries.statistic import CellCounts
from sabun.summaries.summary import Expected, Group, Summary, Terms

__all__ = ["Quantiles", "Rank"]

_COARSE = 16
_EVENLY = "cells are all different and spread evenly over the bounds"
_CROWDED = "cells crowd in a small part of the bounds"
_FARTHEST = 1 << 40
"""An end of an interval that would have to aim this many ranks off is not drawn: it is the bound, which is public."""

_FINEST = 10**6


@final
@dataclass(frozen=True, kw_only=True)
class Rank:
    """How one quantile is drawn; public.

    Args:
        share: The quantile's q.
        rate: The exponent for each rank of distance: a mark is drawn with probability proportional to exp(-rate cost).
        end_rate: The same for each end of the interval; None without intervals.
        off: How many ranks beyond q n the ends aim.
    """

    share: Fraction
    rate: Fraction
    end_rate: Fraction | None
    off: int

    def costs(self, below: NDArray[np.int64], upto: NDArray[np.int64], *, off: int) -> NDArray[np.int64]:
        """Each mark's distance from rank q n + off, in units of 1 / (denominator of q)."""
        over, under = self.share.numerator, self.share.denominator
        rank = over * int(upto[-1]) + off * under
        costs = np.maximum(np.maximum(under * below - rank, rank - under * upto), 0)
        # The first mark covers all ranks below its own too, the last one all above: some mark costs nothing, whatever the rank.
        costs[0] = max(rank - under * int(upto[0]), 0)  # proof: first-mark
        costs[-1] = max(under * int(below[-1]) - rank, 0)  # proof: last-mark
        return costs

    def draw(self, cells: NDArray[np.int64], coin: Coin) -> tuple[int, int, int]:
        """Marks of the quantile, of the lower end, of the upper end."""
        upto = np.cumsum(cells)
        below = upto - cells
        found = self._choice(self.costs(below, upto, off=0), self.rate, coin)  # proof: middle
        if self.end_rate is None or self.off >= _FARTHEST:
            return found, 0, len(cells) - 1  # proof: bounds-are-public
        low = self._choice(self.costs(below, upto, off=-self.off), self.end_rate, coin)  # proof: lower-end
        high = self._choice(self.costs(below, upto, off=self.off), self.end_rate, coin)  # proof: upper-end
        return found, low, high

    def _choice(self, costs: NDArray[np.int64], rate: Fraction, coin: Coin) -> int:
        return exponential_choice(costs, rate=rate / self.share.denominator, coin=coin)  # proof: choice


@dataclass(kw_only=True, eq=False, repr=False)
class Quantiles(Summary):
    """Quantiles of a column of numbers, by group or under a condition.

    Guarantee: epsilon for all quantiles of all groups together, intervals included; there is no delta. Each quantile gets an
    equal part. Under add-remove a person moves the ranks of one group (parallel composition); under replace-one with two groups
    or more, of two.

    Notation: cells are clipped and moved to public marks as in `Sum`, at most 2**-16 of the distance of the bounds away.

    Edge cases: nothing can be said about a group that is too small for its interval, which then reaches from bound to bound.

    Args:
        column: A number column of the schema. Its unreadable cells count as the schema's `missing`.
        shares: Which quantiles, above 0 and below 1, growing: 0.5 is the median. At most six decimals.
        epsilon: As in `Count`, like all parameters below.
        error_bar: Share of epsilon that pays for the intervals; 0 turns them off.
        resolution: How far apart marks may be: 1 for whole numbers. Fewer marks give better answers. The next power of two
            below is taken; None takes the finest marks there are.
        schema: What is publicly known about the columns.
        by: A column of labels: quantiles for each that the schema declares.
        where: A public condition.
        relation: `replace-one` or `add-remove`; the ledger's when left out.
        confidence: How often an interval holds every exact quantile of its share, each by itself.
        ledger: The book to charge, or None.
        retry_key: Name under which the same question gets the same bytes for free.
        random_state: None for a private result; a whole number simulates.

    Attributes:
        quantiles_: The private quantiles in the order of `shares`; with `by`, lists by label.
        interval_: Bounds for the exact quantiles, likewise.
        guarantee_: What is promised.
        release_: The value with its guarantee.

    Example:
        >>> from sabun.records import Schema
        >>> schema = Schema.of_bounds({"age": (0, 100)})
        >>> model = Quantiles(column="age", shares=[0.5], epsilon=50, schema=schema, random_state=1)
        >>> 38 < model.fit([[age] for age in range(20, 61)]).quantiles_[0] < 42
        True
    """

    word = "quantiles"

    column: str
    shares: Sequence[AmountLike] = ("0.25", "0.5", "0.75")
    error_bar: AmountLike = 0.5
    resolution: float | None = None

    def _recipe(self, terms: Terms) -> _Ranks:
        ruler = Ruler.of(terms.people.summed, bits=_COARSE, resolution=self.resolution)
        shares, bar = _shares(self.shares), exact(self.error_bar, name="error_bar")
        checks.require(0 <= bar < 1, "a share of epsilon, at least 0 and below 1", error_bar=self.error_bar)
        return _Ranks(terms=terms, ruler=ruler, error_bar=bar, ranks=_ranks(terms, shares, Fraction(bar), marks=ruler.count))


@final
@dataclass(frozen=True, kw_only=True)
class _Ranks:
    """A `Recipe`: draws near the ranks asked for, in each group."""

    terms: Terms
    ruler: Ruler
    error_bar: Amount
    ranks: tuple[Rank, ...]

    @property
    def sums(self) -> CellCounts:
        return CellCounts(people=self.terms.people, cells=self.ruler)

    @property
    def mechanism(self) -> str:
        return "exponential mechanism"

    @property
    def price(self) -> Price:
        """What is drawn: for each rank one choice, and one for each end of its interval."""
        count, bar = len(self.ranks), Fraction(self.error_bar)
        each = self.terms.ask.epsilon / count
        middle = BoundedRange(epsilon=(1 - bar) * each, count=count)
        ends = (BoundedRange(epsilon=bar / 2 * each, count=2 * count),) if bar else ()
        return Price(events=(middle, *ends), relation=self.terms.ask.relation)  # proof: price

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "shares": [plain(rank.share) for rank in self.ranks],
            "error_bar": self.error_bar,
            "ranks_off": [rank.off if rank.end_rate is not None else None for rank in self.ranks],
            "step": self.ruler.step,
        }

    def draw(self, state: NDArray[np.int64]) -> list[Group]:
        return [self._of_group(line[: self.ruler.count]) for line in state]

    def _of_group(self, cells: NDArray[np.int64]) -> Group:
        drawn = [rank.draw(cells, self.terms.ask.coin) for rank in self.ranks]
        # What is drawn is public from here: quantiles are put in order, and an interval made to hold its own.
        found = sorted(middle for middle, _, _ in drawn)
        ends = [(min(low, mark), max(high, mark)) for mark, (_, low, high) in zip(found, drawn, strict=True)]
        intervals = [
            [self._at(end) for end in pair] if rank.end_rate is not None else None
            for pair, rank in zip(ends, self.ranks, strict=True)
        ]
        return Group([self._at(mark) for mark in found], intervals)

    def _at(self, mark: int) -> float:
        return number(self.ruler.at(mark))

    def expected(self, size: int, rows: int) -> Expected:
        reach = max(2 * rank.off for rank in self.ranks)
        errors = tuple(
            (tuple(float(min(off(miss), size)) for miss in (0.9, 0.5, 0.1)), (assumed,))
            for off, assumed in ((self._spread, _EVENLY), (self._crowded, _CROWDED))
        )
        fewer = "among half as many records the same error in ranks reaches twice as far"
        return Expected(float(min(reach, size)), "ranks", errors, size, fewer)  # type: ignore[arg-type]

    def _spread(self, miss: float) -> float:
        """The error of a quantile whose neighbours are spread evenly: as many marks between any two of them."""
        return -math.log(miss) / float(min(rank.rate for rank in self.ranks))

    def _crowded(self, miss: float) -> float:
        """The same, where nearly all marks lie beside the cells."""
        return max(_off(rank.rate, self.ruler.count, miss) for rank in self.ranks)


def _ranks(terms: Terms, shares: Sequence[Fraction], bar: Fraction, *, marks: int) -> tuple[Rank, ...]:
    """How each quantile is drawn: equal parts of epsilon, each divided between the quantile and the ends of its interval."""
    each = terms.ask.epsilon / len(shares)  # proof: split
    ranks = []
    for share in shares:
        moved = 2 * cost_of_ranks(terms.people, terms.ask.relation, share)
        rate, end_rate = (1 - bar) * each / moved, bar / 2 * each / moved  # proof: rates
        off = _off(end_rate, marks, terms.miss / 2) if bar else _FARTHEST
        ranks.append(Rank(share=share, rate=rate, end_rate=end_rate if bar else None, off=off))
    return tuple(ranks)


def _shares(shares: object) -> tuple[Fraction, ...]:
    good = isinstance(shares, list | tuple | np.ndarray) and len(shares) > 0
    checks.require(good, "a list of numbers between 0 and 1", shares=shares)
    found = [exact(share, name="shares") for share in shares]  # type: ignore[attr-defined]
    good = all(0 < share < 1 for share in found) and sorted(set(found)) == found
    checks.require(good, "above 0, below 1 and growing", shares=shares)
    few = all(Fraction(share).denominator <= _FINEST for share in found)
    checks.require(few, "numbers of at most six decimals", shares=shares)
    return tuple(Fraction(share) for share in found)


def _off(rate: Fraction, marks: int, miss: float) -> int:
    """How many ranks a draw is off, at most, with probability 1 - miss; one more, so that an end lies strictly outside."""
    reach = Fraction(math.log(marks) - math.log(miss)) * (1 + Fraction(1, 1 << 30)) / rate
    return min(math.ceil(reach) + 1, _FARTHEST)  # proof: tail
