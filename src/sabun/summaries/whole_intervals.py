"""Every interval of `sabun.summaries` under noise that is chosen: does it hold whatever its level allows, and little more?

How far noise reaches is worked out by hand from the density of its law. Each number that is drawn is then moved as far, in
every combination of signs: the exact answer must lie within. A little farther, and the end on that side must miss it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sabun.asking.evidence import Bench, Checklist, Draw, each, zeros
from sabun.records import Column, Schema
from sabun.summaries import Count, Histogram, Mean, Sum, Variance

__all__ = ["CHECKS"]

CHECKS = Checklist()

MISS = 0.1
ROWS = 40
"""In each of three groups; half of the cells one above the lower bound, half one below the upper: their mean is the middle."""

Pattern = tuple[tuple[int, ...], bool]
"""Noise on the numbers of one group, and whether the interval must hold the exact answer then."""


def _one(draw: Draw, miss: float) -> float:
    """How far one draw reaches, but for that share."""
    if draw.law == "discrete_laplace":
        return -draw.parameter * math.log(miss)
    return math.sqrt(draw.parameter) * NormalDist().inv_cdf(1 - miss / 2)


def _half_of_two(draw: Draw, miss: float) -> float:
    """How far half of the difference of two draws reaches, but for that share."""
    if draw.law == "discrete_gaussian":
        return _one(draw, miss) / math.sqrt(2)
    scale, low, high = draw.parameter / 2, 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 + middle / 2) * math.exp(-middle) > miss else (low, middle)
    return scale * high


def _patterns(draw: Draw, drawn: str) -> Iterator[Pattern]:
    """Noise that the level allows, then noise that it does not."""
    if drawn == "one":
        reach = _one(draw, MISS)
        for sign in (-1, 1):
            yield (sign * math.floor(reach),), True
            yield (sign * (math.ceil(1.02 * reach) + 2),), False
    elif drawn == "sides":
        reach = _half_of_two(draw, MISS)
        for sign in (-1, 1):
            yield (sign * math.floor(reach), -sign * math.floor(reach)), True
            yield (sign * (math.ceil(1.02 * reach) + 3), -sign * (math.ceil(1.02 * reach) + 3)), False
    else:
        count = 2 if drawn == "two" else 3
        reach = math.floor(_one(draw, 1 - (1 - MISS) ** (1 / count)))
        for signs in itertools.product((-1, 1), repeat=count):
            yield tuple(sign * reach for sign in signs), True


def _halves(cells: NDArray[np.float64]) -> list[int]:
    return [len(cells) // 2, len(cells) - len(cells) // 2]


ASKED = [
    (Count, lambda cells: len(cells), "one", "one"),
    (Histogram, _halves, "one", "one"),
    (Sum, np.sum, "one", "one"),
    (Mean, np.mean, "one", "sides"),
    (Variance, np.var, "two", "three"),
]
"""With the exact answer, and the numbers that are drawn for each where the number of rows is public and where it is not."""


GIVEN = [((-2, 6), None), ((-2, 6), 1e-6), ((3, 9), None), ((-9, -3), None)]
"""Bounds and delta."""


@CHECKS("discrete Laplace noise", "discrete Gaussian noise", cases=each("asked exact known private", ASKED))
def _an_interval_holds_whatever_noise_its_level_allows_and_little_more(
    bench: Bench, asked: Any, exact: Callable[[Any], Any], known: str, private: str
) -> None:
    for ((low, high), delta), relation in itertools.product(GIVEN, ("replace-one", "add-remove")):
        schema = Schema(columns=(Column.number("x", bounds=(low, high)), Column.category("g", ["a", "b", "c"])))
        cells = np.tile([low + 1.0, high - 1.0], ROWS // 2)
        table = np.array([[cell, label] for label in "abc" for cell in cells], dtype=object)
        terms: dict[str, Any] = {"epsilon": 2, "schema": schema, "relation": relation, "delta": delta, "confidence": 1 - MISS}
        terms |= {} if asked is Count else {"column": "x"}
        terms |= {"bins": [low, (low + high) / 2, high]} if asked is Histogram else {}
        ways: list[tuple[dict[str, Any], dict[str, Any]]] = [
            ({"by": "g"}, dict.fromkeys("abc", exact(cells))),
            ({"where": {"g": ["a", "c"]}}, {"all": exact(np.tile(cells, 2))}),
            ({}, {"all": exact(np.tile(cells, 3))}),
        ]
        for how, truths in ways:
            counted = not how and relation == "replace-one"
            if not (asked is Count and counted):  # that number is public
                _hold(bench, asked(**terms, **how), table, truths, known if counted else private)


def _hold(bench: Bench, model: Any, table: Any, truths: Mapping[str, Any], drawn: str) -> None:
    heard = bench.heard
    read, heard.instead = model.read(table), zeros
    heard.draws.clear()
    model.fit(read)
    [draw] = heard.draws
    for noise, holds in _patterns(draw, drawn):
        moved = np.array(noise * (draw.count // len(noise)), dtype=object)
        heard.instead = lambda _, moved=moved: moved
        intervals = model.fit(read).release_["intervals"]
        for name, truth in truths.items():
            pairs = np.reshape(intervals[name], (-1, 2))
            inside = (pairs[:, 0] - 1e-9 <= truth) & (truth <= pairs[:, 1] + 1e-9)
            bench.must(inside.all() if holds else not inside.any(), f"noise {noise}, interval {pairs.tolist()}, {truth}")
