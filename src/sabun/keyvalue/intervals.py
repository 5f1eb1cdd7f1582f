"""Confidence intervals: Wilson for frequencies, score for means; exact ones where counts are small or many must hold at once.

Wilson and score intervals take the tails of a count to be normal, which is good at 95 %, and far off at the levels that
thousands of intervals need to hold together. All are for what the reports measure; they say nothing about people who held more
keys than the padding length.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri

from sabun.keyvalue.channel import Channel, Counts, Floats
from sabun.keyvalue.closed_form import falling_root

__all__ = ["frequency_interval", "mean_interval", "normal_quantile"]

_FEW = 20
_STEPS = 9


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

    The score interval {m : (g - m f)^2 <= z^2 Var(g - m f)}, the variance taken where the mean is m and the frequency fits the
    counts best: Wilson's idea for a ratio. It is sought within [-1, 1] where the frequency f is clearly above 0 (the nearest
    end where the unbiased mean lies outside and no m is accepted); all of [-1, 1] elsewhere. Where fewer than 20 reports say
    plus, or minus, or nothing, it is widened to what exact intervals allow; several comparisons take those throughout.
    """
    tail = (1 - confidence) / 2 / comparisons
    if comparisons > 1:
        return _exact_means(channel, counts, np.ones(len(counts.total), dtype=bool), tail)
    ends = np.tile([-1.0, 1.0], (len(counts.total), 1))
    z = normal_quantile(confidence)
    known = _stands_out(channel, counts, z)
    seen = np.stack([counts.plus, counts.minus, counts.total - counts.plus - counts.minus]).astype(float)
    ends[known] = _score_ends(channel, seen[:, known], z)
    few = seen.min(axis=0) < _FEW
    exact = _exact_means(channel, counts, few, tail)
    ends[few, 0], ends[few, 1] = np.minimum(ends[few, 0], exact[:, 0]), np.maximum(ends[few, 1], exact[:, 1])
    ends[counts.total == 0] = (-1.0, 1.0)
    return ends


def _stands_out(channel: Channel, counts: Counts, z: float) -> NDArray[np.bool_]:
    """Whether a frequency is clearly above 0: where it is not, any mean may be true, however far below 0 it lies."""
    total = np.maximum(counts.total, 1).astype(float)
    f = ((counts.plus + counts.minus) / total - channel.b) / channel.gap
    some = (counts.plus + counts.minus + 1) / (total + 1.5)  # plus and minus half a report each: no share is 0
    return np.asarray((f > 0) & (f * f > z * z * some * np.maximum(1 - some, 0.0) / (total * channel.gap**2)))


def _score_ends(channel: Channel, seen: Floats, z: float) -> Floats:
    """Where g - m f leaves its noise on either side of g / f."""
    some, difference = (seen[0] + seen[1]) / seen.sum(axis=0), (seen[0] - seen[1]) / seen.sum(axis=0)
    centre = np.clip(difference / channel.kappa / ((some - channel.b) / channel.gap), -1.0, 1.0)

    def excess(mean: Floats) -> Floats:
        return _excess(channel, seen, mean, z)

    return np.column_stack([_crossing(excess, np.full_like(centre, end), centre) for end in (-1.0, 1.0)])


def _crossing(excess: Callable[[Floats], Floats], end: Floats, centre: Floats) -> Floats:
    """The last mean that is rejected between an end and the centre; the end if it is accepted, the centre if it is not.

    Secants that keep a rejected and an accepted mean; one that stays twice counts half, so that both move (Illinois).
    """
    out, within, beyond, below = end, centre, excess(end), excess(centre)
    accepted, rejected = beyond <= 0, below > 0
    last = np.zeros(len(centre), dtype=bool)
    for _ in range(_STEPS):
        with np.errstate(invalid="ignore", divide="ignore"):
            tried = np.clip(np.nan_to_num((out * below - within * beyond) / (below - beyond)), -1.0, 1.0)
        value = excess(tried)
        outside = value > 0
        weight = np.where(outside == last, 0.5, 1.0)
        out, beyond = np.where(outside, tried, out), np.where(outside, value, beyond * weight)
        within, below = np.where(outside, within, tried), np.where(outside, below * weight, value)
        last = outside
    return np.where(accepted, end, np.where(rejected, centre, out))


def _excess(channel: Channel, seen: Floats, mean: Floats, z: float) -> Floats:
    """By how much |g - m f| exceeds z standard deviations, for one m per key.

    The variance is that of the frequency t which fits the counts best at this mean. There a plus has probability
    (b + t rise) / 2, a minus (b + t fall) / 2, nothing 1 - b - t gap; the score in t, multiplied out, is a quadratic.
    """
    plus, minus, none = seen
    total, b, gap = seen.sum(axis=0), channel.b, channel.gap
    rise, fall = gap + channel.kappa * mean, gap - channel.kappa * mean
    both, weighed = rise * fall, plus * rise + minus * fall
    t = falling_root(
        -gap * both * total,
        (1 - b) * both * (plus + minus) - gap * b * (weighed + 2 * gap * none),
        b * ((1 - b) * weighed - gap * b * none),
    )
    share_plus, share_minus = (b + t * rise) / 2, (b + t * fall) / 2
    # g - m f is a sum over reports: what a plus adds, what a minus adds, nothing for the rest; and a constant.
    up, down = 1 / channel.kappa - mean / gap, -1 / channel.kappa - mean / gap
    distance = (plus * up + minus * down) / total + mean * b / gap
    variance = up**2 * share_plus + down**2 * share_minus - (up * share_plus + down * share_minus) ** 2
    return np.asarray(np.abs(distance) - z * np.sqrt(np.maximum(variance, 0.0) / total))


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
