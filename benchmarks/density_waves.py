"""How large a wave in one column the intervals of density answers allow for.

    python -m benchmarks.density_waves [--runs N] [--json docs/results/density/waves.json]

1500 public rows of normal columns, 8000 private ones; the logarithm of the ratio is a sine of the first column. Asked are the
shares of rows above four cuts of that column; counted is how many of their 95 % intervals hold.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from pathlib import Path

import numpy as np

from sabun.density import CoverageWarning, DensityRatio
from sabun.telling.harness import machine, write_record

_AMPLITUDES = (0.6, 0.8, 1.0, 1.2)
_FREQUENCIES = (2, 3, 4, 6)
_COLUMNS = (1, 2, 4)
_EPSILONS = (1.0, 5.0)
_CUTS = (-0.5, 0.0, 0.5, 1.0)
_PUBLIC, _PRIVATE = 1500, 8000


def held(amplitude: float, frequency: float, columns: int, epsilon: float, run: int) -> int:
    """How many of the four intervals hold."""
    rng = np.random.default_rng([13, run, columns])
    public, more = rng.normal(size=(_PUBLIC, columns)), rng.normal(size=(16 * _PRIVATE, columns))
    chance = np.exp(amplitude * (np.sin(frequency * more[:, 0]) - 1))
    private = more[rng.random(len(more)) < chance][:_PRIVATE]
    ratio = DensityRatio(epsilon=epsilon, random_state=run).fit(private=private, public=public)
    count = 0
    for cut in _CUTS:
        interval = ratio.query(public[:, 0] > cut, kind="share").interval  # type: ignore[union-attr]
        assert interval is not None, "so many rows leave little open"
        count += bool(interval[0] <= (private[:, 0] > cut).mean() <= interval[1])
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description="Waves in one column, and whether intervals hold.")
    parser.add_argument("--runs", type=int, default=4, help="of each wave, number of columns and epsilon")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was measured to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CoverageWarning)
    rows = []
    for amplitude, frequency in itertools.product(_AMPLITUDES, _FREQUENCIES):
        kinds = list(itertools.product(_COLUMNS, _EPSILONS))
        hits = {kind: sum(held(amplitude, frequency, *kind, run) for run in range(options.runs)) for kind in kinds}
        rows.append({
            "amplitude": amplitude,
            "frequency": frequency,
            "asked": len(kinds) * options.runs * len(_CUTS),
            "held": sum(hits.values()),
            "lowest": min(hits.values()) / (options.runs * len(_CUTS)),
        })  # fmt: skip
        print(rows[-1], flush=True)
    if options.json:
        write_record(options.json, {"machine": machine(), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
