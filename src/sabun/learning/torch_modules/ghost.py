"""Clipped sums of a torch module's gradients, one forward pass with one backward pass; proved in ghost.proof.md."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from sabun.errors import ParameterError
from sabun.learning.torch_modules.layers import rule_for
from sabun.learning.torch_modules.structure import Loss, chain, check_dimensions, refuse, why_written_out

__all__ = ["MARGIN", "Loss", "check_module", "clipped_gradients", "needs_fallback"]

MARGIN = 2.0**-30
"""By how much, relatively, a norm in doubles is taken larger than it was found."""

_WRITTEN_AT_ONCE = 1 << 25
"""Numbers in the per-example gradients that are written out at a time; a matter of memory only."""


def clipped_gradients(
    module: nn.Module, loss: Loss, x: Tensor, y: Tensor, *, clip_norm: float, fallback: bool = False
) -> dict[str, Tensor]:
    """The sum over examples of their gradients, each cut to the clip norm and divided by it, as doubles.

    Guarantee: one example contributes at most 1 in L2; its contribution is computed from that example alone, by structure.
    A module that is no chain of known layers is always written out, whatever `fallback` says.

    Args:
        module: What is trained.
        loss: One number for each example.
        x: Inputs, the first dimension counts examples.
        y: Targets.
        clip_norm: The norm to cut to.
        fallback: Write out each example's gradient (torch.func) also where that is not needed; slower.
    """
    trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    total = {name: torch.zeros_like(p, dtype=torch.float64) for name, p in trained.items()}
    if not len(x):
        return total
    if not fallback and why_written_out(module, loss) is None:  # proof: whitelist
        return _by_ghosts(module, loss, x, y, clip_norm)
    rows = max(1, _WRITTEN_AT_ONCE // max(1, sum(p.numel() for p in trained.values())))
    for some_x, some_y in zip(torch.split(x, rows), torch.split(y, rows), strict=True):
        # Whatever the module or the loss may remember of these rows goes away with the copies.
        twin, measure = copy.deepcopy((module, loss))  # proof: twin
        for name, part in _by_examples(twin, trained, measure, some_x, some_y, clip_norm).items():
            total[name] += part
    return total


def _by_ghosts(module: nn.Module, loss: Loss, x: Tensor, y: Tensor, clip_norm: float) -> dict[str, Tensor]:
    calls: list[tuple[str, nn.Module, Tensor, Tensor]] = []
    flow = x
    for name, layer in chain(module):  # proof: chain
        check_dimensions(layer, tuple(flow.shape))
        inputs, flow = flow, layer(flow)
        if any(parameter.requires_grad for parameter in layer.parameters(recurse=False)):
            calls.append((name, layer, _double(inputs.detach()), flow))
    losses = _one_each(loss(flow, y), len(x))
    backs = [back.double() for back in torch.autograd.grad(losses.sum(), [output for *_, output in calls])]
    with torch.no_grad():
        norms = torch.zeros(len(x), dtype=torch.float64, device=x.device)
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
            found |= {f"{name}.{part}".lstrip("."): value for part, value in rule.weighted(layer, *parts).items()}
    return found


def _double(inputs: Tensor) -> Tensor:
    return inputs.double() if inputs.dtype.is_floating_point else inputs


def _shares(norms: Tensor, clip_norm: float) -> Tensor:
    """1 / max(norm with its margin, clip norm); 0 for an example whose norm is not a number."""
    share = 1.0 / (norms * (1 + MARGIN)).clamp(min=clip_norm)  # proof: share
    return torch.where(torch.isfinite(norms), share, torch.zeros_like(share))


def _by_examples(
    twin: nn.Module, trained: dict[str, Tensor], loss: Loss, x: Tensor, y: Tensor, clip_norm: float
) -> dict[str, Tensor]:
    """The same from gradients written out, each computed on a batch of one; the twin is thrown away afterwards."""
    fixed = {name: p.detach().clone() for name, p in twin.named_parameters() if not p.requires_grad}
    fixed |= {name: buffer.clone() for name, buffer in twin.named_buffers()}

    def one(parameters: dict[str, Tensor], row: Tensor, target: Tensor) -> Tensor:
        output = torch.func.functional_call(twin, parameters | fixed, (row.unsqueeze(0),))  # proof: batch-of-one
        return _one_each(loss(output, target.unsqueeze(0)), 1).sum()

    each = torch.func.vmap(torch.func.grad(one), in_dims=(None, 0, 0), randomness="different")(trained, x, y)
    with torch.no_grad():
        written = {name: part.detach().double() for name, part in each.items()}
        norms = torch.stack([part.flatten(1).square().sum(1) for part in written.values()]).sum(0).sqrt()
        share, sound = _shares(norms, clip_norm), torch.isfinite(norms)
        return {name: torch.tensordot(share[sound], part[sound], dims=1) for name, part in written.items()}


def _one_each(losses: Tensor, count: int) -> Tensor:
    if losses.shape != (count,):
        raise ParameterError(
            f"loss must give one number for each example, shape (n,); got {losses.dim()} dimensions. Use reduction='none'."
        )
    return losses


def check_module(module: nn.Module, loss: Loss, x: Tensor, y: Tensor) -> tuple[int, ...]:
    """Refuses a module that cannot be trained privately; looks at its structure, at made-up rows, never at the given values.

    Args:
        module: What is to be trained.
        loss: One number for each example.
        x: Tells shape and type of a row; its values are not used.
        y: Tells shape and type of a target.

    Returns:
        The shape of the module's output for three rows.

    Raises:
        ParameterError: The module keeps statistics, writes into its buffers, cannot be differentiated example by example, or
            has nothing to train.
    """
    refuse(module)
    rows = torch.zeros(3, *x.shape[1:], dtype=x.dtype, device=x.device)
    if x.dtype.is_floating_point:
        spread = torch.arange(rows.numel(), device=x.device, dtype=torch.float64) * 0.6180339887498949 % 1 + 0.5
        rows += spread.reshape(rows.shape).to(x.dtype)  # numbers all different: a constant row would hide what is written
    targets = torch.zeros(3, *y.shape[1:], dtype=y.dtype, device=y.device)
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        shape = _forward_leaves_nothing(module, rows)
        try:
            clipped_gradients(module.train(), loss, rows, targets, clip_norm=1.0)
        except ParameterError:
            raise
        except Exception as error:
            raise ParameterError(
                "module must be differentiable example by example with torch.func; "
                f"got {type(error).__name__} on made-up rows. Take out what writes in place or branches on values."
            ) from error
    return shape


def _forward_leaves_nothing(module: nn.Module, rows: Tensor) -> tuple[int, ...]:
    """Runs a copy on made-up rows; buffers and weights have to be the same afterwards, bit for bit."""
    try:
        twin = copy.deepcopy(module).train()
        with torch.no_grad():
            output = twin(rows)
    except Exception as error:
        raise ParameterError(
            f"module must be copyable, taking a batch of rows of this shape; got {type(error).__name__} on made-up rows."
        ) from error
    before, after = (dict(one.named_parameters()) | dict(one.named_buffers()) for one in (module, twin))
    for name, value in before.items():
        if name not in after or not torch.equal(value.nan_to_num(), after[name].nan_to_num()):
            raise ParameterError(
                f"buffers must not change in training; {name!r} does, and would be released without noise. "
                "Take out what keeps statistics of rows."
            )
    return tuple(getattr(output, "shape", ()))


def needs_fallback(module: nn.Module, loss: object) -> bool:
    """Whether the module is no chain of known layers, so that gradients are written out; says so."""
    reason = why_written_out(module, loss)
    if reason is None:
        return False
    warnings.warn(f"{reason}: per-example gradients are written out with torch.func, which is slower.", stacklevel=3)
    return True
