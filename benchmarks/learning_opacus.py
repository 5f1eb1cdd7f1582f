"""Accuracy of Opacus's linear models on matrices that another process wrote; its own clipping, noise and optimisers.

Batches are Poisson samples; Opacus's loader, which copies row by row, is left out for the sake of time. Reads the file of
matrices named on the command line, writes one JSON line for each run.

    python -m benchmarks.learning_opacus FILE.npz < RUNS > ACCURACIES
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

RATE, STEPS = 0.1, 300


def accuracy(x: torch.Tensor, y: torch.Tensor, train: Any, test: Any, *, sigma: float, adam: bool, seed: int) -> float:
    torch.manual_seed(seed)
    rows, labels = x[train], y[train]
    module = nn.Linear(x.shape[1], int(y.max()) + 1)
    kind: Any = torch.optim.Adam(module.parameters(), lr=0.05)
    if not adam:
        kind = torch.optim.SGD(module.parameters(), lr=0.5, momentum=0.9)
    loader = DataLoader(TensorDataset(rows, labels), batch_size=max(1, round(RATE * len(rows))))
    private, optimizer, _ = PrivacyEngine().make_private(
        module=module,
        optimizer=kind,
        data_loader=loader,
        noise_multiplier=sigma,
        max_grad_norm=1.0,
        poisson_sampling=False,
    )
    optimizer.expected_batch_size = RATE * len(rows)
    each = nn.CrossEntropyLoss()
    for _ in range(STEPS):
        some = torch.rand(len(rows)) < RATE
        optimizer.zero_grad()
        if bool(some.any()):
            each(private(rows[some]), labels[some]).backward()
            optimizer.step()
    with torch.no_grad():
        return float((module(x[test]).argmax(1) == y[test]).double().mean())


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    held = np.load(sys.argv[1])
    for line in sys.stdin:
        asked = json.loads(line)
        name, seed = asked["table"], asked["split"]
        x, y = torch.from_numpy(held[f"{name}.x"]).float(), torch.from_numpy(held[f"{name}.y"])
        train, test = held[f"{name}.{seed}.train"], held[f"{name}.{seed}.test"]
        for way in ("sgd", "adam"):
            asked[way] = accuracy(x, y, train, test, sigma=asked["sigma"], adam=way == "adam", seed=seed)
        print(json.dumps(asked), flush=True)


if __name__ == "__main__":
    main()
