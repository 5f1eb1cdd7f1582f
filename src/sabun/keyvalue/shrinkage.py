"""Stacked empirical Bayes over keys: what the other keys look like says something about each key.

The prior of (frequency, mean) is learned from all keys' counts, in eight ways that differ in how much they let the keys say;
they are weighed by how well each foretells keys that it was not learned from. With few keys the flat prior has most of the
weight, so that a study of one key is estimated nearly as by `posterior`. Counts are published already: this spends no privacy.

Notation: a prior is a matrix of shares, by part of the frequency and part of the mean (see `quadrature`); u is flat, p learned,
S smooths.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sabun.keyvalue.channel import Channel, Counts, Floats
from sabun.keyvalue.closed_form import maximum_likelihood
from sabun.keyvalue.intervals import normal_quantile
from sabun.mixtures import learned_shares

__all__ = ["Posterior", "average_intervals", "posterior_of", "shrunk"]

_NODES, _FEWEST = 56, 5
_FITTED = 1200
"""So many keys are enough to learn a prior from."""
_PSEUDO = 2.0
"""Keys that the flat prior counts as, in each direction and in the stack."""
_OTHERS = 0.25
"""Keys that each other prior counts as in the stack."""
_FOLDS = 5
"""Parts of the keys that are foretold from the rest, each in turn."""
_EMPTY, _FULL, _EXTREME = 0.05, 0.025, 0.025
"""Shares of the flat prior at f = 0, at f = 1 and at each end of the mean."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """What all counts together say of each key; NaN for a key without reports.

    Attributes:
        frequency: Posterior mean of the frequency.
        frequency_sd: Its standard deviation.
        mean: Posterior mean of the mean, given that somebody holds the key.
        mean_sd: Its standard deviation.
        points: Frequencies by key, one column each; the last are 0 and 1.
        shares: Their probabilities; all 0 where nothing is known but `frequency`. A key without reports has the prior's.
    """

    frequency: Floats
    frequency_sd: Floats
    mean: Floats
    mean_sd: Floats
    points: Floats
    shares: Floats


def shrunk(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    """Frequency and mean of each key, drawn towards where the keys are.

    Example:
        >>> f, _ = shrunk(Channel(a=0.8, b=0.2, p=0.9), Counts(plus=[30, 40, 50], minus=[20] * 3, total=[200] * 3))
        >>> bool(0 < f[2] - f[0] < (50 - 30) / 200 / 0.6)
        True
    """
    found = posterior_of(channel, counts)
    return found.frequency, found.mean


def posterior_of(channel: Channel, counts: Counts) -> Posterior:
    """The posterior of every key under the prior that the keys teach."""
    from sabun.keyvalue.quadrature import POINTS, posterior_moments  # imports numba, for which nobody should wait in vain

    known = np.flatnonzero(counts.total > 0)
    moments, shares = np.full((len(counts.total), 6), np.nan), np.zeros((len(counts.total), POINTS + 2))
    if known.size:
        some = _those(counts, known)
        best = _best_fit(channel, some)
        nodes = _nodes(channel, some)
        prior = _prior(channel, some, best, nodes)
        moments[known], shares[known] = posterior_moments(channel, some, best, nodes, prior)
        lost = known[np.isnan(moments[known, 0])]  # counts that no people give: nothing to be learned from the others
        if lost.size:
            fit = _best_fit(channel, _those(counts, lost))
            moments[lost, :4] = np.column_stack([fit[0], fit[0] ** 2, fit[1], fit[1] ** 2])
            shares[lost] = 0.0
    f1, f2, m1, m2, low, high = moments.T
    step = (high - low) / POINTS
    s = np.sin(low[:, None] + (np.arange(POINTS) + 0.5) * step[:, None]) ** 2
    points = np.column_stack([np.clip((s - channel.b) / channel.gap, 0.0, 1.0), np.zeros(len(s)), np.ones(len(s))])
    unknown = np.flatnonzero(counts.total == 0)
    if known.size and unknown.size:
        points[unknown, :POINTS], shares[unknown, :POINTS] = _spread(prior, nodes, POINTS), 1 / POINTS
    return Posterior(
        frequency=f1,
        frequency_sd=np.sqrt(np.maximum(f2 - f1**2, 0.0)),
        mean=m1,
        mean_sd=np.sqrt(np.maximum(m2 - m1**2, 0.0)),
        points=points,
        shares=shares,
    )


def average_intervals(found: Posterior, confidence: float) -> tuple[Floats, Floats]:
    """Intervals of frequency and mean that hold with that confidence on average over the keys, not for each; as measured.

    Where the prior is right they hold so exactly; it is learned, and a key unlike the others is where it is wrong.
    """
    z = normal_quantile(confidence)
    pairs = ((found.frequency, found.frequency_sd, 0.0), (found.mean, found.mean_sd, -1.0))
    ends = [
        np.column_stack([np.clip(np.nan_to_num(mid - sign * z * sd, nan=end), low, 1.0) for sign, end in ((1, low), (-1, 1.0))])
        for mid, sd, low in pairs
    ]
    return ends[0], ends[1]


def _those(counts: Counts, rows: NDArray[np.int64]) -> Counts:
    return Counts(plus=counts.plus[rows], minus=counts.minus[rows], total=counts.total[rows])


def _best_fit(channel: Channel, counts: Counts) -> tuple[Floats, Floats]:
    theta = maximum_likelihood(channel, counts)
    f = np.clip(theta[:, 0] + theta[:, 1], 0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return f, np.clip(np.where(f == 0, 0.0, (theta[:, 0] - theta[:, 1]) / f), -1.0, 1.0)


def _nodes(channel: Channel, counts: Counts) -> Floats:
    """Where the prior of the frequency bends: one standard deviation apart, more thinly where there are few keys.

    Even in arcsin sqrt(s), in which every share has the same standard deviation. Nodes any closer could not be told apart, and
    hats narrower than the step of the integrals would slip through it.
    """
    first, last = np.arcsin(np.sqrt([channel.b, channel.a]))
    cells = (last - first) * 2 * float(np.sqrt(np.median(counts.total)))
    if cells < _NODES:
        angles = np.linspace(first, last, max(_FEWEST, int(np.ceil(cells)) + 1))
    else:
        angles = _gathered(np.arcsin(np.sqrt((counts.plus + counts.minus) / counts.total)), first, last, cells)
    nodes = (np.sin(angles) ** 2 - channel.b) / channel.gap
    nodes[[0, -1]] = 0.0, 1.0
    return np.asarray(nodes)


def _gathered(angles: Floats, first: float, last: float, cells: float) -> Floats:
    """So many nodes as may be, most of them where keys are, none closer than a standard deviation."""
    fine = int(min(cells, 4096))
    keys = np.histogram(np.clip(angles, first, last), bins=fine, range=(first, last))[0].astype(float)
    near = np.exp(-0.5 * np.arange(-4, 5) ** 2.0)
    wanted = np.sqrt(np.convolve(keys, near / near.sum(), mode="same"))
    wanted = 0.35 / fine + 0.65 * wanted / wanted.sum()
    most = cells / fine / (_NODES - 1)
    for _ in range(20):  # what one cell has too much goes to the others
        over = wanted >= most
        rest = 1 - most * over.sum()
        if rest <= 0 or wanted.max() <= most * (1 + 1e-9):
            break
        wanted = np.where(over, most, wanted * rest / wanted[~over].sum())
    reached = np.concatenate([[0.0], np.cumsum(wanted)])
    return np.interp(np.linspace(0, reached[-1], _NODES), reached, np.linspace(first, last, fine + 1))


def _spread(prior: Floats, nodes: Floats, size: int) -> Floats:
    """So many frequencies that are equally likely before anything is reported."""
    places = np.append(nodes, [0.0, 1.0])
    order = np.argsort(places, kind="stable")
    reached = np.cumsum(prior.sum(axis=1)[order])
    return np.asarray(places[order][np.searchsorted(reached, (np.arange(size) + 0.5) / size * reached[-1])])


def _flat(nodes: Floats) -> tuple[Floats, Floats]:
    """Even priors of the frequency and of the mean, with a little at the ends."""
    from sabun.keyvalue.quadrature import MEANS

    area = np.diff(np.concatenate([[nodes[0]], (nodes[1:] + nodes[:-1]) / 2, [nodes[-1]]]))
    means = np.full(MEANS, 1 / (MEANS - 1))
    means[[0, -1]] /= 2
    return np.append((1 - _EMPTY - _FULL) * area, [_EMPTY, _FULL]), np.append((1 - 2 * _EXTREME) * means, [_EXTREME, _EXTREME])


def _prior(channel: Channel, counts: Counts, best: tuple[Floats, Floats], nodes: Floats) -> Floats:
    """The stacked prior, as shares of the parts; a single key teaches nothing that its own counts do not say already."""
    from sabun.keyvalue.quadrature import part_likelihoods

    if len(counts.total) == 1:
        return np.outer(*_flat(nodes))
    scale, keys = 1.0, len(counts.total)
    rows = _by_share(counts)
    if keys > _FITTED:
        rows, scale = rows[((np.arange(_FITTED) + 0.5) * keys / _FITTED).astype(np.int64)], _FITTED / keys
    parts = part_likelihoods(channel, _those(counts, rows), (best[0][rows], best[1][rows]), nodes)
    largest = parts.max(axis=(1, 2))
    parts = parts[largest > 0] / largest[largest > 0, None, None]
    return _stacked(parts, *_flat(nodes), scale)


def _by_share(counts: Counts) -> NDArray[np.int64]:
    """Keys in order of their shares, the same if plus and minus are exchanged everywhere.

    Of a key and its mirror image the one that leans as all keys together do comes last; where they lean to neither side, the
    study's own order decides.
    """
    lean = counts.plus - counts.minus
    turned = np.sign(lean.sum()) * lean
    return np.lexsort((counts.total, turned, np.abs(lean), (counts.plus + counts.minus) / counts.total))


def _stacked(parts: Floats, u_f: Floats, u_m: Floats, scale: float) -> Floats:
    """Eight priors, weighed by what each says of keys that it was not learned from; keys come in order of their shares.

    Each fold is foretold by priors learned anew without it: to take a key's own part out of a prior that was learned beside it
    is cheaper, and flatters the sharp ones. In order, every fold has keys of all kinds, however the study numbers them.
    """
    ways = _ways(parts, u_f, u_m, scale)
    told = np.empty((len(parts), len(ways)))
    for fold in range(min(_FOLDS, len(parts))):
        without = _ways(np.delete(parts, np.s_[fold::_FOLDS], axis=0), u_f, u_m, scale)
        told[fold::_FOLDS] = np.tensordot(parts[fold::_FOLDS], without, axes=([1, 2], [1, 2]))
    base = scale * np.array([_PSEUDO] + [_OTHERS] * (len(ways) - 1))
    weights = learned_shares(told, base / base.sum(), base.sum())
    return np.asarray(np.tensordot(weights, ways, axes=1))


def _ways(parts: Floats, u_f: Floats, u_m: Floats, scale: float) -> Floats:
    """The eight priors that these keys teach.

    Two are joint. Where frequencies come in sharp clusters the smoothed one fits them badly, and products alone would carry
    the means of the frequent keys to the rare ones: hence one that is sharp in the frequency and begins without a mean.
    """
    smooth_f, smooth_m = _smoother(len(u_f) - 2, 2, 1.5), _smoother(len(u_m) - 2, 2, 1.0)
    pseudo = _PSEUDO * scale
    p_f = learned_shares(parts @ u_m, u_f, pseudo)
    p_m = learned_shares(p_f @ parts, u_m, pseudo)
    sp_f, sp_m = smooth_f @ p_f, smooth_m @ p_m
    joint, sharp = (
        learned_shares(parts.reshape(len(parts), base.size), base.ravel(), 2 * pseudo).reshape(base.shape)
        for base in (np.outer(sp_f, sp_m), np.outer(p_f, u_m))
    )
    pairs = ((u_f, u_m), (p_f, u_m), (sp_f, u_m), (p_f, sp_m), (sp_f, sp_m), (u_f, sp_m))
    return np.stack([*(np.outer(*pair) for pair in pairs), smooth_f @ joint @ smooth_m.T, sharp @ smooth_m.T])


def _smoother(size: int, points: int, width: float) -> Floats:
    """Spreads each share over its neighbours; the last `points` stay as they are."""
    place = np.arange(size)
    near = np.exp(-0.5 * ((place[:, None] - place) / width) ** 2)
    matrix = np.eye(size + points)
    matrix[:size, :size] = near / near.sum(axis=0)
    return matrix
