"""The demo's job on made-up patients: a count."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from sabun.privacy.guarantee import Guarantee
from sabun.privacy.noise import discrete_laplace, os_coin
from sabun.release import publish
from sabun.telling.demo import Bench, Outcome

__all__ = ["count_old_patients"]

_PATIENTS = 1000


def count_old_patients(bench: Bench) -> Outcome:
    """A private count over a made-up table: the smallest mechanism there is."""
    ledger = bench.ledger("clinic", unit="patient", epsilon=3)
    ages = 18 + np.arange(_PATIENTS) * 37 % 82
    coin, epsilon = os_coin(), Fraction(1, 2)
    promise = Guarantee(
        epsilon=epsilon,
        unit="patient",
        mechanism="discrete Laplace",
        assumptions=("each patient has at most one row", "the number of rows is public"),
    )
    reach = _reach(epsilon, 0.95)

    def draw() -> dict[str, object]:
        # Replacing one patient changes the count by at most 1, so the scale is 1/epsilon.
        found = int((ages >= 65).sum()) + int(discrete_laplace(1 / epsilon, coin=coin))
        inside = min(max(found, 0), _PATIENTS)
        return {"count": inside, "interval": [max(inside - reach, 0), min(inside + reach, _PATIENTS)]}

    facts = {"column": "age", "at_least": 65, "rows": _PATIENTS, "confidence": 0.95}
    release = publish(kind="private count", guarantee=promise, parameters=facts, draw=draw, ledger=ledger, coin=coin)
    exact = int((ages >= 65).sum())
    return Outcome(release=release, remarks=(f"This table is made up, so we may look: the exact count is {exact}.",))


def _reach(epsilon: Fraction, level: float) -> int:
    """The smallest k with P(|noise| <= k) >= level for discrete Laplace noise of scale 1/epsilon."""
    q = math.exp(-float(epsilon))
    return max(math.ceil(math.log((1 - level) * (1 + q) / 2) / math.log(q)) - 1, 0)
