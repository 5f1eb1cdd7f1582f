"""Which releases a pool is better without: noise has one size, however few rows it was added to.

Sums are added up, and their noise with them. Five organisations of a hundred rows add five times the noise of one that has two
thousand, and a quarter of its rows; with two stages it is worse, for a table too small for the second has its first noise in c,
which is many times that of residuals. Outside a named study releases of unequal epsilon are pooled too, and one of a tenth of
the epsilon adds a hundred times the variance, however many rows it has. So releases are left out where the rest says more
without them, by sums that are released and public already.

Notation: n rows and noise of variance v each, v that of the promise alone (`Sums.loudness`). A pool sees a direction by
(sum of n)**2 / sum of v, and that never falls by adding a release whose n / v is more than half of the largest:
with n = a N and v = b V, a > b / 2, it is multiplied by (1 + a)**2 / (1 + b) > 1. Sets that are looked at: all, and those whose
n / v is more than a half, a quarter, ... of the largest; with one promise for all these are the ones with so many rows. The set
with the least tr(S C) counts, where C is the posterior covariance and S all releases' A (with the home data's), so that a
corner which only a small one has seen speaks for keeping it. In S releases of about the same noise are calmed together and
others apart, so that the loud do not drown what the quiet show. Tables of about the same n / v are kept together whatever the
noise says. Where some have a second stage, whose sums are far less noisy, and others none, the same sets of each kind by itself
are looked at too. Files of the methods with one stage combine as they always did where all promises are the same.

Of those that are kept, an organisation whose residuals are far smaller than the others' would drown in them: sums are added up
whatever the residuals behind them. So those whose released residual variance is clearly, noise and sampling allowed for, below
a quarter of all others' are looked at by themselves too, by the same measure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sabun.regression.design import Floats
from sabun.regression.mixing import Axes
from sabun.regression.pooling import pooled
from sabun.regression.study import Study
from sabun.regression.sums import Home, Sums
from sabun.regression.variances import effective_rows, released_variance

__all__ = ["worth_pooling"]

_FAR, _SURE = 4.0, 2.0
"""How many times larger the others' residual variance is, and deviations that are allowed for on either side."""


def worth_pooling(study: Study, releases: Sequence[Sums], home: Home | None = None) -> list[Sums]:
    """Those releases that a model is made of, in their order."""
    looked_at = any(one.staged for one in releases) or len({one.loudness for one in releases}) > 1
    if not looked_at or len(releases) == 1:
        return list(releases)
    kinds = [[one for one in releases if one.staged is staged] for staged in (True, False)]
    sets = [some for of_a_kind in (releases, *(kinds if all(kinds) else ())) for some in _sets(of_a_kind)]
    seen = _seen(releases)
    weight = seen if home is None else seen + home.gram

    def error(some: list[Sums]) -> float:
        return float((weight * pooled(study, some, home).covariance).sum())

    kept = min(sets, key=error)
    return min([kept, *_tidier(study, kept, home)], key=error)


def _tidier(study: Study, releases: list[Sums], home: Home | None) -> list[list[Sums]]:
    """Those whose residuals are clearly smaller than all others', wherever there is such a gap."""
    found = pooled(study, releases, home)
    paid = found.paid / sum(effective_rows(one) for one in releases)
    each = sorted(((released_variance([one], found.beta, paid), one) for one in releases), key=lambda pair: pair[0].found)
    sets = []
    for cut in range(1, len(each)):
        most = max(one.found + _SURE * one.deviation for one, _ in each[:cut])
        least = min(one.found - _SURE * one.deviation for one, _ in each[cut:])
        if _FAR * most < least:
            some = {id(one) for _, one in each[:cut]}
            sets.append([one for one in releases if id(one) in some])
    return sets


def _sets(releases: Sequence[Sums]) -> list[list[Sums]]:
    """All first, then fewer and fewer."""
    quietest = min(one.loudness for one in releases)
    told = [one.rows * (quietest / one.loudness) for one in releases]
    least, sets = max(told), [list(releases)]
    while least >= min(told):
        least /= 2
        some = [one for one, much in zip(releases, told, strict=True) if much > least]
        if all(len(some) != len(other) for other in sets):
            sets.append(some)
    return sets


def _seen(releases: Sequence[Sums]) -> Floats:
    """A of all of them; those with noise of another order are calmed apart."""
    quietest, groups = min(one.loudness for one in releases), dict[int, list[Sums]]()
    for one in releases:
        groups.setdefault(round(math.log2(one.loudness / quietest) / 2), []).append(one)
    first, *others = (Axes.of(group).seen for group in groups.values())
    return sum(others, start=first)
