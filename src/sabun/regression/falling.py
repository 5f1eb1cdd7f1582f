"""The constant to fall back on where noise hides the slopes; made of released numbers alone.

Notation: b are the slopes of the pooled model, G the matrix A of the features around their mean, E the covariance of b as the
noise makes it. Predictions by b differ from the constant by b'Gb over all rows, and b'Gb of slopes that are noise alone is
tr(G E) on average: where b'Gb is no larger, nothing says that the slopes help, and the mean does no worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sabun.regression.pooling import Posterior, kept_of, pooled, pooled_from, prior_of
from sabun.regression.study import STAGED, Study
from sabun.regression.sums import Sums

__all__ = ["CONSTANT", "fallen", "public_posterior"]

CONSTANT = (
    "Noise hides the slopes: the model is the mean of the target, the same for every record. "
    "Intervals hold what the slopes may be. Use more rows, more organisations or a larger epsilon."
)


def public_posterior(study: Study, releases: Sequence[Sums]) -> Posterior:
    """The posterior of releases alone, or the constant where they do not tell more; its intervals hold either."""
    return fallen(study, releases, pooled(study, releases))


def fallen(study: Study, releases: Sequence[Sums], whole: Posterior) -> Posterior:
    """The pooled posterior of releases, or the constant; files of earlier methods combine as they always did."""
    if study.method not in STAGED or not study.fit_intercept or _tells(whole, releases):
        return whole
    prior, radius = prior_of(study)
    mean = pooled_from((prior[-1:], radius[-1:]), float(study.coef_bound), [_constant(study, one) for one in releases])
    beta = np.append(np.zeros(study.width - 1), mean.beta)
    return replace(whole, beta=beta, moved=whole.beta - beta)


def _tells(posterior: Posterior, releases: Sequence[Sums]) -> bool:
    """Whether the slopes are larger than their noise; that of A counts as far as A was not calmed."""
    noise = sum(one.noise.gram for one in releases)
    shaken = kept_of(np.sum([one.gram for one in releases], axis=0), noise) * posterior.length**2 * posterior.shaken
    spread = posterior.covariance @ (posterior.known + shaken) @ posterior.covariance
    seen, slopes = posterior.seen, posterior.beta[:-1]
    centred = seen[:-1, :-1] - np.outer(seen[:-1, -1], seen[-1, :-1]) / max(seen[-1, -1], 1e-300)
    return bool(slopes @ centred @ slopes > np.sum(centred * spread[:-1, :-1]))


def _constant(study: Study, sums: Sums) -> Sums:
    """What the sums say of the constant alone. Its A is the sum of squared weights, so bounds of those are bounds of A."""
    most = sums.rows * study.design.scale**-2
    least = most * min((sums.near * study.design.scale) ** 2 / study.width, 1.0)
    held = float(np.clip(sums.gram[-1, -1], least, most))
    level = replace(sums.noise, gram=min(sums.noise.gram, (most - least) ** 2 / 12))
    again = sums.refined
    if again is not None:
        slopes, moment = again.start[:-1], again.moment[-1:] + (held - sums.gram[-1, -1]) * again.start[-1]
        # The slopes that residuals were taken around bring the noise of A with them.
        noise = (again.noise[0] + sums.noise.above * float(slopes @ slopes), *again.noise[1:])
        again = replace(again, start=again.start[-1:], moment=moment, noise=noise)
    return replace(sums, gram=np.array([[held]]), moment=sums.moment[-1:], noise=level, refined=again)
