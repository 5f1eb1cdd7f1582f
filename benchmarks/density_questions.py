"""What weights do to questions they say nothing about: 400 made-up labels, of public and private rows alike.

    python -m benchmarks.density_questions

Mean errors in standard deviations of the label: of the weighted mean, of what `DensityRatio.query` answers, of the plain mean.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

from benchmarks.forecasts import real_tables
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.inference import settled_mean

_LABELS = 400
_SHARE = 0.3


def main() -> int:
    rng = np.random.default_rng(7)
    tables = {name: table for name, table in real_tables(most=900) if name in ("wine", "diabetes", "digits")}
    tables["five normal columns"] = rng.normal(size=(1500, 5))
    warnings.simplefilter("ignore", CoverageWarning)
    for name, table in tables.items():
        for epsilon in (0.3, 3.0):
            errors = []
            for run in range(3):
                by = rng.random(len(table)) if run == 0 else table[:, 0]
                private = rng.random(len(table)) < 0.2 + 0.6 * by.argsort().argsort() / len(table)
                kept = table[~private].std(axis=0) > 0
                ratio = DensityRatio(epsilon=epsilon, random_state=run)
                share = ratio.fit(private=table[private][:, kept], public=table[~private][:, kept]).weights_
                share = share / share.sum()
                labels = (rng.random((len(share), _LABELS)) < _SHARE).astype(float)
                truth = (rng.random((int(private.sum()), _LABELS)) < _SHARE).mean(axis=0)
                settled = np.array([settled_mean(label, share) for label in labels.T])
                answers = np.array([share @ labels, settled, labels.mean(axis=0)])
                errors.append(np.abs(answers - truth).mean(axis=1) / (_SHARE * (1 - _SHARE)) ** 0.5)
            weighted, settled_error, plain = np.mean(errors, axis=0)
            print(f"{name:<20} epsilon {epsilon:<4g} weighted {weighted:.3f}  answered {settled_error:.3f}  plain {plain:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
