"""Confidence intervals: Wilson for frequencies, Fieller for means; exact ones where counts are small or many must hold at once.

Wilson and Fieller take the tails of a count to be normal, which is good at 95 %, and far off at the levels that thousands of
intervals need to hold together. All are for what the reports measure; they say nothing about people who held more keys than the
padding length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["frequency_interval", "mean_interval", "normal_quantile"]

_FEW = 20


def normal_quantile(confidence: float) -> float:
    """The two-sided normal quantile."""
    return float(ndtri(1 - (1 - confidence) / 2))


def frequency_interval(channel: Channel, counts: Counts, *, confidence: float = 0.95, comparisons: int = 1) -> Floats:
    """Lower and upper ends of each key's frequency; [0, 1] without reports.

    Wilson's interval for the share of non-empty reports, mapped back. Where fewer than 20 reports are empty or non-empty, it is
    widened to the exact interval of Clopper and Pearson; several comparisons take the exact one throughout.
    """
    total = counts.total.astype(float)
    some = (counts.plus + counts.minus).astype(float)
    tail = (1 - confidence) / 2 / comparisons
    if comparisons > 1:
        low, high = _clopper_pearson(some, total, tail)
    else:
        z2 = normal_quantile(confidence) ** 2
        share = np.divide(some, total, out=np.zeros_like(some), where=total > 0)
        centre, half = (some + z2 / 2) / (total + z2), np.sqrt(z2 * (z2 / 4 + some * (1 - share))) / (total + z2)
        low, high = centre - half, centre + half
        few = np.minimum(some, total - some) < _FEW
        exact_low, exact_high = _clopper_pearson(some[few], total[few], tail)
        low[few], high[few] = np.minimum(low[few], exact_low), np.maximum(high[few], exact_high)
    ends = np.clip((np.column_stack([low, high]) - channel.b) / channel.gap, 0.0, 1.0)
    ends[counts.total == 0] = (0.0, 1.0)
    return ends


def _clopper_pearson(some: Floats, total: Floats, tail: float) -> tuple[Floats, Floats]:
    """The exact interval of a share, with at most `tail` outside either end."""
    none = total - some
    low = np.where(some == 0, 0.0, betaincinv(np.maximum(some, 1), none + 1, tail))
    high = np.where(none == 0, 1.0, 1 - betaincinv(np.maximum(none, 1), some + 1, tail))
    return low, high


def mean_interval(channel: Channel, counts: Counts, *, confidence: float = 0.95, comparisons: int = 1) -> Floats:
    """Lower and upper ends of each key's mean; [-1, 1] where the reports say nothing.

    Fieller's set {m : (g - m f)^2 <= z^2 Var(g - m f)} within [-1, 1] where the frequency f is clearly above 0, the nearest end
    where it lies outside; all of [-1, 1] elsewhere. Where fewer than 20 reports say plus, or minus, or nothing, it is widened
    to what exact intervals allow; several comparisons take those throughout.
    """
    tail = (1 - confidence) / 2 / comparisons
    if comparisons > 1:
        return _exact_means(channel, counts, np.ones(len(counts.total), dtype=bool), tail)
    total = np.maximum(counts.total, 1).astype(float)
    some, difference = (counts.plus + counts.minus) / total, (counts.plus - counts.minus) / total
    f, g = (some - channel.b) / channel.gap, difference / channel.kappa
    var_f, var_g, cov = _plug_in(channel, counts, total)
    z2 = normal_quantile(confidence) ** 2
    ends = _solve(f, f * f - z2 * var_f, g * f - z2 * cov, g * g - z2 * var_g)
    few = np.minimum(np.minimum(counts.plus, counts.minus), counts.total - counts.plus - counts.minus) < _FEW
    exact = _exact_means(channel, counts, few, tail)
    ends[few, 0], ends[few, 1] = np.minimum(ends[few, 0], exact[:, 0]), np.maximum(ends[few, 1], exact[:, 1])
    ends[counts.total == 0] = (-1.0, 1.0)
    return ends


def _exact_means(channel: Channel, counts: Counts, few: NDArray[np.bool_], tail: float) -> Floats:
    """All means that two Clopper-Pearson intervals allow together, each with half of the error; exact for every count.

    One is of s, the share of non-empty reports; the other of the share of plus among those, a binomial given their number. With
    d the difference of the shares of plus and minus among them, the mean is d / kappa times s gap / (s - b): monotone in both,
    so its extremes are at corners, unless the frequency (s - b) / gap can vanish.
    """
    plus, some = counts.plus[few].astype(float), (counts.plus + counts.minus)[few].astype(float)
    s = _clopper_pearson(some, counts.total[few].astype(float), tail / 2)
    d = [2 * share - 1 for share in _clopper_pearson(plus, some, tail / 2)]
    with np.errstate(divide="ignore", invalid="ignore"):
        corners = np.stack([x / channel.kappa * y / ((y - channel.b) / channel.gap) for x in d for y in s])
    ends: Floats = np.clip(np.column_stack([corners.min(axis=0), corners.max(axis=0)]), -1.0, 1.0)
    ends[(s[0] <= channel.b) | (some == 0)] = (-1.0, 1.0)
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
