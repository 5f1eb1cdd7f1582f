"""What a receiver can notice about releases: numbers that cannot be, organisations that pull the model their way.

Everything here is computed from released numbers, so it may be told to anybody.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sabun.regression.contribution import Contribution
from sabun.regression.models import Influence
from sabun.regression.pooling import Posterior
from sabun.regression.study import STATISTICS

__all__ = ["findings", "influences"]

_DEVIATIONS = 6.0


def findings(contributions: Sequence[Contribution]) -> tuple[str, ...]:
    """Sentences about releases that honest data with honest noise would hardly give; each names the organisation."""
    found = [sentence for contribution in contributions for sentence in _implausible(contribution)]
    if len(contributions) == 1:
        found.append("There is only one release: nothing is pooled.")
    return tuple(found)


def influences(
    contributions: Sequence[Contribution], whole: Posterior, without: Callable[[int], Posterior]
) -> tuple[Influence, ...]:
    """What leaving each organisation out would change, the most influential first."""
    errors = np.sqrt(np.diag(whole.covariance))
    rows = []
    for place, contribution in enumerate(contributions):
        change = without(place).beta - whole.beta
        shift, distance = float(np.abs(change / errors).max()), float(np.linalg.norm(change))
        rows.append(Influence(organisation=contribution.organisation, largest_shift=shift, distance=distance))
    return tuple(sorted(rows, key=lambda row: -row.largest_shift))


def _implausible(contribution: Contribution) -> list[str]:
    name, study = contribution.organisation, contribution.study
    if study.mechanism not in STATISTICS:
        length, bound = float(np.linalg.norm(contribution.beta())), float(study.coef_bound)
        if study.mechanism == "objpert" and length > bound * 1.001:
            return [f"Implausible: {name!r} sent coefficients longer than the study's bound."]
        return []
    sums = contribution.sums()
    rows = sums.rows + _DEVIATIONS * math.sqrt(sums.noise.count)
    slack = {part: _DEVIATIONS * math.sqrt(getattr(sums.noise, part)) for part in ("gram", "moment", "square")}
    tests = {
        "products of features that are too large": float(np.abs(sums.gram).max()) > rows * 1.01 + slack["gram"],
        "products with the target that are too large": float(np.abs(sums.moment).max()) > rows * 1.01 + slack["moment"],
        "squares of the target that cannot be": not -slack["square"] <= sums.square <= rows + slack["square"],
        "feature products that no data can have": float(np.linalg.eigvalsh(sums.gram)[0])
        < -slack["gram"] * math.sqrt(study.width),
    }
    return [
        f"Implausible: {name!r} sent {what}. Ask that organisation before you use it." for what, bad in tests.items() if bad
    ]
