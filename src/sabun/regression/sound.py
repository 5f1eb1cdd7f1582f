"""Intervals that hold whatever tails residuals have: from the first sums of staged releases alone.

Residuals are cut before their sums get noise, and what was cut is not known. Whoever wants to know sees the first sums, from
which nothing was cut, through their noise; nobody who is held to the same promise sees much better, for it hides what a few
rows do, whatever they hold. Let the c of the residuals be off by a bias b and the difference of the two, d = b + noise, be
all that tells it: an interval that holds b in 95 % of cases for every b has, even where b is 0, at least 0.85 of the length
of the plain one around d on average (Pratt 1961). So the estimate may take the residuals where nothing speaks against it, and
is mostly better for it; an interval of their precision would rest on the assumption that tails cancel out. `tails="light"`
makes it. Otherwise an interval lies around what the first sums say, and reaches to the estimate if that is outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from sabun.regression.design import Floats
from sabun.regression.intervals import Doubt
from sabun.regression.pooling import pooled, pull_of
from sabun.regression.saved import doubt_of, doubt_record, spread_of
from sabun.regression.study import Study
from sabun.regression.sums import Home, Sums, uncut

__all__ = ["TAILS", "Measured", "Sound", "ends_of", "sound_from", "sound_of"]

Measured: TypeAlias = Callable[..., Floats]
"""`half_lengths`, or the same of new records."""

TAILS = ("any", "light")
"""What an interval may assume about residuals beyond where they are cut: nothing, or that they cancel out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Sound:
    """What an interval is made of: coefficients in row units, their covariance, their error, what is not known about it."""

    beta: Floats
    covariance: Floats
    error: Floats
    doubt: Doubt

    def to_dict(self) -> dict[str, Any]:
        """For a model file; only of a model without home data."""
        spreads = {"covariance": self.covariance.tolist(), "error": self.error.tolist()}
        return {"beta": self.beta.tolist(), **spreads, "doubt": doubt_record(self.doubt)}


def sound_of(study: Study, releases: Sequence[Sums], home: Home | None) -> Sound:
    """Of releases, or of releases with the home organisation's data."""
    found = pooled(study, [uncut(one) for one in releases], home)
    return Sound(beta=found.beta, covariance=found.covariance, error=found.error, doubt=found.doubt)


def ends_of(
    study: Study, rows: Floats, own: Sound, sound: Sound | None, moved: Floats | None, confidence: float, measure: Measured
) -> Floats:
    """Intervals of rows times (coefficients, intercept) in original units: low, high.

    Args:
        study: The terms.
        rows: What is asked.
        own: The estimate with its error.
        sound: What the first sums say; None to take the estimate's own error for the truth.
        moved: By how much the estimate was moved towards a constant.
        confidence: How likely each interval holds the truth.
        measure: What gives half the length of each.
    """
    (matrix, shift), half = study.design.original_units, study.design.target_range[1]
    units, used = rows @ matrix / half, own if sound is None else sound
    reach = half * measure(units, used.error, used.doubt, pull_of(study, used.covariance, units), confidence)
    middle, around = (rows @ (matrix @ one.beta + shift) for one in (own, used))
    if sound is None and moved is not None:
        # Around a model that was moved towards a constant, as long as it takes to hold the interval around what it was before.
        reach = reach + half * np.abs(units @ moved)
    return np.column_stack([np.minimum(middle, around - reach), np.maximum(middle, around + reach)])


def sound_from(given: Mapping[str, Any] | None, width: int) -> Sound | None:
    """From a model file; earlier versions wrote none.

    Raises:
        ValueError: These are not the numbers of a model; so do LookupError and TypeError.
    """
    if given is None:
        return None
    beta = np.array(given["beta"], dtype=np.float64).reshape(width)
    covariance, error = (spread_of(given[name], width) for name in ("covariance", "error"))
    doubt = doubt_of(given["doubt"], width)
    if covariance is None or error is None or doubt is None or not np.isfinite(beta).all():
        raise ValueError
    return Sound(beta=beta, covariance=covariance, error=error, doubt=doubt)
