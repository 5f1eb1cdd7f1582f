"""Integrals of one key's likelihood over frequency and mean, against priors that are piecewise linear in both.

Notation: s = b + (a-b) f is the share of reports that say something, t = kappa f m / s the difference of plus and minus among
those. The likelihood is a function of s times a function of t, so the second is tabulated once for each key. The parts of a
prior, by row and column: hats over `nodes` and points at f = 0, f = 1; hats over 17 evenly spaced means and points at m = 1,
m = -1.

Importing this module imports numba: `shrinkage` does so when the first key is estimated.
"""

from __future__ import annotations

import math

import numpy as np

from sabun.compiled import compiled
from sabun.keyvalue.channel import Channel, Counts, Floats

__all__ = ["MEANS", "POINTS", "part_likelihoods", "posterior_moments"]

MEANS = 17
"""Nodes of the mean; with its two ends there are two columns more."""
POINTS = 20
"""Points of the frequency in each key's own window; f = 0 and f = 1 come after them."""
_ACROSS, _TABLE = 32, 64
_REACH = 5.0
"""Half of a window, in standard deviations."""
_MOST = 300.0
"""Of a log-likelihood above that of the best fit; counts that no people give could exceed what a float holds."""


def part_likelihoods(channel: Channel, counts: Counts, best: tuple[Floats, Floats], nodes: Floats) -> Floats:
    """The likelihood of each key under each part, up to a factor of the key: keys by rows by columns."""
    found = np.zeros((len(counts.total), len(nodes) + 2, MEANS + 2))
    _fill_parts(*_plain(channel, counts, best), nodes, found)
    return found


def posterior_moments(
    channel: Channel, counts: Counts, best: tuple[Floats, Floats], nodes: Floats, prior: Floats
) -> tuple[Floats, Floats]:
    """What a prior (shares of the parts) and the counts say of each key.

    Returns:
        Per key E[f], E[f^2], E[m | f > 0], E[m^2 | f > 0] and the ends of its window, which is even in arcsin sqrt(s); and the
        probability of each point of that window, those of f = 0 and f = 1 last. NaN where counts are such as no people give.
    """
    moments, shares = np.zeros((len(counts.total), 6)), np.zeros((len(counts.total), POINTS + 2))
    _fill_moments(*_plain(channel, counts, best), nodes, prior, moments, shares)
    return moments, shares


def _plain(channel: Channel, counts: Counts, best: tuple[Floats, Floats]) -> tuple[Floats, Floats, Floats]:
    seen = np.column_stack([counts.plus, counts.minus, counts.total]).astype(np.float64)
    return seen, np.column_stack(best), np.array([channel.b, channel.gap, channel.kappa])


@compiled
def _fill_parts(seen: Floats, best: Floats, shape: Floats, nodes: Floats, parts: Floats) -> None:
    table, columns, size = np.empty(_TABLE + 1), np.empty((MEANS + 2, 3)), len(nodes)
    for key in range(len(seen)):
        window = _window(seen[key], best[key], shape, table)
        place = 0
        for point in range(POINTS + 2):
            f, slope, weight = _point(point, seen[key], best[key], shape, window)
            _integrate_means(slope, window, table, columns)
            if point >= POINTS:
                for j in range(MEANS + 2):
                    parts[key, size + point - POINTS, j] = weight * columns[j, 0]
                continue
            place, left, right = _hats(f, weight, nodes, place)
            for j in range(MEANS + 2):
                parts[key, place, j] += left * columns[j, 0]
                parts[key, place + 1, j] += right * columns[j, 0]


@compiled
def _fill_moments(
    seen: Floats, best: Floats, shape: Floats, nodes: Floats, prior: Floats, moments: Floats, shares: Floats
) -> None:
    table, columns, size = np.empty(_TABLE + 1), np.empty((MEANS + 2, 3)), len(nodes)
    for key in range(len(seen)):
        window = _window(seen[key], best[key], shape, table)
        place = 0
        whole = held = f1 = f2 = m1 = m2 = 0.0
        for point in range(POINTS + 2):
            f, slope, weight = _point(point, seen[key], best[key], shape, window)
            _integrate_means(slope, window, table, columns)
            here = h1 = h2 = 0.0
            left, right, row = weight, 0.0, size + point - POINTS
            if point < POINTS:
                place, left, right = _hats(f, weight, nodes, place)
                row = place
            for j in range(MEANS + 2):
                density = left * prior[row, j] + (right * prior[row + 1, j] if right > 0.0 else 0.0)
                here += density * columns[j, 0]
                h1 += density * columns[j, 1]
                h2 += density * columns[j, 2]
            if point == POINTS:
                h1 = h2 = 0.0  # nobody holds the key: there is no mean
            else:
                held += here
            shares[key, point] = here
            whole += here
            f1, f2, m1, m2 = f1 + here * f, f2 + here * f * f, m1 + h1, m2 + h2
        if whole == 0.0 or held == 0.0:
            whole = held = math.nan
        for point in range(POINTS + 2):
            shares[key, point] /= whole
        moments[key, 0], moments[key, 1], moments[key, 2], moments[key, 3] = f1 / whole, f2 / whole, m1 / held, m2 / held
        moments[key, 4], moments[key, 5] = window[0], window[0] + POINTS * window[1]


@compiled
def _window(seen: Floats, best: Floats, shape: Floats, table: Floats) -> tuple[float, float, float, float]:
    """Where a key's likelihood lies: first end and step of arcsin sqrt(s), then of t, whose factor is tabulated.

    Five standard deviations to each side of the best fit; arcsin sqrt(s) has the same one everywhere.
    """
    plus, some, total = seen[0], seen[0] + seen[1], seen[2]
    first, last = math.asin(math.sqrt(shape[0])), math.asin(math.sqrt(min(shape[0] + shape[1], 1.0)))
    s, t = _shares(best[0], best[1], shape)
    middle, reach = math.asin(math.sqrt(s)), _REACH * 0.5 / math.sqrt(total + 0.5)
    low, high = max(first, middle - reach), min(last, middle + reach)
    wide = (_REACH + 1) * math.sqrt((1 - t * t + 1 / (some + 1)) / (some + 1))
    t_low, t_high = max(-1 + 1e-12, t - wide), min(1 - 1e-12, t + wide)
    step = (t_high - t_low) / _TABLE
    top = plus * math.log1p(t) + (some - plus) * math.log1p(-t)
    for i in range(_TABLE + 1):
        there = t_low + i * step
        table[i] = math.exp(min(plus * math.log1p(there) + (some - plus) * math.log1p(-there) - top, _MOST))
    return low, (high - low) / POINTS, t_low, step


@compiled
def _shares(f: float, m: float, shape: Floats) -> tuple[float, float]:
    """s and t of a frequency and a mean, kept off the ends, where logarithms do not exist."""
    s = min(max(shape[0] + shape[1] * f, 1e-12), 1 - 1e-12)
    t = shape[2] * f * m / s
    return s, min(max(t, -1 + 1e-12), 1 - 1e-12)


@compiled
def _point(
    point: int, seen: Floats, best: Floats, shape: Floats, window: tuple[float, float, float, float]
) -> tuple[float, float, float]:
    """The frequency of a point, t for m = 1, and the likelihood of s times the width of the point; 0 and 1 come last."""
    some, none = seen[0] + seen[1], seen[2] - seen[0] - seen[1]
    angle = window[0] + (point + 0.5) * window[1]
    s = math.sin(angle) ** 2 if point < POINTS else shape[0] + shape[1] * (point - POINTS)
    s = min(max(s, 1e-12), 1 - 1e-12)
    f = min(max((s - shape[0]) / shape[1], 0.0), 1.0) if point < POINTS else float(point - POINTS)
    fitted, _ = _shares(best[0], best[1], shape)
    top = some * math.log(fitted) + none * math.log1p(-fitted)
    weight = math.exp(min(some * math.log(s) + none * math.log1p(-s) - top, _MOST))
    if point < POINTS:
        weight *= window[1] * 2 * math.sqrt(s * (1 - s)) / shape[1]
    return f, shape[2] * f / s, weight


@compiled
def _hats(f: float, weight: float, nodes: Floats, place: int) -> tuple[int, float, float]:
    """Between which two nodes a frequency lies, and the densities there of their hats, times a weight."""
    last = len(nodes) - 1
    while place < last - 1 and nodes[place + 1] <= f:
        place += 1
    right = (f - nodes[place]) / (nodes[place + 1] - nodes[place])
    below, above = nodes[max(place - 1, 0)], nodes[min(place + 2, last)]
    return place, weight * (1 - right) * 2 / (nodes[place + 1] - below), weight * right * 2 / (above - nodes[place])


@compiled
def _integrate_means(slope: float, window: tuple[float, float, float, float], table: Floats, columns: Floats) -> None:
    """The integrals over m of the factor of t = slope m against each column; of 1, m and m^2."""
    t_low, step = window[2], window[3]
    per = (MEANS - 1) / 2.0  # nodes in a unit of m
    for j in range(MEANS + 2):
        columns[j, 0] = columns[j, 1] = columns[j, 2] = 0.0
    low, high = -1.0, 1.0
    if slope > 0:
        low, high = max(-1.0, t_low / slope), min(1.0, (t_low + _TABLE * step) / slope)
    width = (high - low) / _ACROSS
    if width > 0:
        start, pace = (
            (slope * low - t_low) / step,
            slope * width / step,
        )  # no division for each point: they are most of the time
        for i in range(_ACROSS):
            m = low + (i + 0.5) * width
            h = _interpolated(start + (i + 0.5) * pace, table) * width * per
            j = min(int((m + 1) * per), MEANS - 2)
            right = h * ((m + 1) * per - j)
            columns[j, 0] += h - right
            columns[j, 1] += (h - right) * m
            columns[j, 2] += (h - right) * m * m
            columns[j + 1, 0] += right
            columns[j + 1, 1] += right * m
            columns[j + 1, 2] += right * m * m
    for k in range(3):  # half a hat has half the area
        columns[0, k] *= 2.0
        columns[MEANS - 1, k] *= 2.0
    for j in range(2):
        m = 1.0 - 2.0 * j
        h = _interpolated((slope * m - t_low) / step, table)
        columns[MEANS + j, 0], columns[MEANS + j, 1], columns[MEANS + j, 2] = h, h * m, h


@compiled
def _interpolated(place: float, table: Floats) -> float:
    """Between two entries of a table; nothing beyond its ends."""
    if place < 0.0 or place > _TABLE:
        return 0.0
    n = min(int(place), _TABLE - 1)
    return float(table[n] + (place - n) * (table[n + 1] - table[n]))
