"""Estimators that solve for expected counts: the unbiased one, and the published one of PrivKV."""

from __future__ import annotations

import numpy as np

from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["unbiased", "ye"]


def unbiased(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    """Frequency (unbiased, may leave [0, 1]) and mean (the ratio of two unbiased numbers) of each key.

    Example:
        >>> f, m = unbiased(Channel(a=0.8, b=0.2, p=0.9), Counts(plus=[400], minus=[100], total=[1000]))
        >>> round(f[0], 3), round(m[0], 4)
        (np.float64(0.5), np.float64(0.9375))
    """
    some, difference = counts.shares
    frequency = (some - channel.b) / channel.gap
    return frequency, _ratio(difference / channel.kappa, frequency)


def ye(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    """The estimator PrivKV was published with (Ye et al. 2019): its mean is pulled towards 0 by fake values, for every n."""
    some, _ = counts.shares
    answered = (counts.plus + counts.minus).astype(float)
    p = channel.p
    plus, minus = (np.clip(((p - 1) * answered + count) / (2 * p - 1), 0, answered) for count in (counts.plus, counts.minus))
    return (some - channel.b) / channel.gap, _ratio(plus - minus, answered)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(denominator == 0, np.nan, numerator / denominator)
