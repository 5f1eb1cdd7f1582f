"""Common centres and spreads: a study whose bounds are drawn in around what released sums say of each feature.

Features that crowd in a part of their bounds, or far off their middle, leave little to see beside the noise. A first release
for a small epsilon (a pilot) shows where they lie: its sums hold the mean and the mean square of every feature. A second study
with bounds around them is post-processing of the pilots, the same for all organisations; its releases are charged as ever.

Notation, in half ranges of the bounds: m and s2 are mean and variance of a feature in the pooled sums, e is the deviation of
the noise in a mean. A mean is drawn towards the middle as far as its noise asks for, m (1 - e**2 / m**2)+, and s2 is at least
2 e, so that noise alone never draws bounds in. The new bounds reach from m - 3 s to m + 3 s, within the old ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from sabun import checks
from sabun.errors import ParameterError
from sabun.privacy.amounts import AmountLike
from sabun.records import NumberColumn
from sabun.regression.contribution import read_all
from sabun.regression.study import STATISTICS, Study
from sabun.regression.sums import Sums

__all__ = ["narrowed"]

_REACH = 3.0
_LEAST = 0.05
"""A spread is never taken for smaller, in half ranges: beyond the new bounds everything counts as their ends."""


def narrowed(
    study: Study,
    pilots: Iterable[Any],
    *,
    epsilon: AmountLike,
    delta: AmountLike | None = None,
    method: str | None = None,
    name: str | None = None,
) -> Study:
    """A study with bounds of number features drawn in around the centres and spreads that pilot releases show.

    Guarantee: a function of released numbers; it costs nothing. What is released for the new study is charged beside the
    pilots: somebody is promised the sum of both.

    Args:
        study: The study that the pilots were made for; with an intercept, since nothing is centred without one.
        pilots: Releases of sums for it (paths or `Release` objects), made with a small epsilon.
        epsilon: Privacy of each release of the new study.
        delta: The same; the old study's when left out.
        method: The new study's method; the old study's when left out.
        name: What people call the new study; the old study's name when left out.

    Raises:
        ReleaseError: A pilot is damaged, forged or of another study.
        ParameterError: The study has no intercept, or its method releases no sums.

    Example:
        >>> from sabun.records import Column, Schema
        >>> from sabun.regression import PrivateRidge
        >>> study = Study(features=Schema.of_bounds({"age": (0, 100)}), target=Column.number("y", lower=0, upper=1), epsilon=5)
        >>> age = 70 + 5 * np.sin(np.arange(20_000))
        >>> pilot = PrivateRidge(study=study).fit(age[:, None], age / 100).release_
        >>> [column.lower > 40 for column in narrowed(study, [pilot], epsilon=1).features.columns]
        [True]
    """
    checks.require(study.fit_intercept, "True to be centred", fit_intercept=study.fit_intercept)
    if study.method not in STATISTICS:
        raise ParameterError(f"method of the pilots' study must be one that releases sums; got {study.method!r}.")
    found = [one.sums() for one in read_all(pilots, study)]
    middles, reaches = _seen(found)
    labels = study.design.names
    columns = []
    for column in study.features.columns:
        if isinstance(column, NumberColumn):
            place = labels.index(column.name)
            column = _drawn_in(column, float(middles[place]), float(reaches[place]))
        columns.append(column)
    return dataclasses.replace(
        study,
        features=dataclasses.replace(study.features, columns=tuple(columns)),
        epsilon=epsilon,
        delta=(study.delta or None) if delta is None else delta,
        method=study.method if method is None else method,
        name=study.name if name is None else name,
    )


def _seen(found: Sequence[Sums]) -> tuple[Any, Any]:
    """Middle and half the reach of each feature, in half ranges around the middle of its bounds."""
    gram, noise = np.sum([one.gram for one in found], axis=0), sum(one.noise.above for one in found)
    rows = sum(one.rows for one in found) / len(gram)  # the square of the constant in row units, before weights
    weight = float(np.clip(gram[-1, -1], rows / 100, rows))
    mean, square = gram[:-1, -1] / weight, np.diag(gram)[:-1] / weight
    error = math.sqrt(noise) / weight
    middle = np.clip(mean * np.maximum(1 - error**2 / np.maximum(mean**2, 1e-300), 0.0), -1, 1)
    spread = np.sqrt(np.clip(np.maximum(square - middle**2, 2 * error), _LEAST**2, 1.0))
    return middle, _REACH * spread


def _drawn_in(column: NumberColumn, middle: float, reach: float) -> NumberColumn:
    low, high = (math.log1p(end) if column.log1p else end for end in (column.lower, column.upper))
    centre, half = low + (high - low) / 2, (high - low) / 2
    ends = (centre + half * max(middle - reach, -1.0), centre + half * min(middle + reach, 1.0))
    lower, upper = (math.expm1(end) if column.log1p else end for end in ends)
    lower, upper = max(_short(lower), column.lower), min(_short(upper), column.upper)
    if column.dates:
        lower, upper = float(math.floor(lower)), float(math.ceil(upper))
    if not lower < upper:
        return column
    return dataclasses.replace(column, lower=lower, upper=upper, missing=min(max(column.missing, lower), upper))


def _short(end: float) -> float:
    """Three digits are enough for a bound that people compare."""
    return float(f"{end:.3g}")
