"""Whether a torch module can be trained privately: told from structure and from made-up rows, before anything is charged."""

from __future__ import annotations

import copy
import warnings

import torch
from torch import Tensor, nn

from sabun.errors import ParameterError
from sabun.learning.torch_modules.ghost import clipped_gradients
from sabun.learning.torch_modules.paths import Loss, last_of_chain, refuse, why_written_out

__all__ = ["check_module", "must_end_in_classes", "needs_fallback"]


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
        ParameterError: The module keeps statistics, writes into its buffers, draws random numbers, cannot be copied or
            differentiated example by example, has nothing to train, or learns nothing from its loss.
    """
    refuse(module)
    _copies_share_nothing(module, loss)
    rows = torch.zeros(3, *x.shape[1:], dtype=x.dtype, device=x.device)
    if x.dtype.is_floating_point:
        spread = torch.arange(rows.numel(), device=x.device, dtype=torch.float64) * 0.6180339887498949 % 1 + 0.5
        rows += spread.reshape(rows.shape).to(x.dtype)  # numbers all different: a constant row would hide what is written
    targets = torch.zeros(3, *y.shape[1:], dtype=y.dtype, device=y.device)
    with torch.random.fork_rng(devices=[x.device] if x.device.type == "cuda" else []):
        shape = _forward_leaves_nothing(module, rows)
        _must_tell_apart(loss, shape[1] if len(shape) > 1 else None)
        try:
            clipped_gradients(module.train(), loss, rows, targets, clip_norm=1.0)
        except ParameterError:
            raise
        except Exception as error:
            if "randomness error mode" in str(error):
                raise ParameterError(
                    f"module must not draw random numbers; got {type(module).__name__}, which does. "
                    "Leave out dropout: the noise regularises."
                ) from error
            raise ParameterError(
                "module must be differentiable example by example with torch.func; "
                f"got {type(error).__name__} on made-up rows. Give y in the shape and type that the loss takes; "
                "take out what writes in place or branches on values."
            ) from error
    return shape


def must_end_in_classes(module: nn.Module, loss: Loss) -> None:
    """Refuses a chain whose last layer gives cross entropy a single output, where no row is at hand to try.

    Raises:
        ParameterError: It does.
    """
    last = None if why_written_out(module, loss) is not None else last_of_chain(module)
    _must_tell_apart(loss, last.out_features if isinstance(last, nn.Linear) else None)


def _must_tell_apart(loss: Loss, outputs: int | None) -> None:
    """Cross entropy over a single class is 0 whatever the weights: noise alone would be trained in, and paid for."""
    if isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss) and outputs == 1:
        raise ParameterError(
            "module must give at least two outputs for cross entropy, one for each class; got 1, whose loss is always 0. "
            "Give it two outputs for two classes, or pass a loss of your own for one output: a function of outputs and y that "
            "gives binary_cross_entropy_with_logits(outputs[:, 0], y, reduction='none'), for y of 0.0 and 1.0."
        )


def _copies_share_nothing(module: nn.Module, loss: Loss) -> None:
    """Refuses a module or loss whose copy is itself in some part, which would remember rows."""
    for what, given in (("module", module), ("loss", loss)):
        if not isinstance(given, nn.Module):
            continue
        try:
            copied = copy.deepcopy(given)
        except Exception as error:
            raise ParameterError(f"{what} must be copyable; got {type(error).__name__} from copy.deepcopy.") from error
        if {id(part) for part in copied.modules()} & {id(part) for part in given.modules()}:
            raise ParameterError(
                f"{what} must be copyable; got {type(given).__name__}, whose copy shares parts with it. Take out __deepcopy__."
            )


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
