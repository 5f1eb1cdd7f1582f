"""What a mechanism gave, run after run, and the events in it that may tell two tables apart.

A result is a list of numbers or an exception; sizes may differ from run to run. Whole numbers are kept exact however large, for
a float would round away whatever their last digits tell. Every number that is made of a result here is defined for whatever
comes in later runs: an event is chosen on some runs and counted on others.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Rational, Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sabun.errors import ParameterError

__all__ = ["Event", "Feature", "Outcomes", "features", "results"]

_Numbers = NDArray[np.float64]
_EXACT = 2**53
"""Up to here a float holds every whole number."""
_RESIDUES = (2, 3, 5, 7, 16, 10, 256)
_MOST_PAIRS = 12
"""Up to so many coordinates, all pairs of them are compared."""
_MOST_ALONE = 1000


@final
@dataclass(frozen=True)
class Outcomes:
    """The results of many runs.

    Args:
        errors: What each run raised, in words; empty where it gave numbers.
        sizes: How many numbers each run gave.
        table: A row of numbers for each run, filled up with NaN.
        large: For coordinates with whole numbers beyond what a float holds: the numbers themselves.
    """

    errors: tuple[str, ...]
    sizes: NDArray[np.int64]
    table: _Numbers
    large: dict[int, list[Any]]

    def __len__(self) -> int:
        return len(self.errors)

    def column(self, place: int) -> _Numbers:
        """One coordinate; NaN where there is none."""
        return self.table[:, place] if place < self.table.shape[1] else np.full(len(self), np.nan)

    def whole(self, place: int) -> list[Any] | None:
        """The same as exact numbers, where that matters."""
        return self.large.get(place)

    @property
    def vary(self) -> bool:
        """Whether any two runs differ."""
        first = [len(set(self.errors)) > 1, np.ptp(self.sizes) > 0]
        same = (self.table == self.table[:1]) | (np.isnan(self.table) & np.isnan(self.table[:1]))
        exact = any(len(set(values)) > 1 for values in self.large.values())
        return any(first) or not same.all() or exact


@final
@dataclass(frozen=True, kw_only=True)
class Event:
    """Something about a result that tells two tables apart.

    Args:
        words: What it is.
        feature: A number from each result.
        holds: For which of these numbers it happens.
    """

    words: str
    feature: Callable[[Outcomes], _Numbers]
    holds: Callable[[_Numbers], NDArray[np.bool_]]

    def times(self, seen: Outcomes) -> int:
        """How often it happens."""
        return int(self.holds(self.feature(seen)).sum())


@final
@dataclass(frozen=True, kw_only=True)
class Feature:
    """A number from each result; `categories` where only its very values tell, not which is larger."""

    words: str
    number: Callable[[Outcomes], _Numbers]
    categories: bool = False


def results(function: Callable[[Any], Any], table: Callable[[], Any], runs: int) -> Outcomes:
    """Runs a mechanism so often; what it raises is a result like any other."""
    errors: list[str] = []
    drawn: list[list[Any]] = []
    for _ in range(runs):
        try:
            given = function(table())
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
            drawn.append([])
        else:
            errors.append("")
            drawn.append(_flat(given))
    sizes = np.array([len(one) for one in drawn], dtype=np.int64)
    width = int(sizes.max(initial=0))
    large: dict[int, list[Any]] = {}
    for place in range(width):
        cells = [one[place] if place < len(one) else math.nan for one in drawn]
        if any(isinstance(cell, int) and abs(cell) >= _EXACT for cell in cells):
            large[place] = cells
    rows = (
        [[_as_float(cell) for cell in one] + [math.nan] * (width - len(one)) for one in drawn]
        if large
        else [one if len(one) == width else one + [math.nan] * (width - len(one)) for one in drawn]
    )
    return Outcomes(tuple(errors), sizes, np.array(rows, dtype=np.float64).reshape(len(drawn), width), large)


def _flat(given: Any) -> list[Any]:
    """The numbers of one result, in order; whole ones stay whole."""
    if isinstance(given, np.ndarray | np.generic):
        if given.dtype.kind not in "biufO":
            raise ParameterError(_NO_NUMBERS)
        given = given.ravel().tolist() if isinstance(given, np.ndarray) else given.item()
    if isinstance(given, list | tuple):
        if all(type(one) in (int, float) for one in given):
            return list(given)
        return [cell for one in given for cell in _flat(one)]
    if type(given) in (int, float):
        return [given]
    if isinstance(given, bool):
        return [int(given)]
    if isinstance(given, Rational) and given.denominator == 1:
        return [int(given.numerator)]
    if isinstance(given, Real):
        return [float(given)]
    raise ParameterError(_NO_NUMBERS)


_NO_NUMBERS = "function must give a number or an array of numbers. Encode what it gives as numbers."


def _as_float(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def features(sides: Sequence[Outcomes]) -> Iterator[Feature]:
    """Numbers from a result that may tell two tables apart, as far as these runs show which ones are worth a look."""
    kinds = sorted({error for side in sides for error in side.errors if error})
    if kinds:
        yield Feature(words="that it raises", number=_raises, categories=True)
        for kind in sorted({error.partition(":")[0] for error in kinds}):
            yield Feature(words=f"that it raises {kind}", number=partial(_raises, kind=kind), categories=True)
        for words in kinds[:_MOST_PAIRS]:
            yield Feature(words="that it raises certain words", number=partial(_says, words=words), categories=True)
    width = max(side.table.shape[1] for side in sides)
    if any(np.ptp(side.sizes) for side in sides) or len({int(size) for side in sides for size in side.sizes[:1]}) > 1:
        yield Feature(words="the number of results", number=lambda seen: seen.sizes.astype(np.float64))
    for place in range(min(width, _MOST_ALONE)):
        yield from _of_one(sides, place, "the result" if width == 1 else f"number {place}")
    if width > 1:
        yield from _of_several(sides, width)


def _of_one(sides: Sequence[Outcomes], place: int, name: str) -> Iterator[Feature]:
    anchor = _anchor(sides, place)
    yield Feature(words=name, number=lambda seen: _beside(seen, place, anchor))
    columns = [side.column(place) for side in sides]
    if any(np.isnan(column).any() for column in columns):
        yield Feature(
            words=f"that {name} is no number", number=lambda seen: np.isnan(seen.column(place)).astype(float), categories=True
        )
    if all(_whole(column).all() for column in columns):
        for residue in _RESIDUES:
            yield Feature(
                words=f"{name} modulo {residue}",
                number=partial(_residue, place=place, modulus=residue),
                categories=True,
            )
    else:
        for scale in (0.5, 1.0, np.inf):
            yield Feature(
                words=f"the place of the last binary digit of {name}"
                + (f", if it is below {scale:g}," if scale < np.inf else ""),
                number=partial(_last_digit_of, place=place, scale=scale),
            )


def _of_several(sides: Sequence[Outcomes], width: int) -> Iterator[Feature]:
    """Coordinates together: the same noise on two of them shows in neither alone."""
    if width <= _MOST_PAIRS:
        for one, other in itertools.combinations(range(width), 2):
            for sign, word in ((-1, "minus"), (1, "plus")):
                yield Feature(
                    words=f"number {one} {word} number {other}",
                    number=partial(_together, one=one, other=other, sign=sign),
                )
    first, second = (_finite(side, width) for side in sides)
    both = np.concatenate([first - first.mean(axis=0), second - second.mean(axis=0)])
    spread = both.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    moved = (second.mean(axis=0) - first.mean(axis=0)) / spread
    plain = moved / spread
    yield Feature(words="the sum along the way between the means", number=lambda seen: _finite(seen, width) @ plain)
    if width <= _MOST_ALONE // 10:
        # Fisher's direction: where noise is shared, some sum of coordinates has hardly any.
        matrix = (both / spread).T @ (both / spread) / len(both)
        sharp = np.linalg.solve(matrix + 1e-9 * np.eye(width), moved) / spread
        yield Feature(words="the sum that tells the means apart best", number=lambda seen: _finite(seen, width) @ sharp)


def _raises(seen: Outcomes, kind: str = "") -> _Numbers:
    return np.array([float(bool(error) and (not kind or error.partition(":")[0] == kind)) for error in seen.errors])


def _says(seen: Outcomes, words: str) -> _Numbers:
    return np.array([float(error == words) for error in seen.errors])


def _anchor(sides: Iterable[Outcomes], place: int) -> int:
    """A whole number near the results, from which large ones are counted."""
    cells = [cell for side in sides for cell in side.whole(place) or () if isinstance(cell, int)]
    return sorted(cells)[len(cells) // 2] if cells else 0


def _beside(seen: Outcomes, place: int, anchor: int) -> _Numbers:
    exact = seen.whole(place)
    if not anchor and exact is None:
        return seen.column(place)
    cells = exact if exact is not None else seen.column(place).tolist()
    return np.array([_as_float(cell - anchor) if isinstance(cell, int) else _less(cell, anchor) for cell in cells])


def _less(cell: float, anchor: int) -> float:
    return _as_float(int(cell) - anchor) + cell % 1 if math.isfinite(cell) else cell


def _residue(seen: Outcomes, place: int, modulus: int) -> _Numbers:
    exact = seen.whole(place)
    if exact is not None:
        return np.array([float(cell % modulus) if isinstance(cell, int) or math.isfinite(cell) else -1.0 for cell in exact])
    column = seen.column(place)
    return np.where(np.isfinite(column), np.mod(np.where(np.isfinite(column), column, 0.0), modulus), -1.0)


def _whole(column: _Numbers) -> NDArray[np.bool_]:
    whole: NDArray[np.bool_] = ~np.isfinite(column) | (np.floor(np.where(np.isfinite(column), column, 0.0)) == column)
    return whole


def _together(seen: Outcomes, one: int, other: int, sign: int) -> _Numbers:
    exact = seen.whole(one), seen.whole(other)
    if exact == (None, None):
        with np.errstate(invalid="ignore", over="ignore"):
            return seen.column(one) + sign * seen.column(other)
    cells = [
        column if column is not None else seen.column(place).tolist() for column, place in zip(exact, (one, other), strict=True)
    ]
    return np.array([_as_float(first + sign * second) for first, second in zip(*cells, strict=True)])


def _finite(seen: Outcomes, width: int) -> _Numbers:
    """Every coordinate, large whole numbers and infinities cut to what can be multiplied."""
    table = np.column_stack([seen.column(place) for place in range(width)])
    return np.clip(np.where(np.isnan(table), 0.0, table), -1e100, 1e100)


def _last_digit_of(seen: Outcomes, place: int, scale: float) -> _Numbers:
    return _last_digit(seen.column(place), scale)


def _last_digit(column: _Numbers, scale: float) -> _Numbers:
    """The exponent of the lowest binary digit that is set; as far up as can be where the number is not below the scale.

    A sum with 1 has no digits below 2^-53: a result that has some cannot come from there (Mironov 2012).
    """
    mantissa, exponent = np.frexp(np.where(np.isfinite(column), column, 0.0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.log2(np.where(whole == 0, 1, whole & -whole)).astype(np.int64)
    place = np.where(whole == 0, 2000, exponent - 53 + lowest)
    return np.where(np.abs(column) < scale, place, 2000).astype(np.float64)
