"""The private training loop for torch modules: needs torch and numpy, nothing else; proved in loop.proof.md."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from sabun.learning.torch_modules.ghost import Loss, clipped_gradients

__all__ = ["Loop", "os_words", "plain_step"]

Words = Callable[[int], np.ndarray]
"""That many uniform 32-bit words."""


def os_words(count: int) -> np.ndarray:
    """Words of the operating system's generator."""
    return np.frombuffer(os.urandom(4 * count), dtype="<u4")


@final
@dataclass(frozen=True, kw_only=True)
class Loop:
    """Settings of one run; all public.

    Args:
        threshold: Probability to take part in a step, in units of 2**-32.
        steps: How many.
        multiplier: Standard deviation of the noise in units of the clip norm.
        clip_norm: To which each example's gradient is cut.
        divisor: By which sums become means: a public constant, or a noisy one that was paid for.
        learning_rate: Of the mean clipped gradient in units of the clip norm; falls along a cosine.
        momentum: Share of the last update that is kept.
        most_rows: Rows worked on at a time; a matter of memory only.
        fallback: Write out per-example gradients also where that is not needed.
    """

    threshold: int
    steps: int
    multiplier: float
    clip_norm: float
    divisor: float
    learning_rate: float
    momentum: float = 0.9
    most_rows: int = 4096
    fallback: bool = False

    def run(self, module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, words: Words) -> Iterator[int]:
        """Trains the module in place; yields the number of each finished step."""
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        velocity = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in trained.items()}
        generator = torch.Generator(device=x.device)
        for step in range(self.steps):
            members = np.flatnonzero(words(len(x)) < self.threshold)  # proof: independent-rows
            total = self._sum(module, loss, x, y, torch.from_numpy(members).to(x.device))
            seed = words(2).astype(np.uint64)
            generator.manual_seed(int(seed[0]) << 31 | int(seed[1]) >> 1)  # proof: os-seed
            rate = self.learning_rate * 0.5 * (1 + math.cos(math.pi * step / self.steps))
            with torch.no_grad():
                for name, parameter in trained.items():
                    noise = torch.empty_like(total[name]).normal_(0.0, self.multiplier, generator=generator)  # proof: noise
                    velocity[name].mul_(self.momentum).add_((total[name] + noise) / self.divisor)
                    parameter.sub_((rate * velocity[name]).to(parameter.dtype))
            yield step + 1

    def _sum(self, module: nn.Module, loss: Loss, x: Tensor, y: Tensor, members: Tensor) -> dict[str, Tensor]:
        """The clipped sum over the members, a few thousand at a time."""
        pieces = torch.split(members, self.most_rows) if len(members) else (members,)
        total: dict[str, Tensor] = {}
        for piece in pieces:
            part = clipped_gradients(module, loss, x[piece], y[piece], clip_norm=self.clip_norm, fallback=self.fallback)
            total = part if not total else {name: total[name] + value for name, value in part.items()}
        return total


def plain_step(module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, learning_rate: float) -> None:
    """One ordinary SGD step, for comparison. NOT PRIVATE."""
    names = [p for p in module.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss(module(x), y).mean(), names)
    with torch.no_grad():
        for parameter, gradient in zip(names, gradients, strict=True):
            parameter.sub_(learning_rate * gradient)
