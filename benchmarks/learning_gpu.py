"""Private and plain training on an accelerator: time of a step, examples per second.

Needs torch and Sabun's sources on PYTHONPATH, nothing else; Opacus is measured beside us where it is installed. What is timed
is one step on one batch: clipped sum, noise of torch's generator, update. Where cryptography is installed a line of its own has
the step of the trainer itself with certified noise, which is made on the CPU and moved.

    PYTHONPATH=src python -m benchmarks.learning_gpu [--device cuda] [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import time
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import Figure, keep, machine

if TYPE_CHECKING:
    import torch
    from torch import nn

ROOM = "learning"
MEASURES = ("src/sabun/learning/torch_modules",)
ROUNDS = 30


def mlp(width: int) -> nn.Module:
    from torch import nn

    return nn.Sequential(
        nn.Linear(512, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, 10),
    )


def cnn(width: int) -> nn.Module:
    from torch import nn

    def block(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
        return [nn.Conv2d(inputs, outputs, 3, stride, 1), nn.GroupNorm(8, outputs), nn.ReLU()]

    return nn.Sequential(
        *block(3, width, 1),
        *block(width, 2 * width, 2),
        *block(2 * width, 4 * width, 2),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(64 * width, 10),
    )


def private_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor, precision: str) -> Callable[[], None]:
    import torch

    from sabun.learning.torch_modules.ghost import Clipper

    generator = torch.Generator(device=x.device)
    clipper = Clipper(module, each(), clip_norm=1.0, precision=precision)

    def step() -> None:
        total = clipper(x, y)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                noise = torch.empty_like(total[name]).normal_(0.0, 1.0, generator=generator)
                parameter.sub_((total[name] + noise), alpha=1e-3 / len(x))

    return step


def certified_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    """The trainer's own step on a batch that holds every row."""
    from sabun.learning.poisson import PoissonPlan
    from sabun.learning.stream import Stream
    from sabun.learning.torch_modules.loop import Loop, Training

    plan = PoissonPlan(threshold=1 << 32, steps=1 << 30)
    loop = Loop(plan=plan, multiplier=Fraction(1), clip_norm=1.0, learning_rate=1e-3, noise="certified")
    return Training(loop, module, each(), x, y, stream=Stream(os.urandom(32)), divisor=len(x)).advance


def opacus_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    import torch
    from opacus import PrivacyEngine
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)
    private, optimizer, criterion, _ = PrivacyEngine().make_private(
        module=module,
        optimizer=optimizer,
        criterion=nn.CrossEntropyLoss(),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=len(x)),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=False,
        grad_sample_mode="ghost",
    )

    def step() -> None:
        optimizer.zero_grad()
        criterion(private(x), y).backward()
        optimizer.step()

    return step


def each() -> nn.Module:
    from torch import nn

    return nn.CrossEntropyLoss(reduction="none")


def median_seconds(steps: dict[str, Callable[[], None]], device: torch.device, rounds: int) -> dict[str, float]:
    """The median time of each, taken in turns."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for turn in range(rounds + 3):
        for name, step in steps.items():
            _wait(device)
            start = time.perf_counter()
            step()
            _wait(device)
            if turn >= 3:
                times[name].append(time.perf_counter() - start)
    return {name: sorted(found)[len(found) // 2] for name, found in times.items()}


def _wait(device: torch.device) -> None:
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)


def figures(name: str, make: Callable[[], nn.Module], x: torch.Tensor, rounds: int) -> list[Figure]:
    """Ours beside plain training, and beside Opacus where there is one."""
    import torch

    from sabun.learning.torch_modules.loop import plain_step

    y, plain, loss = torch.randint(0, 10, (len(x),), device=x.device), make().to(x.device), each()
    steps: dict[str, Callable[[], None]] = {
        "plain": lambda: plain_step(plain, loss, x, y, learning_rate=1e-3),
        "double": private_step(make().to(x.device), x, y, "double"),
        "single": private_step(make().to(x.device), x, y, "single"),
    }
    ways = {"double": "sums in double precision", "single": "sums in single precision"}
    if importlib.util.find_spec("cryptography") is not None:
        steps["certified"] = certified_step(make().to(x.device), x, y)
        ways["certified"] = "sums in double precision, certified noise"
    peers = {"plain": "plain torch SGD (NOT private)"}
    if importlib.util.find_spec("opacus") is not None:
        steps["opacus"] = opacus_step(make().to(x.device), x, y)
        peers["opacus"] = "Opacus ghost"
    seconds = median_seconds(steps, x.device, rounds)
    count = sum(parameter.numel() for parameter in plain.parameters())
    return [
        Figure(
            room=ROOM,
            name=f"{name}, {count:,} parameters, batch {len(x):,}, {ways[ours]}, vs {peer}",
            ours=len(x) / seconds[ours],
            peer=len(x) / seconds[peer],
            peer_name=peers[peer],
            unit="examples/s",
            ratio=seconds[peer] / seconds[ours],
            note=f"{1e3 * seconds[ours]:.1f} ms a step beside {1e3 * seconds[peer]:.1f} ms, median of {rounds} taken in turns",
        )
        for ours in ways
        for peer in peers
    ]


def place(device: torch.device) -> dict[str, Any]:
    """The machine, with the accelerator by its name."""
    import torch

    shown = torch.cuda.get_device_name(device) if device.type == "cuda" else "no accelerator"
    return machine() | {"accelerator": shown, "software": f"torch {torch.__version__}"}


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description="Private beside plain training on an accelerator.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(0)
    small = options.quick or device.type == "cpu"
    rounds = 5 if small else ROUNDS
    rows = torch.rand(512 if small else 16_384, 512, device=device)
    images = torch.rand(32 if small else 2_048, 3, 32, 32, device=device)
    width, channels = (128, 8) if small else (2_048, 64)
    found = figures(f"MLP 512-{width}x3-10", lambda: mlp(width), rows, rounds)
    found += figures(f"CNN of three blocks, {channels} channels", lambda: cnn(channels), images, rounds)
    for figure in found:
        print(figure)
    if options.json:
        keep(options.json, found, room="learning_gpu", quick=small, place=place(device))


if __name__ == "__main__":
    main()
