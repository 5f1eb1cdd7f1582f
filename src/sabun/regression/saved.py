"""What stands in a model file, believed as far as it can be: numbers that a model can have, promises that its study makes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sabun.privacy.guarantee import Guarantee
from sabun.regression.design import Floats
from sabun.regression.intervals import Doubt
from sabun.regression.promise import guarantee_of
from sabun.regression.study import Study
from sabun.regression.variances import LARGEST

__all__ = ["check_possible", "check_promises", "doubt_of", "doubt_record", "spread_of"]

_MOST_VARIANCES = 1000
_PROMISED = ("epsilon", "delta", "relation", "unit", "mechanism", "scope", "simulated")


def spread_of(given: Any, width: int) -> Floats | None:
    """A covariance from a file; it must be one."""
    if given is None:
        return None
    matrix = np.array(given, dtype=np.float64).reshape(width, width)
    even = np.array_equal(matrix, matrix.T) and np.isfinite(matrix).all()
    if not even or np.linalg.eigvalsh(matrix)[0] < -1e-9 * np.abs(matrix).max():
        raise ValueError
    return matrix


def doubt_record(doubt: Doubt) -> dict[str, Any]:
    """What a file keeps of the doubt about an error; that of home data never gets into one."""
    return {"slope": doubt.slope.tolist(), "spread": doubt.spread, "variances": doubt.variances.tolist()}


def doubt_of(given: Any, width: int) -> Doubt | None:
    """What a file says about its error; an earlier version said nothing."""
    if given is None:
        return None
    slope, spread = spread_of(given["slope"], width), float(given["spread"])
    variances = np.array(given["variances"], dtype=np.float64)
    possible = variances.ndim == 1 and 0 < len(variances) <= _MOST_VARIANCES and bool(np.isfinite(variances).all())
    if slope is None or not 0 <= spread <= LARGEST or not possible or not 0 <= variances.min() <= variances.max() <= LARGEST:
        raise ValueError
    return Doubt(slope=slope, spread=spread, variances=variances, home=np.zeros((width, width)))


def moved_of(given: Any, width: int) -> Floats | None:
    """By how much a model fell back to a constant, from a file; nothing in one of a model that did not."""
    if given is None:
        return None
    moved = np.array(given, dtype=np.float64).reshape(width)
    if not np.isfinite(moved).all():
        raise ValueError
    return moved


def check_possible(method: str, beta: Floats, covariance: Floats | None, error: Floats | None, variance: float | None) -> None:
    """Only `pool` knows its precision; `average` is the other method that needs no home data."""
    precise = [part is not None for part in (covariance, error, variance)]
    if method not in ("pool", "average") or precise != [method == "pool"] * 3:
        raise ValueError
    if not np.isfinite(beta).all() or not (variance is None or 0 <= variance < math.inf):
        raise ValueError


def check_promises(study: Study, names: tuple[str, ...], promises: tuple[Guarantee, ...]) -> None:
    """The promises must be those of the study; outside a study, where others may have agreed on another epsilon, the first."""
    named, due = bool(study.organisations), guarantee_of(study)
    if len(set(names)) != len(names) or (named and not set(names) <= set(study.organisations)):
        raise ValueError
    for place, promise in enumerate(promises):
        wanted = _PROMISED if named or place == 0 else ("relation", "scope", "simulated")
        endless = math.isinf(promise.epsilon) == math.isinf(due.epsilon)
        if not endless or any(getattr(promise, name) != getattr(due, name) for name in wanted):
            raise ValueError
