"""A mechanism that is not ours, from outside: how much privacy does it certainly lose?

A pair of neighbours is chosen and an event found on some runs; how likely the event is for either of them is then bounded on
fresh runs (Clopper, Pearson 1934). However many events were searched, one alone is tested, on runs that did not choose it: a
sound mechanism is refuted no more often than the confidence says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from sabun import checks
from sabun.audit.outcomes import Event, Feature, Outcomes, features, results
from sabun.errors import ParameterError

__all__ = ["Event", "Verdict", "epsilon_lower_bound", "mechanism", "replacements"]

_FIRST = 400
"""Runs on each side to see which neighbours are worth more."""
_CUTS = 64
_ATOMS = 48
"""So many single values of a feature are tried, those whose counts differ most."""
_SEARCHING = 0.9999
"""The confidence while searching: higher, for among very many events some look good by chance."""


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
    checks.whole(minimum=1, runs=runs)
    checks.whole(minimum=0, likely=likely, unlikely=unlikely)
    checks.require(likely <= runs, f"at most the number of runs, {runs}", likely=likely)
    checks.require(unlikely <= runs, f"at most the number of runs, {runs}", unlikely=unlikely)
    checks.probability(delta=delta)
    _require_confidence(confidence)
    return float(_bounds(np.array([likely]), np.array([unlikely]), (runs, runs), float(delta), confidence)[0])


def _require_confidence(confidence: Any) -> None:
    good = checks.is_number(confidence) and 0.5 <= confidence < 1
    checks.require(good, "from 0.5 to below 1", confidence=confidence)


def _bounds(
    likely: NDArray[np.int64], unlikely: NDArray[np.int64], runs: tuple[int, int], delta: float, confidence: float
) -> NDArray[np.float64]:
    """The bound for each of many events."""
    alpha = (1 - confidence) / 2
    low = np.where(likely > 0, special.betaincinv(np.maximum(likely, 1), runs[0] - likely + 1, alpha), 0.0)
    high = np.where(unlikely < runs[1], special.betaincinv(unlikely + 1, np.maximum(runs[1] - unlikely, 1), 1 - alpha), 1.0)
    return np.maximum(0.0, np.log(np.maximum(low - delta, 1e-300) / high))


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
        function: Runs the mechanism once on a table; gives a number or an array of numbers. What it raises, and how many
            numbers it gives, are results too: whoever receives them sees that.
        neighbours: Pairs of tables that differ in one person; see `replacements`. All are tried a little, the worst in earnest.
            A table that is an iterator is read once, and every run gets a fresh one over the same rows.
        claim: The epsilon that is claimed.
        delta: The delta that is claimed.
        runs: How often it is run in the end on each table of the worst pair; half of them find the event.
        confidence: How often the lower bound is to be right.
        progress: Called with the share done and what is being done.

    Returns:
        A lower bound, with the event behind it.

    Raises:
        ParameterError: No neighbours, results that are no numbers, or a function that only ever raises.

    Example:
        >>> def one_in_ten(table):
        ...     return sum(table) if np.random.default_rng().random() < 0.9 else 1 - sum(table)
        >>> mechanism(one_in_ten, [([0], [1])], 1.0, runs=2000).refuted
        True
    """
    checks.positive(claim=claim)
    checks.probability(delta=delta)
    checks.whole(minimum=100, runs=runs)
    _require_confidence(confidence)
    began, step = time.perf_counter(), progress or (lambda _share, _doing: None)
    pairs = [tuple(pair) for pair in neighbours]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ParameterError("neighbours must be pairs of tables, at least one. See sabun.audit.black_box.replacements.")
    kept = [tuple(_again(table) for table in pair) for pair in pairs]
    run = partial(results, function)
    glances = [_scored([run(table, _FIRST) for table in pair], delta)[0] for pair in kept] if len(kept) > 1 else [0.0]
    place, half = glances.index(max(glances)), runs // 2
    step(0.1, "looking for an event")
    looked = [run(table, half) for table in kept[place]]
    _, event, swapped = _scored(looked, delta)
    step(0.5, event.words)
    fresh = [run(table, half) for table in kept[place]]
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
        varies=any(side.vary for side in (*looked, *fresh)),
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


def _again(table: Any) -> Callable[[], Any]:
    """The table for each run: an iterator would be empty from the second on."""
    if not isinstance(table, Iterator):
        return lambda: table
    rows = list(table)
    return lambda: iter(rows)


def _scored(sides: Sequence[Outcomes], delta: float) -> tuple[float, Event, bool]:
    """The event with the largest bound on these runs, with its bound and whether it is likelier on the second side."""
    if all(all(side.errors) for side in sides) and len({error for side in sides for error in side.errors}) == 1:
        raise ParameterError(f"function must give a result; it raised {sides[0].errors[0]} every time. Try it on one table.")
    best: tuple[float, Event, bool] | None = None
    for feature in features(sides):
        for score, event, swapped in _events(feature, sides, float(delta)):
            if best is None or score > best[0]:
                best = score, event, swapped
    if best is None:
        raise ParameterError("function must give at least one number; it gave none.")
    return best


def _events(feature: Feature, sides: Sequence[Outcomes], delta: float) -> Iterator[tuple[float, Event, bool]]:
    """The best event of one feature among thresholds, and among single values; either way round."""
    one, other = (feature.number(side) for side in sides)
    runs = len(one), len(other)
    both = np.concatenate([one, other])
    finite = both[np.isfinite(both)]
    if not feature.categories and finite.size:
        cuts = np.unique(np.quantile(finite, np.linspace(0, 1, _CUTS), method="lower"))
        cuts = np.append(np.nextafter(cuts[0], -np.inf), cuts)
        above = [np.array([np.count_nonzero(side > cut) for cut in cuts]) for side in (one, other)]
        for counts, words, side in (
            (above, "above", np.greater),
            ([runs[0] - above[0], runs[1] - above[1]], "not above", lambda numbers, cut: ~(numbers > cut)),
        ):
            yield from _best(feature, counts, runs, delta, cuts, words, side)
    values, which = np.unique(both[~np.isnan(both)], return_inverse=True)
    if values.size:
        first = int((~np.isnan(one)).sum())
        counts = [np.bincount(part, minlength=len(values)) for part in (which[:first], which[first:])]
        tell = np.argsort(-np.abs(counts[0] - counts[1]) / np.sqrt(counts[0] + counts[1]))[:_ATOMS]
        yield from _best(feature, [each[tell] for each in counts], runs, delta, values[tell], "exactly", np.equal)


def _best(
    feature: Feature,
    counts: Sequence[NDArray[np.int64]],
    runs: tuple[int, int],
    delta: float,
    marks: NDArray[np.float64],
    words: str,
    holds: Callable[[Any, float], Any],
) -> Iterator[tuple[float, Event, bool]]:
    """The mark with the largest bound, for each side as the likelier one."""
    for swapped in (False, True):
        likely, unlikely = counts[::-1] if swapped else counts
        scores = _bounds(likely, unlikely, runs[::-1] if swapped else runs, delta, _SEARCHING)
        mark = float(marks[int(scores.argmax())])
        event = Event(
            words=f"{feature.words} {words} {mark:.6g}",
            feature=feature.number,
            holds=partial(_compared, holds, mark),
        )
        yield float(scores.max()), event, swapped


def _compared(holds: Callable[[Any, float], Any], mark: float, numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(holds(numbers, mark), dtype=np.bool_)
