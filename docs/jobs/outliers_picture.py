"""Draws docs/jobs/outliers-intervals.svg: released counts with their intervals over epsilon, on the census data.

    python docs/jobs/outliers_picture.py

The data are public and the draws are seeded simulations, so that the picture is the same every time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sabun.datasets import load_adult
from sabun.outliers import OutlierCount, inspect_outliers
from sabun.telling.reproduction import drawn

COLUMNS = ("age", "hours-per-week", "education-num")
EPSILONS = (0.2, 0.5, 1.0, 2.0, 4.0)
RADIUS = 0.05


def main() -> None:
    people = load_adult()
    table, schema = people.data[list(COLUMNS)], people.schema.select(COLUMNS)
    exact = inspect_outliers(table, k=5, radius=RADIUS, schema=schema).count
    runs = [
        OutlierCount(k=5, radius=RADIUS, epsilon=epsilon, schema=schema, random_state=seed).fit(table)
        for epsilon in EPSILONS
        for seed in range(3)
    ]

    def draw(axes: Any) -> None:
        for place, run in enumerate(runs):
            x = place // 3 + (place % 3 - 1) * 0.18
            low, high = run.interval_
            axes.plot([x, x], [low, high], color="#4c72b0", linewidth=2, alpha=0.6)
            axes.plot([x], [run.count_], marker="o", color="#4c72b0")
        axes.axhline(exact, color="#c44e52", label="exact number (public data, so we may look)")
        axes.set_xticks(range(len(EPSILONS)), [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.set(xlabel="epsilon (three draws each)", ylabel="outliers", ylim=(0, None))
        axes.legend(frameon=False)

    figure = drawn(name="outliers-intervals", title="Released counts with 95 % intervals", draw=draw)
    Path(__file__).with_name("outliers-intervals.svg").write_text(figure.svg, encoding="utf-8")


if __name__ == "__main__":
    main()
