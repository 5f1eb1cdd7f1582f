"""Would another kernel be worth its while? Half Gaussian, half additive (one wave for each column), at equal epsilon.

    python -m benchmarks.density_kernels [--runs 48] [--json docs/results/density/kernels.json]

Both kernels have k(x, x) = 1, so both releases have the same sensitivity and the same noise. The tables were not used when the
kernel was proposed; every run draws the made-up ones, and the cut of the real ones, anew. An error is that of a column's mean,
or of the share of rows above the column's public 95 % quantile, over the covered private rows, in public standard deviations. A
difference is told with its standard error over the runs, in each of which both kernels have the same rows.
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
_EPSILONS = (0.3, 3.0)
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
    bits = (rng.random((4000, 10)) < np.linspace(0.05, 0.5, 10)).astype(float)
    drawn = rng.random(4000) < np.exp(0.7 * (bits[:, 0] + bits[:, -1] - 2))
    yield "ten bits, two tilted", bits[:800], bits[800:][drawn[800:]][:1000]
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
    parser.add_argument("--runs", type=int, default=48)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    found: dict[tuple[str, float], list[Floats]] = {}
    for seed in range(options.runs):
        for name, public, private in _tables(np.random.default_rng([11, seed])):
            for epsilon in _EPSILONS:
                pair = [_errors(kernel, public, private, epsilon, seed) for kernel in (GaussianKernel, HalfAdditive)]
                found.setdefault((name, epsilon), []).append(np.array(pair))
    rows = [_row(name, epsilon, np.array(errors)) for (name, epsilon), errors in found.items()]
    for row in rows:
        print(row)
    if options.json:
        write_record(options.json, {"machine": machine(), "runs": options.runs, "rows": rows})
    return 0


def _row(name: str, epsilon: float, errors: Floats) -> dict[str, object]:
    """Means over the runs (runs x kernels x kinds of error), and how well their difference is known."""
    row: dict[str, object] = {"table": name, "epsilon": epsilon}
    for kind, (gaussian, half) in zip(("mean", "tail"), errors.T, strict=True):
        more = half - gaussian
        told = gaussian.mean(), half.mean(), more.mean(), more.std(ddof=1) / len(more) ** 0.5
        row[kind] = dict(zip(("gaussian", "half additive", "more", "error"), (round(float(x), 4) for x in told), strict=True))
    return row


if __name__ == "__main__":
    sys.exit(main())
