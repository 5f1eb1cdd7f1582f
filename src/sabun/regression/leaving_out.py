"""Which releases a pool is better without: noise has one size, however few rows it was added to.

Sums are added up, and their noise with them. Five organisations of a hundred rows add five times the noise of one that has two
thousand, and a quarter of its rows; with two stages it is worse, for a table too small for the second has its first noise in c,
which is many times that of residuals. So small ones are left out where the rest says more without them, by sums that are
released and public already. Sets that are looked at: all, and those with more than a half, a quarter, ... of the largest number
of rows; the one with the least tr(S C) counts, where C is the posterior covariance and S all releases' A (with the home
data's), so that a corner which only a small one has seen speaks for keeping it. Tables of about the same size are kept together
whatever the noise says.
"""

from __future__ import annotations

from collections.abc import Sequence

from sabun.regression.mixing import Axes
from sabun.regression.pooling import pooled
from sabun.regression.study import STAGED, Study
from sabun.regression.sums import Home, Sums

__all__ = ["worth_pooling"]


def worth_pooling(study: Study, releases: Sequence[Sums], home: Home | None = None) -> list[Sums]:
    """Those releases that a model is made of, in their order; files of earlier methods combine as they always did."""
    sets = _sets(releases) if study.method in STAGED and len(releases) > 1 else []
    if len(sets) <= 1:
        return list(releases)
    seen = Axes.of(releases).seen
    weight = seen if home is None else seen + home.gram
    errors = [float((weight * pooled(study, one, home).covariance).sum()) for one in sets]
    return sets[errors.index(min(errors))]


def _sets(releases: Sequence[Sums]) -> list[list[Sums]]:
    """All first, then fewer and fewer."""
    least, sets = max((one.rows for one in releases), default=0.0), [list(releases)]
    while least >= 1:
        least /= 2
        some = [one for one in releases if one.rows > least]
        if all(len(some) != len(other) for other in sets):
            sets.append(some)
    return sets
