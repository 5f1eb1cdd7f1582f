"""Studies that ask for frequencies alone: every report about a key says yes or nothing, and there is no mean to estimate.

Notation: a and b are the probabilities of a yes from who holds the key and who does not, N the reports about a key, y those
that say yes; s = b + (a - b) f.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from sabun import checks
from sabun.keyvalue.channel import Channel, Counts, Floats, channel_of
from sabun.keyvalue.client.probabilities import PADDED, SETS, Table
from sabun.keyvalue.shrinkage import posterior_of

__all__ = ["FREQUENCY_METHODS", "YesNo", "channel_seen", "frequencies"]

FREQUENCY_METHODS = ("shrunk", "mle", "unbiased", "posterior")
"""Estimators that need no signs; the others are there to reproduce papers on means."""
_POINTS, _REACH, _CHUNK = 201, 8.0, 4096


@dataclass(frozen=True, kw_only=True)
class YesNo(Channel):
    """The channel of one key where reports say yes or nothing: `a` and `b` of a yes.

    It stands in for a channel of three symbols whose signs are tossed with a coin as fair as a float can be short of one half,
    so what reads frequencies alone reads them rightly.

    Example:
        >>> YesNo(a=0.75, b=0.25).gap
        0.5
    """

    p: float = math.nextafter(0.5, 1.0)

    @property
    def kappa(self) -> float:
        """How much a sign shows: so little that nothing is left of it in a sum.

        With a (2p - 1), some 1e-16, a million reports that all say plus made the factor of the signs in `quadrature` so steep
        that the last digit of t decided which frequencies were likely.
        """
        return 1e-100


def channel_seen(protocol: str, table: Table, padding: int) -> Channel:
    """The channel that estimators invert: padding is mixed in where one of the padded pairs is picked, signs may be missing."""
    if table.signs == 1:
        return YesNo(a=min(float(table.a), math.nextafter(1.0, 0.0)), b=float(table.b))
    return channel_of(table, padding if protocol in PADDED and protocol not in SETS else 1)


def frequencies(method: str, channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    """The frequency of each key by a named method, NaN without reports; and a mean of each, which is NaN throughout.

    Raises:
        ParameterError: The method needs signs.

    Example:
        >>> frequencies("mle", YesNo(a=0.75, b=0.25), Counts(plus=[50, 10], minus=[0, 0], total=[100, 100]))[0]
        array([0.5, 0. ])
    """
    checks.require(
        method in FREQUENCY_METHODS, f"one of {', '.join(FREQUENCY_METHODS)} where no values are asked", method=method
    )
    if method == "shrunk":
        found = posterior_of(channel, counts).frequency
    else:
        found = (counts.shares[0] - channel.b) / channel.gap
        if method != "unbiased":
            found = np.clip(found, 0.0, 1.0)  # the likelihood of y has one hill, so that its top is here or at an end
        if method == "posterior":
            found = _posterior(channel, counts, found)
    return found, np.full(len(found), np.nan)


def _posterior(channel: Channel, counts: Counts, best: Floats) -> Floats:
    """Posterior means under a flat prior, on midpoints within eight standard deviations of the best fit."""
    found = np.full(len(best), np.nan)
    known = np.flatnonzero(counts.total > 0)
    for begin in range(0, known.size, _CHUNK):
        rows = known[begin : begin + _CHUNK]
        total, yes = counts.total[rows].astype(float)[:, None], counts.plus[rows].astype(float)[:, None]
        s = channel.b + channel.gap * best[rows, None]
        # At least as wide as a single report would be at shares near 0 or 1, where the variance vanishes.
        reach = _REACH * np.sqrt((s * (1 - s) + 1 / total) / total) / channel.gap
        low, high = np.clip(best[rows, None] - reach, 0.0, 1.0), np.clip(best[rows, None] + reach, 0.0, 1.0)
        f = low + (high - low) * (np.arange(_POINTS) + 0.5) / _POINTS
        s = channel.b + channel.gap * f
        score = xlogy(yes, s) + xlogy(total - yes, 1 - s)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        found[rows] = (weight * f).sum(axis=1) / weight.sum(axis=1)
    return found
