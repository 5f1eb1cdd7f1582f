"""Chooses the settings of `sabun reproduce learning`: every place of every grid, on rows that no result is measured on.

A model is trained on folds 6 to 9 and judged on fold 0; results are measured on folds 1 to 5. The mean of the
runs decides.

    python -m benchmarks.learning_tuning [NAME ...] [--csv FILE]
"""

from __future__ import annotations

import argparse
import csv
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from sabun.learning.reproduction.contenders import ALL, Contender
from sabun.learning.reproduction.studies import score, studies


def tuned(contender: Contender) -> Iterator[tuple[float, int, float]]:
    """Epsilon, place in the grid, mean accuracy on the tuning fold."""
    study = studies()[contender.study]
    for epsilon in contender.epsilons:
        for place, settings in enumerate(contender.tried(epsilon * contender.tuning_factor)):
            found = [score(study, study.tuning, seed=seed, **settings).accuracy for seed in range(contender.tuning_runs)]
            yield epsilon, place, round(statistics.fmean(found), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these contenders")
    parser.add_argument("--csv", type=Path, help="write all accuracies here")
    asked = parser.parse_args()
    rows: list[tuple[object, ...]] = [("contender", "epsilon", "place", "settings", "accuracy on the tuning fold")]
    for contender in ALL:
        if contender.tuned and (not asked.names or contender.name in asked.names):
            best: dict[float, tuple[float, int]] = {}
            for epsilon, place, accuracy in tuned(contender):
                words = " ".join(
                    f"{name}={value:g}" if value is not None else name for name, value in contender.grid[place].items()
                )
                rows.append((contender.name, epsilon, place, words, accuracy))
                print(*rows[-1], sep=" | ", file=sys.stderr, flush=True)
                best[epsilon] = max(best.get(epsilon, (-1.0, 0)), (accuracy, -place))
            print(f'    "{contender.name}": {tuple(-place for _, place in best.values())},', flush=True)
    if asked.csv:
        with asked.csv.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
