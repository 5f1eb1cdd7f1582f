"""Private learning: time of a step beside Opacus and plain torch, accuracy on Adult.

Steps are timed in an environment of their own with torch and Opacus (made on first use, or named by
SABUN_LEARNING_PEERS_PYTHON), ours and theirs in turns in one process on one thread.

    python -m benchmarks.learning [--quick] [--json FILE]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from typing import Any

from benchmarks.measure import ROOT, Figure, main, peer_python
from sabun.learning.reproduction.studies import TEST_FOLDS, score, studies

MEASURES = ("src/sabun/learning", "benchmarks/learning_steps.py")
PEERS = ROOT / ".venv-peers-learning"
PACKAGES = ("torch==2.13.0", "opacus==1.6.0", "cryptography", "numba")
OPACUS = "Opacus 1.6.0 ghost"
ACCURACIES: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("dp-sgd, joint (0.1, 1e-5)", {"epsilon": 0.1, "delta": 1e-5}, 0.828),
    ("dp-sgd, joint (1, 1e-5)", {"epsilon": 1, "delta": 1e-5}, 0.836),
    ("pure epsilon 1 (objective perturbation)", {"epsilon": 1, "method": "objective-perturbation"}, 0.825),
    ("pure epsilon 1 (synthetic table)", {"epsilon": 1, "method": "anonymizing-first"}, 0.822),
)
"""What is run, with the accuracy that was asked for."""


def peers_python() -> str:
    return peer_python(PEERS, [[package] for package in PACKAGES], named="SABUN_LEARNING_PEERS_PYTHON")


def step_times(quick: bool) -> dict[str, dict[str, dict[str, float]]]:
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [peers_python(), "-m", "benchmarks.learning_steps", *(["--quick"] if quick else [])],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | single | {"PYTHONPATH": str(ROOT / "src")},
    )
    result: dict[str, dict[str, dict[str, float]]] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def speed(quick: bool) -> list[Figure]:
    times = step_times(quick)
    figures = []
    mlp = "MLP 3x32, batch"
    targets = {(f"{mlp} {batch}", "numpy double"): 2.0 for batch in (50, 512, 4096)}
    targets |= {(f"{mlp} 50", "numpy single"): 5.0, (f"{mlp} 512", "numpy single"): 4.0}
    limits = {(f"{mlp} {batch}", "numpy single"): 1 / 1.3 for batch in (512, 4096)}
    for job, found in times.items():
        if "plain" not in found:
            continue
        for ours in ("numpy double", "numpy single", "torch", "torch single"):
            if ours not in found:
                continue
            # Opacus computes in single precision.
            target = targets.get((job, ours), 1.2 if ours.startswith("torch") else None)
            figures.append(_against(job, ours, found, "opacus ghost", OPACUS, target))
            figures.append(_against(job, ours, found, "plain", "plain torch SGD (NOT private)", limits.get((job, ours))))
    worst = times["agreement"]["largest difference"][""]
    note = "clipped sums of an MLP and a CNN without noise; at most 1e-5"
    figures.append(
        Figure(room="learning", name="largest difference to Opacus's per-sample hooks", ours=worst, unit="", note=note)
    )
    return figures


def _against(
    job: str, ours: str, found: dict[str, dict[str, float]], peer: str, peer_name: str, target: float | None
) -> Figure:
    by_clock = found[peer]["clock"] / found[ours]["clock"]
    return Figure(
        room="learning",
        name=f"step, {job}, {ours}, vs {peer}",
        ours=found[ours]["processor"],
        peer=found[peer]["processor"],
        peer_name=peer_name,
        ratio=found[peer]["processor"] / found[ours]["processor"],
        target=target,
        note=f"one thread, median processor time of steps taken in turns; {by_clock:.2f} by the clock",
    )


def accuracy() -> list[Figure]:
    study = studies()["adult"]
    figures = []
    for name, settings, stated in ACCURACIES:
        scores = [score(study, study.split(fold), seed=None, **settings).accuracy for fold in TEST_FOLDS]
        mean = statistics.fmean(scores)
        figures.append(
            Figure(
                room="learning",
                name=f"Adult, {name}",
                ours=mean,
                peer=stated,
                peer_name="stated",
                unit="accuracy",
                ratio=mean / stated,
                target=1.0,
                note=f"folds 1 to 5 of ten, held out, default settings; sd over folds {statistics.stdev(scores):.4f}",
            )
        )
    return figures


def run(quick: bool) -> list[Figure]:
    """All figures."""
    return speed(quick) + accuracy()


if __name__ == "__main__":
    main(run)
