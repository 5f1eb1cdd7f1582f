"""Confidence intervals: Wilson for frequencies, Fieller for means, both with an exact fallback where counts are small.

Both are for what the reports measure; they say nothing about people who held more keys than the padding length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["frequency_interval", "mean_interval", "normal_quantile"]

_FEW = 20


def normal_quantile(confidence: float, comparisons: int = 1) -> float:
    """The two-sided normal quantile, shared out over several comparisons (Bonferroni)."""
    return float(ndtri(1 - (1 - confidence) / 2 / comparisons))


def frequency_interval(channel: Channel, counts: Counts, *, confidence: float = 0.95, comparisons: int = 1) -> Floats:
    """Lower and upper ends of each key's frequency; [0, 1] without reports.

    Wilson's interval for the share of non-empty reports, mapped back. Where fewer than 20 reports are empty or non-empty, it is
    widened to the exact interval of Clopper and Pearson.
    """
    total = counts.total.astype(float)
    some = (counts.plus + counts.minus).astype(float)
    z2 = normal_quantile(confidence, comparisons) ** 2
    centre = (some + z2 / 2) / (total + z2)
    half = np.sqrt(z2 * (z2 / 4 + some * (1 - np.divide(some, total, out=np.zeros_like(some), where=total > 0)))) / (total + z2)
    low, high = centre - half, centre + half
    few = np.minimum(some, total - some) < _FEW
    exact_low, exact_high = _clopper_pearson(some[few], total[few], (1 - confidence) / 2 / comparisons)
    low[few], high[few] = np.minimum(low[few], exact_low), np.maximum(high[few], exact_high)
    ends = np.clip((np.column_stack([low, high]) - channel.b) / channel.gap, 0.0, 1.0)
    ends[counts.total == 0] = (0.0, 1.0)
    return ends


def _clopper_pearson(some: Floats, total: Floats, tail: float) -> tuple[Floats, Floats]:
    none = total - some
    low = np.where(some == 0, 0.0, betaincinv(np.maximum(some, 1), none + 1, tail))
    high = np.where(none == 0, 1.0, betaincinv(some + 1, np.maximum(none, 1), 1 - tail))
    return low, high


def mean_interval(channel: Channel, counts: Counts, *, confidence: float = 0.95, comparisons: int = 1) -> Floats:
    """Lower and upper ends of each key's mean; [-1, 1] where the reports say nothing.

    Fieller's set {m : (g - m f)^2 <= z^2 Var(g - m f)} within [-1, 1] where the frequency f is clearly above 0, the nearest end
    where it lies outside; all of [-1, 1] elsewhere. Where fewer than 20 reports say plus, or minus, or nothing, it is widened
    to what the exact intervals of both shares allow.
    """
    total = np.maximum(counts.total, 1).astype(float)
    some, difference = (counts.plus + counts.minus) / total, (counts.plus - counts.minus) / total
    f, g = (some - channel.b) / channel.gap, difference / channel.kappa
    var_f, var_g, cov = _plug_in(channel, counts, total)
    z2 = normal_quantile(confidence, comparisons) ** 2
    ends = _solve(f, f * f - z2 * var_f, g * f - z2 * cov, g * g - z2 * var_g)
    few = np.minimum(np.minimum(counts.plus, counts.minus), counts.total - counts.plus - counts.minus) < _FEW
    exact = _exact_means(channel, counts, few, (1 - confidence) / 2 / comparisons)
    ends[few, 0], ends[few, 1] = np.minimum(ends[few, 0], exact[:, 0]), np.maximum(ends[few, 1], exact[:, 1])
    ends[counts.total == 0] = (-1.0, 1.0)
    return ends


def _exact_means(channel: Channel, counts: Counts, few: NDArray[np.bool_], tail: float) -> Floats:
    """All means that the Clopper-Pearson intervals of the shares of plus and minus allow together, each with half of the error.

    The mean is a ratio of two linear functions of the shares, so its extremes over the rectangle are at corners, unless the
    denominator (the frequency) can vanish within it.
    """
    total = counts.total[few].astype(float)
    plus, minus = (_clopper_pearson(count[few].astype(float), total, tail / 2) for count in (counts.plus, counts.minus))
    x, y = (np.stack(column) for column in zip(*((a, b) for a in plus for b in minus), strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = (x - y) / channel.kappa / ((x + y - channel.b) / channel.gap)
    ends: Floats = np.clip(np.column_stack([corners.min(axis=0), corners.max(axis=0)]), -1.0, 1.0)
    ends[plus[0] + minus[0] <= channel.b] = (-1.0, 1.0)
    return ends


def _plug_in(channel: Channel, counts: Counts, total: Floats) -> tuple[Floats, Floats, Floats]:
    """Variances at the shares (c + 1/2) / (N + 3/2), which are never zero."""
    plus, minus = ((count + 0.5) / (total + 1.5) for count in (counts.plus, counts.minus))
    some, difference = plus + minus, plus - minus
    var_f = some * (1 - some) / (total * channel.gap**2)
    var_g = (some - difference**2) / (total * channel.kappa**2)
    cov = difference * (1 - some) / (total * channel.gap * channel.kappa)
    return var_f, var_g, cov


def _solve(frequency: Floats, square: Floats, half_linear: Floats, constant: Floats) -> Floats:
    """{m in [-1, 1] : square m^2 - 2 half_linear m + constant <= 0} where it is an interval around g / f with f > 0."""
    inner = half_linear**2 - square * constant
    # A square coefficient <= 0 says that the frequency may be 0: then any mean may be true. A frequency below 0 is no sign of a
    # mean either, however far below.
    good = (frequency > 0) & (square > 0) & (inner >= 0)
    ends = np.tile([-1.0, 1.0], (len(square), 1))
    root = np.sqrt(inner[good])
    for column, side in enumerate((-root, root)):
        ends[good, column] = np.clip((half_linear[good] + side) / square[good], -1.0, 1.0)
    return ends
