"""Clipped sums of a torch module's gradients: one forward pass, one backward pass; proved in ghost.proof.md."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from sabun.errors import ParameterError
from sabun.learning.torch_modules.layers import rule_for

__all__ = ["Loss", "check_module", "clipped_gradients", "needs_fallback"]

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""Outputs and targets to one loss for each example."""

_MIXING = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
)


def clipped_gradients(
    module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, clip_norm: float, fallback: bool = False
) -> dict[str, Tensor]:
    """The sum over examples of their gradients, each cut to the clip norm and divided by it.

    Guarantee: adding or removing one example changes the result by at most 1 in L2, up to floating-point error, provided that
    each example's loss depends on that example alone (`check_module`).

    Args:
        module: What is trained.
        loss: One number for each example.
        x: Inputs, the first dimension counts examples.
        y: Targets.
        clip_norm: The norm to cut to.
        fallback: Write out each example's gradient instead (torch.func); slower, for modules with other layers.
    """
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not len(x):
        return {name: torch.zeros_like(module.get_parameter(name)) for name in names}
    return _by_examples(module, loss, x, y, clip_norm) if fallback else _by_ghosts(module, loss, x, y, clip_norm)


def _by_ghosts(module: nn.Module, loss: Loss, x: Tensor, y: Tensor, clip_norm: float) -> dict[str, Tensor]:
    calls: list[tuple[str, nn.Module, Tensor, Tensor]] = []

    def remember(name: str) -> Any:
        def hook(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            calls.append((name, layer, inputs[0].detach(), output))

        return hook

    handles = [layer.register_forward_hook(remember(name)) for name, layer in _trained(module)]
    try:
        losses = _losses(module, loss, x, y)
    finally:
        for handle in handles:
            handle.remove()
    backs = torch.autograd.grad(losses.sum(), [output for *_, output in calls])
    norms = torch.zeros(len(x), dtype=losses.dtype, device=losses.device)
    with torch.no_grad():
        rules = [rule_for(layer) for _, layer, _, _ in calls]
        for (_, layer, inputs, _), back, rule in zip(calls, backs, rules, strict=True):
            assert rule is not None
            norms += rule.norms(layer, inputs, back)  # proof: norms-add
        share, sound = _shares(norms.sqrt(), clip_norm), torch.isfinite(norms)
        whole = bool(sound.all())
        found: dict[str, Tensor] = {}
        for (name, layer, inputs, _), back, rule in zip(calls, backs, rules, strict=True):
            assert rule is not None
            # An example without a finite norm is left out whole: zero times NaN would spoil everybody's sum.
            parts = (inputs, back, share) if whole else (inputs[sound], back[sound], share[sound])  # proof: sound-rows
            sums = rule.weighted(layer, *parts)
            found |= {f"{name}.{part}".lstrip("."): value for part, value in sums.items()}
    return found


def _shares(norms: Tensor, clip_norm: float) -> Tensor:
    """1 / max(norm, clip norm); 0 for an example whose norm is not a number."""
    share = 1.0 / norms.clamp(min=clip_norm)  # proof: share
    return torch.where(torch.isfinite(norms), share, torch.zeros_like(share))


def _by_examples(module: nn.Module, loss: Loss, x: Tensor, y: Tensor, clip_norm: float) -> dict[str, Tensor]:
    trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    fixed = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad} | dict(module.named_buffers())

    def one(parameters: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
        output = torch.func.functional_call(module, parameters | fixed, (row.unsqueeze(0),))
        return loss(output, target.unsqueeze(0)).sum()

    each = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0), randomness="different")(trained, x, y)
    norms = torch.stack([part.flatten(1).square().sum(1) for part in each.values()]).sum(0).sqrt()
    share = _shares(norms, clip_norm)
    return {name: torch.tensordot(share, torch.nan_to_num(part), dims=1) for name, part in each.items()}


def _losses(module: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> Tensor:
    losses = loss(module(x), y)
    if losses.shape != (len(x),):
        raise ParameterError(
            f"loss must give one number for each example, shape (n,); got {losses.dim()} dimensions. Use reduction='none'."
        )
    return losses


def _trained(module: nn.Module) -> list[tuple[str, nn.Module]]:
    """Layers with trainable parameters of their own."""
    return [
        (name, layer)
        for name, layer in module.named_modules()
        if any(parameter.requires_grad for parameter in layer.parameters(recurse=False))
    ]


def check_module(module: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> None:
    """Refuses a module in which one example can reach another's loss; looks at made-up rows, never at the given values.

    Args:
        module: What is to be trained.
        loss: One number for each example.
        x: Tells shape and type of a row; its values are not used.
        y: Tells shape and type of a target.

    Raises:
        ParameterError: The module normalises over the batch, mixes examples, or has nothing to train.
    """
    for name, layer in module.named_modules():
        if isinstance(layer, _MIXING):
            raise ParameterError(
                f"module must treat each example by itself; got {type(layer).__name__} at {name!r}, which mixes the examples "
                "of a batch or keeps their statistics. Use nn.GroupNorm or nn.LayerNorm instead."
            )
    if not _trained(module):
        raise ParameterError("module must have parameters that require gradients; got none.")
    rows = torch.zeros(3, *x.shape[1:], dtype=x.dtype, device=x.device)
    if x.dtype.is_floating_point:
        rows += torch.linspace(0, 1, 3, device=x.device, dtype=x.dtype).reshape(3, *[1] * (x.dim() - 1))
    targets = torch.zeros(3, *y.shape[1:], dtype=y.dtype, device=y.device)
    other = rows.clone()
    other[2] = other[2] + 1
    with torch.no_grad(), torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        before, after = (_made_up(module, loss, table, targets) for table in (rows, other))
    if not torch.allclose(before[:2], after[:2], rtol=1e-4, atol=1e-6):
        raise ParameterError(
            "module must treat each example by itself; changing one row changes the loss of another. "
            "Take out what reads across the batch."
        )


def _made_up(module: nn.Module, loss: Loss, rows: Tensor, targets: Tensor) -> Tensor:
    torch.manual_seed(0)  # the same dropout twice; the generator is put back afterwards
    return _losses(module, loss, rows, targets)


def needs_fallback(module: nn.Module, x: Tensor) -> bool:
    """Whether some layer has no ghost rule, is used more than once, or shares its weights; says so once."""
    layers = _trained(module)
    unruled = sorted({type(layer).__name__ for _, layer in layers if rule_for(layer) is None})
    owners = [id(p) for _, layer in layers for p in layer.parameters(recurse=False)]
    reused = len(owners) != len(set(owners)) or _called_twice(module, x, [layer for _, layer in layers])
    if not unruled and not reused:
        return False
    reason = f"{', '.join(unruled)} has no ghost rule" if unruled else "a layer is used more than once"
    warnings.warn(f"{reason}: per-example gradients are written out with torch.func, which is slower.", stacklevel=3)
    return True


def _called_twice(module: nn.Module, x: Tensor, layers: list[nn.Module]) -> bool:
    counts: dict[int, int] = {}

    def count(layer: nn.Module, *_: Any) -> None:
        counts[id(layer)] = counts.get(id(layer), 0) + 1

    handles = [layer.register_forward_hook(count) for layer in layers]
    try:
        with torch.no_grad():
            module(torch.zeros(2, *x.shape[1:], dtype=x.dtype, device=x.device))
    finally:
        for handle in handles:
            handle.remove()
    return any(counts.get(id(layer), 0) != 1 for layer in layers)
