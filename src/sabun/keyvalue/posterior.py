"""The posterior mean under a flat prior: lower error than maximum likelihood where the signal is weak, at the price of a pull
towards the middle."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["posterior_mean"]

_POINTS = 33
_CHUNK = 512


def posterior_mean(channel: Channel, counts: Counts, frequency: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """Posterior means of frequency and mean, on a grid around a first estimate (the maximum-likelihood one)."""
    found = np.full((2, len(counts.total)), np.nan)
    known = np.flatnonzero(counts.total > 0)
    for begin in range(0, known.size, _CHUNK):
        rows = known[begin : begin + _CHUNK]
        part = Counts(plus=counts.plus[rows], minus=counts.minus[rows], total=counts.total[rows])
        found[:, rows] = _chunk(channel, part, frequency[rows], np.nan_to_num(mean[rows]))
    return found[0], found[1]


def _chunk(channel: Channel, counts: Counts, frequency: Floats, mean: Floats) -> Floats:
    total = counts.total.astype(float)
    # Six standard deviations: what lies beyond has no weight that would show beside the rest.
    spread_f = 6 * np.sqrt(channel.frequency_variance(frequency, total))
    f = _grid(frequency - spread_f, frequency + spread_f, 0.0, 1.0)[:, :, None]
    # The mean is as uncertain as its numerator divided by the frequency; a rare key gets the whole range.
    spread_m = 9 * np.sqrt(channel.product_variance(frequency, mean, total)) / np.maximum(frequency, 1e-9)
    m = _grid(mean - spread_m, mean + spread_m, -1.0, 1.0)[:, None, :]
    some, sign = channel.b + channel.gap * f, channel.kappa * f * m
    plus, minus, total_ = (array[:, None, None].astype(float) for array in (counts.plus, counts.minus, counts.total))
    score = xlogy(plus, (some + sign) / 2) + xlogy(minus, (some - sign) / 2) + xlogy(total_ - plus - minus, 1 - some)
    # Relative to the best point: the likelihoods themselves are far below the smallest float.
    weight = np.exp(score - score.max(axis=(1, 2), keepdims=True))
    mass = weight.sum(axis=(1, 2))
    return np.stack([(weight * f).sum(axis=(1, 2)) / mass, (weight * m).sum(axis=(1, 2)) / mass])


def _grid(low: Floats, high: Floats, least: float, most: float) -> Floats:
    """Midpoints of equal cells between two ends, cut to the domain."""
    low, high = np.clip(low, least, most), np.clip(high, least, most)
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    return np.asarray(low[:, None] + (high - low)[:, None] * places)
