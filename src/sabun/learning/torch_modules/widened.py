"""Canaries for torch modules: the first layer gets columns of its own for them; see `sabun.learning.canaries`."""

from __future__ import annotations

import copy
import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sabun.errors import ParameterError
from sabun.learning.canaries import Canaries, Law, Seen, Sgd, size_for
from sabun.learning.network import Floats
from sabun.learning.stream import Stream
from sabun.learning.torch_modules.paths import Loss
from sabun.learning.torch_modules.run import ModuleRun
from sabun.learning.training import Progress

if TYPE_CHECKING:
    from sabun.learning.torch_modules.trainer import TorchTrainer

__all__ = ["watched_module"]

_FROZEN = 1e-6
"""A learning rate at which weights stay where they start, but those below move by enough for 32 bits to tell."""
_SMALL = 1e-3
"""How large the first weights of canaries are: a canary then moves the next layer by little, and no unit is dead for all."""


def watched_module(
    trainer: TorchTrainer, inside: NDArray[np.bool_], *, stream: Stream, progress: Progress
) -> tuple[Seen, ModuleRun]:
    """One run with frozen weights of a copy of the module with further inputs, on the canaries that are in.

    Raises:
        ParameterError: The module does not begin with a linear layer of plain inputs, or its loss is not cross entropy.
    """
    count = len(inside)
    module, first, width = _widened(trainer.module, count)
    mine = copy.copy(trainer)
    mine.module, mine.checkpoint, mine.ledger, mine.random_state = module, None, None, None
    ask, replaced = mine._checked(), mine._checked().relation == "replace-one"
    size = min(size_for(float(trainer.descent.clip_norm)), float(trainer.input_bound))
    kind, place = first.weight.dtype, mine._place()
    rows = torch.cat([torch.zeros(count, width, dtype=kind), size * torch.eye(count, dtype=kind)], dim=1).to(place)
    loss = mine._loss()
    sides = [_worst(module, one) for one in (rows, -rows)]
    gradients = [_gradients(module, loss, first, one, labels, width, mine.descent.clip_norm) for one, labels in sides]
    kept = torch.from_numpy(inside).to(place)
    x, y = sides[0][0][kept], sides[0][1][kept]
    if replaced:
        x, y = torch.cat([x, sides[1][0][~kept]]), torch.cat([y, sides[1][1][~kept]])
    run = mine._run(ask, x, y)
    run = dataclasses.replace(run, loop=dataclasses.replace(run.loop, learning_rate=_FROZEN))
    own = _places(module, first, width, count)
    divisor = float(run.loop.plan.probability) * (run.n_public or run._noisy_count(stream) or 1)
    rule = Sgd(momentum=run.loop.momentum, rate=_FROZEN, steps=run.loop.plan.steps, divisor=divisor)
    start = run.first()
    before, sums, last = start.velocity[own], [], start.weights[own]
    for state in run.states(stream, progress=progress, start=start):
        after = state.velocity[own]
        sums.append(rule.sums(before, after))
        before, last = after, state.weights[own]
    nothing = np.zeros_like(gradients[0][0])
    seen = Seen(
        canaries=Canaries(
            added=gradients[0][0],
            uncut=gradients[0][1],
            instead=gradients[1][0] if replaced else nothing,
            uncut_instead=gradients[1][1] if replaced else nothing,
        ),
        law=Law(share=float(run.loop.plan.probability), scale=float(run.loop.multiplier), steps=run.loop.plan.steps),
        rule=rule,
        sums=np.array(sums),
        moved=last - start.weights[own],
    )
    return seen, run


def _widened(module: nn.Module, count: int) -> tuple[nn.Module, nn.Linear, int]:
    """A copy whose first layer reads so many further inputs; that layer, and how many inputs there were."""
    wide = copy.deepcopy(module)
    home: nn.Module | None = None
    place, old = "", wide
    while isinstance(old, nn.Sequential) and len(old):
        home, place = old, next(iter(dict(old.named_children())))
        old = getattr(home, place)
    if type(old) is not nn.Linear or not old.weight.requires_grad:
        raise ParameterError(
            "module must begin with a trained torch.nn.Linear to be audited, so that canaries can have inputs of their own; "
            f"got {type(old).__name__}. Audit a module of linear layers with the same settings."
        )
    width, weight = old.in_features, old.weight
    new = nn.Linear(width + count, old.out_features, bias=old.bias is not None, device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        new.weight[:, :width] = weight
        new.weight[:, width:] = _SMALL * torch.randn(old.out_features, count, device=weight.device, dtype=weight.dtype)
        if old.bias is not None:
            new.bias.copy_(old.bias)
    if home is None:
        return new, new, width
    setattr(home, place, new)
    return wide, new, width


def _worst(module: nn.Module, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Each row with the label that the first weights find least likely."""
    with torch.no_grad():
        return rows, module(rows).argmin(dim=1)


def _gradients(
    module: nn.Module, loss: Loss, first: nn.Linear, rows: Tensor, labels: Tensor, width: int, clip_norm: float
) -> tuple[Floats, Floats]:
    """What each row adds to its own weights, clipped and not, in units of the clip norm; one row at a time."""
    trained = [p for p in module.parameters() if p.requires_grad]
    own, norms = [], []
    for place in range(len(rows)):
        some = slice(place, place + 1)
        parts = torch.autograd.grad(loss(module(rows[some]), labels[some]).sum(), trained)
        mine = next(part for part, p in zip(parts, trained, strict=True) if p is first.weight)
        own.append(mine[:, width + place].double().cpu().numpy())
        norms.append(sum(float((part.double() ** 2).sum()) for part in parts) ** 0.5)
    found, lengths = np.array(own), np.array(norms)[:, None]
    return found / np.maximum(lengths, clip_norm), found / clip_norm


def _places(module: nn.Module, first: nn.Linear, width: int, count: int) -> NDArray[np.intp]:
    """Where the canaries' weights stand among all, m x k."""
    at = 0
    for parameter in module.parameters():
        if parameter is first.weight:
            break
        at += parameter.numel() if parameter.requires_grad else 0
    return np.asarray(at + width + np.arange(count)[:, None] + first.in_features * np.arange(first.out_features))
