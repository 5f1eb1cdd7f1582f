"""Time of one private training step: ours, Opacus, plain torch, taken in turns in one process on one thread.

Needs torch, numba and cryptography, with Sabun's sources on PYTHONPATH; Opacus is measured beside us where it is installed.
Prints one JSON object.

    PYTHONPATH=src python -m benchmarks.learning_steps [--quick]
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import random
import statistics
import time
import warnings
from collections.abc import Callable
from fractions import Fraction

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import numpy as np  # noqa: E402 (threads are fixed first)
import torch  # noqa: E402
from torch import nn  # noqa: E402

from sabun.learning.clipping import ClippedSum, likely_rows, piece_size  # noqa: E402
from sabun.learning.gaussian import rounded_gaussian  # noqa: E402
from sabun.learning.network import Network  # noqa: E402
from sabun.learning.passes import squared_lengths  # noqa: E402
from sabun.learning.poisson import PoissonPlan  # noqa: E402
from sabun.learning.stream import Stream  # noqa: E402
from sabun.learning.torch_modules.ghost import clipped_gradients  # noqa: E402
from sabun.learning.torch_modules.loop import Loop, Training, plain_step  # noqa: E402

EACH = nn.CrossEntropyLoss(reduction="none")
OPACUS = importlib.util.find_spec("opacus") is not None


def mlp(hidden: tuple[int, ...]) -> nn.Sequential:
    sizes = (105, *hidden, 2)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def cnn() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, 2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(16, 32, 4, 2),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def numpy_step(hidden: tuple[int, ...], x: torch.Tensor, y: torch.Tensor, kind: type) -> Callable[[], None]:
    network, stream, counter = Network(sizes=(105, *hidden, 2)), Stream(os.urandom(32)), [0]
    weights, rows, labels = network.initial(), x.numpy(), y.numpy()
    clipped = ClippedSum(network, clip_norm=1.0, piece=piece_size(likely_rows(len(rows), 1.0)), kind=kind)
    pieces = list(clipped.pieces(rows, labels, squared_lengths(rows)))  # once in a run, as DpAdam does

    def step() -> None:
        counter[0] += 1
        total = clipped.over(weights, pieces)
        weights[:] -= 1e-3 / len(rows) * rounded_gaussian(total, sigma=1.0, stream=stream, step=counter[0])

    return step


def torch_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, precision: str) -> Callable[[], None]:
    """The step of the trainer itself, certified noise included, on a batch that holds every row."""
    plan = PoissonPlan(threshold=1 << 32, steps=1 << 30)
    loop = Loop(plan=plan, multiplier=Fraction(1), clip_norm=1.0, learning_rate=1e-3, precision=precision)
    return Training(loop, module, EACH, x, y, stream=Stream(os.urandom(32)), divisor=len(x)).advance


def opacus_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, mode: str) -> Callable[[], None]:
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    settings = {"module": module, "optimizer": optimizer, "data_loader": DataLoader(TensorDataset(x, y), batch_size=len(x))}
    settings |= {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "poisson_sampling": False, "grad_sample_mode": mode}
    if mode == "ghost":
        private, optimizer, criterion, _ = PrivacyEngine().make_private(criterion=nn.CrossEntropyLoss(), **settings)
    else:
        private, optimizer, _ = PrivacyEngine().make_private(**settings)
        criterion = nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        criterion(private(x), y).backward()
        optimizer.step()

    return step


def in_turns(steps: dict[str, Callable[[], None]], seconds: float) -> dict[str, dict[str, float]]:
    """The median time of each, by the processor and by the clock, all taken in turns for that many seconds on one thread.

    Each round has an order of its own: who comes behind a step that fills the processor's memory with other things pays for it.
    """
    clocks = {"processor": time.process_time, "clock": time.perf_counter}
    times: dict[str, dict[str, list[float]]] = {name: {clock: [] for clock in clocks} for name in steps}
    for step in steps.values():
        step()
    end = time.perf_counter() + seconds
    order, dice = list(steps.items()), random.Random(0)
    while time.perf_counter() < end:
        dice.shuffle(order)
        for name, step in order:
            before = {clock: now() for clock, now in clocks.items()}
            step()
            for clock, now in clocks.items():
                times[name][clock].append(now() - before[clock])
    return {name: {clock: statistics.median(some) for clock, some in found.items()} for name, found in times.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    seconds = 2.0 if parser.parse_args().quick else 8.0
    torch.set_num_threads(1)
    torch.manual_seed(0)
    results: dict[str, dict[str, dict[str, float]]] = {}
    for name, hidden in {"3x32": (32, 32, 32), "3x256": (256, 256, 256)}.items():
        for batch in (50, 512, 4096) if name == "3x32" else (512,):
            x, y = torch.rand(batch, 105), torch.randint(0, 2, (batch,))
            plain = mlp(hidden)
            steps = {
                "numpy double": numpy_step(hidden, x, y, np.float64),
                "numpy single": numpy_step(hidden, x, y, np.float32),
                "torch": torch_step(mlp(hidden), x, y, "double"),
                "torch single": torch_step(mlp(hidden), x, y, "single"),
                "plain": lambda m=plain, a=x, b=y: plain_step(m, EACH, a, b, learning_rate=1e-3),
            }
            if OPACUS:
                steps["opacus ghost"] = opacus_step(mlp(hidden), x, y, "ghost")
            results[f"MLP {name}, batch {batch}"] = in_turns(steps, seconds)
    x, y = torch.rand(256, 1, 28, 28), torch.randint(0, 10, (256,))
    plain = cnn()
    steps = {
        "torch": torch_step(cnn(), x, y, "double"),
        "torch single": torch_step(cnn(), x, y, "single"),
        "plain": lambda: plain_step(plain, EACH, x, y, learning_rate=1e-3),
    }
    if OPACUS:
        steps["opacus ghost"] = opacus_step(cnn(), x, y, "ghost")
    results["CNN, batch 256"] = in_turns(steps, seconds)
    if OPACUS:
        results["agreement"] = {"largest difference": {"": agreement()}}
    print(json.dumps(results))


def agreement() -> float:
    """Largest difference to Opacus's per-sample hooks without noise: clipped sum of an MLP and of a CNN."""
    from opacus.grad_sample import GradSampleModule

    worst = 0.0
    for module, x, classes in ((mlp((32, 32)), torch.rand(64, 105), 2), (cnn(), torch.rand(32, 1, 28, 28), 10)):
        y = torch.randint(0, classes, (len(x),))
        ours = clipped_gradients(module, EACH, x, y, clip_norm=0.5)
        wrapped = GradSampleModule(module, loss_reduction="sum")
        EACH(wrapped(x), y).sum().backward()
        each = {name: p.grad_sample for name, p in module.named_parameters()}
        norms = sum(part.flatten(1).square().sum(1) for part in each.values()).sqrt()
        share = 1.0 / norms.clamp(min=0.5)
        for name, part in each.items():
            worst = max(worst, float((torch.tensordot(share, part, dims=1) - ours[name]).abs().max()))
    return worst


if __name__ == "__main__":
    main()
