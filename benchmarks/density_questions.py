"""What weights do to questions they say nothing about, and what the rule for such questions costs the others.

    python -m benchmarks.density_questions [--runs N] [--json docs/results/density/questions.json] [--only TABLE]

Each table is cut in two, in the first run evenly and then with rows that are high in its first column mostly private; of the
last one all private rows are far off in one column, where few public rows count, and slightly in two others. Asked are
made-up labels that public and private rows have alike, and the columns themselves. Errors are means over questions, in standard
deviations: of the weighted mean, of what `DensityRatio.query` answers, of the plain mean. Intervals are asked for as they are
and as they would be around the weighted mean alone; counted is how many of those given hold the truth about the covered rows.
Of the last table shares of rows above rising cuts are asked for too: how often one is larger than the one before.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.forecasts import Floats, other_tables, real_tables
from sabun.density import CoverageWarning, DensityRatio
from sabun.density.settling import Settling
from sabun.telling.harness import machine, write_record

_LABELS = 400
_ASKED = 12
"""Labels, and columns, whose interval is asked for: each takes a while."""
_SHARE = 0.3
_EPSILONS = (0.3, 3.0)
_FAR = "one column far off"
_RELEASES, _CUTS = 20, 40
_REAL = ("iris", "wine", "diabetes", "digits", "ionosphere")


def tables() -> Iterator[tuple[str, Floats]]:
    """Eight real tables and three made-up ones; those of three columns are large enough for intervals."""
    rng = np.random.default_rng(7)
    yield from ((name, table) for name, table in real_tables(most=900) if name in _REAL)
    yield "five normal columns", rng.normal(size=(1500, 5))
    yield "three normal columns", rng.normal(size=(6000, 3))
    yield from ((name, table) for name, table in other_tables(most=6000) if table.shape[1] == 3)
    yield _FAR, np.empty((0, 3))


def measured(name: str, table: Floats, epsilon: float, runs: int, rng: np.random.Generator) -> dict[str, Any]:
    """Errors and covers of one table, over some runs."""
    made = [_run(table, epsilon, run, rng) for run in range(runs)]
    found: dict[str, Any] = {"table": name, "epsilon": epsilon, "runs": runs}
    for what in ("labels", "columns"):
        errors = np.mean([one[what] for one in made], axis=0)
        found[what] = dict(zip(("weighted", "answered", "plain"), (round(float(error), 4) for error in errors), strict=True))
        held = np.sum([one[f"{what}, held"] for one in made], axis=0)
        found[f"{what}, held"] = dict(zip(("given", "as it is", "weighted alone"), (int(count) for count in held), strict=True))
    return found


def nested() -> dict[str, Any]:
    """How often the share of rows above a cut rises with the cut, which that of any table cannot."""
    rises = []
    for run in range(_RELEASES):
        private, public = _far_off(np.random.default_rng([7, 99, run]))
        ratio = DensityRatio(epsilon=2.0, random_state=run).fit(private=private, public=public)
        for column in public.T:
            cuts = np.quantile(column, np.linspace(0.01, 0.99, _CUTS))
            rises.append(np.diff([ratio.query(column > cut, kind="share", ci=False) for cut in cuts]))
    steps = np.concatenate(rises)
    return {
        "releases": _RELEASES,
        "steps": len(steps),
        "rising": int((steps > 1e-9).sum()),
        "most": round(float(steps.max()), 4),
    }


def _far_off(rng: np.random.Generator) -> tuple[Floats, Floats]:
    return rng.normal([2.0, 0.1, 0.1], [0.6, 1.0, 1.0], (3000, 3)), rng.normal(size=(600, 3))


def _cut(table: Floats, run: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    if not len(table):
        return _far_off(rng)
    by = rng.random(len(table)) if run == 0 else table[:, 0]
    is_private = rng.random(len(table)) < 0.2 + 0.6 * by.argsort().argsort() / len(table)
    kept = table[~is_private].std(axis=0) > 0
    return table[is_private][:, kept], table[~is_private][:, kept]


def _run(table: Floats, epsilon: float, run: int, rng: np.random.Generator) -> dict[str, Any]:
    private, public = _cut(table, run, rng)
    ratio = DensityRatio(epsilon=epsilon, random_state=run).fit(private=private, public=public)
    covered = ratio.covered(private)
    labels, true_labels = ((rng.random((len(rows), _LABELS)) < _SHARE).astype(float) for rows in (public, private[covered]))
    questions = {"labels": (labels, true_labels.mean(axis=0)), "columns": (public, private[covered].mean(axis=0))}
    found: dict[str, Any] = {}
    for what, (asked, truth) in questions.items():
        told = [ratio.query(column, ci=False) for column in asked.T]
        answers = np.array([ratio.mean(asked), told, asked.mean(axis=0)])
        found[what] = (np.abs(answers - truth) / asked.std(axis=0)).mean(axis=1)
        some = rng.permutation(asked.shape[1])[:_ASKED]
        found[f"{what}, held"] = np.sum([_held(ratio, asked[:, one], truth[one]) for one in some], axis=0)
    return found


def _held(ratio: DensityRatio, values: Floats, truth: float) -> tuple[bool, bool, bool]:
    """Whether there is an interval, whether it holds the truth, and whether that around the weighted mean alone does."""
    now = ratio.query(values).interval  # type: ignore[union-attr]
    with mock.patch.object(Settling, "means", lambda self, values, rows: (self.share @ values,) * 2):
        before = ratio.query(values).interval  # type: ignore[union-attr]
    return now is not None, _holds(now, truth), _holds(before, truth)


def _holds(interval: tuple[float, float] | None, truth: float) -> bool:
    return interval is not None and bool(interval[0] <= truth <= interval[1])


def main() -> int:
    parser = argparse.ArgumentParser(description="Answers to questions that the weights say nothing about.")
    parser.add_argument("--runs", type=int, default=4, help="of each table and epsilon")
    parser.add_argument("--only", metavar="TABLE", help="measure one table again, and keep the others of FILE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write what was measured to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", CoverageWarning)
    kept = json.loads(options.json.read_text(encoding="utf-8"))["rows"] if options.only and options.json else []
    rows = []
    for place, (name, table) in enumerate(tables()):
        if options.only and name != options.only:
            rows += [row for row in kept if row["table"] == name]
            continue
        for epsilon in _EPSILONS:
            rows.append(measured(name, table, epsilon, options.runs, np.random.default_rng([7, place])))
            print(rows[-1], flush=True)
    steps = nested()
    print(steps)
    if options.json:
        write_record(options.json, {"machine": machine(), "rows": rows, "nested": steps})
    return 0


if __name__ == "__main__":
    sys.exit(main())
