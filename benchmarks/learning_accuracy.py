"""Accuracy of `PrivateClassifier` with nothing chosen but epsilon and the schema: the default, the former default, Opacus.

Ten tables (`learning_tables`), ten fresh splits of each and sixty of those whose test sets are a few dozen rows, epsilon 1, 3
and 8 at delta 1e-5; every way on the same splits, so that differences are paired. Opacus trains linear models on centred
numbers with its two usual optimisers, at the noise that our accountant certifies for the same promise. A command of its own,
for it takes long:

    python -m benchmarks.learning_accuracy [--splits N] [--epsilons 1,3,8] [--tables NAMES] [--kept FOLDER] [--json FILE]
        [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.learning import peers_python
from benchmarks.learning_tables import FRESH, KNOWN, table
from benchmarks.measure import ROOT
from sabun.learning import PrivateClassifier
from sabun.learning.accounting import Target, noise_multiplier
from sabun.learning.poisson import PoissonPlan
from sabun.records import open_source
from sabun.telling.harness import machine, write_record

MEASURES = ("src/sabun/learning", "benchmarks/learning_opacus.py", "benchmarks/learning_tables.py")
DELTA = Fraction(1, 10**5)
SPLITS = {"wine": 60, "iris": 60, "ionosphere": 60, "cancer": 60}
"""Of small tables: one row in a test set of 36 is a standard error of ten splits."""
USUAL = 10
OPACUS = PoissonPlan(threshold=round(0.1 * 2**32), steps=300)


def runs(splits: dict[str, int], epsilons: list[int]) -> Iterator[dict[str, Any]]:
    """What Opacus is asked for, at the noise that our accountant certifies."""
    for epsilon in epsilons:
        sigma = float(noise_multiplier(OPACUS, Target(epsilon=Fraction(epsilon), delta=DELTA), Fraction(0)))
        for name, many in splits.items():
            for split in range(many):
                yield {"table": name, "epsilon": epsilon, "split": split, "sigma": sigma}


def written(splits: dict[str, int], file: Path) -> None:
    """Centred matrices and splits, for a process without Sabun's dependencies."""
    parts: dict[str, Any] = {}
    for name, many in splits.items():
        held = table(name)
        matrix = open_source(held.data, schema=held.schema).matrix()
        parts |= {f"{name}.x": held.schema.design(matrix, to=(-1.0, 1.0)), f"{name}.y": held.codes}
        for split in range(many):
            parts[f"{name}.{split}.train"], parts[f"{name}.{split}.test"] = held.split(split)
    np.savez(file, **parts)


WAYS: dict[str, dict[str, Any]] = {
    "default": {},
    "former default": {"method": "dp-sgd"},
    "pure": {"method": "noisy-centroids", "delta": 0},
}
"""What is chosen, beside epsilon, the schema and the classes."""


def ours(asked: dict[str, Any]) -> dict[str, Any]:
    """Accuracy of each way on one split, with the processor time of the first two, taken in turns."""
    held = table(asked["table"])
    train, test = held.split(asked["split"])
    X, y = held.rows(train), held.labels[train]
    found = dict(asked)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # delta and noise are what they are here
        for way, chosen in WAYS.items():
            facts = {"epsilon": asked["epsilon"], "delta": float(DELTA), "schema": held.schema, "classes": list(held.classes)}
            clf, start = PrivateClassifier(**facts | chosen), time.process_time()
            found[way] = clf.fit(X, y).score(held.rows(test), held.labels[test])
            found[f"{way}, seconds"] = time.process_time() - start
            found[f"{way}, hidden"] = list(clf.model_.network.sizes[1:-1])
    return found


def limit(name: str) -> float:
    """Without privacy: the better of scikit-learn's logistic regression and network of 32, standardised, on three splits."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier

    held = table(name)
    design = held.schema.design(open_source(held.data, schema=held.schema).matrix())
    design = (design - design.mean(axis=0)) / np.maximum(design.std(axis=0), 1e-9)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # neither need converge to the last digit
        for kind in (
            LogisticRegression(max_iter=200),
            MLPClassifier((32,), max_iter=max(20, 10**6 // len(design)), random_state=0),
        ):
            pairs = [held.split(split) for split in range(3)]
            found.append([kind.fit(design[a], held.codes[a]).score(design[b], held.codes[b]) for a, b in pairs])
    return round(max(statistics.fmean(scores) for scores in found), 4)


def lines(file: Path) -> list[dict[str, Any]]:
    """What an earlier run kept."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def left(wanted: list[dict[str, Any]], kept: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Runs that are not kept yet."""
    done = {(one["table"], one["epsilon"], one["split"]) for one in kept}
    return [one for one in wanted if (one["table"], one["epsilon"], one["split"]) not in done]


def opacus(wanted: list[dict[str, Any]], splits: dict[str, int], kept: Path) -> None:
    """Runs of Opacus in its own environment on one thread, each kept as it ends."""
    if not wanted:
        return
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder, kept.open("a") as out:
        file = Path(folder) / "tables.npz"
        written(splits, file)
        subprocess.run(
            [peers_python(), "-m", "benchmarks.learning_opacus", str(file)],
            input="\n".join(map(json.dumps, wanted)),
            stdout=out,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | single,
        )


def rows(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each table and epsilon: means, and paired differences to the better optimiser of Opacus on average."""
    found = []
    peers = {(one["table"], one["epsilon"], one["split"]): one for one in theirs}
    groups: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for one in mine:
        groups.setdefault((one["table"], one["epsilon"]), []).append(one)
    for (name, epsilon), some in sorted(groups.items(), key=lambda item: ((*KNOWN, *FRESH).index(item[0][0]), item[0][1])):
        both = [(one, peers[name, epsilon, one["split"]]) for one in some if (name, epsilon, one["split"]) in peers]
        row: dict[str, Any] = {"table": name, "epsilon": epsilon, "splits": len(some), "fresh": name in FRESH}
        row |= {way: round(statistics.fmean(one[way] for one in some), 4) for way in WAYS}
        row |= {f"{way}, hidden": some[0][f"{way}, hidden"] for way in ("default", "former default")}
        row |= {f"{way}, seconds": round(statistics.median(one[f"{way}, seconds"] for one in some), 3) for way in WAYS}
        former = [one["default"] - one["former default"] for one in some]
        row["above former"], row["above former, error"] = _paired(former)
        if both:
            way = max(("sgd", "adam"), key=lambda way: statistics.fmean(peer[way] for _, peer in both))
            row |= {name: round(statistics.fmean(peer[name] for _, peer in both), 4) for name in ("sgd", "adam")}
            row["above opacus"], row["above opacus, error"] = _paired([one["default"] - peer[way] for one, peer in both])
            row["holds"] = row["above opacus"] >= -2 * row["above opacus, error"]
        found.append(row)
    return found


def _paired(differences: list[float]) -> tuple[float, float]:
    spread = statistics.stdev(differences) if len(differences) > 1 else math.inf
    return round(statistics.fmean(differences), 4), round(spread / math.sqrt(len(differences)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, help="of each table (10, and 60 of small ones)")
    parser.add_argument("--epsilons", default="1,3,8")
    parser.add_argument("--tables", default=",".join((*KNOWN, *FRESH)))
    parser.add_argument("--kept", type=Path, help="folder of runs that are done; those there are not run again")
    parser.add_argument("--json", type=Path, help="write the table here")
    parser.add_argument("--quick", action="store_true", help="wine alone, two splits")
    asked = parser.parse_args()
    splits = {name: asked.splits or SPLITS.get(name, USUAL) for name in asked.tables.split(",")}
    splits = {"wine": 2} if asked.quick else splits
    wanted = list(runs(splits, [int(word) for word in asked.epsilons.split(",")]))
    with tempfile.TemporaryDirectory() as passing:
        folder = asked.kept or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "ours.jsonl").open("a") as out:
            for one in left(wanted, lines(folder / "ours.jsonl")):
                print(json.dumps(ours(one)), file=out, flush=True)
        opacus(left(wanted, lines(folder / "opacus.jsonl")), splits, folder / "opacus.jsonl")
        table_of = rows(*(lines(folder / f"{side}.jsonl") for side in ("ours", "opacus")))
        limits = {name: limit(name) for name in splits}
    for row in table_of:
        print(row)
    if asked.json:
        write_record(asked.json, {"machine": machine(), "rows": table_of, "limits": limits})


if __name__ == "__main__":
    main()
