"""Examples per second of private and plain training on an accelerator; prints one JSON object.

Needs torch and Sabun's sources on PYTHONPATH, nothing else; Opacus is measured beside us where it is installed.

    PYTHONPATH=src python benchmarks/learning_gpu.py [--device cuda] [--quick]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from sabun.learning.torch_modules.ghost import clipped_gradients
from sabun.learning.torch_modules.loop import plain_step

EACH = nn.CrossEntropyLoss(reduction="none")


def mlp(width: int) -> nn.Module:
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


def private_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    generator = torch.Generator(device=x.device)

    def step() -> None:
        total = clipped_gradients(module, EACH, x, y, clip_norm=1.0)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                noise = torch.empty_like(total[name]).normal_(0.0, 1.0, generator=generator)
                parameter.sub_((1e-3 / len(x) * (total[name] + noise)).to(parameter.dtype))

    return step


def opacus_step(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    from opacus import PrivacyEngine
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
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measured(name: str, make: Callable[[], nn.Module], x: torch.Tensor, classes: int, rounds: int) -> dict[str, Any]:
    y = torch.randint(0, classes, (len(x),), device=x.device)
    plain = make().to(x.device)
    steps: dict[str, Callable[[], None]] = {
        "plain": lambda: plain_step(plain, EACH, x, y, learning_rate=1e-3),
        "private": private_step(make().to(x.device), x, y),
    }
    if importlib.util.find_spec("opacus") is not None:
        steps["opacus ghost"] = opacus_step(make().to(x.device), x, y)
    seconds = median_seconds(steps, x.device, rounds)
    parameters = sum(p.numel() for p in plain.parameters())
    result: dict[str, Any] = {"model": name, "parameters": parameters, "batch": len(x)}
    result["milliseconds"] = {step: 1e3 * value for step, value in seconds.items()}
    result["examples_per_second"] = {step: len(x) / value for step, value in seconds.items()}
    result["private_over_plain_time"] = seconds["private"] / seconds["plain"]
    if "opacus ghost" in seconds:
        result["speed_over_opacus_ghost"] = seconds["opacus ghost"] / seconds["private"]
    return result


def main() -> None:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description="Private beside plain training on an accelerator.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    device = torch.device(options.device)
    torch.manual_seed(0)
    small = options.quick or device.type == "cpu"
    rounds = 5 if small else 30
    rows = torch.rand(512 if small else 16_384, 512, device=device)
    images = torch.rand(32 if small else 2_048, 3, 32, 32, device=device)
    width, channels = (128, 8) if small else (2_048, 64)
    record = {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "torch": str(torch.__version__),
        "python": sys.version.split()[0],
        "results": [
            measured(f"MLP 512-{width}x3-10", lambda: mlp(width), rows, 10, rounds),
            measured(f"CNN of three blocks, {channels} channels", lambda: cnn(channels), images, 10, rounds),
        ],
    }
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
