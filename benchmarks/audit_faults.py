"""Published faults, run in the library that has them: results on two neighbouring tables, many times.

python -m benchmarks.audit_faults RUNS FILE.npz     with an interpreter that has diffprivlib
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from diffprivlib import __version__ as version
from diffprivlib.mechanisms import Laplace
from diffprivlib.models import LinearRegression


def laplace(value: float) -> float:
    """A sum of one cell between 0 and 1, claim 1: the noise is right in law, its floating-point digits are not."""
    return float(Laplace(epsilon=1.0, sensitivity=1.0).randomise(value))


def regression(row: float) -> float:
    """A slope, claim 1, with bounds that start at 0: the lower bound is taken twice, and the squares have no noise."""
    table = np.array([[0.0], [0.0], [row]])
    model = LinearRegression(epsilon=1.0, bounds_X=(0.0, 1.0), bounds_y=(0.0, 1.0), fit_intercept=False)
    return float(model.fit(table, np.zeros(3)).coef_[0])


def main() -> None:
    warnings.simplefilter("ignore")
    runs = int(sys.argv[1])
    found = {
        f"{name}.{side}": np.array([function(float(side)) for _ in range(runs if name == "laplace" else runs // 200)])
        for name, function in (("laplace", laplace), ("regression", regression))
        for side in (0, 1)
    }
    np.savez(sys.argv[2], version=version, **found)


if __name__ == "__main__":
    main()
