"""A mechanism that is not ours, from outside: how much privacy does it certainly lose?

A pair of neighbours is chosen and an event found on some runs; how likely the event is for either of them is then bounded on
fresh runs (Clopper, Pearson 1934), so the bound holds whatever the search did. Among the events are those of floating-point
numbers: which digits of a result can be there at all (Mironov 2012).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sabun import checks
from sabun.errors import ParameterError

__all__ = ["Event", "Verdict", "epsilon_lower_bound", "mechanism", "replacements"]

_Row = NDArray[np.float64]
_FIRST = 400
"""Runs on each side to see which neighbours are worth more."""
_CUTS = 64


@final
@dataclass(frozen=True, kw_only=True)
class Event:
    """Something about a result that tells two tables apart.

    Args:
        words: What it is.
        feature: A number from each result.
        cut: The event is that the feature lies above it (`above`), or not.
        above: On which side.
    """

    words: str
    feature: Callable[[_Row], _Row]
    cut: float
    above: bool

    def times(self, results: _Row) -> int:
        """How often it happens."""
        return int(((self.feature(results) > self.cut) == self.above).sum())


@final
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an audit from outside found. A bound below the claim refutes nothing, and proves nothing.

    Args:
        claim: The epsilon that was claimed.
        delta: The delta that was claimed.
        epsilon: At least so much is lost, at the stated confidence.
        confidence: How often such a bound is right.
        pair: The number of the pair of neighbours that was found.
        event: What tells them apart.
        swapped: Whether the event is the likelier one for the second of the pair.
        counts: How often it happened in the fresh runs, for the likelier side and for the other.
        runs: Fresh runs on each side.
        varies: Whether results vary at all; without, there is no noise.
        seconds: How long it took.
    """

    claim: float
    delta: float
    epsilon: float
    confidence: float
    pair: int
    event: str
    swapped: bool
    counts: tuple[int, int]
    runs: int
    varies: bool
    seconds: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted."""
        return self.epsilon > self.claim

    def __str__(self) -> str:
        found = "REFUTED" if self.refuted else "not refuted"
        constant = "" if self.varies else " The results never vary: there is no noise."
        return (
            f"claim epsilon {self.claim:g}: {found}. At least {self.epsilon:.3g} is lost (confidence {self.confidence:g}): "
            f"{self.event} happened {self.counts[0]} times against {self.counts[1]} in {self.runs} runs.{constant}"
        )


def epsilon_lower_bound(likely: int, unlikely: int, runs: int, *, delta: float = 0.0, confidence: float = 0.998) -> float:
    """At least so much epsilon, from how often an event happened in so many runs on either of two neighbours.

    Example:
        >>> round(epsilon_lower_bound(500, 200, 1000), 3)
        0.624
        >>> epsilon_lower_bound(10, 10, 1000)
        0.0
    """
    alpha = (1 - confidence) / 2
    low = float(stats.beta.ppf(alpha, likely, runs - likely + 1)) if likely else 0.0
    high = float(stats.beta.ppf(1 - alpha, unlikely + 1, runs - unlikely)) if unlikely < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def mechanism(
    function: Callable[[Any], Any],
    neighbours: Iterable[tuple[Any, Any]],
    claim: float,
    *,
    delta: float = 0.0,
    runs: int = 20_000,
    confidence: float = 0.998,
    progress: Callable[[float, str], None] | None = None,
) -> Verdict:
    """Tries to refute what somebody claims of a mechanism, without looking inside.

    Args:
        function: Runs the mechanism once on a table; gives a number or an array of numbers, always of the same size.
        neighbours: Pairs of tables that differ in one person; see `replacements`. All are tried a little, the worst in earnest.
        claim: The epsilon that is claimed.
        delta: The delta that is claimed.
        runs: How often it is run in the end on each table of the worst pair; half of them find the event.
        confidence: How often the lower bound is to be right.
        progress: Called with the share done and what is being done.

    Returns:
        A lower bound, with the event behind it.

    Raises:
        ParameterError: No neighbours, or results that are no numbers.

    Example:
        >>> def one_in_ten(table):
        ...     return sum(table) if np.random.default_rng().random() < 0.9 else 1 - sum(table)
        >>> mechanism(one_in_ten, [([0], [1])], 1.0, runs=2000).refuted
        True
    """
    checks.positive(claim=claim)
    checks.require(checks.is_number(delta) and 0 <= delta < 1, "at least 0 and below 1", delta=delta)
    checks.whole(minimum=100, runs=runs)
    checks.require(0.5 <= confidence < 1, "from 0.5 to below 1", confidence=confidence)
    began, step = time.perf_counter(), progress or (lambda _share, _doing: None)
    pairs = [tuple(pair) for pair in neighbours]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ParameterError("neighbours must be pairs of tables, at least one. See sabun.audit.black_box.replacements.")
    glances = [_glance(function, pair, delta) for pair in pairs] if len(pairs) > 1 else [0.0]
    place, half = glances.index(max(glances)), runs // 2
    step(0.1, "looking for an event")
    looked = tuple(_results(function, table, half) for table in pairs[place])
    event, swapped = _best_event(looked, delta)
    step(0.5, event.words)
    fresh = tuple(_results(function, table, half) for table in pairs[place])
    likely, unlikely = (event.times(side) for side in (reversed(fresh) if swapped else fresh))
    return Verdict(
        claim=float(claim),
        delta=float(delta),
        epsilon=epsilon_lower_bound(likely, unlikely, half, delta=float(delta), confidence=confidence),
        confidence=confidence,
        pair=place,
        event=event.words,
        swapped=swapped,
        counts=(likely, unlikely),
        runs=half,
        varies=bool(any(np.ptp(side, axis=0).any() for side in (*looked, *fresh))),
        seconds=time.perf_counter() - began,
    )


def replacements(rows: Sequence[Any], values: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Neighbours of a table: its last row is each of the values in turn, beside each other one; and the row is left out.

    Values worth trying: both ends of every bound, zero, a missing value, what lies far outside.

    Example:
        >>> list(replacements([1, 2], [0, 9]))
        [([1, 0], [1, 9]), ([1, 0], [1]), ([1, 9], [1])]
    """
    rest = list(rows)[:-1]
    for number, first in enumerate(values):
        for second in values[number + 1 :]:
            yield [*rest, first], [*rest, second]
    yield from (([*rest, value], list(rest)) for value in values)


def _results(function: Callable[[Any], Any], table: Any, runs: int) -> _Row:
    """A row of numbers for each run."""
    drawn = [np.atleast_1d(np.asarray(function(table))).ravel() for _ in range(runs)]
    if len({one.shape for one in drawn}) != 1:
        raise ParameterError(
            "function must give as many numbers each time; it did not. A size that varies is a leak by itself."
        )
    if drawn[0].dtype.kind not in "biuf":
        raise ParameterError("function must give a number or an array of numbers. Encode what it gives as numbers.")
    return np.array(drawn, dtype=np.float64)


def _glance(function: Callable[[Any], Any], pair: Sequence[Any], delta: float) -> float:
    """How promising a pair looks after a few runs; nothing is claimed of it."""
    return _scored(tuple(_results(function, table, _FIRST) for table in pair), delta)[0]


def _best_event(sides: Sequence[_Row], delta: float) -> tuple[Event, bool]:
    return _scored(sides, delta)[1:]


def _scored(sides: Sequence[_Row], delta: float) -> tuple[float, Event, bool]:
    """The event with the largest bound on these runs, with its bound and whether it is likelier on the second side."""
    best: tuple[float, Event, bool] | None = None
    for words, feature in _features(sides):
        one, other = (feature(side) for side in sides)
        both = np.concatenate([one, other])
        cuts = np.unique(np.append(np.quantile(both, np.linspace(0, 1, _CUTS), method="lower"), both.min() - 1))
        for cut in cuts[np.isfinite(cuts)]:
            above = (one > cut).sum(), (other > cut).sum()
            for side, times in ((True, above), (False, (len(one) - above[0], len(other) - above[1]))):
                for swapped, (likely, unlikely) in ((False, times), (True, times[::-1])):
                    if likely <= unlikely and best is not None:
                        continue
                    score = epsilon_lower_bound(int(likely), int(unlikely), len(one), delta=delta)
                    if best is None or score > best[0]:
                        sign = "above" if side else "at most"
                        event = Event(words=f"{words} {sign} {cut:.6g}", feature=feature, cut=float(cut), above=side)
                        best = score, event, swapped
    if best is None:
        raise ParameterError("function must give at least one number; it gave none.")
    return best


def _features(sides: Sequence[_Row]) -> Iterator[tuple[str, Callable[[_Row], _Row]]]:
    """Numbers from a result that may tell: each coordinate, the way between the means, the last digits of the floats."""
    width = sides[0].shape[1]
    for place in range(width):
        name = "the result" if width == 1 else f"number {place}"
        yield name, lambda rows, place=place: rows[:, place]  # type: ignore[misc]
        for scale in (0.5, 1.0, np.inf):
            yield (
                f"the place of the last binary digit of {name}" + (f", if it is below {scale:g}," if scale < np.inf else ""),
                lambda rows, place=place, scale=scale: _last_digit(rows[:, place], scale),  # type: ignore[misc]
            )
    if width > 1:
        one, other = (np.where(np.isfinite(side), side, 0.0) for side in sides)
        spread = np.concatenate([one, other]).std(axis=0)
        way = (other.mean(axis=0) - one.mean(axis=0)) / np.where(spread > 0, spread, 1.0) ** 2
        yield "the sum along the way between the means", lambda rows: np.where(np.isfinite(rows), rows, 0.0) @ way


def _last_digit(column: _Row, scale: float) -> _Row:
    """The exponent of the lowest binary digit that is set; as far up as can be where the number is not below the scale.

    A sum with 1 has no digits below 2^-53: a result that has some cannot come from there (Mironov 2012).
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(column), column, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.log2(np.where(whole == 0, 1, whole & -whole)).astype(np.int64)
    place = np.where(whole == 0, 2000, exponent - 53 + lowest)
    return np.where(np.abs(column) < scale, place, 2000).astype(np.float64)
