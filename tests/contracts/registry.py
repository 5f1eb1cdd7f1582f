"""Every public class that turns private rows into a release, with a tiny table to try it on.

A new class joins the laws of `test_estimators.py` with one entry here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sabun import Ledger
from sabun.density import DensityRatio
from sabun.learning import PrivateClassifier
from sabun.outliers import OutlierCount
from sabun.regression import PrivateRidge


@dataclass(frozen=True)
class Entry:
    """How to make one estimator and fit it; `delta` is what its ledger must hold."""

    name: str
    kind: str
    make: Callable[..., Any]
    fit: Callable[[Any], Any]
    delta: Fraction = Fraction(0)

    def ledger(self, path: Any, *, epsilon: float = 1.0) -> Ledger:
        return Ledger.create(path, name="book", unit="patient", epsilon=epsilon, delta=self.delta)


_ROWS = np.random.default_rng(0).uniform(0, 1, (60, 2))
_LABELS = np.where(_ROWS[:, 0] > 0.5, "yes", "no")
_BOUNDS = [(0.0, 1.0), (0.0, 1.0)]


def _with(cls: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    return lambda **changes: cls(**({"epsilon": 0.5} | fixed | changes))


ENTRIES = (
    Entry("outliers", "outliers.", _with(OutlierCount, k=2, radius=0.2), lambda model: model.fit(_ROWS)),
    Entry("density", "density.", _with(DensityRatio), lambda model: model.fit(private=_ROWS, public=_ROWS[:40] + 0.1)),
    Entry(
        "regression",
        "regression.",
        _with(PrivateRidge, delta=1e-6, x_bounds=_BOUNDS, y_bounds=(0.0, 2.0), coef_bound=2.0),
        lambda model: model.fit(_ROWS, _ROWS.sum(axis=1)),
        delta=Fraction(1, 10**5),
    ),
    Entry(
        "learning",
        "learning.",
        _with(PrivateClassifier, delta=1e-3, hidden=(), epochs=2, classes=["no", "yes"], n_public=60),
        lambda model: model.fit(_ROWS, _LABELS),
        delta=Fraction(1, 10),
    ),
)
