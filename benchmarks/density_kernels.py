"""Would another kernel be worth its while? Half Gaussian, half additive (one wave for each column), at equal epsilon.

    python -m benchmarks.density_kernels [--runs 4] [--json FILE]

Both kernels have k(x, x) = 1, so both releases have the same sensitivity and the same noise. The tables were not used when the
kernel was proposed. An error is that of a column's mean, or of the share of rows above the column's public 95 % quantile, over
the covered private rows, in public standard deviations.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.forecasts import Floats, real_tables
from sabun.density import CoverageWarning, DensityRatio, rkhs
from sabun.density.kernel import UNIT_BITS, GaussianKernel
from sabun.telling.harness import machine, write_record

_HELD_OUT = ("iris", "wine", "ionosphere")
_WIDTH = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class HalfAdditive(GaussianKernel):
    """Half of the Gaussian kernel, half of the mean of Gaussian kernels of single columns. A trial: not exact arithmetic."""

    def values(self, points: Floats) -> Floats:
        return self._mixed(points, super().values(points))

    def whole(self, points: Floats) -> NDArray[np.int32]:
        return np.rint(self.values(points) * 2.0**UNIT_BITS).astype(np.int32)

    def gram(self) -> Floats:
        return self._mixed(self.centres.T / self.factor, super().gram())

    def _mixed(self, points: Floats, joint: Floats) -> Floats:
        single = np.zeros_like(joint)
        for column, places in zip(points.T, self.centres / self.factor, strict=True):
            single += np.exp(-((column[:, None] - places) ** 2) / (2 * _WIDTH**2))
        return (joint + single / points.shape[1]) / 2


def _tables(rng: np.random.Generator) -> Iterator[tuple[str, Floats, Floats]]:
    for d in (2, 8):
        public = rng.normal(size=(800, d))
        skewed = rng.normal(size=(1000, d))
        skewed[:, 0] = np.where(skewed[:, 0] > 0, 0.6, 1.2) * skewed[:, 0]
        yield f"skew, {d} columns", public, skewed
        mixed = rng.normal(size=(1000, d)) + 0.8 * rng.integers(0, 2, size=(1000, 1))
        yield f"mixture, {d} columns", public, mixed
    for name, table in real_tables():
        if name in _HELD_OUT:
            private = rng.random(len(table)) < 0.2 + 0.6 * table[:, -1].argsort().argsort() / len(table)
            kept = table[~private].std(axis=0) > 0
            yield name, table[~private][:, kept], table[private][:, kept]


def _errors(kernel: type[GaussianKernel], public: Floats, private: Floats, epsilon: float, seed: int) -> tuple[float, float]:
    with mock.patch.object(rkhs, "GaussianKernel", kernel), warnings.catch_warnings():
        warnings.simplefilter("ignore", CoverageWarning)
        ratio = DensityRatio(epsilon=epsilon, random_state=seed).fit(private=private, public=public)
        covered = private[ratio.covered(private)]
    share = ratio.weights_ / ratio.weights_.sum()
    means = np.abs(share @ public - covered.mean(axis=0)) / public.std(axis=0)
    edges = np.quantile(public, 0.95, axis=0)
    tails = np.abs(share @ (public > edges) - (covered > edges).mean(axis=0)) / 0.05**0.5
    return float(means.mean()), float(tails.mean())


def main() -> int:
    parser = argparse.ArgumentParser(description="The half-additive kernel beside the default.")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    for name, public, private in _tables(np.random.default_rng(11)):
        for epsilon in (0.3, 3.0):
            found = {
                label: np.mean([_errors(kernel, public, private, epsilon, seed) for seed in range(options.runs)], axis=0)
                for label, kernel in (("gaussian", GaussianKernel), ("half additive", HalfAdditive))
            }
            rows.append({"table": name, "epsilon": epsilon} | {label: list(each) for label, each in found.items()})
            shown = "   ".join(f"{label} {mean:.3f} / {tail:.3f}" for label, (mean, tail) in found.items())
            print(f"{name:<20} epsilon {epsilon:<4g} mean / tail: {shown}", flush=True)
    if options.json:
        write_record(options.json, {"machine": machine(), "runs": options.runs, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
