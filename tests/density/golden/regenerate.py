"""Writes densratio.json: weights of densratio 0.4.0 at fixed centres, bandwidth and penalty.

Run in an environment that has densratio:  python tests/density/golden/regenerate.py
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from densratio import densratio

CASES = ((0, 1, 40, 60, 10, 0.7, 0.1), (1, 3, 60, 40, 15, 1.5, 0.01), (2, 5, 50, 50, 20, 2.0, 1.0))


def case(seed: int, columns: int, rows: int, others: int, kernels: int, sigma: float, lam: float) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    private, public = rng.normal(0.5, 0.8, (others, columns)), rng.normal(0.0, 1.0, (rows, columns))
    np.random.seed(seed)  # noqa: NPY002 (densratio draws its centres from numpy's global generator)
    fit = densratio(private, public, alpha=0, sigma_range=[sigma], lambda_range=[lam], kernel_num=kernels, verbose=False)
    return {
        "sigma": sigma,
        "lam": lam,
        "private": private.tolist(),
        "public": public.tolist(),
        "centers": np.asarray(fit.kernel_info.centers).tolist(),
        "weights": np.asarray(fit.compute_density_ratio(public)).ravel().tolist(),
    }


if __name__ == "__main__":
    record = {"densratio": "0.4.0", "cases": [case(*settings) for settings in CASES]}
    Path(__file__).with_name("densratio.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
