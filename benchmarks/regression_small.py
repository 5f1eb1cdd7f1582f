"""A private fit of a small table beside scikit-learn's fits, taken in turns: what is fixed about a release, not what grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn.linear_model import LinearRegression, Ridge
from threadpoolctl import threadpool_limits

from benchmarks.measure import Figure, faster, main
from sabun.regression import PrivateRidge

ROOM = "regression_small"
MEASURES = ("src/sabun/regression", "src/sabun/release", "src/sabun/privacy/noise")


def run(quick: bool) -> list[Figure]:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 5))
    y = np.clip(X @ rng.normal(size=5) * 0.1, -1, 1)
    fits: dict[str, Callable[[], Any]] = {
        "ours": lambda: PrivateRidge(epsilon=1, x_bounds=(-1, 1), y_bounds=(-1, 1)).fit(X, y),
        "Ridge": lambda: Ridge(solver="cholesky").fit(X, y),
        "Ridge, its own solver": lambda: Ridge().fit(X, y),
        "LinearRegression": lambda: LinearRegression().fit(X, y),
    }
    with threadpool_limits(1):
        seconds = _medians(fits, 40 if quick else 300)
    name = "default fit, 1,000 rows x 5 features, with an intercept, CPU"
    return [
        faster(
            ROOM,
            name,
            ours=seconds["ours"],
            peer=seconds[peer],
            peer_name=f"scikit-learn {sklearn.__version__} {peer}",
            target=0.2,
            note="median of fits taken in turns; at most five times as long is wanted",
        )
        for peer in fits
        if peer != "ours"
    ]


def _medians(fits: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Processor time of each."""
    times: dict[str, list[float]] = {name: [] for name in fits}
    for turn in range(turns + 3):
        for name, fit in fits.items():
            start = time.process_time()
            fit()
            if turn >= 3:
                times[name].append(time.process_time() - start)
    return {name: float(np.median(found)) for name, found in times.items()}


if __name__ == "__main__":
    main(run)
